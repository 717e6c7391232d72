//! What the jobs do while a lane is paused: nothing that puts work into its queues.

use broker::Queue;
use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationState;
use domain::push::PushState;
use sqlx::PgPool;
use store::{Act, Lane, Pausable, Store};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};

use crate::rig::{hurry, queue_holds, rows, signs_of_life, start};

fn act() -> Act<'static> {
    Act {
        by: "Anna (1)",
        note: Some("because"),
        at: SystemClock.now(),
    }
}

async fn pause(store: &Store, lane: Lane) {
    store.pause(&Pausable::Lane(lane), act()).await.unwrap();
}

/// Waits until a job has been executed since this was called: twice was a sign of life given.
async fn executed(pool: &PgPool, job: &str) {
    let before = eventually("a replica to do the job", async || signs_of_life(pool, job).await).await;
    eventually("the job to be executed", async || {
        let now = signs_of_life(pool, job).await?;
        (now >= before + 2).then_some(())
    })
    .await;
}

#[testkit::test]
async fn what_is_due_in_a_paused_push_lane_stays_in_the_database_until_it_goes_on(mut it: Installation) {
    hurry(&mut it.config);
    pause(&it.store, Lane::Push).await;
    let ago = TimeDelta::minutes(-1);
    let ids = [
        PushRow::in_state(PushState::Pending).make(&it.pool).await.id,
        PushRow::in_state(PushState::Retry)
            .due_in(ago)
            .make(&it.pool)
            .await
            .id,
    ];
    let before = rows(&it.pool, &ids).await;
    let broker = it.broker();
    let _worker = start(&it.config);
    executed(&it.pool, "send-pending").await;
    executed(&it.pool, "send-scheduled").await;
    assert_eq!(rows(&it.pool, &ids).await, before);
    queue_holds(&broker, Queue::PushReady, 0).await;
    it.store.resume(&Pausable::Lane(Lane::Push), act()).await.unwrap();
    queue_holds(&broker, Queue::PushReady, 2).await;
}

#[testkit::test]
async fn a_pause_whose_time_is_over_is_ended_and_what_waited_goes_on(mut it: Installation) {
    hurry(&mut it.config);
    let push = Pausable::Lane(Lane::Push);
    let end = SystemClock.now() + TimeDelta::seconds(2);
    it.store.pause_until(&push, Some(end), act()).await.unwrap();
    pause(&it.store, Lane::Reseller).await;
    PushRow::in_state(PushState::Pending).make(&it.pool).await;
    let broker = it.broker();
    let _worker = start(&it.config);
    queue_holds(&broker, Queue::PushReady, 1).await;
    assert!(SystemClock.now() >= end);
    assert!(it.store.lane_is_paused(Lane::Reseller).await.unwrap());
}

#[testkit::test]
async fn what_is_due_in_a_paused_reseller_lane_stays_in_the_database_until_it_goes_on(mut it: Installation) {
    hurry(&mut it.config);
    // Without a key no engine takes the messages out of the queues again.
    it.config.reseller.secrets.key = None;
    pause(&it.store, Lane::Reseller).await;
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    for state in [
        NotificationState::Pending,
        NotificationState::Scheduled,
        NotificationState::Retry,
    ] {
        let row = NotificationRow::in_state(state, subscription).due_in(TimeDelta::minutes(-1));
        row.make(&it.pool).await;
    }
    let broker = it.broker();
    let _worker = start(&it.config);
    for job in [
        "send-waiting-notifications",
        "send-scheduled-notifications",
        "send-retries",
    ] {
        executed(&it.pool, job).await;
    }
    queue_holds(&broker, Queue::ResellerReady, 0).await;
    queue_holds(&broker, Queue::ResellerRetry, 0).await;
    let queued = "SELECT count(*) FROM notifications WHERE status = 'IN_MEMORY'";
    let count: i64 = sqlx::query_scalar(queued).fetch_one(&it.pool).await.unwrap();
    assert_eq!(count, 0);
    it.store
        .resume(&Pausable::Lane(Lane::Reseller), act())
        .await
        .unwrap();
    queue_holds(&broker, Queue::ResellerReady, 2).await;
    queue_holds(&broker, Queue::ResellerRetry, 1).await;
}
