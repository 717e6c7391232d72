//! Engines while an operator has something paused: the lane, or whom they deliver to.

use broker::Queue;
use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationStatus;
use engine::webhook::Lane;
use simulators::receiver::Rule;
use store::{Act, Pausable, PauseChange, Store};
use testkit::{Installation, eventually};

use crate::rig::{Rig, promoted};

const LANE: Pausable = Pausable::Lane(store::Lane::Reseller);

fn act() -> Act<'static> {
    Act {
        by: "Anna (1)",
        note: Some("because"),
        at: SystemClock.now(),
    }
}

async fn pause(store: &Store, what: &Pausable) {
    assert_eq!(
        store.pause(what, act()).await.expect("the database answers"),
        PauseChange::Changed
    );
}

async fn resume(store: &Store, what: &Pausable) {
    assert_eq!(
        store.resume(what, act()).await.expect("the database answers"),
        PauseChange::Changed
    );
}

/// Waits until so many engines read a queue and it holds so many messages.
async fn queue_becomes(rig: &Rig, queue: Queue, (consumers, messages): (u32, u32)) {
    eventually(
        &format!("{consumers} readers and {messages} messages"),
        async || {
            let depth = rig.broker.depth(queue).await.ok()?;
            ((depth.consumers, depth.messages) == (consumers, messages)).then_some(())
        },
    )
    .await;
}

#[testkit::test]
async fn a_pause_of_the_lane_ends_what_is_in_flight_and_keeps_all_engines_from_more(mut it: Installation) {
    it.config.reseller.delivery.max_in_flight_per_subscription = 4;
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    let slow = Rule {
        delay_millis: Some(500),
        ..Rule::default()
    };
    rig.script(vec![slow]);
    let engines = [rig.start(Lane::First).await, rig.start(Lane::First).await];
    rig.send(60).await;
    eventually("requests to be in flight", async || {
        (rig.receiver.report().in_flight > 0).then_some(())
    })
    .await;
    pause(&rig.it.store, &LANE).await;
    eventually("all engines to have stopped", async || {
        let depth = rig.broker.depth(Queue::ResellerReady).await.ok()?;
        (depth.consumers == 0).then_some(())
    })
    .await;
    eventually("everything claimed to be recorded", async || {
        let claimed: i64 =
            sqlx::query_scalar("SELECT count(*) FROM notifications WHERE lease_token IS NOT NULL")
                .fetch_one(&rig.it.pool)
                .await
                .ok()?;
        (claimed == 0).then_some(())
    })
    .await;
    let sent = rig.count(NotificationStatus::Sent).await;
    assert_eq!(u64::try_from(sent).unwrap(), rig.receiver.report().received);
    // What comes in meanwhile is stored, and an engine that is started meanwhile delivers none of it.
    rig.send(5).await;
    let [first, _second] = engines;
    first.stop().await;
    let _first = rig.start(Lane::First).await;
    let queued = u32::try_from(65 - sent).unwrap();
    queue_becomes(&rig, Queue::ResellerReady, (0, queued)).await;
    assert_eq!(rig.count(NotificationStatus::Sent).await, sent);
    rig.script(Vec::new());
    resume(&rig.it.store, &LANE).await;
    rig.count_becomes(NotificationStatus::Sent, 65).await;
    let report = rig.receiver.report();
    assert_eq!((report.received, report.distinct_ids), (65, 65));
}

#[testkit::test]
async fn a_pause_of_the_lane_holds_retries_as_well(it: Installation) {
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    let notifications = rig.accept(3).await;
    sqlx::query("UPDATE notifications SET status = 'RETRY', attempts = 1, leased_until = NULL, next_attempt_at = now()")
        .execute(&rig.it.pool)
        .await
        .unwrap();
    pause(&rig.it.store, &LANE).await;
    rig.publish(Queue::ResellerRetry, &notifications).await;
    let _engine = rig.start(Lane::Retry).await;
    queue_becomes(&rig, Queue::ResellerRetry, (0, 3)).await;
    assert_eq!(rig.count(NotificationStatus::Retry).await, 3);
    resume(&rig.it.store, &LANE).await;
    rig.count_becomes(NotificationStatus::Sent, 3).await;
    assert_eq!(rig.receiver.report().received, 3);
}

#[testkit::test]
async fn one_subscription_is_held_while_others_get_theirs(it: Installation) {
    let rig = Rig::new(it).await;
    let store = &rig.it.store;
    let held = rig.subscription().make(&rig.it.pool).await;
    let other = rig.subscription().make(&rig.it.pool).await;
    let _engine = rig.start(Lane::First).await;
    // What is queued when the pause begins is held as well.
    let notifications = rig.accept(3).await;
    let what = Pausable::Subscription(held);
    pause(store, &what).await;
    rig.publish(Queue::ResellerReady, &notifications).await;
    rig.send(3).await;
    rig.count_becomes(NotificationStatus::Sent, 6).await;
    rig.count_becomes(NotificationStatus::Pending, 6).await;
    let sent_to: Vec<uuid::Uuid> =
        sqlx::query_scalar("SELECT DISTINCT subscription_id FROM notifications WHERE status = 'SENT'")
            .fetch_all(&rig.it.pool)
            .await
            .unwrap();
    assert_eq!(sent_to, [other]);
    let reasons: Vec<Option<String>> = sqlx::query_scalar(
        "SELECT DISTINCT reason FROM notifications WHERE subscription_id = $1 AND reason IS NOT NULL",
    )
    .bind(held)
    .fetch_all(&rig.it.pool)
    .await
    .unwrap();
    assert_eq!(reasons, [Some("PAUSED".to_owned())]);
    let promote = async || {
        store
            .promote_first_attempts(SystemClock.now(), None, &[], 32, 100, testkit::PATIENCE)
            .await
            .unwrap()
            .notifications
    };
    assert_eq!(promote().await, [], "nothing of it is due");
    resume(store, &what).await;
    let due = promoted(promote().await);
    rig.publish(Queue::ResellerReady, &due).await;
    rig.count_becomes(NotificationStatus::Sent, 12).await;
    // Each event once for each of the two.
    let report = rig.receiver.report();
    assert_eq!((report.received, report.distinct_ids), (12, 6));
}
