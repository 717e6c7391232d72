//! The admin endpoints over real HTTP.

use std::net::SocketAddr;

use lifecycle::{Readiness, Shutdown};
use telemetry::Metric;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::http::get;
use crate::{SOON, shared};

async fn serve(readiness: Readiness, shutdown: Shutdown) -> (SocketAddr, JoinHandle<std::io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (
        address,
        tokio::spawn(telemetry::admin::serve(listener, readiness, shutdown)),
    )
}

#[test]
fn metrics_are_scraped_as_prometheus_text() {
    let runtime = &shared().runtime;
    Metric::PushRescued.increment(3);
    Metric::PushPromoted.increment_with(&[("job", "send_pending")], 5);
    Metric::PushSendGap.record(0.00400001);

    let (head, body) = runtime.block_on(async {
        let (address, _server) = serve(Readiness::default(), Shutdown::new()).await;
        get(address, "/metrics").await
    });

    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    for line in [
        "# TYPE postrider_push_rescued_total counter",
        "postrider_push_rescued_total 3",
        "postrider_push_promoted_total{job=\"send_pending\"} 5",
        "postrider_push_send_gap_seconds_bucket{le=\"0.004\"} 0",
        "postrider_push_send_gap_seconds_bucket{le=\"0.00401\"} 1",
    ] {
        assert!(
            body.lines().any(|shown| shown == line),
            "{line:?} is not in\n{body}"
        );
    }
}

#[tokio::test]
async fn readyz_follows_the_conditions_and_healthz_does_not() {
    shared();
    let readiness = Readiness::default();
    let database = readiness.condition("database");
    let (address, _server) = serve(readiness, Shutdown::new()).await;

    let (_, metrics) = get(address, "/metrics").await;
    assert!(
        metrics.contains("\npostrider_ready{condition=\"database\"} 0\n"),
        "{metrics}"
    );
    let (head, body) = get(address, "/readyz").await;
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert_eq!(body, r#"{"ready":false,"conditions":{"database":"starting"}}"#);
    assert!(get(address, "/healthz").await.0.starts_with("HTTP/1.1 200"));

    database.ready();
    let (head, body) = get(address, "/readyz").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(body, r#"{"ready":true,"conditions":{"database":null}}"#);
}

#[tokio::test]
async fn client_that_never_finishes_its_request_does_not_hold_the_shutdown() {
    let shutdown = Shutdown::new();
    let (address, server) = serve(Readiness::default(), shutdown.clone()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nho").await.unwrap();
    // Connections are accepted in order, so this answer proves that the server has the other one.
    get(address, "/healthz").await;

    shutdown.trigger();

    tokio::time::timeout(SOON, server)
        .await
        .expect("ended in time")
        .unwrap()
        .unwrap();
}
