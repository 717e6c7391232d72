//! The end of what was to be sent again: what had been delivered stays so.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::notification::{NotificationState, NotificationStatus};
use serde_json::json;
use sqlx::PgPool;
use store::webhook::{Ended, NotificationsOf, Resent};
use store::{Cancellation, CancelledMany, Store};
use testkit::notification_factory::{MadeNotification, NotificationRow};
use testkit::subscription_factory::SubscriptionRow;

use crate::reseller::scene::{answered, completion, row, set, terms};
use crate::scene::{act, count, until_blocked};

/// One that was in `state` and was sent again.
async fn resent(store: &Store, pool: &PgPool, state: NotificationState) -> MadeNotification {
    let subscription = SubscriptionRow::active().make(pool).await;
    let made = NotificationRow::in_state(state, subscription).make(pool).await;
    resend(store, made).await;
    made
}

async fn resend(store: &Store, made: MadeNotification) {
    let act = act(SystemClock.now());
    let resent = store.resend_notification("acme", made.id, act).await.unwrap();
    assert_eq!(resent, Resent::Done);
}

async fn cancel(store: &Store, made: MadeNotification) -> Cancellation<NotificationStatus> {
    let act = act(SystemClock.now());
    store.cancel_notification(made.id, act).await.unwrap()
}

/// When its first attempt ended.
async fn delivered_at(pool: &PgPool, made: MadeNotification) -> Option<DateTime<Utc>> {
    let end = "SELECT started_at + millis * interval '1 millisecond' FROM delivery_attempts
               WHERE notification_id = $1 AND number = 1";
    sqlx::query_scalar(end)
        .bind(made.id.uuid())
        .fetch_one(pool)
        .await
        .unwrap()
}

#[testkit::database_test]
async fn what_had_been_delivered_is_so_as_before_without_a_dead_letter(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let made = resent(&store, &pool, NotificationState::Sent).await;
    let stays = Cancellation::StaysDelivered(NotificationStatus::Retry);
    assert_eq!(cancel(&store, made).await, stays);
    let after = row(&pool, made.id).await;
    assert_eq!(after.state(), NotificationState::Sent);
    assert_eq!(after.finished_at, delivered_at(&pool, made).await);
    assert_eq!((after.reason, after.next_attempt_at), (None, None));
    assert_eq!(count(&pool, "dead_letters").await, 0);
    let again = Cancellation::Ended(NotificationStatus::Sent);
    assert_eq!(cancel(&store, made).await, again, "a second time");
    let claims = store
        .claim_notifications(&[made.id], &terms(SystemClock.now()))
        .await
        .unwrap();
    assert!(
        claims.claimed.is_empty(),
        "a message about it finds nothing to send"
    );
}

#[testkit::database_test]
async fn what_was_delivered_once_stays_so_however_often_it_is_sent_again(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let made = resent(&store, &pool, NotificationState::Sent).await;
    let failed = "INSERT INTO delivery_attempts (notification_id, number, status, started_at, millis, url, response_status, error_type)
                  VALUES ($1, 2, 'ERROR', now(), 40, 'https://acme.example/hook', 503, 'HTTP')";
    set(&pool, failed, made.id.uuid()).await;
    let tried = "UPDATE notifications SET attempts = 2 WHERE id = $1";
    set(&pool, tried, made.id.uuid()).await;
    for case in ["waits for a retry", "was sent again once more"] {
        let stays = Cancellation::StaysDelivered(NotificationStatus::Retry);
        assert_eq!(cancel(&store, made).await, stays, "{case}");
        let after = row(&pool, made.id).await;
        assert_eq!(after.finished_at, delivered_at(&pool, made).await, "{case}");
        resend(&store, made).await;
    }
}

/// Whether it is found by the jobs or at a claim.
#[testkit::database_test]
async fn what_had_been_delivered_stays_so_when_it_expires_or_its_subscription_ends(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let end = "UPDATE subscriptions SET deleted_at = now() WHERE id = $1";
    for case in ["expired", "inactive", "claimed"] {
        let subscription = SubscriptionRow::active().make(&pool).await;
        let old = async |state| {
            let row = NotificationRow::in_state(state, subscription);
            let row = row.created_at(SystemClock.now() - TimeDelta::minutes(1));
            let made = row.make(&pool).await;
            resend(&store, made).await;
            made
        };
        let made = old(NotificationState::Sent).await;
        let never = old(NotificationState::Failed).await;
        let (at, delivered) = (SystemClock.now(), delivered_at(&pool, made).await);
        let Ended { count, given_up } = match case {
            "expired" => {
                let cutoff = store.cutoff(at, Duration::ZERO).await.unwrap();
                store.end_expired(made.subscription, cutoff, 9, at).await.unwrap()
            }
            "inactive" => {
                set(&pool, end, made.subscription).await;
                store.end_inactive(made.subscription, 9, at).await.unwrap()
            }
            _ => {
                set(&pool, end, made.subscription).await;
                let both = [made.id, never.id];
                let claims = store.claim_notifications(&both, &terms(at)).await.unwrap();
                Ended {
                    count: claims.abandoned + claims.stay_delivered,
                    given_up: claims.abandoned,
                }
            }
        };
        assert_eq!((count, given_up), (2, 1), "{case}");
        let after = row(&pool, made.id).await;
        assert_eq!(after.state(), NotificationState::Sent, "{case}");
        assert_eq!((after.finished_at, after.reason), (delivered, None), "{case}");
        let told = store.notification_timeline(made.id.uuid()).await.unwrap();
        let told = told.expect("a notification");
        assert!(
            told.resend_ended_at().is_some() && told.resend_cancellation().is_none(),
            "{case}"
        );
        assert!(told.dead_letters.is_empty(), "{case}: {:?}", told.dead_letters);
        let after = row(&pool, never.id).await;
        assert_eq!(after.state(), NotificationState::GivenUp, "{case}");
        let told = store.notification_timeline(never.id.uuid()).await.unwrap();
        let letters = told.expect("a notification").dead_letters;
        assert!(!letters.is_empty(), "{case}");
    }
}

#[testkit::database_test]
async fn what_was_never_delivered_is_given_up_with_a_dead_letter(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for state in [NotificationState::Failed, NotificationState::GivenUp] {
        let made = resent(&store, &pool, state).await;
        let done = Cancellation::Done(NotificationStatus::Retry);
        assert_eq!(cancel(&store, made).await, done, "{state:?}");
        assert_eq!(row(&pool, made.id).await.state(), NotificationState::Cancelled);
        let letters: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM dead_letters WHERE notification_id = $1 AND fingerprint = 'delivery/cancelled'",
        )
        .bind(made.id.uuid())
        .fetch_one(&pool)
        .await
        .unwrap();
        assert_eq!(letters, 1, "{state:?}");
    }
}

#[testkit::database_test]
async fn what_is_claimed_while_it_is_cancelled_is_sent(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let made = resent(&store, &pool, NotificationState::Sent).await;
    let mut claim = pool.begin().await.unwrap();
    sqlx::query(
        "UPDATE notifications SET status = 'IN_MEMORY', lease_token = $2, leased_until = now() + interval '1 hour',
                next_attempt_at = NULL, reason = NULL, attempts = attempts + 1 WHERE id = $1",
    )
    .bind(made.id.uuid())
    .bind(made.lease_token)
    .execute(&mut *claim)
    .await
    .unwrap();
    let (cancelled, ()) = tokio::join!(cancel(&store, made), async {
        until_blocked(&pool, 1).await;
        claim.commit().await.unwrap();
    });
    assert_eq!(cancelled, Cancellation::BeingSent);
    assert_eq!(row(&pool, made.id).await.state(), NotificationState::Sending);
}

/// Whether it was accepted is looked at when all are locked, and not when the first one was asked for.
#[testkit::database_test]
async fn what_is_delivered_and_sent_again_while_another_is_waited_for_stays_delivered(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let now = SystemClock.now();
    let made = async |state, minutes| {
        let row = NotificationRow::in_state(state, subscription);
        let row = row.created_at(now - TimeDelta::minutes(minutes));
        row.make(&pool).await
    };
    let locked = made(NotificationState::Retry, 2).await;
    let sending = made(NotificationState::Sending, 1).await;
    let mut other = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM notifications WHERE id = $1 FOR UPDATE")
        .bind(locked.id.uuid())
        .execute(&mut *other)
        .await
        .unwrap();
    let ids = [locked.id.uuid(), sending.id.uuid()];
    let of = NotificationsOf::Subscription(subscription);
    let cancelling = store.cancel_notifications(&ids, (&of, None), json!({}), act(now));
    let (cancelled, ()) = tokio::join!(cancelling, async {
        until_blocked(&pool, 1).await;
        let delivered = [completion(&sending, 1, answered(204))];
        let completed = store.complete_deliveries(&delivered, now).await.unwrap();
        assert!(completed.contains(&sending.id));
        resend(&store, sending).await;
        other.rollback().await.unwrap();
    });
    let many = CancelledMany {
        cancelled: 2,
        delivered: 1,
    };
    assert_eq!(cancelled.unwrap(), many);
    assert_eq!(row(&pool, locked.id).await.state(), NotificationState::Cancelled);
    assert_eq!(row(&pool, sending.id).await.state(), NotificationState::Sent);
}

#[testkit::database_test]
async fn who_cancelled_many_is_told_of_each_that_stays_delivered(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for whose in ["subscription", "reseller", "lane"] {
        let made = resent(&store, &pool, NotificationState::Sent).await;
        let of = match whose {
            "subscription" => NotificationsOf::Subscription(made.subscription),
            "reseller" => NotificationsOf::Reseller("acme".to_owned()),
            _ => NotificationsOf::All,
        };
        let (ids, act) = ([made.id.uuid()], act(SystemClock.now()));
        let cancelling = store.cancel_notifications(&ids, (&of, None), json!({}), act);
        assert_eq!(cancelling.await.unwrap().delivered, 1, "{whose}");
        let told = store
            .notification_timeline(made.id.uuid())
            .await
            .unwrap()
            .unwrap();
        let last = told.acts.last().expect("an act");
        assert_eq!(last.action, "notification.cancel-many", "{whose}");
        assert_eq!(told.resend_ended_at(), Some(last.at), "{whose}");
        resend(&store, made).await;
        let told = store
            .notification_timeline(made.id.uuid())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(told.resend_ended_at(), None, "{whose}: it waits again");
    }
}
