//! What the broker gives up is archived where people look, and costs no push.

use broker::Queue;
use config::Secret;
use domain::push::{PushState, PushStatus};
use serde_json::json;
use testkit::push_factory::PushRow;
use testkit::{FaultProxy, Installation, eventually};

use crate::rig::{
    dead_letters, hurry, one_dead_letter, put_off, queue_holds, read, reader, start, take, view,
};

#[testkit::test]
async fn a_message_that_cannot_be_read_is_archived_with_its_body(it: Installation) {
    let broker = it.broker();
    let mut reader = reader(&broker);
    let worker = start(&it.config);
    eventually("the worker to be ready", async || worker.is_ready().then_some(())).await;
    it.publish_raw(Queue::PushReady, b"{\"version\": 1, \0 nonsense")
        .await;
    // The reader rejects what it cannot read; nothing that it could return ever comes.
    let letter = tokio::select! {
        letter = one_dead_letter(&it.pool) => letter,
        batch = reader.next_batch(1) => panic!("{batch:?}"),
    };
    assert_eq!(
        (&*letter.reason, letter.push_id, letter.attempts),
        ("MALFORMED", None, None)
    );
    assert_eq!(letter.fingerprint, "broker/malformed");
    assert!(
        letter.detail.starts_with("the message cannot be read"),
        "{}",
        letter.detail
    );
    let message = letter.message.expect("what the broker handed back");
    assert_eq!(message["body"], json!("{\"version\": 1, \u{fffd} nonsense"));
    assert_eq!(
        (&message["bodyBytes"], &message["reason"]),
        (&json!(25), &json!("rejected"))
    );
    let queue = format!("{}push.ready", it.config.amqp.queue_prefix);
    assert_eq!((&message["queue"], &message["count"]), (&json!(queue), &json!(1)));
    worker.stop().await;
    queue_holds(&broker, Queue::PushDead, 0).await;
}

#[testkit::test]
async fn a_rejected_message_is_archived_and_its_push_is_published_again(mut it: Installation) {
    hurry(&mut it.config);
    let id = PushRow::in_state(PushState::Pending).make(&it.pool).await.id;
    let broker = it.broker();
    let mut reader = reader(&broker);
    let worker = start(&it.config);
    let message = take(&mut reader, 1).await.remove(0);
    let _ = message.receipt.reject().await;
    assert_eq!(read(&mut reader, 1).await, [id]);
    assert_eq!(view(&it, id).await.status, PushStatus::InMemory);
    let letter = one_dead_letter(&it.pool).await;
    assert_eq!((&*letter.reason, letter.push_id), ("REJECTED", Some(id.uuid())));
    assert_eq!(letter.fingerprint, "broker/rejected");
    worker.stop().await;
    queue_holds(&broker, Queue::PushDead, 0).await;
    assert_eq!(dead_letters(&it.pool).await.len(), 1);
}

#[testkit::test]
async fn a_rejected_message_says_nothing_about_a_push_that_has_moved_on(mut it: Installation) {
    put_off(&mut it.config.push.job.send_pending);
    let broker = it.broker();
    let mut reader = reader(&broker);
    let _worker = start(&it.config);
    let id = PushRow::in_state(PushState::Sent).make(&it.pool).await.id;
    it.publish(&broker, &[id]).await;
    let message = take(&mut reader, 1).await.remove(0);
    let _ = message.receipt.reject().await;
    assert_eq!(one_dead_letter(&it.pool).await.push_id, Some(id.uuid()));
    assert_eq!(view(&it, id).await.status, PushStatus::Sent);
}

#[testkit::test]
async fn a_dead_letter_waits_in_the_queue_for_the_database(mut it: Installation) {
    let broker = it.broker();
    let (proxy, url) = FaultProxy::for_url(it.config.database.url.expose()).await;
    it.config.database.url = Secret::new(url);
    let worker = start(&it.config);
    eventually("the worker to be ready", async || worker.is_ready().then_some(())).await;
    proxy.cut();
    it.publish_raw(Queue::PushDead, b"first").await;
    // The archiver has it, and cannot store it.
    queue_holds(&broker, Queue::PushDead, 0).await;
    worker.stop().await;
    queue_holds(&broker, Queue::PushDead, 1).await;
    assert!(dead_letters(&it.pool).await.is_empty());
    let worker = start(&it.config);
    queue_holds(&broker, Queue::PushDead, 0).await;
    proxy.heal();
    let letter = one_dead_letter(&it.pool).await;
    assert_eq!(letter.message.unwrap()["body"], json!("first"));
    worker.stop().await;
    queue_holds(&broker, Queue::PushDead, 0).await;
}
