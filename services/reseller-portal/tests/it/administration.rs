//! What administrators decide, and what that does to what waits for its day.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use domain::key::Role;
use domain::notification::NotificationState;
use serde_json::{Value, json};
use sqlx::PgPool;
use store::reseller::{Limits, QuotaTerms};
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

/// A subscription that has used up its quota of 10 today and waits with `waiting` for the days after.
async fn waiting(portal: &Portal, waiting: i64) -> Uuid {
    let id = SubscriptionRow::active().daily_quota(10).make(&portal.pool).await;
    let now = portal.now();
    for n in 0..waiting {
        let row = NotificationRow::in_state(NotificationState::Scheduled, id);
        row.created_at(now - TimeDelta::seconds(waiting - n))
            .make(&portal.pool)
            .await;
    }
    // As the claims that sent ten and put off the others have left them.
    sqlx::query(
        "UPDATE notifications n SET next_attempt_at = ($1::date + 1 + (w.rank / 10)::integer)::timestamp AT TIME ZONE 'UTC'
                                        + interval '6 hours' * (w.rank % 10) / 10,
                charged_on = $1::date + 1 + (w.rank / 10)::integer
         FROM (SELECT id, row_number() OVER (ORDER BY id) - 1 AS rank FROM notifications) AS w WHERE w.id = n.id",
    )
    .bind(now.date_naive())
    .execute(&portal.pool)
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota) VALUES ($1, $2, $3, 10)",
    )
    .bind(id)
    .bind(now.date_naive())
    .bind(10 + waiting)
    .execute(&portal.pool)
    .await
    .unwrap();
    id
}

/// How many wait for which day, counted from today.
async fn by_day(portal: &Portal) -> BTreeMap<i64, i64> {
    let rows: Vec<(NaiveDate, DateTime<Utc>)> =
        sqlx::query_as("SELECT charged_on, next_attempt_at FROM notifications ORDER BY id")
            .fetch_all(&portal.pool)
            .await
            .unwrap();
    assert!(rows.is_sorted_by_key(|(_, due)| *due), "nobody is overtaken");
    let mut days = BTreeMap::new();
    for (day, due) in rows {
        assert_eq!(due.date_naive(), day);
        *days
            .entry((day - portal.now().date_naive()).num_days())
            .or_default() += 1;
    }
    days
}

async fn used(portal: &Portal) -> i64 {
    sqlx::query_scalar("SELECT used FROM subscription_budgets")
        .fetch_one(&portal.pool)
        .await
        .unwrap()
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_higher_quota_brings_forward_what_waits(pool: PgPool) {
    let portal = Portal::start(pool).await;
    let id = waiting(&portal, 35).await;
    assert_eq!(
        by_day(&portal).await,
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
    // Ten of today are sent; ten more are due today now.
    assert_eq!(by_day(&portal).await, BTreeMap::from([(0, 10), (1, 20), (2, 5)]));
    assert_eq!(used(&portal).await, 45);
    portal.stop().await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn days_that_are_over_count_by_the_old_quota(pool: PgPool) {
    let portal = Portal::start(pool).await;
    let id = waiting(&portal, 35).await;
    portal.clock.advance(TimeDelta::days(2));
    // Yesterday's ten are sent, and four of today's.
    sqlx::query("DELETE FROM notifications WHERE id IN (SELECT id FROM notifications ORDER BY id LIMIT 14)")
        .execute(&portal.pool)
        .await
        .unwrap();
    let terms = QuotaTerms {
        zone: portal.config.reseller.quota.time_zone,
        release_window: portal.config.reseller.quota.release_window,
    };
    let limits = Limits {
        daily_quota: Some(12),
        ..Limits::default()
    };
    assert!(
        portal
            .store
            .set_limits(id, limits, &terms, portal.now())
            .await
            .unwrap()
    );
    assert_eq!(by_day(&portal).await, BTreeMap::from([(0, 8), (1, 12), (2, 1)]));
    assert_eq!(used(&portal).await, 4 + 21);
    portal.stop().await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_lower_quota_puts_off_what_waits_and_owes_nothing_for_today(pool: PgPool) {
    let portal = Portal::start(pool).await;
    let id = waiting(&portal, 7).await;
    let terms = QuotaTerms {
        zone: portal.config.reseller.quota.time_zone,
        release_window: portal.config.reseller.quota.release_window,
    };
    let limits = Limits {
        daily_quota: Some(3),
        requests_per_second: Some(1),
    };
    assert!(
        portal
            .store
            .set_limits(id, limits, &terms, portal.now())
            .await
            .unwrap()
    );
    assert_eq!(by_day(&portal).await, BTreeMap::from([(1, 3), (2, 3), (3, 1)]));
    assert_eq!(used(&portal).await, 7, "counted from tomorrow on");
    let quota = portal.see(&format!("/subscriptions/{id}/quota")).await;
    assert_eq!(
        (&quota["usedToday"], &quota["requestsPerSecond"]),
        (&json!(3), &json!(1))
    );
    assert!(
        !portal
            .store
            .set_limits(Uuid::nil(), limits, &terms, portal.now())
            .await
            .unwrap()
    );
    portal.stop().await;
}
