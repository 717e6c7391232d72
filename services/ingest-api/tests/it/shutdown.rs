//! How the service ends.

use broker::Queue;
use domain::push::PushStatus;
use testkit::{Installation, eventually};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::running::{Running, push, read_to_end, stored};

#[testkit::test]
async fn a_request_under_way_is_finished_and_no_new_connection_is_taken(it: Installation) {
    let service = Running::ready(&it).await;
    let body = push().to_string();
    let mut stream = service.connect().await;
    let head = service.head(&format!("content-length: {}", body.len()));
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body.as_bytes()[..10]).await.unwrap();
    // The service has seen the first half when a request behind it was answered.
    service.until_ready().await;
    service.service.ask_to_stop();
    eventually("new connections to be refused", async || {
        TcpStream::connect(service.address).await.err()
    })
    .await;
    stream.write_all(&body.as_bytes()[10..]).await.unwrap();
    let answer = read_to_end(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");
    service.stop().await;
    assert_eq!(stored(&it.pool).await, 1);
}

#[testkit::test]
async fn what_was_accepted_before_the_end_is_published(it: Installation) {
    let service = Running::ready(&it).await;
    let requests = (0..100).map(|_| service.post(&push()).send());
    for answer in futures::future::join_all(requests).await {
        assert_eq!(answer.unwrap().status().as_u16(), 202);
    }
    service.stop().await;
    let in_memory: i64 = sqlx::query_scalar("SELECT count(*) FROM push_notifications WHERE status = $1")
        .bind(PushStatus::InMemory.as_str())
        .fetch_one(&it.pool)
        .await
        .unwrap();
    assert_eq!(in_memory, 100);
    let broker = it.broker();
    let depth = eventually("a connection", async || broker.depth(Queue::PushReady).await.ok()).await;
    assert_eq!(depth.messages, 100);
    broker.close().await;
}

#[testkit::test]
async fn a_caller_that_never_finishes_does_not_hold_the_service(mut it: Installation) {
    it.config.shutdown.grace_period = std::time::Duration::from_millis(200);
    let service = Running::ready(&it).await;
    let mut stream = service.connect().await;
    let head = service.head("content-length: 100");
    stream.write_all(head.as_bytes()).await.unwrap();
    service.until_ready().await;
    service.stop().await;
}
