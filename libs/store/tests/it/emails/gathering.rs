//! Mails about exhausted retries: one waits for each subscription, and nothing that it counted is lost.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::email::EmailKind;
use domain::notification::{ClientErrors, DeliveryOutcome, NotificationState, NotificationStatus};
use serde_json::Value;
use sqlx::PgPool;
use store::Store;
use store::webhook::{Addresses, DeliveryCompletion, PutBack};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use super::{claim_one, now, only_row, postponed, rows};
use crate::scene::{LONG, until_blocked};

/// Gives up `count` notifications of a subscription at the time `at`, as those who deliver do.
async fn give_up(pool: &PgPool, subscription: Uuid, count: usize, at: DateTime<Utc>) {
    let mut completions = Vec::new();
    for _ in 0..count {
        let row = NotificationRow::in_state(NotificationState::Sending, subscription).attempts(4);
        let made = row.make(pool).await;
        let outcome = DeliveryOutcome::Answered {
            status: 503,
            retry_after: None,
            body: String::new(),
        };
        completions.push(DeliveryCompletion {
            id: made.id,
            lease_token: made.lease_token,
            status: NotificationStatus::GivenUp,
            next_attempt_at: None,
            started_at: at,
            millis: 5,
            classification: outcome.classification(ClientErrors::Usual),
        });
    }
    let store = Store::from_pool(pool.clone());
    assert_eq!(
        store.complete_deliveries(&completions, at).await.unwrap().len(),
        count
    );
}

fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

#[testkit::database_test]
async fn exhausted_retries_are_counted_in_one_mail_an_hour(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    give_up(&pool, subscription, 2, start).await;
    give_up(&pool, subscription, 3, start + TimeDelta::seconds(5)).await;
    let row = only_row(&pool).await;
    assert_eq!((row.occurrences, row.next_attempt_at), (5, Some(start)));
    assert_eq!(
        row.created_at,
        start + TimeDelta::seconds(5),
        "that of the newest"
    );
    assert_eq!(time(&row.data["since"]), start, "that of the oldest");

    let sent_at = start + TimeDelta::seconds(10);
    let claimed = claim_one(&store, sent_at).await;
    assert_eq!(
        (claimed.kind, claimed.occurrences),
        (EmailKind::RetriesExhausted, 5)
    );
    assert!(
        store
            .end_email(claimed.id, claimed.lease_token, None, sent_at)
            .await
            .unwrap()
    );
    for minutes in [1, 30, 59] {
        give_up(&pool, subscription, 1, start + TimeDelta::minutes(minutes)).await;
    }
    let hour = sent_at + TimeDelta::hours(1);
    assert!(
        store
            .claim_emails(hour - TimeDelta::seconds(1), 10, LONG, Addresses::Confirmed)
            .await
            .unwrap()
            .is_empty()
    );
    let second = claim_one(&store, hour).await;
    assert_eq!(second.occurrences, 3);
    assert!(
        store
            .end_email(second.id, second.lease_token, None, hour)
            .await
            .unwrap()
    );
    // The hour begins again with what was sent, not with what was noticed first.
    give_up(&pool, subscription, 1, hour + TimeDelta::seconds(1)).await;
    let waiting = rows(&pool).await.pop().unwrap();
    assert_eq!(waiting.next_attempt_at, Some(hour + TimeDelta::hours(1)));
}

/// Retries that are given up at the very moment at which the mail about others is claimed: the transaction that notes them may still
/// see that mail waiting, find it gone, and begin another one that seems to be due at once.
#[testkit::database_test]
async fn a_second_mail_of_the_moment_in_which_the_first_was_claimed_waits_for_its_hour(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    give_up(&pool, subscription, 2, start).await;
    let first = claim_one(&store, start).await;
    give_up(&pool, subscription, 3, start).await;
    let due_at_once = "UPDATE emails SET next_attempt_at = $1 WHERE status = 'PENDING'";
    let set_due = || sqlx::query(due_at_once).bind(start).execute(&pool);
    for sent_at in [None, Some(start + TimeDelta::seconds(1))] {
        if let Some(at) = sent_at {
            assert!(
                store
                    .end_email(first.id, first.lease_token, None, at)
                    .await
                    .unwrap()
            );
        }
        set_due().await.unwrap();
        let at = start + TimeDelta::seconds(2);
        assert_eq!(
            store
                .claim_emails(at, 10, LONG, Addresses::Confirmed)
                .await
                .unwrap(),
            []
        );
        let waiting = rows(&pool).await.into_iter().find(|row| row.status == "PENDING");
        let due = waiting.unwrap().next_attempt_at;
        assert_eq!(due, Some(sent_at.unwrap_or(at) + TimeDelta::hours(1)));
    }
    let second = claim_one(&store, start + TimeDelta::hours(2)).await;
    assert_eq!(second.occurrences, 3);
}

#[testkit::database_test]
async fn a_mail_that_comes_back_is_added_to_the_one_that_waits(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let [subscription, other] = [
        SubscriptionRow::active().make(&pool).await,
        SubscriptionRow::active().make(&pool).await,
    ];
    give_up(&pool, subscription, 2, start).await;
    let claimed = claim_one(&store, start).await;
    give_up(&pool, subscription, 3, start + TimeDelta::seconds(1)).await;
    give_up(&pool, other, 7, start + TimeDelta::seconds(2)).await;
    assert_eq!(rows(&pool).await.len(), 3);
    let back = store.put_email_back(claimed.id, claimed.lease_token, "away", postponed(start));
    assert_eq!(back.await.unwrap(), PutBack::Merged);
    let rows = rows(&pool).await;
    assert_eq!(rows.iter().map(|row| row.occurrences).collect::<Vec<_>>(), [5, 7]);
    let merged = &rows[0];
    assert_eq!(
        merged.next_attempt_at,
        Some(start + TimeDelta::seconds(60)),
        "nothing was sent yet"
    );
    assert_eq!(time(&merged.data["since"]), start);
    assert_eq!((merged.attempts, merged.last_error.as_deref()), (1, Some("away")));
}

#[testkit::database_test]
async fn a_mail_that_comes_back_while_another_begins_to_wait_is_added_to_that_one(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    give_up(&pool, subscription, 2, start).await;
    let claimed = claim_one(&store, start).await;
    let mut other = pool.begin().await.unwrap();
    sqlx::query(
        "INSERT INTO emails (id, kind, subscription_id, recipient, data, next_attempt_at, created_at)
         SELECT gen_random_uuid(), kind, subscription_id, recipient, data, $1, $1 FROM emails",
    )
    .bind(start)
    .execute(&mut *other)
    .await
    .unwrap();
    let putting = tokio::spawn({
        let (store, claimed) = (store.clone(), claimed.clone());
        async move {
            let back = store.put_email_back(claimed.id, claimed.lease_token, "away", postponed(start));
            back.await.unwrap()
        }
    });
    until_blocked(&pool, 1).await;
    other.commit().await.unwrap();
    assert_eq!(putting.await.unwrap(), PutBack::Merged);
    assert_eq!(only_row(&pool).await.occurrences, 3);
}

#[testkit::database_test]
async fn two_lost_mails_about_the_same_are_rescued_as_one(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    give_up(&pool, subscription, 2, start - TimeDelta::hours(3)).await;
    store
        .claim_emails(start, 10, Duration::ZERO, Addresses::Confirmed)
        .await
        .unwrap();
    give_up(&pool, subscription, 4, start - TimeDelta::hours(2)).await;
    let due = start + TimeDelta::hours(2);
    assert_eq!(
        store
            .claim_emails(due, 10, Duration::ZERO, Addresses::Confirmed)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(store.rescue_emails(10, postponed(due)).await.unwrap(), 2);
    let row = only_row(&pool).await;
    assert_eq!((row.occurrences, &*row.status), (6, "PENDING"));
    assert_eq!(time(&row.data["since"]), start - TimeDelta::hours(3));
}
