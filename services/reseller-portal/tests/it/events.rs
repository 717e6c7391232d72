//! What became of an event, subscription by subscription.

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::NotificationState::Sent;
use domain::subscription::SubscriptionState::{Deactivated, PendingVerification};
use serde_json::{Value, json};
use testkit::notification_factory::{MadeNotification, NotificationRow};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::app::{ALL, entered};
use crate::portal::Portal;

/// Gives an event the name that its reseller knows it by.
async fn name(portal: &Portal, made: &MadeNotification, name: &str) {
    let named = "INSERT INTO event_keys (scope, key, event, request, created_at) VALUES ('reseller/acme', $1, $2, '', $3)";
    sqlx::query(named)
        .bind(name)
        .bind(made.event)
        .bind(portal.now())
        .execute(&portal.pool)
        .await
        .unwrap();
    sqlx::query("UPDATE events SET event_id = $1 WHERE id = $2")
        .bind(name)
        .bind(made.event)
        .execute(&portal.pool)
        .await
        .unwrap();
}

/// Why a subscription got nothing of an event, whether that was noted, and the same in words.
fn told(event: &Value, subscription: Uuid) -> (Value, bool, String) {
    let missed = event["missed"].as_array().unwrap();
    let one = missed
        .iter()
        .find(|it| it["subscriptionId"] == json!(subscription));
    let one = one.unwrap_or_else(|| panic!("{subscription} is not in {event}"));
    (
        one["reasons"].clone(),
        one["isNoted"].as_bool().unwrap(),
        one["explanation"].as_str().unwrap().to_owned(),
    )
}

fn is(reasons: &[&str], is_noted: bool, explanation: &str) -> (Value, bool, String) {
    let explanation = format!("Got nothing of it: {explanation}.");
    (json!(reasons), is_noted, explanation)
}

#[testkit::test]
async fn an_event_tells_what_it_became_and_why_each_other_subscription_got_nothing(portal: Portal) {
    let got = SubscriptionRow::active().make(&portal.pool).await;
    let other_types = SubscriptionRow::active().event_types(&["contact.*"]);
    let other_types = other_types.make(&portal.pool).await;
    let off = SubscriptionRow::in_state(Deactivated).make(&portal.pool).await;
    let unverified = SubscriptionRow::in_state(PendingVerification);
    let unverified = unverified.make(&portal.pool).await;
    let unknown = SubscriptionRow::active().make(&portal.pool).await;
    let deleted = SubscriptionRow::active().deleted().make(&portal.pool).await;
    let foreign = SubscriptionRow::active()
        .reseller("stranger")
        .make(&portal.pool)
        .await;
    let made = NotificationRow::in_state(Sent, got).make(&portal.pool).await;
    name(&portal, &made, "rs-1").await;
    let later = SubscriptionRow::active().make(&portal.pool).await;
    // What it is now does not hide what it was.
    sqlx::query(
        "UPDATE subscriptions SET state = 'ACTIVE', state_changed_at = now(), updated_at = now() WHERE id = $1",
    )
    .bind(off)
    .execute(&portal.pool)
    .await
    .unwrap();

    let event = portal.see("/events/rs-1").await;
    assert_eq!(
        (&event["id"], &event["eventId"], &event["type"]),
        (&json!(made.event), &json!("rs-1"), &json!("domain.created"))
    );
    let became = event["notifications"].as_array().unwrap();
    assert_eq!(became.len(), 1, "{event}");
    assert_eq!(
        (
            &became[0]["id"],
            &became[0]["subscriptionId"],
            &became[0]["status"]
        ),
        (&json!(made.id.uuid()), &json!(got), &json!("SENT"))
    );
    let now = "its event types do not take domain.created now";
    assert_eq!(told(&event, other_types), is(&["FILTER"], false, now));
    assert_eq!(
        told(&event, off),
        is(&["DEACTIVATED"], false, "it was deactivated")
    );
    assert_eq!(
        told(&event, unverified),
        is(&["UNVERIFIED"], false, "its endpoint was not verified")
    );
    assert_eq!(
        told(&event, later),
        is(&["LATER"], false, "it was made after the event was accepted")
    );
    let maybe = "it takes domain.created now; its event types may have been others then";
    assert_eq!(told(&event, unknown), is(&["UNKNOWN"], false, maybe));
    assert_eq!(event["missed"].as_array().unwrap().len(), 5, "{event}");
    for hidden in [deleted, foreign] {
        assert!(!event.to_string().contains(&hidden.to_string()), "{event}");
    }
    // By its identifier it is the same event.
    let same = portal.see(&format!("/events/{}", made.event)).await;
    assert_eq!(same, event);

    for none in ["rs-2", "%ff", "%00"] {
        let path = format!("/events/{none}");
        portal.refused("GET", &path, None, (404, "not-found")).await;
    }
    let browser = entered(&portal, &ALL).await;
    let page = browser
        .see(&format!("/app/s/{other_types}/deliveries?q=rs-1"))
        .await;
    assert!(
        page.contains(now) && page.contains(&format!("/app/n/{}", made.id)),
        "{page}"
    );
}

/// An event that became nothing.
async fn unmatched(portal: &Portal, missed: &Value, test_of: Option<Uuid>) -> Uuid {
    let (id, at): (Uuid, DateTime<Utc>) = (Uuid::now_v7(), portal.now() + TimeDelta::minutes(1));
    sqlx::query(
        "INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at, missed, test_of)
         VALUES ($1, $1::text, 'acme', 'domain.created', '{}', $2, $2, $3, $4)",
    )
    .bind(id)
    .bind(at)
    .bind(missed)
    .bind(test_of)
    .execute(&portal.pool)
    .await
    .unwrap();
    id
}

#[testkit::test]
async fn what_was_noted_when_an_event_was_accepted_is_told_as_it_was_then(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let noted =
        json!([{"subscription": id, "state": "PENDING_VERIFICATION", "filtered": true, "paused": false}]);
    let event = unmatched(&portal, &noted, None).await;
    let event = portal.see(&format!("/events/{event}")).await;
    assert_eq!(event["notifications"], json!([]));
    let both = "its event types did not take domain.created, and its endpoint was not verified";
    assert_eq!(told(&event, id), is(&["FILTER", "UNVERIFIED"], true, both));

    // A test is for one subscription alone.
    let test = unmatched(&portal, &Value::Null, Some(Uuid::now_v7())).await;
    let test = portal.see(&format!("/events/{test}")).await;
    let of_another = "the event is a test of another subscription";
    assert_eq!(told(&test, id), is(&["TEST"], false, of_another));
}
