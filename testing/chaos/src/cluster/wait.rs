//! Waiting for the cluster to become something. Limits are patience, not expectations: only what is broken ever uses them up.

use std::time::Duration;

use tokio::time::Instant;

/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
const BETWEEN: Duration = Duration::from_millis(100);

/// Asks again and again until the answer is yes.
pub(crate) async fn until(what: &str, mut ask: impl AsyncFnMut() -> bool) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !ask().await {
        anyhow::ensure!(
            Instant::now() <= deadline,
            "waited {PATIENCE:?} in vain for {what}"
        );
        tokio::time::sleep(BETWEEN).await;
    }
    Ok(())
}
