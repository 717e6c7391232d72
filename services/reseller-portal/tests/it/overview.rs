//! Everything in one look: how it stands with each subscription, what waits, and what needs its reseller first.

use std::time::Duration;

use chrono::TimeDelta;
use domain::notification::NotificationState;
use domain::subscription::SubscriptionState;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use store::webhook::{AttemptEnd, StatisticsDelta};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::app::{ALL, entered};
use crate::portal::Portal;

async fn set(portal: &Portal, id: Uuid, change: &str) {
    sqlx::query(AssertSqlSafe(format!(
        "UPDATE subscriptions SET {change} WHERE id = $1"
    )))
    .bind(id)
    .execute(&portal.pool)
    .await
    .unwrap();
}

fn codes(overview: &Value) -> Vec<(Uuid, String)> {
    let needs = overview["needsYou"].as_array().unwrap();
    let read = |need: &Value| {
        (
            need["subscriptionId"].as_str().unwrap().parse().unwrap(),
            need["code"].as_str().unwrap().to_owned(),
        )
    };
    needs.iter().map(read).collect()
}

#[testkit::test]
async fn each_subscription_is_shown_with_its_week_what_waits_and_its_quota(portal: Portal) {
    let nothing = portal.see("/overview").await;
    assert_eq!(
        (&nothing["subscriptions"], &nothing["needsYou"]),
        (&json!([]), &json!([]))
    );
    let id = SubscriptionRow::active().daily_quota(10).make(&portal.pool).await;
    let other = SubscriptionRow::active().make(&portal.pool).await;
    for (age, end) in [
        (TimeDelta::zero(), AttemptEnd::Delivered),
        (TimeDelta::hours(3), AttemptEnd::Failed),
        (TimeDelta::hours(5), AttemptEnd::Retried),
        (TimeDelta::days(8), AttemptEnd::Delivered),
    ] {
        let mut hour = StatisticsDelta::new(id, portal.now() - age);
        hour.record(end, Duration::from_millis(20), Some(200), 10);
        portal.store.add_delivery_statistics(&[hour]).await.unwrap();
    }
    use NotificationState::{Pending, Retry, Scheduled, Sent};
    for state in [Scheduled, Scheduled, Retry, Pending, Sent] {
        NotificationRow::in_state(state, id)
            .due_in(TimeDelta::minutes(5))
            .make(&portal.pool)
            .await;
    }
    let seen = portal.see("/overview").await;
    let rows = seen["subscriptions"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == json!(id)).unwrap();
    assert_eq!(
        (&row["delivered"], &row["failed"], &row["successRate"]),
        (&json!(1), &json!(1), &json!(0.5))
    );
    assert_eq!(row["hours"].as_array().unwrap().len(), 2, "{row}");
    assert_eq!(
        row["waiting"],
        json!([{"reason": "QUOTA", "count": 2}, {"reason": "TURN", "count": 1}, {"reason": "RETRY", "count": 1}])
    );
    assert_eq!(
        (&row["quota"]["dailyQuota"], &row["quota"]["usedToday"]),
        (&json!(10), &json!(0))
    );
    assert_eq!(
        (&row["said"]["code"], &row["next"]["code"]),
        (&json!("active"), &json!("retried"))
    );
    let quiet = rows.iter().find(|row| row["id"] == json!(other)).unwrap();
    assert_eq!((&quiet["hours"], &quiet["next"]), (&json!([]), &Value::Null));
    assert_eq!(quiet["successRate"], Value::Null);

    portal
        .done("POST", &format!("/subscriptions/{id}/pause"), 200)
        .await;
    let seen = portal.see("/overview").await;
    let row = &seen["subscriptions"].as_array().unwrap()[0];
    assert_eq!(
        (&row["pausedBy"], &row["said"]["code"]),
        (&json!("RESELLER"), &json!("paused"))
    );
    assert_eq!(row["waiting"][0], json!({"reason": "PAUSED", "count": 3}));
    assert_eq!(codes(&seen), [], "a pause of one's own is meant to be");
}

#[testkit::test]
async fn what_failed_and_was_delivered_by_resending_is_told_apart(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let mut hour = StatisticsDelta::new(id, portal.now());
    for _ in 0..3 {
        hour.record(AttemptEnd::Failed, Duration::from_millis(20), Some(401), 10);
    }
    portal.store.add_delivery_statistics(&[hour]).await.unwrap();
    let mut failed = Vec::new();
    for _ in 0..3 {
        let row = NotificationRow::in_state(NotificationState::Failed, id);
        failed.push(row.make(&portal.pool).await.id);
    }
    let row = async || portal.see("/overview").await["subscriptions"][0].clone();
    let seen = row().await;
    assert_eq!(
        (&seen["failed"], &seen["deliveredByResending"]),
        (&json!(3), &json!(0))
    );
    let resend = format!("/notifications/{}/resend", failed[0]);
    portal.done("POST", &resend, 202).await;
    assert_eq!(row().await["deliveredByResending"], 0, "it is on its way");
    sqlx::query(
        "UPDATE notifications SET status = 'SENT', reason = NULL, next_attempt_at = NULL, finished_at = now() WHERE id = $1",
    )
    .bind(failed[0].uuid())
    .execute(&portal.pool)
    .await
    .unwrap();
    let seen = row().await;
    assert_eq!(
        (&seen["failed"], &seen["deliveredByResending"]),
        (&json!(3), &json!(1))
    );
    let page = entered(&portal, &ALL).await.see("/app").await;
    assert!(
        page.contains("2 notifications of the last 7 days were not delivered"),
        "{page}"
    );
}

#[testkit::test]
async fn an_endpoint_that_fails_is_told_with_what_it_answers(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    set(&portal, id, "failing_since = now()").await;
    // What it answered most often in this hour was before it began to fail.
    let mut hour = StatisticsDelta::new(id, portal.now());
    for status in [500, 500, 500, 401] {
        hour.record(AttemptEnd::Retried, Duration::from_millis(20), Some(status), 10);
    }
    portal.store.add_delivery_statistics(&[hour]).await.unwrap();
    let answered = async |row: NotificationRow, status: Option<i32>| {
        let made = row.make(&portal.pool).await;
        sqlx::query("UPDATE delivery_attempts SET response_status = $2 WHERE notification_id = $1")
            .bind(made.id.uuid())
            .bind(status)
            .execute(&portal.pool)
            .await
            .unwrap();
    };
    let of = |state, age: TimeDelta| NotificationRow::in_state(state, id).created_at(portal.now() + age);
    let of_before = of(NotificationState::Retry, TimeDelta::minutes(-5));
    answered(of_before, Some(500)).await;
    let unknown = portal.see("/overview").await["subscriptions"][0]["failingAnswer"].clone();
    assert_eq!(unknown, Value::Null, "nothing is known of since it began to fail");
    answered(of(NotificationState::Failed, TimeDelta::seconds(1)), Some(403)).await;
    answered(of(NotificationState::Retry, TimeDelta::seconds(2)), Some(401)).await;
    let seen = portal.see("/overview").await;
    assert_eq!(seen["subscriptions"][0]["failingAnswer"], 401);
    let need = &seen["needsYou"][0];
    assert_eq!(
        (&need["code"], &need["params"]["answer"]),
        (&json!("failing"), &json!(401))
    );
    let text = need["text"].as_str().unwrap();
    assert!(text.contains("did you rotate the signing secret?"), "{text}");

    answered(of(NotificationState::Failed, TimeDelta::seconds(3)), None).await;
    let of_timeout = "UPDATE delivery_attempts SET error_type = 'TIMEOUT' WHERE response_status IS NULL";
    sqlx::query(of_timeout).execute(&portal.pool).await.unwrap();
    let seen = portal.see("/overview").await;
    assert_eq!(seen["subscriptions"][0]["failingAnswer"], Value::Null);
    let need = &seen["needsYou"][0];
    assert_eq!(
        (&need["params"]["answer"], &need["params"]["errorType"]),
        (&Value::Null, &json!("TIMEOUT"))
    );
    let text = need["text"].as_str().unwrap();
    assert!(text.contains("It does not answer in time of late"), "{text}");
}

#[testkit::test]
async fn what_fails_on_our_side_is_said_and_is_no_failing_of_the_endpoint(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let retried = NotificationRow::in_state(NotificationState::Retry, id).created_at(portal.now());
    retried.make(&portal.pool).await;
    let counted = async |end, status| {
        let mut hour = StatisticsDelta::new(id, portal.now());
        hour.record(end, Duration::from_millis(20), status, 10);
        portal.store.add_delivery_statistics(&[hour]).await.unwrap();
    };
    counted(AttemptEnd::Retried, None).await;
    let failed_as = async |error_type: &str| {
        sqlx::query("UPDATE delivery_attempts SET response_status = NULL, error_type = $1")
            .bind(error_type)
            .execute(&portal.pool)
            .await
            .unwrap();
    };
    failed_as("TIMEOUT").await;
    let needs = codes(&portal.see("/overview").await);
    assert!(needs.is_empty(), "its endpoint may answer the next: {needs:?}");
    failed_as("OTHER").await;
    let seen = portal.see("/overview").await;
    assert_eq!(codes(&seen), [(id, "failing-on-our-side".to_owned())]);
    let text = seen["needsYou"][0]["text"].as_str().unwrap();
    assert!(text.contains("for the operators of the platform"), "{text}");
    let page = entered(&portal, &ALL).await.see("/app").await;
    assert!(page.contains("fail on our side"), "{page}");

    counted(AttemptEnd::Delivered, Some(200)).await;
    let needs = codes(&portal.see("/overview").await);
    assert!(needs.is_empty(), "not every attempt fails: {needs:?}");
}

#[testkit::test]
async fn what_needs_its_reseller_comes_first_and_the_worst_before_the_rest(portal: Portal) {
    let make = async |state| SubscriptionRow::in_state(state).make(&portal.pool).await;
    let (held, full) = (
        make(SubscriptionState::Active).await,
        make(SubscriptionState::Active).await,
    );
    let unverified = make(SubscriptionState::PendingVerification).await;
    let degraded = make(SubscriptionState::Degraded).await;
    let gone = make(SubscriptionState::Deactivated).await;
    set(&portal, held, "held_at = now()").await;
    set(&portal, full, "daily_quota = 10").await;
    set(&portal, gone, "state_reason = 'GONE'").await;
    sqlx::query(
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota) VALUES ($1, $2, 8, 10)
         ON CONFLICT (subscription_id) DO UPDATE SET day = excluded.day, used = 8, quota = 10",
    )
    .bind(full)
    .bind(portal.now().date_naive())
    .execute(&portal.pool)
    .await
    .unwrap();
    let rotate = format!("/subscriptions/{full}/secrets");
    portal.done("POST", &rotate, 201).await;
    portal.done("POST", &rotate, 201).await;
    let seen = portal.see("/overview").await;
    assert_eq!(
        codes(&seen),
        [
            (gone, "deactivated-gone".to_owned()),
            (degraded, "degraded".to_owned()),
            (unverified, "unverified".to_owned()),
            (full, "secret-ends".to_owned()),
            (full, "quota-used".to_owned()),
            (held, "held".to_owned()),
        ],
        "{seen:#}"
    );
    let texts: Vec<&str> = seen["needsYou"]
        .as_array()
        .unwrap()
        .iter()
        .map(|need| need["text"].as_str().unwrap())
        .collect();
    assert!(
        texts[0].contains("410") && texts[4].starts_with("8 of 10 notifications"),
        "{texts:?}"
    );
    // Lowered since: 8 of 5 would read like a fault.
    set(&portal, full, "daily_quota = 5").await;
    let lowered = portal.see("/overview").await;
    let mut needs = lowered["needsYou"].as_array().unwrap().iter();
    let need = needs.find(|need| need["code"] == "quota-used-up").unwrap();
    let text = need["text"].as_str().unwrap();
    let said = "8 notifications of today are used, and the quota is 5 now; what comes now waits";
    assert!(text.starts_with(said), "{text}");

    let stranger = portal.key_of("stranger").await;
    let theirs = portal.request("GET", "/overview").bearer_auth(stranger);
    let theirs: Value = theirs.send().await.unwrap().json().await.unwrap();
    assert_eq!(
        (&theirs["subscriptions"], &theirs["needsYou"]),
        (&json!([]), &json!([]))
    );
}
