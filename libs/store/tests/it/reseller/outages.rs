//! What engines hold because most endpoints fail in one way at once.

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::notification::{NotificationState, OutageClass, QUEUE_LEASE};
use sqlx::PgPool;
use store::push::HoldView;
use store::webhook::{HOLD_LEASE, LineTerms, OutageNote, SpillReason};
use store::{Lane, Store};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use super::scene::{ids, notifications};
use crate::scene::until_blocked;

fn note(probes: u32, answer: &str) -> OutageNote<'_> {
    OutageNote {
        class: "DNS",
        probes,
        answer,
    }
}

async fn hold(store: &Store) -> HoldView {
    store.list_holds().await.unwrap().pop().expect("one is held")
}

/// Lets so many seconds pass for rows.
async fn age(pool: &PgPool, seconds: i32) {
    for query in [
        "UPDATE holds SET since = since - make_interval(secs => $1), leased_until = leased_until - make_interval(secs => $1)",
        "UPDATE subscription_sidelines
         SET until = until - make_interval(secs => $1), outage_until = outage_until - make_interval(secs => $1)",
    ] {
        sqlx::query(query).bind(f64::from(seconds)).execute(pool).await.unwrap();
    }
}

#[testkit::database_test]
async fn an_outage_is_one_hold_by_any_number_of_engines_until_none_renews_it(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    store.note_outage(note(0, "no answer")).await.unwrap();
    let begun = hold(&store).await;
    assert_eq!(
        (begun.probes, begun.probed_at, begun.answered_at),
        (0, None, None)
    );
    store.note_outage(note(2, "refused")).await.unwrap();
    store.note_outage(note(1, "no answer")).await.unwrap();
    let held = hold(&store).await;
    assert_eq!(
        (held.since, held.probes, &*held.last_answer),
        (begun.since, 3, "no answer")
    );
    assert!(held.probed_at.is_some());
    assert_eq!(store.outages().await.unwrap(), ["DNS"]);
    age(&pool, 20).await;
    assert_eq!(store.list_holds().await.unwrap(), []);
    assert_eq!(store.outages().await.unwrap(), [""; 0]);
    store.note_outage(note(1, "refused")).await.unwrap();
    let next = hold(&store).await;
    assert!(next.since > begun.since, "it is another one");
    assert_eq!(next.probes, 1);
    // A row that lies further ahead than any engine writes was written by a clock that was wrong.
    age(&pool, -3_600).await;
    assert_eq!(store.list_holds().await.unwrap(), []);
}

#[testkit::database_test]
async fn an_outage_whose_engines_died_has_ended_with_its_lease_and_stays_known(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let before = SystemClock.now() - TimeDelta::hours(1);
    store.note_outage(note(2, "refused")).await.unwrap();
    let periods = async || store.holds_since(Lane::Reseller, before, None).await.unwrap();
    assert_eq!(periods().await[0].ended_at, None);
    age(&pool, 20).await;
    let died = periods().await;
    assert_eq!((died.len(), died[0].probes), (1, 2));
    assert!(died[0].ended_at.is_some());
    // Two engines hold the class again, as one outage, and the one before is the same as it was.
    store.note_outage(note(1, "no answer")).await.unwrap();
    store.note_outage(note(1, "no answer")).await.unwrap();
    let both = periods().await;
    assert_eq!((both.len(), &both[0]), (2, &died[0]));
    assert_eq!((both[1].ended_at, both[1].probes), (None, 2));
    assert_eq!(store.holds_since(Lane::Push, before, None).await.unwrap(), []);
}

#[testkit::database_test]
async fn engines_that_say_so_at_once_hold_one_outage(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    store.note_outage(note(1, "refused")).await.unwrap();
    let begun = hold(&store).await;
    // Another engine begins later than this one, and is done before.
    let mut other = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM holds FOR UPDATE")
        .execute(&mut *other)
        .await
        .unwrap();
    let engine = store.clone();
    let noting = tokio::spawn(async move { engine.note_outage(note(1, "no answer")).await });
    until_blocked(&pool, 1).await;
    sqlx::query("UPDATE holds SET leased_until = clock_timestamp() + make_interval(secs => $1)")
        .bind(HOLD_LEASE.as_secs_f64())
        .execute(&mut *other)
        .await
        .unwrap();
    other.commit().await.unwrap();
    noting.await.unwrap().unwrap();
    let held = hold(&store).await;
    assert_eq!((held.since, held.probes), (begun.since, 2));
    let periods = store
        .holds_since(Lane::Reseller, begun.since, None)
        .await
        .unwrap();
    assert_eq!(periods.len(), 1);
}

#[testkit::database_test]
async fn every_class_can_be_held(pool: PgPool) {
    let store = Store::from_pool(pool);
    for class in OutageClass::ALL {
        let note = OutageNote {
            class: class.as_str(),
            ..note(0, "")
        };
        store.note_outage(note).await.unwrap();
    }
    assert_eq!(store.list_holds().await.unwrap().len(), OutageClass::ALL.len());
}

async fn promoted(store: &Store) -> (usize, usize, usize) {
    let now = SystemClock.now() + TimeDelta::days(1);
    let first = store
        .promote_first_attempts(now, None, &[], 100, 100, QUEUE_LEASE)
        .await
        .unwrap()
        .notifications;
    let retries = store
        .promote_retries(now, None, &[], 100, 100, QUEUE_LEASE)
        .await
        .unwrap()
        .notifications;
    let terms = LineTerms::default();
    store.find_lines(now, &terms).await.unwrap();
    let lines = store
        .release_lines(now, &terms, 100, 100, QUEUE_LEASE)
        .await
        .unwrap();
    (first.len(), retries.len(), lines.promoted.len())
}

#[testkit::database_test]
async fn what_is_withheld_is_not_promoted_until_it_is_released_or_not_renewed(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let withheld = SubscriptionRow::active().make(&pool).await;
    let other = SubscriptionRow::active().make(&pool).await;
    let states = [
        NotificationState::Pending,
        NotificationState::Retry,
        NotificationState::Scheduled,
    ];
    for state in states {
        notifications(&pool, state, withheld, 1).await;
    }
    for lane in ["first", "retry"] {
        // One that is gone is none to withhold.
        let of = [(withheld, "DNS"), (Uuid::now_v7(), "DNS")];
        store.withhold_subscriptions(lane, &of).await.unwrap();
    }
    assert_eq!(promoted(&store).await, (0, 0, 0));
    for state in states {
        notifications(&pool, state, other, 1).await;
    }
    assert_eq!(promoted(&store).await, (1, 1, 1));
    // Putting something aside says nothing about that.
    let queued = notifications(&pool, NotificationState::Queued, withheld, 1).await;
    let now = SystemClock.now();
    let aside = store
        .spill_notifications(&ids(&queued), SpillReason::Withheld, now)
        .await;
    assert_eq!(aside.unwrap(), 1);
    age(&pool, 6).await;
    assert_eq!(promoted(&store).await, (0, 0, 0));
    store
        .release_subscriptions("retry", &[withheld, other])
        .await
        .unwrap();
    assert_eq!(promoted(&store).await, (0, 1, 0));
    age(&pool, 30).await;
    sqlx::query("UPDATE subscription_budgets SET release_at = now()")
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(promoted(&store).await, (2, 0, 1));
}

#[testkit::database_test]
async fn only_what_began_to_fail_lately_is_forgiven(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let onset = SystemClock.now() - TimeDelta::minutes(5);
    let mut made = Vec::new();
    for (state, since) in [
        ("ACTIVE", onset),
        ("ACTIVE", onset - TimeDelta::hours(1)),
        ("DEGRADED", onset),
    ] {
        let subscription = SubscriptionRow::active().make(&pool).await;
        sqlx::query(
            "UPDATE subscriptions SET state = $2, failing_since = $3, last_failure_at = $3 WHERE id = $1",
        )
        .bind(subscription)
        .bind(state)
        .bind(since)
        .execute(&pool)
        .await
        .unwrap();
        made.push(subscription);
    }
    store.forgive_failures(&made, onset).await.unwrap();
    let mut failing = Vec::new();
    for subscription in made {
        let since: Option<bool> =
            sqlx::query_scalar("SELECT failing_since IS NOT NULL FROM subscriptions WHERE id = $1")
                .bind(subscription)
                .fetch_one(&pool)
                .await
                .unwrap();
        failing.push(since.unwrap());
    }
    assert_eq!(failing, [false, true, true]);
}
