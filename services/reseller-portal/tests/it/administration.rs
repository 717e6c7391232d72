//! What administrators decide, and what that does to what waits in line.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::NotificationState;
use serde_json::{Value, json};
use store::webhook::{Decided, Decision};
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
        granted_per_second: None,
        note: Some(note.to_owned()),
        by: "an administrator".to_owned(),
        at: portal.now(),
    };
    let id = request.parse().unwrap();
    let decided = portal.store.decide_quota_request(id, &decision).await;
    assert!(matches!(decided.unwrap(), Decided::Done(_)));
}

#[testkit::test]
async fn a_decision_is_seen_but_not_who_made_it(portal: Portal) {
    let (first, second) = (
        SubscriptionRow::active().make(&portal.pool).await,
        SubscriptionRow::active().make(&portal.pool).await,
    );
    decided(
        &portal,
        &requested(&portal, first, 2_000_000).await,
        Some(4),
        "For now.",
    )
    .await;
    decided(&portal, &requested(&portal, second, 2_000_000).await, None, "No.").await;
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
}

#[testkit::test]
async fn a_higher_quota_tells_what_waits_its_new_day(portal: Portal) {
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
    decided(&portal, &request, Some(20), "").await;
    assert_eq!(by_day().await, BTreeMap::from([(0, 10), (1, 20), (2, 5)]));
}
