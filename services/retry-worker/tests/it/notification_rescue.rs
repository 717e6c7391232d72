//! Notifications that no process has any more, and messages that the broker gave up.

use broker::Queue;
use chrono::TimeDelta;
use domain::notification::{NotificationState, NotificationStatus};
use serde_json::json;
use testkit::notification_factory::{MadeNotification, NotificationRow};
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};
use uuid::Uuid;

use crate::lane::{
    becomes, first_attempts, read, receiver_of_a_subscription, retries, row, without_deliveries,
};
use crate::rig::{dead_letters, hurry, one_dead_letter, queue_holds, start, take};

async fn lost(
    it: &Installation,
    state: NotificationState,
    subscription: Uuid,
    attempts: u32,
) -> MadeNotification {
    let row = NotificationRow::in_state(state, subscription).attempts(attempts);
    row.leased_for(TimeDelta::seconds(-1)).make(&it.pool).await
}

#[testkit::test]
async fn what_was_lost_comes_into_the_queue_of_its_lane_again(mut it: Installation) {
    hurry(&mut it.config);
    without_deliveries(&mut it);
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    let queued = lost(&it, NotificationState::Queued, subscription, 0).await;
    let retry = lost(&it, NotificationState::Queued, subscription, 2).await;
    let sending = lost(&it, NotificationState::Sending, subscription, 1).await;
    let alive = NotificationRow::in_state(NotificationState::Sending, subscription)
        .make(&it.pool)
        .await;
    let broker = it.broker();
    let (mut first_attempts, mut retries) = (first_attempts(&broker), retries(&broker));
    let worker = start(&it.config);
    assert!(read(&mut first_attempts, 1).await.contains_key(&queued.id));
    let tried = read(&mut retries, 2).await;
    assert!(tried.contains_key(&retry.id) && tried.contains_key(&sending.id));
    worker.stop().await;
    let (claimed, attempts): (bool, i32) =
        sqlx::query_as("SELECT lease_token IS NOT NULL, attempts FROM notifications WHERE id = $1")
            .bind(alive.id.uuid())
            .fetch_one(&it.pool)
            .await
            .unwrap();
    assert_eq!((claimed, attempts), (true, 1));
    assert!(dead_letters(&it.pool).await.is_empty());
}

#[testkit::test]
async fn a_notification_whose_last_attempt_was_lost_is_given_up(mut it: Installation) {
    hurry(&mut it.config);
    without_deliveries(&mut it);
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    let allowed = it.config.reseller.retry.max_retries + 1;
    let made = lost(&it, NotificationState::Sending, subscription, allowed).await;
    let _worker = start(&it.config);
    becomes(&it.pool, made.id, NotificationStatus::GivenUp).await;
    let letter = one_dead_letter(&it.pool).await;
    assert_eq!(
        (&*letter.reason, &*letter.fingerprint),
        ("GIVEN_UP", "delivery/lease-lost")
    );
    assert_eq!(letter.attempts, i32::try_from(allowed).ok());
}

#[testkit::test]
async fn the_worker_makes_the_further_attempts(mut it: Installation) {
    hurry(&mut it.config);
    let (receiver, subscription) = receiver_of_a_subscription(&it).await;
    let retry = NotificationRow::in_state(NotificationState::Retry, subscription)
        .make(&it.pool)
        .await;
    let untried = NotificationRow::in_state(NotificationState::Pending, subscription)
        .make(&it.pool)
        .await;
    let worker = start(&it.config);
    becomes(&it.pool, retry.id, NotificationStatus::Sent).await;
    assert_eq!(row(&it.pool, retry.id).await, ("SENT".to_owned(), 2, None));
    becomes(&it.pool, untried.id, NotificationStatus::InMemory).await;
    worker.stop().await;
    let report = receiver.report();
    assert_eq!(
        (report.received, report.accepted),
        (1, 1),
        "first attempts are the dispatcher's"
    );
}

#[testkit::test]
async fn a_message_of_the_lane_that_cannot_be_read_is_archived_with_its_body(mut it: Installation) {
    without_deliveries(&mut it);
    let broker = it.broker();
    let mut reader = first_attempts(&broker);
    let worker = start(&it.config);
    eventually("the worker to be ready", async || worker.is_ready().then_some(())).await;
    it.publish_raw(Queue::ResellerReady, b"no \0 sense").await;
    let letter = tokio::select! {
        letter = one_dead_letter(&it.pool) => letter,
        batch = reader.next_batch(1) => panic!("{batch:?}"),
    };
    assert_eq!(
        (&*letter.reason, &*letter.fingerprint),
        ("MALFORMED", "broker/malformed")
    );
    assert_eq!((letter.push_id, letter.attempts), (None, None));
    let message = letter.message.expect("what the broker handed back");
    assert_eq!(message["body"], json!("no \u{fffd} sense"));
    let queue = format!("{}reseller.ready", it.config.amqp.queue_prefix);
    assert_eq!(message["queue"], json!(queue));
    let lane: String = sqlx::query_scalar("SELECT lane FROM dead_letters")
        .fetch_one(&it.pool)
        .await
        .unwrap();
    assert_eq!(lane, "reseller");
    worker.stop().await;
    queue_holds(&broker, Queue::ResellerDead, 0).await;
}

#[testkit::test]
async fn a_message_of_the_other_lane_is_archived_and_touches_nothing(mut it: Installation) {
    without_deliveries(&mut it);
    let broker = it.broker();
    let push = testkit::push_factory::PushRow::in_state(domain::push::PushState::Queued);
    let push = push.make(&it.pool).await;
    let worker = start(&it.config);
    eventually("the worker to be ready", async || worker.is_ready().then_some(())).await;
    let body = broker::Envelope::push(push.id.uuid(), chrono::DateTime::UNIX_EPOCH, None);
    it.publish_raw(Queue::ResellerDead, &body.encode()).await;
    let letter = one_dead_letter(&it.pool).await;
    assert_eq!((&*letter.reason, letter.push_id), ("MALFORMED", None));
    assert_eq!(
        crate::rig::view(&it, push.id).await.status,
        domain::push::PushStatus::InMemory
    );
    worker.stop().await;
    queue_holds(&broker, Queue::ResellerDead, 0).await;
}

#[testkit::test]
async fn a_rejected_message_is_archived_and_its_notification_is_published_again(mut it: Installation) {
    without_deliveries(&mut it);
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    let made = NotificationRow::in_state(NotificationState::Pending, subscription)
        .make(&it.pool)
        .await;
    let broker = it.broker();
    let mut reader = first_attempts(&broker);
    let _worker = start(&it.config);
    let message = take(&mut reader, 1).await.remove(0);
    let _ = message.receipt.reject().await;
    assert!(read(&mut reader, 1).await.contains_key(&made.id));
    let letter = one_dead_letter(&it.pool).await;
    assert_eq!((&*letter.reason, letter.push_id), ("REJECTED", None));
    let about: Uuid = sqlx::query_scalar("SELECT notification_id FROM dead_letters")
        .fetch_one(&it.pool)
        .await
        .unwrap();
    assert_eq!(about, made.id.uuid());
}
