//! Notifications that wait, on their way into the queues.

use broker::Queue;
use chrono::TimeDelta;
use config::Secret;
use domain::notification::{NotificationState, NotificationStatus};
use sqlx::PgPool;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{FaultProxy, Installation, eventually};

use crate::lane::{becomes, count, first_attempts, read, retries, row, without_deliveries};
use crate::rig::{queue_holds, signs_of_life, start};

#[testkit::test]
async fn however_much_one_subscription_has_waiting_the_others_are_among_the_first(mut it: Installation) {
    without_deliveries(&mut it);
    let (much, little) = (
        SubscriptionRow::active().make(&it.pool).await,
        SubscriptionRow::active().make(&it.pool).await,
    );
    for (subscription, count) in [(much, 40), (little, 3)] {
        for _ in 0..count {
            NotificationRow::in_state(NotificationState::Pending, subscription)
                .make(&it.pool)
                .await;
        }
    }
    let broker = it.broker();
    let mut reader = first_attempts(&broker);
    let _worker = start(&it.config);
    let first = read(&mut reader, 35).await;
    assert_eq!(first.values().filter(|group| **group == little).count(), 3);
    let rest = read(&mut reader, 8).await;
    assert!(
        rest.keys().all(|id| !first.contains_key(id)),
        "nothing comes twice"
    );
    assert_eq!(count_in_memory(&it.pool).await, 43);
}

async fn count_in_memory(pool: &PgPool) -> i64 {
    count(pool, NotificationStatus::InMemory).await
}

#[testkit::test]
async fn what_is_due_goes_into_the_queue_of_its_lane_and_what_is_not_stays(mut it: Installation) {
    without_deliveries(&mut it);
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    // Nothing is left of its day.
    let full = SubscriptionRow::active().daily_quota(1).make(&it.pool).await;
    sqlx::query(
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota)
         VALUES ($1, (now() AT TIME ZONE 'UTC')::date, 1, 1)",
    )
    .bind(full)
    .execute(&it.pool)
    .await
    .unwrap();
    let make = async |state, subscription, due_in| {
        NotificationRow::in_state(state, subscription)
            .due_in(due_in)
            .make(&it.pool)
            .await
            .id
    };
    let scheduled = make(NotificationState::Scheduled, subscription, TimeDelta::minutes(-1)).await;
    let retry = make(NotificationState::Retry, subscription, TimeDelta::minutes(-1)).await;
    let later = [
        make(NotificationState::Scheduled, full, TimeDelta::minutes(-1)).await,
        make(NotificationState::Retry, subscription, TimeDelta::hours(1)).await,
    ];
    let broker = it.broker();
    let (mut first_attempts, mut retries) = (first_attempts(&broker), retries(&broker));
    let _worker = start(&it.config);
    assert_eq!(
        read(&mut first_attempts, 1).await.into_keys().collect::<Vec<_>>(),
        [scheduled]
    );
    assert_eq!(
        read(&mut retries, 1).await.into_keys().collect::<Vec<_>>(),
        [retry]
    );
    eventually("the job to have been executed again", async || {
        signs_of_life(&it.pool, "send-scheduled-notifications")
            .await
            .filter(|signs| *signs > 2)
    })
    .await;
    for id in later {
        assert_ne!(row(&it.pool, id).await.0, "IN_MEMORY");
    }
}

#[testkit::test]
async fn what_its_reseller_has_paused_waits_until_it_goes_on(mut it: Installation) {
    without_deliveries(&mut it);
    let subscription = SubscriptionRow::active().paused().make(&it.pool).await;
    let made = NotificationRow::in_state(NotificationState::Pending, subscription)
        .make(&it.pool)
        .await;
    let broker = it.broker();
    let mut reader = first_attempts(&broker);
    let _worker = start(&it.config);
    eventually("the job to have been executed", async || {
        signs_of_life(&it.pool, "send-waiting-notifications")
            .await
            .filter(|signs| *signs > 2)
    })
    .await;
    assert_eq!(row(&it.pool, made.id).await.0, "PENDING");
    sqlx::query("UPDATE subscriptions SET paused_at = NULL")
        .execute(&it.pool)
        .await
        .unwrap();
    assert!(read(&mut reader, 1).await.contains_key(&made.id));
}

#[testkit::test]
async fn a_queue_is_not_filled_beyond_its_capacity(mut it: Installation) {
    without_deliveries(&mut it);
    it.config.reseller.queue.capacity = 4;
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    for state in [NotificationState::Pending, NotificationState::Retry] {
        for _ in 0..12 {
            NotificationRow::in_state(state, subscription)
                .make(&it.pool)
                .await;
        }
    }
    let broker = it.broker();
    let _worker = start(&it.config);
    queue_holds(&broker, Queue::ResellerReady, 4).await;
    queue_holds(&broker, Queue::ResellerRetry, 4).await;
    let mut ready = broker.consume(Queue::ResellerReady, 1);
    let mut retry = broker.consume(Queue::ResellerRetry, 1);
    for _ in 0..12 {
        read(&mut ready, 1).await;
        read(&mut retry, 1).await;
        for queue in [Queue::ResellerReady, Queue::ResellerRetry] {
            assert!(broker.depth(queue).await.unwrap().messages <= 4);
        }
    }
    assert_eq!(count_in_memory(&it.pool).await, 24);
}

#[testkit::test]
async fn a_full_queue_of_retries_does_not_keep_first_attempts_waiting(mut it: Installation) {
    without_deliveries(&mut it);
    it.config.reseller.queue.capacity = 4;
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    for _ in 0..20 {
        NotificationRow::in_state(NotificationState::Retry, subscription)
            .make(&it.pool)
            .await;
    }
    let broker = it.broker();
    let _worker = start(&it.config);
    queue_holds(&broker, Queue::ResellerRetry, 4).await;
    let scheduled = NotificationRow::in_state(NotificationState::Scheduled, subscription)
        .make(&it.pool)
        .await;
    becomes(&it.pool, scheduled.id, NotificationStatus::InMemory).await;
    let mut reader = first_attempts(&broker);
    assert!(read(&mut reader, 1).await.contains_key(&scheduled.id));
}

#[testkit::test]
async fn what_the_broker_does_not_take_waits_again_in_its_lane(mut it: Installation) {
    without_deliveries(&mut it);
    let broker = it.broker();
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    let worker = start(&it.config);
    eventually("the worker to be ready", async || worker.is_ready().then_some(())).await;
    it.unbind(Queue::ResellerRetry).await;
    let retry = NotificationRow::in_state(NotificationState::Retry, subscription);
    let retry = retry.attempts(2).make(&it.pool).await;
    let put_aside = eventually("it to be put aside", async || {
        let found: Option<(String, i32)> = sqlx::query_as(
            "SELECT status, attempts FROM notifications
             WHERE id = $1 AND reason IS NULL AND next_attempt_at IS NOT NULL",
        )
        .bind(retry.id.uuid())
        .fetch_optional(&it.pool)
        .await
        .unwrap();
        found
    })
    .await;
    assert_eq!(put_aside, ("RETRY".to_owned(), 2));
    // The next connection binds the queue again.
    let second = it.broker();
    let mut reader = retries(&second);
    assert!(read(&mut reader, 1).await.contains_key(&retry.id));
    worker.stop().await;
    queue_holds(&broker, Queue::ResellerRetry, 0).await;
}

#[testkit::test]
async fn without_a_broker_nothing_is_promoted(mut it: Installation) {
    without_deliveries(&mut it);
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    let mut made = Vec::new();
    for state in [
        NotificationState::Pending,
        NotificationState::Scheduled,
        NotificationState::Retry,
    ] {
        made.push((
            NotificationRow::in_state(state, subscription)
                .make(&it.pool)
                .await
                .id,
            state,
        ));
    }
    let (proxy, url) = FaultProxy::for_url(it.config.amqp.url.expose()).await;
    it.config.amqp.url = Secret::new(url);
    proxy.cut();
    let worker = start(&it.config);
    for job in [
        "send-waiting-notifications",
        "send-scheduled-notifications",
        "send-retries",
    ] {
        eventually("the job to have been executed", async || {
            signs_of_life(&it.pool, job).await.filter(|signs| *signs > 2)
        })
        .await;
    }
    for (id, state) in &made {
        assert_eq!(row(&it.pool, *id).await.0, state.status().as_str());
    }
    proxy.heal();
    for (id, _) in made {
        becomes(&it.pool, id, NotificationStatus::InMemory).await;
    }
    worker.stop().await;
}
