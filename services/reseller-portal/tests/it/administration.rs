//! What administrators decide, and what that does to what waits in line.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use domain::key::Role;
use domain::notification::NotificationState;
use serde_json::{Value, json};
use sqlx::PgPool;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::portal::{Portal, answer, fields, problem};

async fn requested(portal: &Portal, subscription: Uuid, quota: u32) -> String {
    let path = format!("/subscriptions/{subscription}/quota-requests");
    let body = json!({"dailyQuota": quota, "reason": "A merger."});
    let request = portal.sent("POST", &path, &body, 201).await;
    request["id"].as_str().unwrap().to_owned()
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_request_is_decided_once(pool: PgPool) {
    let portal = Portal::start(pool).await;
    let admin = portal.house_key(Role::Admin).await;
    let post = async |path: &str, body: Value| {
        let request = portal.request("POST", path).bearer_auth(&admin).json(&body);
        request.send().await.unwrap()
    };
    let (first, second) = (
        SubscriptionRow::active().make(&portal.pool).await,
        SubscriptionRow::active().make(&portal.pool).await,
    );
    let approved = requested(&portal, first, 5).await;
    let denied = requested(&portal, second, 6).await;
    let waiting = portal
        .request("GET", "/admin/quota-requests?status=REQUESTED")
        .bearer_auth(&admin);
    let waiting = answer(waiting.send().await.unwrap(), 200).await;
    let waiting = waiting["items"].as_array().unwrap().clone();
    assert!(waiting.len() == 2 && waiting.iter().all(|request| request["resellerId"] == "acme"));

    let approve = format!("/admin/quota-requests/{approved}/approve");
    let too_much = problem(post(&approve, json!({"granted": 0})).await, 422, "validation").await;
    assert_eq!(fields(&too_much), ["granted"]);
    let decided = answer(
        post(&approve, json!({"granted": 4, "note": "For now."})).await,
        200,
    )
    .await;
    assert_eq!(
        (&decided["status"], &decided["granted"]),
        (&json!("APPROVED"), &json!(4))
    );
    assert!(decided["decidedBy"].as_str().unwrap().starts_with("test ("));
    problem(post(&approve, json!({})).await, 409, "quota-request-decided").await;
    let deny = format!("/admin/quota-requests/{denied}/deny");
    answer(post(&deny, json!({"note": "No."})).await, 200).await;
    problem(post(&deny, json!({})).await, 409, "quota-request-decided").await;
    let unknown = format!("/admin/quota-requests/{}/deny", Uuid::nil());
    problem(post(&unknown, json!({})).await, 404, "not-found").await;

    assert_eq!(
        portal.see(&format!("/subscriptions/{first}/quota")).await["dailyQuota"],
        4
    );
    assert_eq!(
        portal.see(&format!("/subscriptions/{second}/quota")).await["dailyQuota"],
        1_000_000
    );
    let seen = portal
        .see(&format!("/subscriptions/{second}/quota-requests"))
        .await;
    let seen = &seen["items"][0];
    assert_eq!(
        (&seen["status"], &seen["note"]),
        (&json!("DENIED"), &json!("No."))
    );
    assert_eq!(
        seen["decidedBy"],
        Value::Null,
        "keys of the house are not told to resellers"
    );
    portal.stop().await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_higher_quota_tells_what_waits_its_new_day(pool: PgPool) {
    let portal = Portal::start(pool).await;
    let id = SubscriptionRow::active().daily_quota(10).make(&portal.pool).await;
    let now = portal.now();
    for n in 0..35 {
        let row = NotificationRow::in_state(NotificationState::Scheduled, id);
        row.created_at(now - TimeDelta::seconds(35 - n))
            .make(&portal.pool)
            .await;
    }
    sqlx::query("UPDATE notifications SET next_attempt_at = created_at")
        .execute(&portal.pool)
        .await
        .unwrap();
    // Ten of the day are sent already.
    sqlx::query(
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota) VALUES ($1, $2, 10, 10)",
    )
    .bind(id)
    .bind(now.date_naive())
    .execute(&portal.pool)
    .await
    .unwrap();
    let by_day = async || {
        let list = portal
            .see(&format!("/subscriptions/{id}/scheduled?limit=200"))
            .await;
        let mut days = BTreeMap::new();
        for item in list["items"].as_array().unwrap() {
            let due: DateTime<Utc> = item["nextAttemptAt"].as_str().unwrap().parse().unwrap();
            let day = (due.date_naive() - now.date_naive()).num_days();
            *days.entry(day).or_insert(0) += 1;
        }
        days
    };
    assert_eq!(
        by_day().await,
        BTreeMap::from([(1, 10), (2, 10), (3, 10), (4, 5)])
    );
    assert_eq!(
        portal.see(&format!("/subscriptions/{id}/quota")).await["scheduled"],
        35
    );
    let request = requested(&portal, id, 20).await;
    let admin = portal.house_key(Role::Admin).await;
    let path = format!("/admin/quota-requests/{request}/approve");
    let approve = portal.request("POST", &path).bearer_auth(&admin).json(&json!({}));
    answer(approve.send().await.unwrap(), 200).await;
    assert_eq!(by_day().await, BTreeMap::from([(0, 10), (1, 20), (2, 5)]));
    portal.stop().await;
}
