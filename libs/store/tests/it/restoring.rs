//! What an operator has brought back at once: the rescue on request, and the content of a broker that was wiped.

use chrono::{SubsecRound, TimeDelta};
use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationState;
use domain::push::PushState;
use sqlx::PgPool;
use store::{Act, Requeued, Store};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::scene::{pushes, state_of};

fn act() -> Act<'static> {
    Act {
        by: "Anna (1)",
        note: None,
        at: SystemClock.now().trunc_subsecs(6),
    }
}

async fn actions(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("SELECT action FROM audit_log ORDER BY at, id")
        .fetch_all(pool)
        .await
        .unwrap()
}

async fn count(pool: &PgPool, statement: &'static str) -> i64 {
    sqlx::query_scalar(statement).fetch_one(pool).await.unwrap()
}

#[testkit::database_test]
async fn all_that_is_queued_waits_again_and_nothing_else_is_touched(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    // More than a batch, and as one statement would queue them: with one lease for all.
    sqlx::query(
        "INSERT INTO push_notifications (id, status, platform, push_key, message, leased_until, created_at)
         SELECT (left(first_id_of_month(date_trunc('month', now())::date)::text, 9)
                 || right(gen_random_uuid()::text, 27))::uuid,
                'IN_MEMORY', 'IOS', 'device', 'Hello', now() + interval '1 minute', now()
         FROM generate_series(1, 2300)",
    )
    .execute(&pool)
    .await
    .unwrap();
    let mut others = Vec::new();
    for state in PushState::ALL
        .into_iter()
        .filter(|state| *state != PushState::Queued)
    {
        others.push((PushRow::in_state(state).make(&pool).await.id, state));
    }
    let subscription = SubscriptionRow::active().make(&pool).await;
    for attempts in [0, 2] {
        let row = NotificationRow::in_state(NotificationState::Queued, subscription).attempts(attempts);
        row.make(&pool).await;
    }
    NotificationRow::in_state(NotificationState::Sending, subscription)
        .make(&pool)
        .await;
    let requeued = store.requeue_everything(act()).await.unwrap();
    assert_eq!(
        requeued,
        Requeued {
            pushes: 2_300,
            notifications: 2
        }
    );
    assert_eq!(
        count(
            &pool,
            "SELECT count(*) FROM push_notifications WHERE status = 'PENDING'"
        )
        .await,
        2_301
    );
    for (id, state) in others {
        assert_eq!(state_of(&store, id).await, state);
    }
    let due = "SELECT count(*) FROM notifications WHERE status = 'RETRY' AND next_attempt_at <= now()";
    assert_eq!(count(&pool, due).await, 1);
    assert_eq!(
        count(
            &pool,
            "SELECT count(*) FROM notifications WHERE status = 'PENDING'"
        )
        .await,
        1
    );
    assert_eq!(
        count(
            &pool,
            "SELECT count(*) FROM notifications WHERE lease_token IS NOT NULL"
        )
        .await,
        1
    );
    assert_eq!(
        store.requeue_everything(act()).await.unwrap(),
        Requeued::default()
    );
    let once = ["broker.rebuild", "broker.rebuilt"];
    assert_eq!(actions(&pool).await, [once, once].concat());
}

#[testkit::database_test]
async fn a_rescue_on_request_finds_what_was_lost_and_counts_it(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let ago = TimeDelta::seconds(-1);
    for attempts in [1, 3] {
        let row = PushRow::in_state(PushState::Sending)
            .attempts(attempts)
            .leased_for(ago);
        row.make(&pool).await;
    }
    pushes(&pool, PushState::Queued, 2).await;
    let subscription = SubscriptionRow::active().make(&pool).await;
    let lost = NotificationRow::in_state(NotificationState::Sending, subscription).attempts(1);
    lost.leased_for(ago).make(&pool).await;
    let rescued = store.rescue_now(3, 3, act()).await.unwrap();
    assert_eq!((rescued.pushes.pending, rescued.pushes.given_up), (1, 1));
    assert_eq!(
        (rescued.notifications.retry, rescued.notifications.given_up),
        (1, 0)
    );
    assert_eq!(actions(&pool).await, ["rescue.start", "rescue.end"]);
    assert_eq!(store.rescue_now(3, 3, act()).await.unwrap(), Default::default());
}
