//! Messages that come more than once, and messages that mean nothing.

use broker::Queue;
use domain::notification::NotificationStatus;
use engine::webhook::Lane;
use simulators::receiver::Rule;
use store::webhook::FannedOut;
use testkit::{Installation, eventually};
use uuid::Uuid;

use crate::rig::Rig;

async fn attempts(rig: &Rig) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM delivery_attempts")
        .fetch_one(&rig.it.pool)
        .await
        .expect("attempts can be counted")
}

async fn drained(rig: &Rig, queue: Queue) {
    eventually("the queue to be empty", async || {
        let depth = rig.broker.depth(queue).await.ok()?;
        (depth.messages == 0).then_some(())
    })
    .await;
}

#[testkit::test]
async fn a_notification_with_several_messages_is_sent_once(it: Installation) {
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    let engines = [
        rig.start(Lane::First).await,
        rig.start(Lane::First).await,
        rig.start(Lane::Retry).await,
    ];
    let notifications = rig.accept(40).await;
    let thrice: Vec<FannedOut> = notifications.iter().flat_map(|one| [*one; 3]).collect();
    rig.publish(Queue::ResellerReady, &thrice).await;
    rig.publish(Queue::ResellerRetry, &notifications).await;
    rig.count_becomes(NotificationStatus::Sent, 40).await;
    rig.publish(Queue::ResellerReady, &notifications).await;
    drained(&rig, Queue::ResellerReady).await;
    drained(&rig, Queue::ResellerRetry).await;
    for engine in engines {
        engine.stop().await;
    }
    assert_eq!((attempts(&rig).await, rig.receiver.report().received), (40, 40));
}

#[testkit::test]
async fn a_message_that_comes_again_during_the_attempt_starts_no_second_one(it: Installation) {
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    let slow = Rule {
        delay_millis: Some(4_000),
        ..Rule::default()
    };
    rig.script(vec![slow]);
    let engine = rig.start(Lane::First).await;
    let sent = rig.send(1).await;
    rig.in_flight_becomes(1).await;
    rig.publish(Queue::ResellerReady, &sent).await;
    drained(&rig, Queue::ResellerReady).await;
    rig.settled(sent[0].id, NotificationStatus::Sent).await;
    engine.stop().await;
    assert_eq!((attempts(&rig).await, rig.receiver.report().received), (1, 1));
}

#[testkit::test]
async fn messages_about_nothing_do_no_harm(it: Installation) {
    let rig = Rig::new(it).await;
    let subscription = rig.subscription().make(&rig.it.pool).await;
    let _engine = rig.start(Lane::First).await;
    let mut strange: Vec<FannedOut> = rig.accept(1).await;
    let good = strange[0];
    // One that does not exist, and one that names another subscription than its row does.
    strange.push(FannedOut {
        id: Uuid::now_v7().into(),
        ..good
    });
    strange[0].subscription_id = Uuid::now_v7();
    rig.publish(Queue::ResellerReady, &strange).await;
    let without_group = format!(
        r#"{{"schema":1,"kind":"notification","id":"{}","enqueued_at":"2026-01-01T00:00:00Z"}}"#,
        Uuid::now_v7()
    );
    for body in [without_group.as_bytes(), b"nonsense"] {
        rig.it.publish_raw(Queue::ResellerReady, body).await;
    }
    rig.settled(good.id, NotificationStatus::Sent).await;
    eventually("what means nothing to be among the dead letters", async || {
        let depth = rig.broker.depth(Queue::ResellerDead).await.ok()?;
        (depth.messages == 2).then_some(())
    })
    .await;
    // The slots of all of them are free again.
    let more = rig.send(3).await;
    for one in more {
        assert_eq!(one.subscription_id, subscription);
        rig.settled(one.id, NotificationStatus::Sent).await;
    }
}

#[testkit::test]
async fn a_notification_that_the_database_refuses_for_good_holds_up_no_other(it: Installation) {
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    let notifications = rig.accept(3).await;
    let refused = notifications[1].id;
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'never'; END $$;
         CREATE TRIGGER refuse BEFORE UPDATE ON notifications FOR EACH ROW
             WHEN (OLD.id = '{refused}' AND NEW.lease_token IS NOT NULL) EXECUTE FUNCTION refuse()"
    )))
    .execute(&rig.it.pool)
    .await
    .expect("the trigger is made");
    // All are in the queue before it is read, so that one batch holds them.
    rig.publish(Queue::ResellerReady, &notifications).await;
    let engine = rig.start(Lane::First).await;
    rig.count_becomes(NotificationStatus::Sent, 2).await;
    drained(&rig, Queue::ResellerReady).await;
    engine.stop().await;
    assert_eq!((attempts(&rig).await, rig.receiver.report().received), (2, 2));
    let kept: (String, i32) = sqlx::query_as("SELECT status, attempts FROM notifications WHERE id = $1")
        .bind(refused.uuid())
        .fetch_one(&rig.it.pool)
        .await
        .expect("it is there");
    assert_eq!((kept.0.as_str(), kept.1), ("IN_MEMORY", 0));
}

#[testkit::test]
async fn one_that_the_database_refuses_for_good_to_put_aside_holds_up_no_other(mut it: Installation) {
    it.config.reseller.delivery.max_in_flight_per_subscription = 1;
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    let slow = Rule {
        delay_millis: Some(2_000),
        times: Some(1),
        ..Rule::default()
    };
    rig.script(vec![slow]);
    let notifications = rig.accept(3).await;
    let (first, behind) = notifications.split_at(1);
    let refused = behind[0].id;
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "UPDATE notifications SET reason = 'BACKLOG' WHERE id = '{}';
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'never'; END $$;
         CREATE TRIGGER refuse BEFORE UPDATE ON notifications FOR EACH ROW
             WHEN (OLD.id = '{refused}' AND NEW.status = 'PENDING') EXECUTE FUNCTION refuse()",
        first[0].id
    )))
    .execute(&rig.it.pool)
    .await
    .expect("the first is marked as promoted in part, and the trigger is made");
    let engine = rig.start(Lane::First).await;
    rig.publish(Queue::ResellerReady, first).await;
    rig.in_flight_becomes(1).await;
    // While more of their subscription waits in the database, both go there.
    rig.publish(Queue::ResellerReady, behind).await;
    rig.count_becomes(NotificationStatus::Sent, 2).await;
    engine.stop().await;
    drained(&rig, Queue::ResellerReady).await;
    let kept: String = sqlx::query_scalar("SELECT status FROM notifications WHERE id = $1")
        .bind(refused.uuid())
        .fetch_one(&rig.it.pool)
        .await
        .expect("it is there");
    assert_eq!(kept, "IN_MEMORY", "until its lease runs out");
}
