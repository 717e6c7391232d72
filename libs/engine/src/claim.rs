//! Claiming, however long the database is away: meanwhile there is nothing else to do.

use std::time::Duration;

use lifecycle::error_chain;
use telemetry::Metric;
use tokio_util::sync::CancellationToken;

/// Pause before something that the database did not answer is asked again.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Claims `count` of `what` by `together`, or by `singly` when the database refuses them for good, so that one that it refuses holds up no
/// other. `None` when stopped, or when `together` says that nothing is to be claimed.
pub(crate) async fn claim<C, F, S>(
    stop: &CancellationToken,
    what: &'static str,
    count: usize,
    together: impl Fn() -> F,
    singly: impl Fn() -> S,
) -> Option<C>
where
    F: Future<Output = Result<Option<C>, store::Error>>,
    S: Future<Output = C>,
{
    loop {
        let error = match together().await {
            Ok(claimed) => return claimed,
            Err(error) => error,
        };
        Metric::StoreErrors.increment_with(&[("operation", "reading_queue")], 1);
        if !error.is_transient() {
            tracing::error!(
                error = error_chain(&error),
                what,
                count,
                "the database refuses a claim"
            );
            return Some(singly().await);
        }
        tracing::warn!(error = error_chain(&error), what, count, "could not claim");
        paused(stop).await?;
    }
}

/// Waits a moment; `None` when stopped.
pub(crate) async fn paused(stop: &CancellationToken) -> Option<()> {
    tokio::select! {
        () = stop.cancelled() => None,
        () = tokio::time::sleep(RETRY_PAUSE) => Some(()),
    }
}
