//! Waits with tokio's timer where there is no timerfd, and yields through the last stretch, which that timer cannot
//! resolve.
//!
//! It promises no exactness: the gate is asked again afterwards.

use std::io;
use std::time::{Duration, Instant};

/// tokio rounds up to whole milliseconds, and the wake-up itself takes time.
const WAKE_LEAD: Duration = Duration::from_micros(1_500);

#[derive(Debug)]
pub(super) struct Timer;

impl Timer {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the timer of the other platforms can fail"
    )]
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits for the deadline. Cancel-safe.
    pub(super) async fn wait_until(&mut self, deadline: Instant) {
        let time = deadline
            .saturating_duration_since(Instant::now())
            .saturating_sub(WAKE_LEAD);
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
        while Instant::now() < deadline {
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_deadline_has_passed_when_the_wait_returns() {
        let mut timer = Timer::new().unwrap();
        for micros in [0, 300, 4_000] {
            let deadline = Instant::now() + Duration::from_micros(micros);
            timer.wait_until(deadline).await;
            assert!(Instant::now() >= deadline);
        }
    }
}
