//! When a failed push may be tried again.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::lifecycle::LaneRules;

/// The seed's policy: a fixed delay and a bound on attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Time between the end of an attempt and the next one (`push.retry.delayInSeconds`).
    pub delay: Duration,
    /// Attempts that a push may have in all (`push.retry.maxAttempts`), at least 1; as many again for each replay.
    pub max_attempts: u32,
}

impl RetryPolicy {
    /// What the life cycle of pushes is with it.
    pub fn rules(&self) -> LaneRules {
        LaneRules::pushes(self.max_attempts)
    }

    /// When the next attempt is due after one that ended at `now`.
    pub fn next_attempt_at(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        TimeDelta::from_std(self.delay)
            .ok()
            .and_then(|delay| now.checked_add_signed(delay))
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}
