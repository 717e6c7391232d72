//! A service that runs in the test's own process.

use std::fmt::Debug;
use std::future::Future;
use std::time::{Duration, Instant};

use lifecycle::{Lifecycle, Readiness, Shutdown};
use tokio::task::JoinHandle;

use crate::PATIENCE;
use crate::fixture::see_end;

/// A service at work. Dropped without having been stopped, it is asked to stop, and the end of the test is that it has, as well as
/// [`Service::stop`] wants it.
pub struct Service<E: Debug + Send + 'static> {
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
    pub async fn stop(mut self) {
        let grace = self.grace;
        assert!(self.ended().await < grace, "the grace period was used up");
    }

    /// Stops it as a signal does, whatever becomes of its grace period; returns how long that took.
    ///
    /// # Panics
    ///
    /// When it fails, or does not end at all.
    pub async fn stop_late(mut self) -> Duration {
        self.ended().await
    }

    fn ended(&mut self) -> impl Future<Output = Duration> + Send + use<E> {
        let asked = Instant::now();
        self.ask_to_stop();
        let run = self.run.take();
        async move {
            let run = run.expect("invariant: what takes it takes the service too");
            let ended = tokio::time::timeout(PATIENCE, run).await;
            ended
                .expect("the service stops")
                .expect("the service does not panic")
                .expect("the service does not fail");
            asked.elapsed()
        }
    }
}

impl<E: Debug + Send + 'static> Drop for Service<E> {
    fn drop(&mut self) {
        if self.run.is_some() {
            let (grace, ended) = (self.grace, self.ended());
            see_end(Box::pin(async move {
                assert!(ended.await < grace, "the grace period was used up");
            }));
        }
    }
}
