//! Whether a request is signed as it should be, and if not, why.

use chrono::TimeDelta;
use serde_json::{Value, json};
use signing::{Secret, sign};
use testkit::subscription_factory::SubscriptionRow;

use crate::portal::{Portal, answer, fields};

const BODY: &str = r#"{"id":"order-17","type":"domain.created","timestamp":"2026-11-21T09:51:36.518Z","data":{"domain":"example.lv"}}"#;

/// A secret of no subscription.
const UNKNOWN: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn request(secret: &str, at: i64, body: &str) -> Value {
    let secret = Secret::parse(secret).unwrap();
    let signature = sign(&secret, "order-17", at, BODY.as_bytes());
    json!({
        "headers": {"Webhook-Id": "order-17", "webhook-timestamp": at.to_string(), "webhook-signature": signature},
        "body": body,
    })
}

#[testkit::test]
async fn a_signature_is_judged_with_the_secrets_of_the_subscription_and_none_is_shown(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let secret_of = async |id: uuid::Uuid| {
        let path = format!("/subscriptions/{id}/secrets");
        portal.done("POST", &path, 201).await
    };
    let made = secret_of(id).await;
    let secret = made["secret"].as_str().unwrap();
    let path = format!("/subscriptions/{id}/signature-checks");
    let now = portal.now().timestamp();
    let judged = async |request: &Value| {
        let judged = portal.sent("POST", &path, request, 200).await;
        assert!(!judged.to_string().contains(&secret[8..]), "{judged}");
        judged
    };
    let right = judged(&request(secret, now, BODY)).await;
    assert_eq!(
        (&right["verdict"], &right["secretId"], &right["causes"]),
        (&json!("verified"), &made["id"], &json!([]))
    );
    let first = |judged: &Value| judged["causes"][0]["code"].as_str().unwrap().to_owned();
    let late = request(secret, now - 420, BODY);
    assert_eq!(first(&judged(&late).await), "too_old");
    let mut recorded = late;
    recorded["at"] = json!("recorded");
    assert_eq!(judged(&recorded).await["verdict"], "verified");
    let spaced = BODY.replace("\":", "\": ");
    assert_eq!(
        first(&judged(&request(secret, now, &spaced)).await),
        "reserialised_body"
    );
    let judged = judged(&request(UNKNOWN, now, BODY)).await;
    assert!(first(&judged).starts_with("wrong_secret"), "{judged}");
    for (wrong, field) in [
        (json!({"body": "x"}), "headers"),
        (json!({"headers": {"webhook-id": "x"}}), "body"),
        (
            json!({"headers": {"webhook-id": "x"}, "body": "x".repeat(70_000)}),
            "body",
        ),
        (
            json!({"headers": {"webhook-id": "x"}, "body": "", "at": "noon"}),
            "at",
        ),
    ] {
        let problem = portal
            .refused("POST", &path, Some(&wrong), (422, "validation"))
            .await;
        assert_eq!(fields(&problem), [field]);
    }
}

#[testkit::test]
async fn a_secret_of_another_subscription_is_named_by_it_unless_that_is_of_another_reseller(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let url = "https://other.example/hooks";
    let other = SubscriptionRow::active().url(url).make(&portal.pool).await;
    let foreign = SubscriptionRow::active().reseller("stranger");
    let foreign = foreign.make(&portal.pool).await;
    let stranger = portal.key_of("stranger").await;
    let of_other = portal
        .done("POST", &format!("/subscriptions/{other}/secrets"), 201)
        .await;
    let rotation = portal.request("POST", &format!("/subscriptions/{foreign}/secrets"));
    let rotated = rotation.bearer_auth(stranger).send().await.unwrap();
    let of_foreign = answer(rotated, 201).await;
    let path = format!("/subscriptions/{id}/signature-checks");
    let judged = async |made: &Value, back: i64| {
        let at = portal.now().timestamp() - back;
        let request = request(made["secret"].as_str().unwrap(), at, BODY);
        portal.sent("POST", &path, &request, 200).await
    };
    let told = judged(&of_other, 0).await;
    assert_eq!(
        (&told["verdict"], &told["secretId"]),
        (&json!("no_match"), &Value::Null)
    );
    let cause = &told["causes"][0];
    assert_eq!(cause["code"], "secret_of_another_subscription");
    let text = cause["text"].as_str().unwrap();
    assert!(text.contains(url) && text.contains(&other.to_string()), "{text}");
    let late = judged(&of_other, 420).await;
    let codes = [&late["causes"][0]["code"], &late["causes"][1]["code"]];
    assert_eq!(codes, ["too_old", "secret_of_another_subscription"]);
    let told = judged(&of_foreign, 0).await.to_string();
    assert!(
        told.contains("wrong_secret") && !told.contains("another_subscription") && !told.contains("stranger"),
        "{told}"
    );
}

#[testkit::test]
async fn a_secret_that_signs_no_more_is_recognised_and_not_called_wrong(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let secrets = format!("/subscriptions/{id}/secrets");
    let made = async || portal.done("POST", &secrets, 201).await;
    let (revoked, replaced, _) = (made().await, made().await, made().await);
    let gone = format!("{secrets}/{}", revoked["id"].as_str().unwrap());
    portal.done("DELETE", &gone, 204).await;
    let path = format!("/subscriptions/{id}/signature-checks");
    let judged = async |made: &Value, back: i64| {
        let at = portal.now().timestamp() - back;
        let request = request(made["secret"].as_str().unwrap(), at, BODY);
        portal.sent("POST", &path, &request, 200).await
    };
    let codes = |judged: &Value| -> Vec<String> {
        let causes = judged["causes"].as_array().unwrap().iter();
        causes
            .map(|cause| cause["code"].as_str().unwrap().to_owned())
            .collect()
    };
    let told = judged(&revoked, 0).await;
    assert_eq!(
        (&told["verdict"], &told["secretId"]),
        (&json!("no_match"), &Value::Null)
    );
    assert_eq!(codes(&told), ["ended_secret"]);
    let text = told["causes"][0]["text"].as_str().unwrap();
    assert!(text.contains("that was revoked at "), "{text}");
    assert_eq!(codes(&judged(&revoked, 420).await), ["too_old", "ended_secret"]);
    assert_eq!(judged(&replaced, 0).await["verdict"], "verified");
    portal.clock.advance(TimeDelta::days(2));
    let told = judged(&replaced, 0).await;
    assert_eq!(codes(&told), ["ended_secret"]);
    let text = told["causes"][0]["text"].as_str().unwrap();
    assert!(text.contains("that was replaced and ended at "), "{text}");
}
