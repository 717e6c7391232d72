//! Quotas and requests for more, as resellers see them.

use chrono::{NaiveTime, TimeDelta};
use serde_json::{Value, json};
use sqlx::PgPool;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::portal::{Portal, fields};

async fn take(portal: &Portal, subscription: Uuid, used: i64, quota: i32) {
    sqlx::query(
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota) VALUES ($1, $2, $3, $4)",
    )
    .bind(subscription)
    .bind(portal.now().date_naive())
    .bind(used)
    .bind(quota)
    .execute(&portal.pool)
    .await
    .unwrap();
}

#[testkit::test]
async fn the_use_of_a_day_is_shown_and_goes_over_to_the_next(portal: Portal) {
    let id = SubscriptionRow::active()
        .daily_quota(10)
        .requests_per_second(3)
        .make(&portal.pool)
        .await;
    let path = format!("/subscriptions/{id}/quota");
    let fresh = portal.see(&path).await;
    let tomorrow = (portal.now() + TimeDelta::days(1))
        .date_naive()
        .and_time(NaiveTime::MIN)
        .and_utc();
    let expected = json!({
        "dailyQuota": 10, "usedToday": 0, "remainingToday": 10, "usedUpAt": null, "scheduled": 0, "resetsAt": tomorrow,
        "timeZone": "UTC", "requestsPerSecond": 3, "openRequest": null,
    });
    assert_eq!(fresh, expected);
    take(&portal, id, 14, 10).await;
    let used = |quota: &Value| (quota["usedToday"].as_u64(), quota["remainingToday"].as_u64());
    let full = portal.see(&path).await;
    assert_eq!(used(&full), (Some(10), Some(0)));
    assert_eq!(full["usedUpAt"], Value::Null, "since when is not kept");
    portal.clock.advance(TimeDelta::days(1));
    assert_eq!(used(&portal.see(&path).await), (Some(4), Some(6)));
    portal.clock.advance(TimeDelta::days(1));
    assert_eq!(used(&portal.see(&path).await), (Some(0), Some(10)));
}

#[testkit::test]
async fn what_was_used_before_the_quota_was_lowered_is_shown(portal: Portal) {
    let id = SubscriptionRow::active().daily_quota(2).make(&portal.pool).await;
    take(&portal, id, 12, 5_000).await;
    let quota = portal.see(&format!("/subscriptions/{id}/quota")).await;
    assert_eq!(
        (&quota["usedToday"], &quota["remainingToday"], &quota["usedUpAt"]),
        (&json!(12), &json!(0), &Value::Null)
    );
    let days = portal.see(&format!("/subscriptions/{id}/quota/days")).await;
    assert_eq!(
        (
            &days["busiest"],
            &days["days"][27]["used"],
            &days["days"][27]["quota"]
        ),
        (&json!(12), &json!(12), &json!(2))
    );
    let overview = portal.see("/overview").await;
    assert_eq!(overview["subscriptions"][0]["quota"]["usedToday"], 12);
}

#[testkit::test]
async fn a_subscription_without_limits_of_its_own_has_the_defaults(pool: PgPool) {
    let portal = Portal::start_with(pool, |config| {
        config.reseller.subscription.daily_quota = 77;
        config.reseller.subscription.requests_per_second = Some(5);
        config.reseller.quota.time_zone = "Europe/Berlin".parse().unwrap();
    })
    .await;
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let quota = portal.see(&format!("/subscriptions/{id}/quota")).await;
    assert_eq!(
        (&quota["dailyQuota"], &quota["requestsPerSecond"]),
        (&json!(77), &json!(5))
    );
    assert_eq!(quota["timeZone"], "Europe/Berlin");
    assert_ne!(
        &quota["resetsAt"].as_str().unwrap()[11..13],
        "00",
        "midnight in Berlin is not midnight"
    );
}

#[testkit::test]
async fn one_request_for_more_waits_at_a_time(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{id}/quota-requests");
    let body = json!({"dailyQuota": 2_000_000, "reason": "A merger."});
    let asking = (0..6).map(|_| portal.call("POST", &path).json(&body).send());
    let mut statuses: Vec<u16> = futures::future::join_all(asking)
        .await
        .into_iter()
        .map(|answer| answer.unwrap().status().as_u16())
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409]);
    portal
        .refused("POST", &path, Some(&body), (409, "quota-request-open"))
        .await;
    let list = portal.see(&path).await;
    let [request] = list["items"].as_array().unwrap().as_slice() else {
        panic!("{list}");
    };
    assert_eq!(
        (&request["status"], &request["dailyQuota"]),
        (&json!("REQUESTED"), &json!(2_000_000))
    );
    assert_eq!(request["reason"], "A merger.");
    let quota = portal.see(&format!("/subscriptions/{id}/quota")).await;
    assert_eq!(&quota["openRequest"], request);
}

#[testkit::test]
async fn a_request_for_what_there_is_already_is_refused_with_how_much_that_is(portal: Portal) {
    let id = SubscriptionRow::active()
        .daily_quota(500)
        .make(&portal.pool)
        .await;
    let path = format!("/subscriptions/{id}/quota-requests");
    for quota in [1, 500] {
        let body = json!({"dailyQuota": quota, "reason": "Less."});
        let refused = portal
            .refused("POST", &path, Some(&body), (422, "validation"))
            .await;
        assert_eq!(fields(&refused), ["dailyQuota"]);
        assert!(refused.to_string().contains("more than 500"), "{refused}");
    }
    let more = json!({"dailyQuota": 501, "reason": "More."});
    portal.sent("POST", &path, &more, 201).await;
}

#[testkit::test]
async fn more_attempts_a_second_can_be_asked_for_with_or_without_more_a_day(portal: Portal) {
    let limited = SubscriptionRow::active()
        .daily_quota(500)
        .requests_per_second(5)
        .make(&portal.pool)
        .await;
    let path = format!("/subscriptions/{limited}/quota-requests");
    for (body, field, told) in [
        (
            json!({"requestsPerSecond": 5, "reason": "x"}),
            "requestsPerSecond",
            "more than 5",
        ),
        (
            json!({"requestsPerSecond": 0, "reason": "x"}),
            "requestsPerSecond",
            "between 1 and 100000",
        ),
        (
            json!({"requestsPerSecond": 6, "dailyQuota": 499, "reason": "x"}),
            "dailyQuota",
            "more than 500",
        ),
    ] {
        let refused = portal
            .refused("POST", &path, Some(&body), (422, "validation"))
            .await;
        assert_eq!(fields(&refused), [field]);
        assert!(refused.to_string().contains(told), "{refused}");
    }
    let body = json!({"requestsPerSecond": 20, "reason": "Our endpoint bears it."});
    let request = portal.sent("POST", &path, &body, 201).await;
    assert_eq!(
        (&request["dailyQuota"], &request["requestsPerSecond"]),
        (&json!(500), &json!(20))
    );
    assert_eq!(portal.see(&path).await["items"], json!([request]));
    let quota = portal.see(&format!("/subscriptions/{limited}/quota")).await;
    assert_eq!(quota["openRequest"], request);
    let (asked, audited): (Value, Value) = sqlx::query_as(
        "SELECT to_jsonb(q), (SELECT details FROM audit_log WHERE action = 'quota-request.create') FROM quota_requests q",
    )
    .fetch_one(&portal.pool)
    .await
    .unwrap();
    assert_eq!(asked["requested_per_second"], 20);
    assert_eq!(audited, json!({"requested": 500, "requestedPerSecond": 20}));

    let unlimited = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{unlimited}/quota-requests");
    let refused = portal
        .refused("POST", &path, Some(&body), (422, "validation"))
        .await;
    assert!(refused.to_string().contains("no limit a second"), "{refused}");
}

#[testkit::test]
async fn a_request_needs_a_number_and_a_reason(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{id}/quota-requests");
    for (body, wrong) in [
        (json!({}), &["dailyQuota", "reason"][..]),
        (json!({"dailyQuota": 0, "reason": " "}), &["dailyQuota", "reason"]),
        (
            json!({"dailyQuota": 1_000_000_001, "reason": "x"}),
            &["dailyQuota"],
        ),
        (
            json!({"dailyQuota": -1, "reason": "x".repeat(2_001)}),
            &["dailyQuota", "reason"],
        ),
    ] {
        let problem = portal
            .refused("POST", &path, Some(&body), (422, "validation"))
            .await;
        assert_eq!(fields(&problem), wrong, "{problem}");
    }
}

#[testkit::test]
async fn a_request_that_waits_can_be_withdrawn_and_makes_room_for_another(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{id}/quota-requests");
    let body = json!({"dailyQuota": 2_000_000, "reason": "A merger."});
    let mistyped = portal.sent("POST", &path, &body, 201).await;
    let one = format!("{path}/{}", mistyped["id"].as_str().unwrap());
    portal.done("DELETE", &one, 204).await;
    portal.refused("DELETE", &one, None, (404, "not-found")).await;
    assert_eq!(portal.see(&path).await["items"], json!([]));
    let activity = portal.see("/activity?action=quota-request.withdraw").await;
    assert_eq!(
        activity["items"][0]["details"]["request"], mistyped["id"],
        "{activity}"
    );
    let second = portal.sent("POST", &path, &body, 201).await;
    sqlx::query("UPDATE quota_requests SET status = 'DENIED', decided_by = 'ada', decided_at = created_at")
        .execute(&portal.pool)
        .await
        .unwrap();
    let two = format!("{path}/{}", second["id"].as_str().unwrap());
    portal
        .refused("DELETE", &two, None, (409, "quota-request-decided"))
        .await;
    let actions: Vec<String> = sqlx::query_scalar(
        "SELECT action FROM audit_log WHERE action LIKE 'quota-request.%' ORDER BY action",
    )
    .fetch_all(&portal.pool)
    .await
    .unwrap();
    assert_eq!(
        actions,
        [
            "quota-request.create",
            "quota-request.create",
            "quota-request.withdraw"
        ]
    );
}
