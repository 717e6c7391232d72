//! What administrators decide, and what that does to what waits for its day.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use domain::notification::NotificationState;
use serde_json::{Value, json};
use sqlx::PgPool;
use store::reseller::{Decided, Decision, Limits, QuotaTerms};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::portal::Portal;

async fn requested(portal: &Portal, subscription: Uuid, quota: u32) -> String {
    let path = format!("/subscriptions/{subscription}/quota-requests");
    let body = json!({"dailyQuota": quota, "reason": "A merger."});
    let request = portal.sent("POST", &path, &body, 201).await;
    request["id"].as_str().unwrap().to_owned()
}

/// Decides a request as an administrator does.
async fn decided(portal: &Portal, request: &str, granted: Option<u32>, note: &str) {
    let decision = Decision {
        approve: granted.is_some(),
        granted,
        note: Some(note.to_owned()),
        by: "an administrator".to_owned(),
        at: portal.now(),
    };
    let quota = &portal.config.reseller.quota;
    let terms = QuotaTerms {
        zone: quota.time_zone,
        release_window: quota.release_window,
    };
    let id = request.parse().unwrap();
    let decided = portal.store.decide_quota_request(id, &decision, &terms).await;
    assert!(matches!(decided.unwrap(), Decided::Done(_)));
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_decision_is_seen_but_not_who_made_it(pool: PgPool) {
    let portal = Portal::start(pool).await;
    let (first, second) = (
        SubscriptionRow::active().make(&portal.pool).await,
        SubscriptionRow::active().make(&portal.pool).await,
    );
    decided(&portal, &requested(&portal, first, 5).await, Some(4), "For now.").await;
    decided(&portal, &requested(&portal, second, 6).await, None, "No.").await;
    for (subscription, quota, status, note) in [
        (first, 4, "APPROVED", "For now."),
        (second, 1_000_000, "DENIED", "No."),
    ] {
        let path = format!("/subscriptions/{subscription}");
        assert_eq!(portal.see(&format!("{path}/quota")).await["dailyQuota"], quota);
        let seen = portal.see(&format!("{path}/quota-requests")).await;
        let seen = &seen["items"][0];
        assert_eq!((&seen["status"], &seen["note"]), (&json!(status), &json!(note)));
        assert_eq!(
            seen["decidedBy"],
            Value::Null,
            "keys of the house are not told to resellers"
        );
    }
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
    decided(&portal, &request, Some(20), "").await;
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
