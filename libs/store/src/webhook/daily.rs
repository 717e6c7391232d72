//! How much of what is kept for weeks or months may be made within a day: the 24 hours before, whenever they began.
//!
//! What is counted, and under which lock, is a matter of who makes it.

use chrono::{DateTime, TimeDelta, Utc};

/// For how long what was made counts.
pub(super) const DAY: TimeDelta = TimeDelta::days(1);

/// When the next one may be made, if `made` of at most `maximum` were within a day, of which `first` is the earliest.
pub(super) fn full_until(made: i64, first: Option<DateTime<Utc>>, maximum: i64) -> Option<DateTime<Utc>> {
    first.filter(|_| made >= maximum).map(|first| first + DAY)
}
