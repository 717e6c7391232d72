//! Time as a dependency. Services take a [`Clock`], so that tests can live through days in milliseconds.
//!
//! Leases between replicas do not use it: those are judged by the database's clock alone, or by monotonic time.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

/// How far the clock of a process and that of the database may be apart for anything to be dropped, expired or forgotten because
/// of its age. From there on receivers refuse signatures, too.
pub const CLOCKS_APART_MAX: TimeDelta = TimeDelta::minutes(1);

/// A source of wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> DateTime<Utc>;
}

/// The operating system's clock: the only place of the workspace that reads it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that everything else is given"
    )]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Mutex<DateTime<Utc>>>);

impl ManualClock {
    /// A clock that shows `start`.
    pub fn starting_at(start: DateTime<Utc>) -> Self {
        Self(Arc::new(Mutex::new(start)))
    }

    /// Moves the clock; a negative `step` turns it back.
    pub fn advance(&self, step: TimeDelta) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now += step;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
