//! One deadline over everything.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::notification::FailureKind;
use http_client::{Addresses, NameResolver, WebhookClient};
use tokio::net::TcpListener;

use super::{HERE, failure, policy, request, settings};

/// Long against what a slow machine adds to it.
const DEADLINE: Duration = Duration::from_secs(8);

/// Answers after a while, or never.
struct Slow(Option<Duration>);

impl NameResolver for Slow {
    fn addresses(&self, _: &str) -> Addresses {
        let delay = self.0;
        Box::pin(async move {
            match delay {
                Some(delay) => tokio::time::sleep(delay).await,
                None => std::future::pending().await,
            }
            Ok(vec![HERE.parse::<IpAddr>().unwrap()])
        })
    }
}

fn client(names: Slow) -> WebhookClient {
    WebhookClient::builder(&settings(policy(&[HERE], true)))
        .resolver(Arc::new(names))
        .build()
        .unwrap()
}

/// What becomes of an attempt at a server that takes connections and says nothing.
async fn timed_out(names: Slow, scheme: &str) -> String {
    // The kernel takes the connection, no process ever reads from it.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("{scheme}://hooks.test:{}/", listener.local_addr().unwrap().port());
    let started = Instant::now();
    let reply = client(names).send(request(&url, DEADLINE)).await;
    let elapsed = started.elapsed();
    assert!(elapsed >= DEADLINE, "{elapsed:?}");
    assert!(elapsed < DEADLINE + DEADLINE * 3 / 4, "{elapsed:?}");
    let (kind, message) = failure(reply.outcome);
    assert_eq!(kind, FailureKind::Timeout, "{message}");
    message
}

#[tokio::test]
async fn a_lookup_that_hangs_ends_at_the_deadline() {
    assert_eq!(
        timed_out(Slow(None), "https").await,
        "no answer within 8000 ms, while its name was being looked up"
    );
}

#[tokio::test]
async fn a_slow_lookup_leaves_less_time_for_the_handshake() {
    assert_eq!(
        timed_out(Slow(Some(DEADLINE * 3 / 4)), "https").await,
        "no answer within 8000 ms, while the connection was being opened"
    );
}

#[tokio::test]
async fn a_slow_lookup_leaves_less_time_for_the_answer() {
    assert_eq!(
        timed_out(Slow(Some(DEADLINE * 3 / 4)), "http").await,
        "no answer within 8000 ms, after the connection was there"
    );
}

#[tokio::test]
async fn an_attempt_without_time_fails() {
    let (kind, _) = failure(
        client(Slow(None))
            .send(request("https://hooks.test/", Duration::ZERO))
            .await
            .outcome,
    );
    assert_eq!(kind, FailureKind::Timeout);
}
