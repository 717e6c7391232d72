//! The units in which durations are written.
//!
//! It deliberately holds only those that a key uses.

use std::time::Duration;

#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Millis,
    Seconds,
    Minutes,
    Hours,
    Days,
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Millis => "milliseconds",
            Self::Seconds => "seconds",
            Self::Minutes => "minutes",
            Self::Hours => "hours",
            Self::Days => "days",
        }
    }

    pub(crate) fn duration(self, count: u64) -> Duration {
        match self {
            Self::Millis => Duration::from_millis(count),
            Self::Seconds => Duration::from_secs(count),
            Self::Minutes => Duration::from_secs(count.saturating_mul(60)),
            Self::Hours => Duration::from_secs(count.saturating_mul(3600)),
            Self::Days => Duration::from_secs(count.saturating_mul(86_400)),
        }
    }
}
