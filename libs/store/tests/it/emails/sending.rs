//! One mail from its claim to its end.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::email::EmailKind;
use sqlx::PgPool;
use store::Store;
use store::webhook::{Addresses, PutBack};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use super::{claim_one, now, only_row, postponed, rows};
use crate::scene::LONG;

/// A mail that is gathered with no other, due at `at`.
async fn mail(pool: &PgPool, subscription: Uuid, at: DateTime<Utc>) -> Uuid {
    sqlx::query_scalar(
        "INSERT INTO emails (id, kind, subscription_id, recipient, data, next_attempt_at, created_at)
         VALUES (gen_random_uuid(), 'ADDRESS_CONFIRMATION', $1, 'ops@acme.example', '{\"code\": \"A\"}', $2, $2)
         RETURNING id",
    )
    .bind(subscription)
    .bind(at)
    .fetch_one(pool)
    .await
    .unwrap()
}

#[testkit::database_test]
async fn due_mails_are_claimed_longest_overdue_first_and_once(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let mut ids = Vec::new();
    for minutes in [3, 5, 1] {
        ids.push(mail(&pool, subscription, now - TimeDelta::minutes(minutes)).await);
    }
    mail(&pool, subscription, now + TimeDelta::microseconds(1)).await;
    let first = store
        .claim_emails(now, 2, LONG, Addresses::Confirmed)
        .await
        .unwrap();
    assert_eq!([first[0].id, first[1].id], [ids[1], ids[0]]);
    assert_eq!(
        (first[0].kind, first[0].attempts, first[0].occurrences),
        (EmailKind::AddressConfirmation, 1, 1)
    );
    assert_eq!(first[0].recipient, "ops@acme.example");
    assert_eq!(first[0].created_at, now - TimeDelta::minutes(5));
    let second = store
        .claim_emails(now, 10, LONG, Addresses::Confirmed)
        .await
        .unwrap();
    assert_eq!(second.iter().map(|mail| mail.id).collect::<Vec<_>>(), [ids[2]]);
    assert!(
        store
            .claim_emails(now, 10, LONG, Addresses::Confirmed)
            .await
            .unwrap()
            .is_empty()
    );
}

#[testkit::database_test]
async fn replicas_that_claim_at_once_claim_different_mails(pool: PgPool) {
    let now = now();
    let subscription = SubscriptionRow::active().make(&pool).await;
    for _ in 0..40 {
        mail(&pool, subscription, now).await;
    }
    let claims = (0..4).map(|_| {
        let store = Store::from_pool(pool.clone());
        tokio::spawn(async move {
            store
                .claim_emails(now, 10, LONG, Addresses::Confirmed)
                .await
                .unwrap()
        })
    });
    let (mut claimed, mut seen) = (0, HashSet::new());
    for claim in claims.collect::<Vec<_>>() {
        for mail in claim.await.unwrap() {
            claimed += 1;
            seen.insert(mail.id);
        }
    }
    // A claimer passes over what another one holds at that moment, so some may be left; none is claimed twice.
    assert_eq!(claimed, seen.len());
    let store = Store::from_pool(pool);
    assert_eq!(
        store
            .claim_emails(now, 40, LONG, Addresses::Confirmed)
            .await
            .unwrap()
            .len(),
        40 - claimed
    );
}

#[testkit::database_test]
async fn a_mail_ends_once_and_only_for_whom_it_was_claimed(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    mail(&pool, subscription, now).await;
    let claimed = claim_one(&store, now).await;
    let (id, token) = (claimed.id, claimed.lease_token);
    assert!(!store.end_email(id, Uuid::now_v7(), None, now).await.unwrap());
    assert!(store.end_email(id, token, None, now).await.unwrap());
    assert!(!store.end_email(id, token, Some("late"), now).await.unwrap());
    assert_eq!(
        store
            .put_email_back(id, token, "late", postponed(now))
            .await
            .unwrap(),
        PutBack::LeaseLost
    );
    let row = only_row(&pool).await;
    assert_eq!(
        (&*row.status, row.last_error, row.finished_at),
        ("SENT", None, Some(now))
    );
    mail(&pool, subscription, now).await;
    let claimed = claim_one(&store, now).await;
    let answer = Some("550 5.1.1 no such\0 user");
    assert!(
        store
            .end_email(claimed.id, claimed.lease_token, answer, now)
            .await
            .unwrap()
    );
    let failed = rows(&pool)
        .await
        .into_iter()
        .find(|row| row.id == claimed.id)
        .unwrap();
    assert_eq!(failed.status, "FAILED");
    assert_eq!(failed.last_error.unwrap(), "550 5.1.1 no such\u{fffd} user");
}

#[testkit::database_test]
async fn a_mail_that_was_not_sent_waits_again_until_it_is_too_old(pool: PgPool) {
    // It is old by the clock of the database as well in the end.
    let (store, created) = (Store::from_pool(pool.clone()), now() - TimeDelta::days(5));
    let subscription = SubscriptionRow::active().make(&pool).await;
    mail(&pool, subscription, created).await;
    let claimed = claim_one(&store, created).await;
    let put_back = store
        .put_email_back(claimed.id, claimed.lease_token, "away", postponed(created))
        .await
        .unwrap();
    assert_eq!(put_back, PutBack::Waiting);
    let row = only_row(&pool).await;
    let next = created + TimeDelta::seconds(60);
    assert_eq!(
        (&*row.status, row.attempts, row.next_attempt_at),
        ("PENDING", 1, Some(next))
    );
    assert_eq!(row.last_error.as_deref(), Some("away"));
    assert!(
        store
            .claim_emails(next - TimeDelta::seconds(1), 10, LONG, Addresses::Confirmed)
            .await
            .unwrap()
            .is_empty()
    );
    let outbox = store.outbox().await.unwrap();
    assert_eq!((outbox.waiting, outbox.oldest_due), (1, Some(next)));

    let almost = created + TimeDelta::days(5) - TimeDelta::seconds(1);
    let claimed = claim_one(&store, almost).await;
    let again = store.put_email_back(claimed.id, claimed.lease_token, "away", postponed(almost));
    assert_eq!(again.await.unwrap(), PutBack::Waiting);
    let end = created + TimeDelta::days(5);
    let claimed = claim_one(&store, almost + TimeDelta::days(1)).await;
    let last = store.put_email_back(claimed.id, claimed.lease_token, "still away", postponed(end));
    assert_eq!(last.await.unwrap(), PutBack::Failed);
    let row = only_row(&pool).await;
    assert_eq!(
        (&*row.status, row.attempts, row.finished_at),
        ("FAILED", 3, Some(end))
    );
    assert_eq!(row.last_error.as_deref(), Some("still away"));
    assert_eq!(store.outbox().await.unwrap().waiting, 0);
}

#[testkit::database_test]
async fn a_clock_that_is_weeks_ahead_gives_no_mail_up(pool: PgPool) {
    let (store, ahead) = (Store::from_pool(pool.clone()), now() + TimeDelta::days(31));
    let subscription = SubscriptionRow::active().make(&pool).await;
    mail(&pool, subscription, now()).await;
    let claimed = claim_one(&store, ahead).await;
    let put_back = store.put_email_back(claimed.id, claimed.lease_token, "away", postponed(ahead));
    assert_eq!(put_back.await.unwrap(), PutBack::Waiting);
}

#[testkit::database_test]
async fn a_mail_whose_sender_was_lost_waits_again(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    for _ in 0..3 {
        mail(&pool, subscription, now).await;
    }
    let lost = store
        .claim_emails(now, 2, Duration::ZERO, Addresses::Confirmed)
        .await
        .unwrap();
    let held = store
        .claim_emails(now, 2, LONG, Addresses::Confirmed)
        .await
        .unwrap();
    assert_eq!((lost.len(), held.len()), (2, 1));
    assert_eq!(store.rescue_emails(10, postponed(now)).await.unwrap(), 2);
    assert_eq!(store.rescue_emails(10, postponed(now)).await.unwrap(), 0);
    for lost in &lost {
        assert!(
            !store
                .end_email(lost.id, lost.lease_token, None, now)
                .await
                .unwrap()
        );
    }
    let again = store
        .claim_emails(now + TimeDelta::minutes(1), 10, LONG, Addresses::Confirmed)
        .await
        .unwrap();
    assert_eq!(again.len(), 2);
    assert!(
        again
            .iter()
            .all(|mail| mail.attempts == 2 && mail.id != held[0].id)
    );
}
