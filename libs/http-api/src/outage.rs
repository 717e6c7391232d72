//! Logging a failure that repeats: once when it begins, once when it is over.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};

use lifecycle::error_chain;

/// One thing that can be out of order for a while.
#[derive(Debug)]
pub struct Outage {
    what: &'static str,
    lasts: AtomicBool,
}

impl Outage {
    /// `what` completes the sentence "failed to …".
    pub fn of(what: &'static str) -> Self {
        Self {
            what,
            lasts: AtomicBool::new(false),
        }
    }

    /// It failed; only the first failure of a series is logged.
    pub fn failed(&self, error: &(dyn Error + 'static)) {
        if !self.lasts.swap(true, Ordering::Relaxed) {
            tracing::warn!(error = error_chain(error), "failed to {}", self.what);
        }
    }

    /// It worked. Costs a load when it did before.
    pub fn worked(&self) {
        if self.lasts.load(Ordering::Relaxed) && self.lasts.swap(false, Ordering::Relaxed) {
            tracing::info!("no longer failing to {}", self.what);
        }
    }
}
