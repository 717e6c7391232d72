//! Quota requests while their subscription is being deleted: neither waits for the other for ever, and none is left open.

use chrono::{DateTime, Utc};
use domain::clock::{Clock, SystemClock};
use domain::subscription::QuotaRequestStatus;
use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool};
use store::Store;
use store::webhook::{Decided, Decision, NewQuotaRequest, QuotaRequested};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::scene::{act, until_blocked};

fn request(subscription: Uuid, now: DateTime<Utc>) -> NewQuotaRequest {
    NewQuotaRequest {
        id: Uuid::now_v7(),
        subscription,
        requested: 500,
        asks_daily: true,
        requests_per_second: None,
        reason: "More customers.".to_owned(),
        created_at: now,
    }
}

/// What the deletion of a subscription does to it first.
async fn delete(connection: &mut PgConnection, subscription: Uuid) {
    sqlx::query("UPDATE subscriptions SET deleted_at = now() WHERE id = $1")
        .bind(subscription)
        .execute(connection)
        .await
        .unwrap();
}

async fn status(store: &Store, subscription: Uuid) -> Vec<QuotaRequestStatus> {
    let requests = store
        .list_quota_requests(Some(subscription), None, None, 10)
        .await;
    requests.unwrap().iter().map(|request| request.status).collect()
}

#[testkit::database_test]
async fn a_decision_waits_for_a_deletion_without_holding_it_up(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now());
    let id = SubscriptionRow::active().make(&pool).await;
    let request = request(id, now);
    let requested = store
        .insert_quota_request("acme", &request, act(now))
        .await
        .unwrap();
    assert_eq!(requested, QuotaRequested::Done);
    let mut deleting = pool.begin().await.unwrap();
    delete(&mut deleting, id).await;
    let deciding = tokio::spawn({
        let store = store.clone();
        async move {
            let decision = Decision {
                approve: true,
                granted: None,
                granted_per_second: None,
                note: None,
                by: "ops".to_owned(),
                at: now,
            };
            store.decide_quota_request(request.id, &decision).await.unwrap()
        }
    });
    until_blocked(&pool, 1).await;
    sqlx::query("UPDATE quota_requests SET status = 'DENIED', decided_by = 'postrider', decided_at = now() WHERE id = $1")
        .bind(request.id)
        .execute(&mut *deleting)
        .await
        .expect("the decision should have locked nothing yet");
    deleting.commit().await.unwrap();
    assert_eq!(
        deciding.await.unwrap(),
        Decided::Before(QuotaRequestStatus::Denied)
    );
}

#[testkit::database_test]
async fn a_subscription_that_is_being_deleted_gets_no_request(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now());
    let id = SubscriptionRow::active().make(&pool).await;
    let mut deleting = pool.begin().await.unwrap();
    delete(&mut deleting, id).await;
    let asking = tokio::spawn({
        let store = store.clone();
        async move {
            store
                .insert_quota_request("acme", &request(id, now), act(now))
                .await
                .unwrap()
        }
    });
    until_blocked(&pool, 1).await;
    deleting.commit().await.unwrap();
    assert_eq!(asking.await.unwrap(), QuotaRequested::Unknown);
    assert_eq!(status(&store, id).await, []);
}

#[testkit::database_test]
async fn a_request_that_comes_right_before_a_deletion_is_answered_by_it(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now());
    let id = SubscriptionRow::active().make(&pool).await;
    let mut asking = pool.begin().await.unwrap();
    sqlx::query(
        "WITH owned AS (SELECT id, reseller_id FROM subscriptions WHERE id = $1 FOR NO KEY UPDATE)
         INSERT INTO quota_requests (id, subscription_id, reseller_id, requested, reason, created_at)
         SELECT gen_random_uuid(), id, reseller_id, 500, 'More customers.', now() FROM owned",
    )
    .bind(id)
    .execute(&mut *asking)
    .await
    .unwrap();
    let deleting = tokio::spawn({
        let store = store.clone();
        async move { store.delete_subscription("acme", id, act(now)).await.unwrap() }
    });
    until_blocked(&pool, 1).await;
    asking.commit().await.unwrap();
    assert!(deleting.await.unwrap());
    assert_eq!(status(&store, id).await, [QuotaRequestStatus::Denied]);
}

#[testkit::database_test]
async fn a_decision_is_told_once_with_what_it_granted_or_why_not(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now());
    for (approve, granted, expected) in [(true, Some(400), json!(400)), (false, None, json!(null))] {
        let id = SubscriptionRow::active().make(&pool).await;
        let request = request(id, now);
        store
            .insert_quota_request("acme", &request, act(now))
            .await
            .unwrap();
        let decision = Decision {
            approve,
            granted,
            granted_per_second: None,
            note: Some("until spring".to_owned()),
            by: "Anna (1)".to_owned(),
            at: now,
        };
        for _ in 0..2 {
            store.decide_quota_request(request.id, &decision).await.unwrap();
        }
        let mails: Vec<(String, Value)> =
            sqlx::query_as("SELECT kind, data FROM emails WHERE subscription_id = $1")
                .bind(id)
                .fetch_all(&pool)
                .await
                .unwrap();
        let [(kind, data)] = &mails[..] else {
            panic!("{mails:?}")
        };
        assert_eq!(kind, "QUOTA_DECIDED");
        assert_eq!((&data["requested"], &data["granted"]), (&json!(500), &expected));
        assert_eq!(data["note"], "until spring");
    }
}
