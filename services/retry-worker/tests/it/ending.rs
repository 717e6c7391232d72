//! How a retry worker ends that was not told to stop.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::clock::Clock;
use lifecycle::{Lifecycle, Readiness, Shutdown};
use testkit::{Installation, PATIENCE};

/// Brings down the task that asks it.
struct BrokenClock;

impl Clock for BrokenClock {
    fn now(&self) -> DateTime<Utc> {
        panic!("the clock is broken, as this test wants it")
    }
}

#[testkit::test]
async fn a_job_that_dies_takes_the_service_with_it_and_leaves_the_others_alone(it: Installation) {
    let _broker = it.broker();
    let shutdown = Shutdown::new();
    let lifecycle = Lifecycle {
        shutdown: shutdown.clone(),
        readiness: Readiness::default(),
    };
    let run = retry_worker::run_with_clock(it.shared_config(), lifecycle, Arc::new(BrokenClock));
    let ended = tokio::time::timeout(PATIENCE, run).await.expect("it ends");
    assert!(matches!(ended, Err(retry_worker::Error::TaskEnded)));
    assert!(!shutdown.is_cancelled(), "other services of the process go on");
}
