//! The units in which durations are written.
//!
//! It deliberately holds only those that a key uses.

use std::time::Duration;

#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Millis,
    Seconds,
    Hours,
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Millis => "milliseconds",
            Self::Seconds => "seconds",
            Self::Hours => "hours",
        }
    }

    pub(crate) fn duration(self, count: u64) -> Duration {
        match self {
            Self::Millis => Duration::from_millis(count),
            Self::Seconds => Duration::from_secs(count),
            Self::Hours => Duration::from_secs(count.saturating_mul(3600)),
        }
    }
}
