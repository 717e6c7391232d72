//! The behaviour of shutdown, readiness and task groups.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

mod readiness;
mod shutdown;
mod tasks;

use std::future::Future;
use std::time::Duration;

/// Bounds a wait that ends by itself when the behaviour is right.
async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(10), future)
        .await
        .unwrap_or_else(|_| panic!("{what}: not within 10 s"))
}
