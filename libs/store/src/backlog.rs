//! How far behind the lane is. Each number is read from the head of an index, so asking stays cheap with any backlog.

use chrono::{DateTime, Utc};

/// The oldest thing that waits, by kind. `None`: nothing waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Since when the oldest `PENDING` one has waited.
    pub oldest_pending: Option<DateTime<Utc>>,
    /// When the longest overdue `SCHEDULED` or `RETRY` push came due; it may lie ahead.
    pub oldest_due: Option<DateTime<Utc>>,
    /// When the first lease of an `IN_MEMORY` push ends; it may lie ahead.
    pub first_lease_end: Option<DateTime<Utc>>,
}
