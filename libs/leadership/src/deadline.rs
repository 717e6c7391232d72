//! A monotonic instant that one task moves and others read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Clones share the instant.
#[derive(Debug, Clone)]
pub(crate) struct Deadline {
    base: Instant,
    nanos: Arc<AtomicU64>,
}

impl Deadline {
    pub(crate) fn at(instant: Instant) -> Self {
        Self {
            base: instant,
            nanos: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Moves it forward; an earlier instant changes nothing.
    pub(crate) fn extend_to(&self, instant: Instant) {
        let nanos =
            u64::try_from(instant.saturating_duration_since(self.base).as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_max(nanos, Ordering::SeqCst);
    }

    pub(crate) fn instant(&self) -> Instant {
        self.base + Duration::from_nanos(self.nanos.load(Ordering::SeqCst))
    }
}
