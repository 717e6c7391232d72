//! What waits in the database is fetched by the engine itself, and what it has no room for goes back there.

use broker::Queue;
use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::notification::{NotificationStatus, QUEUE_LEASE};
use domain::push::PushId;
use engine::webhook::Lane;
use simulators::receiver::Rule;
use testkit::{Installation, eventually};

use crate::rig::{Rig, event, promoted};

#[testkit::test]
async fn a_promoted_part_brings_the_rest_with_it_oldest_first(mut it: Installation) {
    it.config.reseller.delivery.max_in_flight_per_subscription = 1;
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    // The age of a notification is that of its event, to the millisecond.
    let begin = SystemClock.now();
    let events: Vec<_> = (0..100)
        .map(|n| {
            let mut event = event(begin);
            event.id = PushId::at(begin + TimeDelta::milliseconds(n)).uuid();
            event
        })
        .collect();
    rig.it
        .store
        .insert_events(&events, false, QUEUE_LEASE)
        .await
        .expect("they are stored");
    let promotion = rig
        .it
        .store
        .promote_first_attempts(SystemClock.now(), None, &[], 1, 100, QUEUE_LEASE)
        .await;
    let promoted = promoted(promotion.expect("some are promoted").notifications);
    assert_eq!(promoted.len(), 1);
    let engine = rig.start(Lane::First).await;
    rig.publish(Queue::ResellerReady, &promoted).await;
    rig.count_becomes(NotificationStatus::Sent, 100).await;
    engine.stop().await;
    let arrived: Vec<String> = rig.arrived_at("/hook").into_iter().map(|one| one.id).collect();
    let expected: Vec<String> = events.into_iter().map(|event| event.event_id).collect();
    assert_eq!(arrived, expected);
}

#[testkit::test]
async fn what_the_engine_has_no_room_for_waits_in_the_database_and_is_fetched(mut it: Installation) {
    it.config.reseller.delivery.max_in_flight_per_subscription = 32;
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    let slow = Rule {
        delay_millis: Some(10_000),
        times: Some(32),
        ..Rule::default()
    };
    rig.script(vec![slow]);
    let engine = rig.start(Lane::First).await;
    rig.send(3_000).await;
    eventually("some to be put aside", async || {
        (rig.count(NotificationStatus::Pending).await > 0).then_some(())
    })
    .await;
    rig.count_becomes(NotificationStatus::Sent, 3_000).await;
    engine.stop().await;
    let report = rig.receiver.report();
    assert_eq!((report.received, report.distinct_ids), (3_000, 3_000));
}

/// The database takes so long to put it aside that nothing is found there when the engine looks.
#[testkit::test]
async fn what_is_put_aside_after_the_backlog_was_looked_for_is_fetched_all_the_same(mut it: Installation) {
    it.config.reseller.delivery.max_in_flight_per_subscription = 1;
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    let slow = Rule {
        delay_millis: Some(5_000),
        times: Some(1),
        ..Rule::default()
    };
    rig.script(vec![slow]);
    let accepted = rig.accept(2).await;
    let [first, late] = [&accepted[..1], &accepted[1..]];
    sqlx::query("UPDATE notifications SET reason = 'BACKLOG' WHERE id = $1")
        .bind(first[0].id.uuid())
        .execute(&rig.it.pool)
        .await
        .expect("it is marked as promoted in part");
    let mut locking = rig.it.pool.begin().await.expect("a transaction");
    sqlx::query("SELECT FROM notifications WHERE id = $1 FOR UPDATE")
        .bind(late[0].id.uuid())
        .execute(&mut *locking)
        .await
        .expect("it is locked");
    let engine = rig.start(Lane::First).await;
    rig.publish(Queue::ResellerReady, first).await;
    rig.in_flight_becomes(1).await;
    rig.publish(Queue::ResellerReady, late).await;
    eventually("it to be put aside", async || {
        let waiting: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
        .fetch_one(&rig.it.pool)
        .await
        .expect("sessions can be counted");
        (waiting > 0).then_some(())
    })
    .await;
    rig.count_becomes(NotificationStatus::Sent, 1).await;
    // Delivered when the engine has looked for the backlog, and does not expect one any more.
    rig.send(1).await;
    rig.count_becomes(NotificationStatus::Sent, 2).await;
    locking.rollback().await.expect("it is unlocked");
    rig.count_becomes(NotificationStatus::Sent, 3).await;
    engine.stop().await;
}

/// No promoter runs here that would bring it later.
#[testkit::test]
async fn a_backlog_that_could_not_be_read_is_looked_for_again(mut it: Installation) {
    it.config.reseller.delivery.max_in_flight_per_subscription = 1;
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    let slow = Rule {
        delay_millis: Some(5_000),
        times: Some(1),
        ..Rule::default()
    };
    rig.script(vec![slow]);
    let events: Vec<_> = (0..2).map(|_| event(SystemClock.now())).collect();
    rig.it
        .store
        .insert_events(&events, false, QUEUE_LEASE)
        .await
        .expect("they are stored");
    let promotion = rig
        .it
        .store
        .promote_first_attempts(SystemClock.now(), None, &[], 1, 100, QUEUE_LEASE)
        .await;
    let engine = rig.start(Lane::First).await;
    let promoted = promoted(promotion.expect("one is promoted").notifications);
    rig.publish(Queue::ResellerReady, &promoted).await;
    rig.in_flight_becomes(1).await;
    let mut locking = rig.it.pool.begin().await.expect("a transaction");
    sqlx::query("LOCK TABLE notifications IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *locking)
        .await
        .expect("they are locked");
    // When the slot of the first is free, the second one is looked for.
    eventually("the look at the backlog to be cancelled", async || {
        let cancelled: Option<bool> = sqlx::query_scalar(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%AS i(subscription_id, most)%'",
        )
        .fetch_optional(&rig.it.pool)
        .await
        .expect("a statement can be cancelled");
        (cancelled == Some(true)).then_some(())
    })
    .await;
    locking.rollback().await.expect("they are unlocked");
    rig.count_becomes(NotificationStatus::Sent, 2).await;
    engine.stop().await;
}

#[testkit::test]
async fn engines_that_share_a_backlog_send_each_once(it: Installation) {
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    let events: Vec<_> = (0..600).map(|_| event(SystemClock.now())).collect();
    rig.it
        .store
        .insert_events(&events, false, QUEUE_LEASE)
        .await
        .expect("they are stored");
    let engines = [
        rig.start(Lane::First).await,
        rig.start(Lane::First).await,
        rig.start(Lane::First).await,
    ];
    let promotion = rig
        .it
        .store
        .promote_first_attempts(SystemClock.now(), None, &[], 32, 100, QUEUE_LEASE)
        .await;
    for one in promoted(promotion.expect("some are promoted").notifications) {
        rig.publish(Queue::ResellerReady, &[one]).await;
    }
    rig.count_becomes(NotificationStatus::Sent, 600).await;
    for engine in engines {
        engine.stop().await;
    }
    let report = rig.receiver.report();
    assert_eq!((report.received, report.distinct_ids), (600, 600));
}
