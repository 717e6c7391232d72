//! The mails about exhausted retries: one for each subscription and hour, with the count.

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::{DeliveryOutcome, FailureKind, NotificationState};
use domain::subscription::SubscriptionState;
use serde_json::Value;
use sqlx::PgPool;
use store::Store;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{Email, answered, completion, emails, noon, timed_out};

/// Gives `count` notifications up in one batch at the time `at`.
async fn give_up(pool: &PgPool, subscription: Uuid, count: usize, at: DateTime<Utc>) {
    let outcomes = std::iter::repeat_n(timed_out(), count).collect();
    give_up_after(pool, subscription, outcomes, at).await;
}

/// Gives a notification up for each of these outcomes of its last attempt, in one batch at the time `at`.
async fn give_up_after(pool: &PgPool, subscription: Uuid, outcomes: Vec<DeliveryOutcome>, at: DateTime<Utc>) {
    let count = outcomes.len();
    let mut batch = Vec::new();
    for outcome in outcomes {
        let made = NotificationRow::in_state(NotificationState::Sending, subscription).attempts(4);
        batch.push(completion(&made.make(pool).await, 4, outcome));
    }
    let completed = Store::from_pool(pool.clone())
        .complete_deliveries(&batch, at)
        .await
        .unwrap();
    assert_eq!(completed.len(), count);
}

async fn exhausted(pool: &PgPool) -> Vec<Email> {
    let mut mails = emails(pool).await;
    mails.retain(|mail| mail.kind == "RETRIES_EXHAUSTED");
    mails
}

#[testkit::database_test]
async fn a_flood_of_exhausted_retries_is_one_mail(pool: PgPool) {
    let subscription = SubscriptionRow::active().make(&pool).await;
    give_up(&pool, subscription, 5, noon()).await;
    give_up(&pool, subscription, 2, noon() + TimeDelta::minutes(3)).await;
    let mails = exhausted(&pool).await;
    assert_eq!(mails.len(), 1, "{mails:?}");
    let mail = &mails[0];
    assert_eq!((mail.occurrences, &*mail.recipient), (7, "ops@acme.example"));
    assert_eq!(
        mail.next_attempt_at,
        Some(noon()),
        "the first one is told at once"
    );
    for (field, value) in [
        ("url", "https://acme.example/hook"),
        ("resellerId", "acme"),
        ("eventType", "domain.created"),
        ("error", "no answer within 10 s"),
    ] {
        assert_eq!(mail.data[field], value, "{field}");
    }
}

/// The mail says then that the endpoint is not at fault.
#[testkit::database_test]
async fn what_failed_on_our_side_gives_the_mail_no_error_of_the_endpoint(pool: PgPool) {
    let ours = || DeliveryOutcome::Failed {
        kind: FailureKind::Other,
        message: "no secret".to_owned(),
    };
    for (outcomes, error) in [
        (vec![ours(), ours()], Value::Null),
        (vec![ours(), timed_out(), ours()], "no answer within 10 s".into()),
    ] {
        let subscription = SubscriptionRow::active().make(&pool).await;
        let count = outcomes.len();
        give_up_after(&pool, subscription, outcomes, noon()).await;
        let mails = exhausted(&pool).await;
        let told = mails
            .iter()
            .find(|mail| mail.occurrences == i64::try_from(count).unwrap());
        assert_eq!(told.map(|mail| &mail.data["error"]), Some(&error), "{mails:?}");
    }
}

#[testkit::database_test]
async fn each_subscription_has_its_own_mail(pool: PgPool) {
    for _ in 0..3 {
        let subscription = SubscriptionRow::active().make(&pool).await;
        give_up(&pool, subscription, 2, noon()).await;
    }
    let mails = exhausted(&pool).await;
    assert_eq!(
        mails.iter().map(|mail| mail.occurrences).collect::<Vec<_>>(),
        [2, 2, 2]
    );
}

#[testkit::database_test]
async fn the_next_mail_is_an_hour_after_the_last_one(pool: PgPool) {
    let subscription = SubscriptionRow::active().make(&pool).await;
    give_up(&pool, subscription, 1, noon()).await;
    let sent_at = noon() + TimeDelta::minutes(1);
    sqlx::query("UPDATE emails SET status = 'SENT', next_attempt_at = NULL, finished_at = $1")
        .bind(sent_at)
        .execute(&pool)
        .await
        .unwrap();
    give_up(&pool, subscription, 1, noon() + TimeDelta::minutes(2)).await;
    give_up(&pool, subscription, 1, noon() + TimeDelta::minutes(50)).await;
    let waiting: Vec<_> = exhausted(&pool)
        .await
        .into_iter()
        .filter(|mail| mail.next_attempt_at.is_some())
        .collect();
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].next_attempt_at, Some(sent_at + TimeDelta::hours(1)));
    assert_eq!(waiting[0].occurrences, 2);
    sqlx::query("UPDATE emails SET status = 'SENT', next_attempt_at = NULL, finished_at = $1 WHERE status = 'PENDING'")
        .bind(sent_at + TimeDelta::hours(1))
        .execute(&pool)
        .await
        .unwrap();
    let much_later = noon() + TimeDelta::hours(5);
    give_up(&pool, subscription, 1, much_later).await;
    let waiting: Vec<_> = exhausted(&pool)
        .await
        .into_iter()
        .filter(|mail| mail.next_attempt_at.is_some())
        .collect();
    assert_eq!(
        waiting[0].next_attempt_at,
        Some(much_later),
        "a mail after a long time is told at once"
    );
}

#[testkit::database_test]
async fn one_that_is_being_sent_is_not_changed_any_more(pool: PgPool) {
    let subscription = SubscriptionRow::active().make(&pool).await;
    give_up(&pool, subscription, 1, noon()).await;
    sqlx::query(
        "UPDATE emails SET status = 'SENDING', next_attempt_at = NULL, leased_until = now() + interval '1 h',
                           lease_token = gen_random_uuid()",
    )
    .execute(&pool)
    .await
    .unwrap();
    give_up(&pool, subscription, 3, noon() + TimeDelta::minutes(1)).await;
    let occurrences: Vec<_> = exhausted(&pool)
        .await
        .iter()
        .map(|mail| mail.occurrences)
        .collect();
    assert_eq!(occurrences, [1, 3]);
}

#[testkit::database_test]
async fn batches_at_once_count_in_one_mail(pool: PgPool) {
    let subscription = SubscriptionRow::active().make(&pool).await;
    let giving_up: Vec<_> = (0..8)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { give_up(&pool, subscription, 3, noon()).await })
        })
        .collect();
    for one in giving_up {
        one.await.unwrap();
    }
    let mails = exhausted(&pool).await;
    assert_eq!((mails.len(), mails[0].occurrences), (1, 24));
}

#[testkit::database_test]
async fn what_fails_for_good_or_is_tried_again_is_not_told(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    for (attempts, outcome) in [
        (1, timed_out()),
        (3, timed_out()),
        (1, answered(404)),
        (4, answered(200)),
    ] {
        let made = NotificationRow::in_state(NotificationState::Sending, subscription).attempts(attempts);
        let batch = [completion(&made.make(&pool).await, attempts, outcome)];
        store.complete_deliveries(&batch, noon()).await.unwrap();
    }
    let deleted = SubscriptionRow::in_state(SubscriptionState::Active)
        .deleted()
        .make(&pool)
        .await;
    give_up(&pool, deleted, 1, noon()).await;
    let told: i64 = sqlx::query_scalar("SELECT count(*) FROM emails WHERE kind = 'RETRIES_EXHAUSTED'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(told, 0);
}
