//! Changing and deleting subscriptions.

use chrono::TimeDelta;
use domain::subscription::SubscriptionState;
use serde_json::{Value, json};
use sqlx::PgPool;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::portal::{Portal, emails, fields, id_of};

async fn version(pool: &PgPool, id: Uuid) -> i64 {
    sqlx::query_scalar("SELECT version FROM subscriptions WHERE id = $1")
        .bind(id)
        .fetch_one(pool)
        .await
        .unwrap()
}

#[testkit::test]
async fn a_change_touches_what_it_names(portal: Portal) {
    let id = SubscriptionRow::active()
        .event_types(&["domain.*"])
        .make(&portal.pool)
        .await;
    let path = format!("/subscriptions/{id}");
    let before = portal.see(&path).await;
    portal.clock.advance(TimeDelta::minutes(1));
    let change = json!({
        "eventTypes": ["contact.updated"], "description": "Contacts", "timeoutMillis": 2_500, "resendAfterOutage": false,
        "retryPlan": "DAY", "retryClientErrors": true,
    });
    let after = portal.sent("PATCH", &path, &change, 200).await;
    let mut expected = before.clone();
    for (field, value) in change.as_object().unwrap() {
        expected[field] = value.clone();
    }
    expected["updatedAt"] = after["updatedAt"].clone();
    assert_eq!(after, expected);
    assert_ne!(after["updatedAt"], before["updatedAt"]);
    let defaults = json!({"timeoutMillis": null, "resendAfterOutage": null, "retryPlan": null, "retryClientErrors": null});
    let back = portal.sent("PATCH", &path, &defaults, 200).await;
    assert_eq!(back["timeoutMillis"], 10_000);
    assert_eq!(back["resendAfterOutage"], true);
    assert_eq!(
        (&back["retryPlan"], &back["retryClientErrors"]),
        (&json!("SHORT"), &json!(false))
    );
    assert_eq!(emails(&portal.pool).await, []);
    let log: Vec<Value> =
        sqlx::query_scalar("SELECT details FROM audit_log WHERE action = 'subscription.change' ORDER BY id")
            .fetch_all(&portal.pool)
            .await
            .unwrap();
    let change = |from: Value, to: Value| json!({ "from": from, "to": to });
    let there = change(json!(["domain.*"]), json!(["contact.updated"]));
    let plan = |from: &str, to: &str| change(json!(from), json!(to));
    assert_eq!((log.len(), &log[0]["eventTypes"]), (2, &there));
    assert_eq!(log[0]["timeoutMillis"], change(Value::Null, json!(2_500)));
    assert_eq!(log[0]["retryPlan"], plan("SHORT", "DAY"));
    assert_eq!(log[1]["retryPlan"], plan("DAY", "SHORT"));
    assert_eq!(log[1]["eventTypes"], Value::Null, "it was not named");
}

#[testkit::test]
async fn limits_are_refused_with_the_way_to_them(portal: Portal) {
    let id = id_of(&portal.created().await);
    for (field, value) in [("dailyQuota", json!(5)), ("requestsPerSecond", json!(null))] {
        let body = json!({field: value, "description": "changed"});
        let path = format!("/subscriptions/{id}");
        let problem = portal
            .refused("PATCH", &path, Some(&body), (422, "validation"))
            .await;
        assert_eq!(fields(&problem), [field]);
        assert!(
            problem["errors"][0]["detail"]
                .as_str()
                .unwrap()
                .contains("/quota-requests")
        );
        assert_eq!(portal.see(&path).await["description"], "Domains");
    }
}

#[testkit::test]
async fn what_another_request_changes_is_refused_with_that_request(portal: Portal) {
    let path = format!("/subscriptions/{}", id_of(&portal.created().await));
    let body = json!({"secret": "whsec_x", "state": null, "description": "changed"});
    let problem = portal
        .refused("PATCH", &path, Some(&body), (422, "validation"))
        .await;
    assert_eq!(fields(&problem), ["secret", "state"]);
    for (place, request) in ["POST /subscriptions/{id}/secrets", "/subscriptions/{id}/activate"]
        .iter()
        .enumerate()
    {
        let detail = problem["errors"][place]["detail"].as_str().unwrap();
        assert!(detail.contains(request), "{detail}");
    }
    assert_eq!(portal.see(&path).await["description"], "Domains");
}

#[testkit::test]
async fn another_endpoint_has_to_be_verified_first(portal: Portal) {
    for state in [SubscriptionState::Active, SubscriptionState::Degraded] {
        portal.clock.advance(TimeDelta::minutes(1));
        let id = SubscriptionRow::in_state(state).make(&portal.pool).await;
        let (path, before) = (format!("/subscriptions/{id}"), version(&portal.pool, id).await);
        let same = json!({"url": "https://acme.example/hook"});
        assert_eq!(
            portal.sent("PATCH", &path, &same, 200).await["state"],
            state.as_str()
        );
        assert_eq!(version(&portal.pool, id).await, before);
        let moved = json!({"url": "https://acme.example/other", "email": "new@acme.example"});
        let moved = portal.sent("PATCH", &path, &moved, 200).await;
        assert_eq!(
            (&moved["state"], &moved["stateReason"]),
            (&json!("PENDING_VERIFICATION"), &json!("ENDPOINT_CHANGED"))
        );
        assert_eq!(
            (&moved["verification"]["verifiedAt"], &moved["failingSince"]),
            (&json!(null), &json!(null))
        );
        assert_eq!(moved["verification"]["nextAttemptAt"], moved["updatedAt"]);
        assert!(
            version(&portal.pool, id).await > before,
            "the engines have to notice"
        );
    }
    let mails = emails(&portal.pool).await;
    let of_kind = |wanted| {
        mails
            .iter()
            .filter(move |(kind, _, _)| kind == wanted)
            .collect::<Vec<_>>()
    };
    assert_eq!(of_kind("ADDRESS_CONFIRMATION").len(), 1, "for both");
    let warned = of_kind("SECURITY_CHANGED");
    assert_eq!(warned.len(), 2, "one for each");
    assert!(
        warned
            .iter()
            .all(|(_, recipient, _)| recipient == "ops@acme.example"),
        "{warned:?}"
    );
    let mails = of_kind("STATE_CHANGED");
    assert_eq!(mails.len(), 2, "one for each");
    let (kind, recipient, data) = mails[0];
    assert_eq!(
        (kind.as_str(), recipient.as_str()),
        ("STATE_CHANGED", "new@acme.example")
    );
    let expected = json!({
        "state": "PENDING_VERIFICATION", "previous": "ACTIVE", "reason": "ENDPOINT_CHANGED",
        "url": "https://acme.example/other", "description": "", "resellerId": "acme",
    });
    assert_eq!(*data, expected);
}

#[testkit::test]
async fn a_deactivated_subscription_stays_so_when_it_moves_and_is_verified_when_it_is_activated(
    portal: Portal,
) {
    let id = SubscriptionRow::in_state(SubscriptionState::Deactivated)
        .make(&portal.pool)
        .await;
    let path = format!("/subscriptions/{id}");
    let moved = portal
        .sent("PATCH", &path, &json!({"url": "https://acme.example/other"}), 200)
        .await;
    assert_eq!(moved["state"], "DEACTIVATED");
    assert_eq!(
        moved["verification"]["nextAttemptAt"],
        json!(null),
        "nothing is sent to it"
    );
    let kinds: Vec<_> = emails(&portal.pool)
        .await
        .into_iter()
        .map(|mail| mail.0)
        .collect();
    assert_eq!(kinds, ["SECURITY_CHANGED"]);
    let activated = portal.done("POST", &format!("{path}/activate"), 200).await;
    assert_eq!(activated["state"], "PENDING_VERIFICATION");
}

#[testkit::test]
async fn what_is_deleted_is_gone_with_what_belongs_to_it(portal: Portal) {
    let id = id_of(&portal.created().await);
    let path = format!("/subscriptions/{id}");
    let since = portal.now() - TimeDelta::hours(1);
    portal
        .sent("POST", &format!("{path}/replays"), &json!({"since": since}), 202)
        .await;
    let more = json!({"dailyQuota": 2_000_000, "reason": "more"});
    portal
        .sent("POST", &format!("{path}/quota-requests"), &more, 201)
        .await;
    let before = version(&portal.pool, id).await;
    portal.done("DELETE", &path, 204).await;
    for below in [
        "",
        "/secrets",
        "/quota",
        "/quota-requests",
        "/notifications",
        "/scheduled",
        "/replays",
        "/metrics",
    ] {
        portal
            .refused("GET", &format!("{path}{below}"), None, (404, "not-found"))
            .await;
    }
    portal.refused("DELETE", &path, None, (404, "not-found")).await;
    assert_eq!(portal.see("/subscriptions").await["items"], json!([]));
    let left: (String, String, bool) = sqlx::query_as(
        "SELECT r.status, q.status, s.verification_due_at IS NULL
         FROM subscriptions s JOIN replays r ON r.subscription_id = s.id JOIN quota_requests q ON q.subscription_id = s.id",
    )
    .fetch_one(&portal.pool)
    .await
    .unwrap();
    assert_eq!(left, ("CANCELLED".to_owned(), "DENIED".to_owned(), true));
    assert!(version(&portal.pool, id).await > before);
}
