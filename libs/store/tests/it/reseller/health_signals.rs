//! What completed attempts say about the health of their subscription.

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::notification::{DeliveryOutcome, FailureKind, NotificationState};
use domain::subscription::SubscriptionState;
use sqlx::PgPool;
use store::Store;
use store::webhook::DeliveryCompletion;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{answered, completion, emails, noon, subscription, timed_out};
use crate::scene::{count, until_blocked};

/// Completes one attempt for each outcome, in one batch, at the time `at`.
async fn deliver(pool: &PgPool, id: Uuid, outcomes: &[DeliveryOutcome], at: DateTime<Utc>) {
    let store = Store::from_pool(pool.clone());
    let mut batch = Vec::new();
    for outcome in outcomes {
        let made = NotificationRow::in_state(NotificationState::Sending, id)
            .make(pool)
            .await;
        batch.push(completion(&made, 1, outcome.clone()));
    }
    assert_eq!(
        store.complete_deliveries(&batch, at).await.unwrap().len(),
        batch.len()
    );
}

#[testkit::database_test]
async fn failing_is_counted_from_the_first_failure_and_ends_with_a_success(pool: PgPool) {
    let id = SubscriptionRow::active().make(&pool).await;
    let begin = noon();
    let at = |minutes| begin + TimeDelta::minutes(minutes);
    for (minutes, outcome, since, latest) in [
        (0, answered(200), None, None),
        (1, answered(500), Some(1), Some(1)),
        (2, timed_out(), Some(1), Some(2)),
        (3, answered(404), Some(1), Some(3)),
        (4, answered(429), Some(1), Some(4)),
        (5, answered(299), None, Some(4)),
        (6, answered(400), Some(6), Some(6)),
    ] {
        deliver(&pool, id, &[outcome], at(minutes)).await;
        let seen = subscription(&pool, id).await;
        assert_eq!(seen.failing_since, since.map(at), "after {minutes} minutes");
        assert_eq!(seen.last_failure_at, latest.map(at), "after {minutes} minutes");
        assert_eq!(seen.state, "ACTIVE");
    }
    let told: i64 = sqlx::query_scalar("SELECT count(*) FROM emails WHERE kind = 'STATE_CHANGED'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(told, 0);
}

#[testkit::database_test]
async fn our_own_failures_say_nothing(pool: PgPool) {
    let id = SubscriptionRow::active().make(&pool).await;
    let before = subscription(&pool, id).await;
    let ours = DeliveryOutcome::Failed {
        kind: FailureKind::Other,
        message: "no secret".to_owned(),
    };
    deliver(&pool, id, &[ours], noon()).await;
    assert_eq!(subscription(&pool, id).await, before);
}

#[testkit::database_test]
async fn one_success_among_failures_counts_as_health(pool: PgPool) {
    let id = SubscriptionRow::active().make(&pool).await;
    deliver(&pool, id, &[answered(500)], noon()).await;
    deliver(
        &pool,
        id,
        &[answered(500), answered(200), timed_out()],
        noon() + TimeDelta::hours(1),
    )
    .await;
    assert_eq!(subscription(&pool, id).await.failing_since, None);
}

#[testkit::database_test]
async fn a_success_heals_a_degraded_subscription_and_tells_so_once(pool: PgPool) {
    let id = SubscriptionRow::in_state(SubscriptionState::Degraded)
        .make(&pool)
        .await;
    deliver(&pool, id, &[answered(500)], noon()).await;
    assert_eq!(subscription(&pool, id).await.state, "DEGRADED");
    for minutes in 1..4 {
        deliver(
            &pool,
            id,
            &[answered(200), answered(204)],
            noon() + TimeDelta::minutes(minutes),
        )
        .await;
    }
    let seen = subscription(&pool, id).await;
    assert_eq!(
        (&*seen.state, &*seen.state_reason, seen.failing_since),
        ("ACTIVE", "RECOVERED", None)
    );
    assert_eq!(seen.state_changed_at, noon() + TimeDelta::minutes(1));
    let mails = emails(&pool).await;
    assert_eq!(mails.len(), 1, "{mails:?}");
    assert_eq!(
        (&*mails[0].kind, &*mails[0].recipient),
        ("STATE_CHANGED", "ops@acme.example")
    );
    for (field, value) in [
        ("state", "ACTIVE"),
        ("previous", "DEGRADED"),
        ("reason", "RECOVERED"),
        ("url", "https://acme.example/hook"),
        ("resellerId", "acme"),
    ] {
        assert_eq!(mails[0].data[field], value, "{field}");
    }
}

#[testkit::database_test]
async fn who_redirects_or_is_gone_is_deactivated_at_once_and_told_once(pool: PgPool) {
    for (status, reason) in [
        (301, "REDIRECTED"),
        (302, "REDIRECTED"),
        (308, "REDIRECTED"),
        (410, "GONE"),
    ] {
        for state in [SubscriptionState::Active, SubscriptionState::Degraded] {
            let id = SubscriptionRow::in_state(state).make(&pool).await;
            let before = count(&pool, "emails").await;
            // Several say so in one batch, then another batch; a success beside them changes nothing.
            deliver(
                &pool,
                id,
                &[answered(status), answered(200), answered(status)],
                noon(),
            )
            .await;
            deliver(&pool, id, &[answered(status)], noon() + TimeDelta::minutes(5)).await;
            let seen = subscription(&pool, id).await;
            assert_eq!((&*seen.state, &*seen.state_reason), ("DEACTIVATED", reason));
            assert_eq!(seen.state_changed_at, noon());
            assert_eq!(count(&pool, "emails").await, before + 1, "{status} {state}");
            let mail = emails(&pool)
                .await
                .into_iter()
                .find(|mail| mail.subscription_id == id)
                .unwrap();
            assert_eq!(mail.data["previous"], state.as_str());
            assert_eq!(mail.data["reason"], reason);
        }
    }
}

#[testkit::database_test]
async fn attempts_that_began_before_the_present_state_say_nothing_beside_later_ones(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let (changed, failing) = (noon(), noon() - TimeDelta::hours(1));
    let (before, after) = (changed - TimeDelta::minutes(1), changed + TimeDelta::minutes(1));
    let at = changed + TimeDelta::minutes(2);
    for (outcomes, since, expected) in [
        (
            vec![(before, answered(200)), (after, timed_out())],
            None,
            Some(at),
        ),
        (
            vec![(before, answered(200)), (after, timed_out())],
            Some(failing),
            Some(failing),
        ),
        (
            vec![(before, timed_out()), (after, answered(200))],
            Some(failing),
            None,
        ),
        (vec![(before, answered(200))], Some(failing), Some(failing)),
        (vec![(before, timed_out())], None, None),
    ] {
        let id = SubscriptionRow::active().make(&pool).await;
        sqlx::query("UPDATE subscriptions SET state_changed_at = $2, failing_since = $3 WHERE id = $1")
            .bind(id)
            .bind(changed)
            .bind(since)
            .execute(&pool)
            .await
            .unwrap();
        let mut batch = Vec::new();
        for (started_at, outcome) in outcomes {
            let made = NotificationRow::in_state(NotificationState::Sending, id)
                .make(&pool)
                .await;
            batch.push(DeliveryCompletion {
                started_at,
                ..completion(&made, 1, outcome)
            });
        }
        let completed = store.complete_deliveries(&batch, at).await.unwrap();
        assert_eq!(completed.len(), batch.len());
        assert_eq!(subscription(&pool, id).await.failing_since, expected);
    }
}

#[testkit::database_test]
async fn two_batches_at_once_deactivate_once(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let id = SubscriptionRow::active().make(&pool).await;
    let mut blocker = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM subscriptions WHERE id = $1 FOR UPDATE")
        .bind(id)
        .execute(&mut *blocker)
        .await
        .unwrap();
    let mut batches = Vec::new();
    for status in [410, 302, 410] {
        let made = NotificationRow::in_state(NotificationState::Sending, id)
            .make(&pool)
            .await;
        let batch = [completion(&made, 1, answered(status))];
        let store = store.clone();
        batches.push(tokio::spawn(async move {
            store.complete_deliveries(&batch, noon()).await.unwrap().len()
        }));
    }
    // All of them have seen an active subscription.
    until_blocked(&pool, 3).await;
    blocker.rollback().await.unwrap();
    for batch in batches {
        assert_eq!(batch.await.unwrap(), 1);
    }
    assert_eq!(subscription(&pool, id).await.state, "DEACTIVATED");
    assert_eq!(count(&pool, "emails").await, 1);
}

#[testkit::database_test]
async fn two_batches_at_once_heal_once(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let id = SubscriptionRow::in_state(SubscriptionState::Degraded)
        .make(&pool)
        .await;
    let mut blocker = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM subscriptions WHERE id = $1 FOR UPDATE")
        .bind(id)
        .execute(&mut *blocker)
        .await
        .unwrap();
    let mut batches = Vec::new();
    for _ in 0..3 {
        let made = NotificationRow::in_state(NotificationState::Sending, id)
            .make(&pool)
            .await;
        let (store, batch) = (store.clone(), [completion(&made, 1, answered(200))]);
        batches.push(tokio::spawn(async move {
            store.complete_deliveries(&batch, noon()).await.unwrap().len()
        }));
    }
    until_blocked(&pool, 3).await;
    blocker.rollback().await.unwrap();
    for batch in batches {
        assert_eq!(batch.await.unwrap(), 1);
    }
    assert_eq!(subscription(&pool, id).await.state, "ACTIVE");
    assert_eq!(count(&pool, "emails").await, 1);
}

#[testkit::database_test]
async fn the_state_of_what_gets_nothing_is_left_alone(pool: PgPool) {
    let states = [
        SubscriptionState::PendingVerification,
        SubscriptionState::Deactivated,
    ];
    for state in states {
        let id = SubscriptionRow::in_state(state).make(&pool).await;
        let before = subscription(&pool, id).await;
        for outcome in [answered(410), answered(302), timed_out(), answered(200)] {
            deliver(&pool, id, &[outcome], noon()).await;
            let after = subscription(&pool, id).await;
            assert_eq!(after.state, before.state);
            assert_eq!(after.state_reason, before.state_reason);
            assert_eq!(after.state_changed_at, before.state_changed_at);
        }
    }
    let id = SubscriptionRow::active().deleted().make(&pool).await;
    let before = subscription(&pool, id).await;
    deliver(&pool, id, &[answered(410), timed_out()], noon()).await;
    assert_eq!(subscription(&pool, id).await, before);
    assert_eq!(count(&pool, "emails").await, 0);
}

#[testkit::database_test]
async fn batches_with_the_same_subscriptions_in_any_order_do_not_wait_for_each_other_for_ever(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut subscriptions = Vec::new();
    for _ in 0..12 {
        subscriptions.push(SubscriptionRow::active().make(&pool).await);
    }
    for round in 0..10 {
        let mut batches = Vec::new();
        for n in 0..4 {
            let mut batch = Vec::new();
            for (place, id) in subscriptions.iter().enumerate() {
                let made = NotificationRow::in_state(NotificationState::Sending, *id).attempts(4);
                let outcome = if (place + n + round) % 3 == 0 {
                    answered(200)
                } else {
                    timed_out()
                };
                batch.push(completion(&made.make(&pool).await, 4, outcome));
            }
            if n % 2 == 1 {
                batch.reverse();
            }
            batches.push(batch);
        }
        let at = SystemClock.now() + TimeDelta::minutes(i64::try_from(round).unwrap());
        let running: Vec<_> = batches
            .into_iter()
            .map(|batch| {
                let store = store.clone();
                tokio::spawn(async move { store.complete_deliveries(&batch, at).await.unwrap().len() })
            })
            .collect();
        for batch in running {
            assert_eq!(batch.await.unwrap(), 12, "round {round}");
        }
    }
}
