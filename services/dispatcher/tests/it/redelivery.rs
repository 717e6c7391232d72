//! Messages that have nothing to say, or say it twice.

use broker::Queue;
use domain::clock::{Clock, SystemClock};
use domain::push::{PushId, PushState, PushStatus};
use testkit::push_factory::PushRow;
use testkit::{Installation, eventually, push_request};

use crate::rig::{all_sent, assert_each_sent_once, enqueue_for, leader, queue_holds, rows, start, view};

#[testkit::test]
async fn a_message_that_comes_twice_is_sent_once(it: Installation) {
    let broker = it.broker();
    let id = it
        .accept(PushStatus::InMemory, push_request("device-1", "Hello"))
        .await;
    // Both are in the queue before anybody reads it, so that one batch holds both.
    it.publish(&broker, &[id, id]).await;
    let dispatcher = start(&it.config);
    it.settled(id, PushStatus::Sent).await;
    // And one that comes when all is done.
    it.publish(&broker, &[id]).await;
    let last = enqueue_for(&it, &broker, "device-2").await;
    all_sent(&it, &[last]).await;
    dispatcher.stop().await;
    queue_holds(&broker, 0).await;
    assert_each_sent_once(&it, 2);
    assert_eq!(view(&it, id).await.history.len(), 1);
}

#[testkit::test]
async fn a_message_without_a_waiting_push_is_acknowledged_and_changes_nothing(it: Installation) {
    let broker = it.broker();
    let mut ids = vec![PushId::at(SystemClock.now())];
    for state in [
        PushState::Scheduled,
        PushState::Retry,
        PushState::Sending,
        PushState::Sent,
        PushState::Failed,
        PushState::GivenUp,
    ] {
        ids.push(PushRow::in_state(state).make(&it.pool).await.id);
    }
    let before = rows(&it.pool, &ids).await;
    it.publish(&broker, &ids).await;
    let dispatcher = start(&it.config);
    leader(&it.pool).await;
    let last = enqueue_for(&it, &broker, "device-2").await;
    all_sent(&it, &[last]).await;
    dispatcher.stop().await;
    queue_holds(&broker, 0).await;
    assert_eq!(rows(&it.pool, &ids).await, before);
    assert_each_sent_once(&it, 1);
}

#[testkit::test]
async fn the_message_of_a_pending_push_is_enough_to_send_it(it: Installation) {
    let (dispatcher, broker) = (start(&it.config), it.broker());
    let id = PushRow::in_state(PushState::Pending).make(&it.pool).await.id;
    it.publish(&broker, &[id]).await;
    assert_eq!(it.settled(id, PushStatus::Sent).await.attempts, 1);
    dispatcher.stop().await;
    queue_holds(&broker, 0).await;
}

#[testkit::test]
async fn a_message_that_cannot_be_read_goes_to_the_dead_letters_and_holds_up_nothing_else(it: Installation) {
    let broker = it.broker();
    let dispatcher = start(&it.config);
    leader(&it.pool).await;
    it.publish_raw(Queue::PushReady, b"not a message of ours").await;
    let last = enqueue_for(&it, &broker, "device-1").await;
    all_sent(&it, &[last]).await;
    eventually("the dead letter", async || {
        let depth = broker.depth(Queue::PushDead).await.ok()?;
        (depth.messages == 1).then_some(())
    })
    .await;
    dispatcher.stop().await;
    queue_holds(&broker, 0).await;
}

#[testkit::test]
async fn a_push_that_the_database_refuses_for_good_holds_up_no_other(it: Installation) {
    let broker = it.broker();
    sqlx::raw_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'never'; END $$;
         CREATE TRIGGER refuse BEFORE UPDATE ON push_notifications FOR EACH ROW
             WHEN (OLD.push_key = 'device-refused' AND NEW.lease_token IS NOT NULL) EXECUTE FUNCTION refuse()",
    )
    .execute(&it.pool)
    .await
    .unwrap();
    let mut ids = Vec::new();
    for device in ["device-1", "device-refused", "device-2"] {
        ids.push(
            it.accept(PushStatus::InMemory, push_request(device, "Hello client!"))
                .await,
        );
    }
    let refused = ids[1];
    // All are in the queue before it is read, so that one batch holds them.
    it.publish(&broker, &ids).await;
    let dispatcher = start(&it.config);
    all_sent(&it, &[ids[0], ids[2]]).await;
    dispatcher.stop().await;
    queue_holds(&broker, 0).await;
    assert_each_sent_once(&it, 2);
    let kept = view(&it, refused).await;
    assert_eq!((kept.status, kept.attempts), (PushStatus::InMemory, 0));
}
