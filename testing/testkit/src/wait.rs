//! Waiting for something to become true.

use std::time::Duration;

use tokio::time::Instant;

/// Longest wait for anything. Only a test that fails ever waits this long.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// Asks again and again until the answer is `Some`, and returns what is in it.
///
/// # Panics
///
/// When it takes longer than [`PATIENCE`]; the message names `what`.
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
