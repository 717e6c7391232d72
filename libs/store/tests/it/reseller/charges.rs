//! A notification has one place in its quota, however often it is sent.

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::notification::{NotificationId, NotificationState};
use sqlx::PgPool;
use store::Store;
use store::webhook::{Claims, NotificationRelease, Resent};
use testkit::notification_factory::{MadeNotification, NotificationRow};
use testkit::subscription_factory::SubscriptionRow;

use crate::reseller::scene::{
    answered, claim, completion, ids, noon, notifications, promote_due_ids, row, set, terms, timed_out,
};
use crate::scene::act;

async fn used(pool: &PgPool) -> i64 {
    sqlx::query_scalar("SELECT coalesce(sum(used), 0)::bigint FROM subscription_budgets")
        .fetch_one(pool)
        .await
        .unwrap()
}

fn as_made(claims: &Claims) -> MadeNotification {
    let claimed = &claims.claimed[0];
    MadeNotification {
        id: claimed.id,
        event: claimed.id.uuid(),
        subscription: claimed.subscription_id,
        lease_token: claimed.lease_token,
    }
}

async fn promote_due(store: &Store, pool: &PgPool) -> Vec<NotificationId> {
    // After midday and after the present, whichever is later.
    let later = SystemClock.now().max(noon()) + TimeDelta::hours(1);
    promote_due_ids(store, pool, later).await
}

#[testkit::database_test]
async fn retries_and_resends_are_not_charged_again(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(1).make(&pool).await;
    let made = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    let terms = terms(noon());
    let first = as_made(&claim(&store, &[made.id], &terms).await);
    let charged_on = row(&pool, made.id).await.charged_on;
    assert_eq!(charged_on, Some(terms.at.date_naive()));
    store
        .complete_deliveries(&[completion(&first, 1, timed_out())], terms.at)
        .await
        .unwrap();
    let second = as_made(&claim(&store, &promote_due(&store, &pool).await, &terms).await);
    store
        .complete_deliveries(&[completion(&second, 2, answered(200))], terms.at)
        .await
        .unwrap();
    assert_eq!(
        store
            .resend_notification("acme", made.id, act(terms.at))
            .await
            .unwrap(),
        Resent::Done
    );
    let third = as_made(&claim(&store, &promote_due(&store, &pool).await, &terms).await);
    assert_eq!(third.id, made.id);
    assert_eq!(
        (used(&pool).await, row(&pool, made.id).await.charged_on),
        (1, charged_on)
    );
}

#[testkit::database_test]
async fn what_was_lost_or_put_aside_after_its_charge_keeps_its_place(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(1).make(&pool).await;
    let made = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    let terms = terms(noon());
    claim(&store, &[made.id], &terms).await;
    set(
        &pool,
        "UPDATE notifications SET leased_until = now() - interval '1 s' WHERE id = $1",
        made.id.uuid(),
    )
    .await;
    assert_eq!(store.rescue_notifications(terms.at, 9, 3).await.unwrap().retry, 1);
    let again = promote_due(&store, &pool).await;
    assert_eq!(again, [made.id]);
    assert_eq!(claim(&store, &again, &terms).await.claimed.len(), 1);
    assert_eq!(used(&pool).await, 1);
}

#[testkit::database_test]
async fn what_waits_in_line_is_charged_to_the_day_on_which_it_is_sent(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(2).make(&pool).await;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 4).await);
    let mut terms = terms(noon());
    assert_eq!(claim(&store, &made, &terms).await.claimed.len(), 2);
    assert_eq!(used(&pool).await, 2);
    assert_eq!(row(&pool, made[3]).await.charged_on, None);
    terms.at += TimeDelta::days(1);
    let promoted = promote_due_ids(&store, &pool, terms.at).await;
    assert_eq!(promoted, made[2..]);
    assert_eq!(claim(&store, &promoted, &terms).await.claimed.len(), 2);
    assert_eq!(used(&pool).await, 2, "of this day");
    assert_eq!(row(&pool, made[3]).await.charged_on, Some(terms.at.date_naive()));
    let new = notifications(&pool, NotificationState::Queued, subscription, 1).await;
    assert_eq!(claim(&store, &ids(&new), &terms).await.over_quota, 1);
}

#[testkit::database_test]
async fn what_is_held_is_charged_when_it_is_sent_and_not_before(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active()
        .daily_quota(2)
        .paused()
        .make(&pool)
        .await;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 2).await);
    assert_eq!(claim(&store, &made, &terms(noon())).await.held, 2);
    assert_eq!(used(&pool).await, 0);
    set(
        &pool,
        "UPDATE subscriptions SET paused_at = NULL WHERE id = $1",
        subscription,
    )
    .await;
    assert_eq!(claim(&store, &made, &terms(noon())).await.claimed.len(), 2);
    assert_eq!(used(&pool).await, 2);
}

#[testkit::database_test]
async fn a_claim_that_fails_charges_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    // The attempt that the claim wants to start is there already.
    sqlx::query(
        "INSERT INTO delivery_attempts (notification_id, number, status, started_at, url)
         VALUES ($1, 1, 'IN_PROCESS', now(), '')",
    )
    .bind(made.id.uuid())
    .execute(&pool)
    .await
    .unwrap();
    assert!(
        store
            .claim_notifications(&[made.id], &terms(noon()))
            .await
            .is_err()
    );
    assert_eq!(used(&pool).await, 0);
    assert_eq!(row(&pool, made.id).await.state(), NotificationState::Queued);
}

#[testkit::database_test]
async fn what_is_put_off_gives_its_charge_back_and_waits_in_line(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(1).make(&pool).await;
    let made = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    let terms = terms(noon());
    let claimed = as_made(&claim(&store, &[made.id], &terms).await);
    let put_off = NotificationRelease {
        id: claimed.id,
        lease_token: claimed.lease_token,
        postponed_to: Some(terms.at + TimeDelta::seconds(5)),
    };
    store.release_notifications(&[put_off], terms.at).await.unwrap();
    let stored = row(&pool, made.id).await;
    assert_eq!(
        (&*stored.status, stored.reason.as_deref(), stored.attempts),
        ("SCHEDULED", Some("POSTPONED"), 0)
    );
    assert_eq!((used(&pool).await, stored.charged_on), (0, None));
    let again = promote_due(&store, &pool).await;
    assert_eq!(claim(&store, &again, &terms).await.claimed.len(), 1);
    assert_eq!(used(&pool).await, 1);
}
