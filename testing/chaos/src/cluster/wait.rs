//! Waiting for the cluster to become something. Limits are patience, not expectations: only what is broken ever uses them up.

use std::time::Duration;

use tokio::time::Instant;

use super::Error;

/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
const BETWEEN: Duration = Duration::from_millis(100);

/// Asks again and again until the answer is yes.
pub(crate) async fn until(what: &str, mut ask: impl AsyncFnMut() -> bool) -> Result<(), Error> {
    let deadline = Instant::now() + PATIENCE;
    while !ask().await {
        if Instant::now() > deadline {
            return Err(Error::TooLate {
                what: what.to_owned(),
                seconds: PATIENCE.as_secs(),
            });
        }
        tokio::time::sleep(BETWEEN).await;
    }
    Ok(())
}
