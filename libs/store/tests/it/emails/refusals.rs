//! Mails about refused deliveries: one in an hour for each subscription and status and five in all, with the number, as about exhausted retries.

use chrono::{DateTime, TimeDelta, Utc};
use domain::email::EmailKind;
use domain::notification::{ClientErrors, DeliveryOutcome, NotificationState, NotificationStatus};
use sqlx::PgPool;
use store::Store;
use store::webhook::{Addresses, DeliveryCompletion, PutBack};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use super::{claim_one, now, only_row, postponed, rows};
use crate::scene::LONG;

/// Completes `count` notifications of a subscription at the time `at`, each answered with `status`.
async fn answered(pool: &PgPool, subscription: Uuid, status: u16, count: usize, at: DateTime<Utc>) {
    let ended = match status {
        500.. => NotificationStatus::GivenUp,
        _ => NotificationStatus::Failed,
    };
    let mut completions = Vec::new();
    for _ in 0..count {
        completions.push(completion(pool, subscription, (status, 4), ended, at).await);
    }
    complete(pool, &completions, at).await;
}

/// Answered with `status` at attempt `attempts`, and with `before` at those before it.
async fn retried(
    pool: &PgPool,
    subscription: Uuid,
    (status, attempts, before): (u16, u32, i32),
    at: DateTime<Utc>,
) {
    let again = NotificationStatus::Retry;
    let completion = completion(pool, subscription, (status, attempts), again, at).await;
    sqlx::query(
        "UPDATE delivery_attempts SET response_status = $2 WHERE notification_id = $1 AND status = 'ERROR'",
    )
    .bind(completion.id.uuid())
    .bind(before)
    .execute(pool)
    .await
    .unwrap();
    complete(pool, &[completion], at).await;
}

async fn completion(
    pool: &PgPool,
    subscription: Uuid,
    (status, attempts): (u16, u32),
    next: NotificationStatus,
    at: DateTime<Utc>,
) -> DeliveryCompletion {
    let row = NotificationRow::in_state(NotificationState::Sending, subscription).attempts(attempts);
    let made = row.make(pool).await;
    let outcome = DeliveryOutcome::Answered {
        status,
        retry_after: None,
        body: String::new(),
    };
    DeliveryCompletion {
        id: made.id,
        lease_token: made.lease_token,
        status: next,
        next_attempt_at: (next == NotificationStatus::Retry).then_some(at),
        started_at: at,
        millis: 5,
        classification: outcome.classification(ClientErrors::Usual),
    }
}

async fn complete(pool: &PgPool, completions: &[DeliveryCompletion], at: DateTime<Utc>) {
    let store = Store::from_pool(pool.clone());
    let completed = store.complete_deliveries(completions, at).await.unwrap();
    assert_eq!(completed.len(), completions.len());
}

async fn kinds(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("SELECT kind FROM emails ORDER BY kind")
        .fetch_all(pool)
        .await
        .unwrap()
}

#[testkit::database_test]
async fn refusals_are_counted_in_one_mail_an_hour(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    answered(&pool, subscription, 404, 2, start).await;
    answered(&pool, subscription, 401, 3, start + TimeDelta::seconds(5)).await;
    let row = only_row(&pool).await;
    assert_eq!((row.occurrences, row.next_attempt_at), (5, Some(start)));
    assert_eq!(row.data["status"], 401, "that of the newest");
    let since: DateTime<Utc> = row.data["since"].as_str().unwrap().parse().unwrap();
    assert_eq!(since, start, "that of the oldest");

    let sent_at = start + TimeDelta::seconds(10);
    let claimed = claim_one(&store, sent_at).await;
    assert_eq!(
        (claimed.kind, claimed.occurrences),
        (EmailKind::DeliveryRefused, 5)
    );
    let ended = store.end_email(claimed.id, claimed.lease_token, None, sent_at);
    assert!(ended.await.unwrap());
    for minutes in [1, 30, 59] {
        answered(&pool, subscription, 401, 1, start + TimeDelta::minutes(minutes)).await;
    }
    let hour = sent_at + TimeDelta::hours(1);
    let early = store
        .claim_emails(hour - TimeDelta::seconds(1), 10, LONG, Addresses::Trusted)
        .await;
    assert_eq!(early.unwrap(), []);
    assert_eq!(claim_one(&store, hour).await.occurrences, 3);
}

#[testkit::database_test]
async fn the_first_refusal_with_another_status_is_mailed_within_the_hour_of_the_one_before(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let minute = |minutes| start + TimeDelta::minutes(minutes);
    answered(&pool, subscription, 404, 1, start).await;
    let first = claim_one(&store, start).await;
    let ended = store.end_email(first.id, first.lease_token, None, start);
    assert!(ended.await.unwrap());
    // More of the same waits for its hour, and is told with what comes to be told sooner.
    answered(&pool, subscription, 404, 2, minute(5)).await;
    let early = store.claim_emails(minute(6), 10, LONG, Addresses::Trusted).await;
    assert_eq!(early.unwrap(), []);
    answered(&pool, subscription, 401, 1, minute(10)).await;
    answered(&pool, subscription, 404, 1, minute(11)).await;
    let second = claim_one(&store, minute(11)).await;
    assert_eq!((second.occurrences, &second.data["status"]), (4, &401.into()));
    let ended = store.end_email(second.id, second.lease_token, None, minute(11));
    assert!(ended.await.unwrap());
    // Both were told of within the hour.
    answered(&pool, subscription, 401, 1, minute(20)).await;
    answered(&pool, subscription, 404, 1, minute(21)).await;
    let early = store.claim_emails(minute(70), 10, LONG, Addresses::Trusted).await;
    assert_eq!(early.unwrap(), []);
    assert_eq!(claim_one(&store, minute(71)).await.occurrences, 2);
}

#[testkit::database_test]
async fn an_endpoint_that_refuses_with_ever_other_statuses_gets_five_mails_an_hour(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let minute = |minutes| start + TimeDelta::minutes(minutes);
    for (minutes, status) in (0..).zip([400, 401, 403, 404, 415]) {
        answered(&pool, subscription, status, 1, minute(minutes)).await;
        let mail = claim_one(&store, minute(minutes)).await;
        let ended = store.end_email(mail.id, mail.lease_token, None, minute(minutes));
        assert!(ended.await.unwrap());
    }
    for status in [422, 405] {
        answered(&pool, subscription, status, 1, minute(10)).await;
        let early = store.claim_emails(minute(59), 10, LONG, Addresses::Trusted).await;
        assert_eq!(early.unwrap(), []);
    }
    assert_eq!(claim_one(&store, minute(60)).await.occurrences, 2);
}

/// Processes of the version before write mails that do not say which statuses they tell of, and take that out of one that waits.
#[testkit::database_test]
async fn a_mail_that_names_no_statuses_stands_for_each(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let minute = |minutes| start + TimeDelta::minutes(minutes);
    answered(&pool, subscription, 404, 1, start).await;
    sqlx::query("UPDATE emails SET data = data - 'codes'")
        .execute(&pool)
        .await
        .unwrap();
    let first = claim_one(&store, start).await;
    let ended = store.end_email(first.id, first.lease_token, None, start);
    assert!(ended.await.unwrap());
    answered(&pool, subscription, 401, 1, minute(5)).await;
    let early = store.claim_emails(minute(6), 10, LONG, Addresses::Trusted).await;
    assert_eq!(early.unwrap(), []);
    sqlx::query("UPDATE emails SET data = data - 'codes', next_attempt_at = $1 WHERE status = 'PENDING'")
        .bind(minute(7))
        .execute(&pool)
        .await
        .unwrap();
    let early = store.claim_emails(minute(7), 10, LONG, Addresses::Trusted).await;
    assert_eq!(early.unwrap(), []);
    assert_eq!(claim_one(&store, minute(60)).await.occurrences, 1);
}

/// Refusals come while the mail server is away: they hasten no mail that tells of their status already.
#[testkit::database_test]
async fn a_refusal_does_not_hasten_the_mail_that_tells_of_its_status(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    answered(&pool, subscription, 404, 1, start).await;
    let claimed = claim_one(&store, start).await;
    let back = store.put_email_back(claimed.id, claimed.lease_token, "away", postponed(start));
    assert_eq!(back.await.unwrap(), PutBack::Waiting);
    let due = only_row(&pool).await.next_attempt_at;
    assert!(due > Some(start + TimeDelta::seconds(1)), "{due:?}");
    answered(&pool, subscription, 404, 1, start + TimeDelta::seconds(1)).await;
    assert_eq!(only_row(&pool).await.next_attempt_at, due);
}

/// As for exhausted retries: the transaction that notes a refusal may still see the mail waiting that is claimed at that moment.
#[testkit::database_test]
async fn a_second_mail_of_the_moment_in_which_the_first_was_claimed_waits_for_its_hour(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    answered(&pool, subscription, 404, 1, start).await;
    claim_one(&store, start).await;
    answered(&pool, subscription, 404, 1, start).await;
    sqlx::query("UPDATE emails SET next_attempt_at = $1 WHERE status = 'PENDING'")
        .bind(start)
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(
        store
            .claim_emails(start, 10, LONG, Addresses::Trusted)
            .await
            .unwrap(),
        []
    );
    let waiting = rows(&pool).await.into_iter().find(|row| row.status == "PENDING");
    assert_eq!(
        waiting.unwrap().next_attempt_at,
        Some(start + TimeDelta::hours(1))
    );
}

#[testkit::database_test]
async fn what_deactivates_or_is_retried_is_no_refusal(pool: PgPool) {
    for (status, kind) in [
        (302, "STATE_CHANGED"),
        (410, "STATE_CHANGED"),
        (503, "RETRIES_EXHAUSTED"),
        (422, "DELIVERY_REFUSED"),
    ] {
        let subscription = SubscriptionRow::active().make(&pool).await;
        // What began before the subscription was as it is says nothing about it.
        let start = now() + TimeDelta::seconds(1);
        answered(&pool, subscription, status, 1, start).await;
        assert_eq!(kinds(&pool).await, [kind], "{status}");
        sqlx::query("DELETE FROM emails").execute(&pool).await.unwrap();
    }
}

#[testkit::database_test]
async fn a_refusal_that_is_tried_again_is_told_when_it_comes_first(pool: PgPool) {
    let subscription = SubscriptionRow::active().make(&pool).await;
    sqlx::query("UPDATE subscriptions SET retry_client_errors = true")
        .execute(&pool)
        .await
        .unwrap();
    let start = now() + TimeDelta::seconds(1);
    let told = [
        (429, 1, 503, 0),
        (404, 2, 503, 1),
        (401, 1, 503, 2),
        (404, 2, 401, 2),
        (404, 2, 429, 3),
    ];
    for (status, attempts, before, notifications) in told {
        retried(&pool, subscription, (status, attempts, before), start).await;
        let counted: Option<i64> = sqlx::query_scalar("SELECT sum(occurrences)::bigint FROM emails")
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!(
            counted.unwrap_or(0),
            notifications,
            "{status} at attempt {attempts} after {before}"
        );
    }
    assert_eq!(only_row(&pool).await.data["retried"], true);
}

#[testkit::database_test]
async fn a_mail_that_comes_back_is_added_to_one_of_its_own_kind(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let subscription = SubscriptionRow::active().make(&pool).await;
    answered(&pool, subscription, 404, 2, start).await;
    let claimed = claim_one(&store, start).await;
    answered(&pool, subscription, 503, 7, start + TimeDelta::seconds(1)).await;
    let back = store.put_email_back(claimed.id, claimed.lease_token, "away", postponed(start));
    assert_eq!(back.await.unwrap(), PutBack::Waiting, "beside the other kind");
    assert_eq!(kinds(&pool).await, ["DELIVERY_REFUSED", "RETRIES_EXHAUSTED"]);

    let claimed = store
        .claim_emails(start + TimeDelta::minutes(5), 10, LONG, Addresses::Trusted)
        .await
        .unwrap();
    let refused = claimed
        .iter()
        .find(|mail| mail.kind == EmailKind::DeliveryRefused);
    answered(&pool, subscription, 404, 3, start + TimeDelta::minutes(6)).await;
    let refused = refused.unwrap();
    let back = store.put_email_back(refused.id, refused.lease_token, "away", postponed(start));
    assert_eq!(back.await.unwrap(), PutBack::Merged);
    let (waiting, since): (i64, DateTime<Utc>) = sqlx::query_as(
        "SELECT occurrences, (data ->> 'since')::timestamptz FROM emails WHERE kind = 'DELIVERY_REFUSED'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!((waiting, since), (5, start));
}
