//! Activating, deactivating, pausing, resuming, verifying and testing subscriptions.

use chrono::{NaiveDate, TimeDelta};
use domain::event;
use domain::notification::NotificationId;
use domain::subscription::SubscriptionState;
use serde_json::{Value, json};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::portal::{Portal, emails, fields, problem};

#[testkit::test]
async fn a_deactivated_subscription_is_activated_and_its_failures_are_forgotten(portal: Portal) {
    let id = SubscriptionRow::in_state(SubscriptionState::Degraded)
        .make(&portal.pool)
        .await;
    let path = format!("/subscriptions/{id}");
    let off = portal.done("POST", &format!("{path}/deactivate"), 200).await;
    assert_eq!(
        (&off["state"], &off["stateReason"]),
        (&json!("DEACTIVATED"), &json!("BY_RESELLER"))
    );
    portal
        .refused(
            "POST",
            &format!("{path}/deactivate"),
            None,
            (409, "subscription-state"),
        )
        .await;
    portal.clock.advance(TimeDelta::minutes(1));
    let on = portal.done("POST", &format!("{path}/activate"), 200).await;
    assert_eq!(
        (&on["state"], &on["failingSince"]),
        (&json!("ACTIVE"), &json!(null))
    );
    assert_eq!(on["stateChangedAt"], on["updatedAt"]);
    portal
        .refused(
            "POST",
            &format!("{path}/activate"),
            None,
            (409, "subscription-state"),
        )
        .await;
    let told: Vec<_> = emails(&portal.pool)
        .await
        .into_iter()
        .map(|(_, _, data)| (data["previous"].clone(), data["state"].clone()))
        .collect();
    assert_eq!(told, [(json!("DEACTIVATED"), json!("ACTIVE"))], "the latest");
}

/// A parameter or a field that a request does not take means something that would not happen.
#[testkit::test]
async fn what_a_request_does_not_take_is_refused_and_nothing_is_done(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let (one, pause) = (
        format!("/subscriptions/{id}"),
        format!("/subscriptions/{id}/pause"),
    );
    let wrong = portal
        .refused(
            "GET",
            &format!("{one}?expand=1&fields=url"),
            None,
            (400, "invalid-query"),
        )
        .await;
    assert_eq!(fields(&wrong), ["expand", "fields"]);
    let body = json!({"reason": "release"});
    portal
        .refused("POST", &pause, Some(&body), (422, "validation"))
        .await;
    assert_eq!(
        portal.see(&one).await["pausedAt"],
        json!(null),
        "nothing was done"
    );
    let stranger = portal.request("POST", &pause).json(&body).send().await.unwrap();
    problem(stranger, 401, "unauthorized").await;
    let lenient = portal.call("POST", &pause).header("prefer", "handling=lenient");
    assert_eq!(lenient.json(&body).send().await.unwrap().status(), 200);
    portal
        .sent("POST", &format!("{one}/resume"), &json!({}), 200)
        .await;
    assert_eq!(portal.see(&one).await["pausedAt"], json!(null));
}

/// Of many that ask at once one is done, and one e-mail is sent.
#[testkit::test]
async fn a_change_of_state_is_done_and_told_once_however_many_ask(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{id}/deactivate");
    let asking = (0..8).map(|_| portal.call("POST", &path).send());
    let answers = futures::future::join_all(asking).await;
    let done = answers
        .into_iter()
        .filter(|answer| answer.as_ref().unwrap().status() == 200);
    assert_eq!(done.count(), 1);
    assert_eq!(emails(&portal.pool).await.len(), 1);
}

#[testkit::test]
async fn a_verification_that_was_given_up_starts_over(portal: Portal) {
    let id = SubscriptionRow::in_state(SubscriptionState::PendingVerification)
        .make(&portal.pool)
        .await;
    sqlx::query(
        "UPDATE subscriptions SET verification_due_at = NULL, verification_attempts = 5, verification_error = 'timeout'",
    )
    .execute(&portal.pool)
    .await
    .unwrap();
    let path = format!("/subscriptions/{id}");
    assert_eq!(portal.see(&path).await["verification"]["error"], "timeout");
    let again = portal.done("POST", &format!("{path}/verify"), 200).await;
    let verification = &again["verification"];
    assert_eq!(
        (&verification["failedAttempts"], &verification["error"]),
        (&json!(0), &json!(null))
    );
    assert_eq!(verification["nextAttemptAt"], again["updatedAt"]);
    assert_eq!(emails(&portal.pool).await, []);
    let active = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{active}/verify");
    portal
        .refused("POST", &path, None, (409, "subscription-state"))
        .await;
}

#[testkit::test]
async fn a_verification_that_has_just_begun_is_not_begun_again(portal: Portal) {
    let id = SubscriptionRow::in_state(SubscriptionState::PendingVerification)
        .make(&portal.pool)
        .await;
    sqlx::query("UPDATE subscriptions SET challenge_floor_at = $1")
        .bind(portal.now() + TimeDelta::seconds(10))
        .execute(&portal.pool)
        .await
        .unwrap();
    let path = format!("/subscriptions/{id}/verify");
    let early = portal.call("POST", &path).send().await.unwrap();
    assert_eq!(early.headers()["retry-after"], "11");
    problem(early, 429, "too-many-requests").await;
    portal.clock.advance(TimeDelta::seconds(10));
    portal.done("POST", &path, 200).await;
}

#[testkit::test]
async fn pausing_twice_is_pausing_once(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{id}");
    let paused = portal.done("POST", &format!("{path}/pause"), 200).await;
    assert_eq!(
        (&paused["state"], &paused["pausedAt"]),
        (&json!("ACTIVE"), &paused["updatedAt"])
    );
    portal.clock.advance(TimeDelta::minutes(1));
    assert_eq!(portal.done("POST", &format!("{path}/pause"), 200).await, paused);
    let resumed = portal.done("POST", &format!("{path}/resume"), 200).await;
    assert_eq!(resumed["pausedAt"], Value::Null);
    assert_eq!(portal.done("POST", &format!("{path}/resume"), 200).await, resumed);
}

#[derive(Debug, sqlx::FromRow)]
struct TestRow {
    status: String,
    charged_on: Option<NaiveDate>,
    payload_bytes: i32,
    body: String,
    test_of: Option<Uuid>,
}

#[testkit::test]
async fn a_test_event_goes_to_one_subscription_and_uses_no_quota(portal: Portal) {
    let id = SubscriptionRow::active()
        .event_types(&["contact.updated"])
        .make(&portal.pool)
        .await;
    SubscriptionRow::active().make(&portal.pool).await;
    let sent = portal
        .done("POST", &format!("/subscriptions/{id}/test"), 202)
        .await;
    let event_id: Uuid = sent["eventId"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        sent["notificationId"],
        NotificationId::of(event_id, id).to_string()
    );
    let stored: Vec<TestRow> = sqlx::query_as(
        "SELECT n.status, n.charged_on, n.payload_bytes, e.body, e.test_of
         FROM notifications n JOIN events e ON e.id = n.event",
    )
    .fetch_all(&portal.pool)
    .await
    .unwrap();
    let [row] = stored.as_slice() else {
        panic!("one notification: {stored:?}");
    };
    let today = Some(portal.now().date_naive());
    assert_eq!((row.status.as_str(), row.charged_on), ("PENDING", today));
    assert_eq!(usize::try_from(row.payload_bytes).unwrap(), row.body.len());
    assert_eq!(row.test_of, Some(id));
    let data = json!({"message": "This is a test event.", "subscriptionId": id}).to_string();
    assert_eq!(
        row.body,
        event::body(&event_id.to_string(), "postrider.test", portal.now(), &data)
    );
    assert_eq!(
        portal.see(&format!("/subscriptions/{id}/quota")).await["usedToday"],
        0
    );
    let path = format!("/notifications/{}", sent["notificationId"].as_str().unwrap());
    assert_eq!(portal.see(&path).await["eventType"], "postrider.test");
}

/// They use no quota, and each is kept as long as another event.
#[testkit::test]
async fn only_so_many_test_events_are_sent_in_a_day(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{id}/test");
    portal.done("POST", &path, 202).await;
    sqlx::query(
        "INSERT INTO audit_log (id, at, actor, action, subject)
         SELECT (left(id::text, 18) || right(gen_random_uuid()::text, 18))::uuid, at, actor, action, subject
         FROM audit_log, generate_series(1, 998) WHERE action = 'subscription.test'",
    )
    .execute(&portal.pool)
    .await
    .unwrap();
    portal.done("POST", &path, 202).await;
    let refused = portal.call("POST", &path).send().await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "86401");
    let told = problem(refused, 429, "too-many-requests").await;
    assert!(told["detail"].as_str().unwrap().contains("in a day"), "{told}");
    let other = SubscriptionRow::active().make(&portal.pool).await;
    portal
        .done("POST", &format!("/subscriptions/{other}/test"), 202)
        .await;
    portal.clock.advance(TimeDelta::days(1) + TimeDelta::seconds(1));
    portal.done("POST", &path, 202).await;
}

#[testkit::test]
async fn nothing_is_tested_that_gets_nothing(portal: Portal) {
    for state in [
        SubscriptionState::PendingVerification,
        SubscriptionState::Deactivated,
    ] {
        let id = SubscriptionRow::in_state(state).make(&portal.pool).await;
        let path = format!("/subscriptions/{id}/test");
        let problem = portal
            .refused("POST", &path, None, (409, "subscription-state"))
            .await;
        assert!(
            problem["detail"].as_str().unwrap().contains(state.as_str()),
            "{problem}"
        );
    }
    let events: i64 = sqlx::query_scalar("SELECT count(*) FROM events")
        .fetch_one(&portal.pool)
        .await
        .unwrap();
    assert_eq!(events, 0);
}

#[testkit::test]
async fn what_has_to_be_challenged_again_is_so_whichever_commands_come_in_between(portal: Portal) {
    let id = SubscriptionRow::in_state(SubscriptionState::Deactivated)
        .make(&portal.pool)
        .await;
    sqlx::query("UPDATE subscriptions SET state_reason = 'GONE' WHERE id = $1")
        .bind(id)
        .execute(&portal.pool)
        .await
        .unwrap();
    let path = format!("/subscriptions/{id}");
    for _ in 0..2 {
        let on = portal.done("POST", &format!("{path}/activate"), 200).await;
        assert_eq!(on["state"], "PENDING_VERIFICATION");
        portal.done("POST", &format!("{path}/deactivate"), 200).await;
    }
}
