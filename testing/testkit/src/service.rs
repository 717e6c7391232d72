//! A service that runs in the test's own process.

use std::fmt::Debug;
use std::future::Future;
use std::time::{Duration, Instant};

use lifecycle::{Lifecycle, Readiness, Shutdown};
use tokio::task::JoinHandle;

use crate::PATIENCE;

/// A service at work. Dropped without having been stopped, it stops in the background.
pub struct Service<E> {
    shutdown: Shutdown,
    readiness: Readiness,
    grace: Duration,
    run: Option<JoinHandle<Result<(), E>>>,
}

impl<E: Debug + Send + 'static> Service<E> {
    /// Starts what `run` makes of a life cycle. `grace` is the grace period of the service's own configuration.
    pub fn start<F>(grace: Duration, run: impl FnOnce(Lifecycle) -> F) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let (shutdown, readiness) = (Shutdown::new(), Readiness::default());
        let lifecycle = Lifecycle {
            shutdown: shutdown.clone(),
            readiness: readiness.clone(),
        };
        Self {
            shutdown,
            readiness,
            grace,
            run: Some(tokio::spawn(run(lifecycle))),
        }
    }

    /// Whether it says that it can do its work.
    pub fn is_ready(&self) -> bool {
        let report = self.readiness.report();
        report.ready && !report.conditions.is_empty()
    }

    /// Why one of its conditions does not hold; `None` when it does.
    pub fn why_not(&self, condition: &str) -> Option<String> {
        self.readiness
            .report()
            .conditions
            .get(condition)
            .cloned()
            .flatten()
    }

    /// Asks it to stop, as a signal does.
    pub fn ask_to_stop(&self) {
        self.shutdown.trigger();
    }

    /// Stops it as a signal does.
    ///
    /// # Panics
    ///
    /// When it fails, or does not end before its grace period does.
    pub async fn stop(self) {
        let grace = self.grace;
        assert!(self.stop_late().await < grace, "the grace period was used up");
    }

    /// Stops it as a signal does, whatever becomes of its grace period; returns how long that took.
    ///
    /// # Panics
    ///
    /// When it fails, or does not end at all.
    pub async fn stop_late(mut self) -> Duration {
        let asked = Instant::now();
        self.ask_to_stop();
        let run = self
            .run
            .take()
            .expect("invariant: only this takes it, and takes the service too");
        let ended = tokio::time::timeout(PATIENCE, run).await;
        ended
            .expect("the service stops")
            .expect("the service does not panic")
            .expect("the service does not fail");
        asked.elapsed()
    }
}

impl<E> Drop for Service<E> {
    fn drop(&mut self) {
        self.shutdown.trigger();
    }
}
