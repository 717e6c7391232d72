//! Rotating, choosing, listing, viewing and revoking secrets.

use chrono::TimeDelta;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::portal::{Portal, id_of, problem, subscription};

fn ids(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|secret| secret["id"].as_str().unwrap()).collect()
}

#[testkit::test]
async fn a_rotated_secret_signs_along_until_the_overlap_is_over(portal: Portal) {
    let created = portal.created().await;
    let path = format!("/subscriptions/{}/secrets", id_of(&created));
    portal.clock.advance(TimeDelta::minutes(1));
    let rotated = portal.done("POST", &path, 201).await;
    assert_ne!(rotated["secret"], created["secret"]["secret"]);
    let list = portal.see(&path).await;
    let (old, new) = (
        created["secret"]["id"].as_str().unwrap(),
        rotated["id"].as_str().unwrap(),
    );
    assert_eq!(ids(&list), [new, old]);
    let end = portal.now() + TimeDelta::hours(24);
    assert_eq!(list["items"][0]["expiresAt"], Value::Null);
    assert_eq!(list["items"][1]["expiresAt"], json!(end));
    portal.clock.advance(TimeDelta::hours(24) - TimeDelta::seconds(1));
    assert_eq!(portal.see(&path).await["items"][1]["active"], true);
    portal.clock.advance(TimeDelta::seconds(1));
    assert_eq!(portal.see(&path).await["items"][1]["active"], false);
}

#[testkit::test]
async fn a_later_rotation_does_not_prolong_what_was_rotated_before(portal: Portal) {
    let created = portal.created().await;
    let path = format!("/subscriptions/{}/secrets", id_of(&created));
    portal.clock.advance(TimeDelta::minutes(1));
    portal.done("POST", &path, 201).await;
    let end = portal.see(&path).await["items"][1]["expiresAt"].clone();
    portal.clock.advance(TimeDelta::hours(1));
    portal.done("POST", &path, 201).await;
    let list = portal.see(&path).await;
    let first = list["items"].as_array().unwrap().iter();
    let first = first
        .clone()
        .find(|it| it["id"] == created["secret"]["id"])
        .unwrap();
    assert_eq!(first["expiresAt"], end);
}

#[testkit::test]
async fn the_last_secret_without_an_end_cannot_be_revoked(portal: Portal) {
    let created = portal.created().await;
    let path = format!("/subscriptions/{}/secrets", id_of(&created));
    let first = format!("{path}/{}", created["secret"]["id"].as_str().unwrap());
    portal.refused("DELETE", &first, None, (409, "last-secret")).await;
    portal.clock.advance(TimeDelta::minutes(1));
    let rotated = portal.done("POST", &path, 201).await;
    let second = format!("{path}/{}", rotated["id"].as_str().unwrap());
    portal
        .refused("DELETE", &second, None, (409, "last-secret"))
        .await;
    portal.done("DELETE", &first, 204).await;
    portal.done("DELETE", &first, 204).await;
    let list = portal.see(&path).await;
    assert_eq!(list["items"][1]["revokedAt"], json!(portal.now()));
    assert_eq!(list["items"][1]["active"], false);
    let unknown = format!("{path}/{}", uuid::Uuid::nil());
    portal.refused("DELETE", &unknown, None, (404, "not-found")).await;
}

/// Two at once must not each leave the other's secret as the last one.
#[testkit::test]
async fn one_secret_without_an_end_is_always_left(portal: Portal) {
    let created = portal.created().await;
    let path = format!("/subscriptions/{}/secrets", id_of(&created));
    portal.done("POST", &path, 201).await;
    sqlx::query("UPDATE signing_secrets SET expires_at = NULL")
        .execute(&portal.pool)
        .await
        .unwrap();
    let list = portal.see(&path).await;
    let paths: Vec<String> = ids(&list).iter().map(|id| format!("{path}/{id}")).collect();
    let revoking = paths.iter().map(|path| portal.call("DELETE", path).send());
    let mut statuses: Vec<u16> = futures::future::join_all(revoking)
        .await
        .into_iter()
        .map(|answer| answer.unwrap().status().as_u16())
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 409]);
}

#[testkit::test]
async fn only_so_many_secrets_are_valid_at_once(portal: Portal) {
    let path = format!("/subscriptions/{}/secrets", id_of(&portal.created().await));
    for _ in 0..4 {
        portal.done("POST", &path, 201).await;
    }
    portal
        .refused("POST", &path, None, (409, "too-many-secrets"))
        .await;
    portal.clock.advance(TimeDelta::hours(25));
    portal.done("POST", &path, 201).await;
}

#[testkit::test]
async fn only_so_many_secrets_are_made_in_a_day_whatever_is_revoked(portal: Portal) {
    let created = portal.created().await;
    let path = format!("/subscriptions/{}/secrets", id_of(&created));
    let mut last = created["secret"]["id"].clone();
    for _ in 0..19 {
        let made = portal.done("POST", &path, 201).await;
        let old = format!("{path}/{}", last.as_str().unwrap());
        portal.done("DELETE", &old, 204).await;
        last = made["id"].clone();
    }
    let refused = portal.call("POST", &path).send().await.unwrap();
    assert!(refused.headers().contains_key("retry-after"));
    problem(refused, 429, "too-many-requests").await;
    portal.clock.advance(TimeDelta::days(1));
    portal.done("POST", &path, 201).await;
}

#[testkit::test]
async fn engines_notice_every_change_of_the_secrets(portal: Portal) {
    let created = portal.created().await;
    let version = async || -> i64 {
        sqlx::query_scalar("SELECT version FROM subscriptions")
            .fetch_one(&portal.pool)
            .await
            .unwrap()
    };
    let path = format!("/subscriptions/{}/secrets", id_of(&created));
    let first = version().await;
    portal.done("POST", &path, 201).await;
    let second = version().await;
    let old = created["secret"]["id"].as_str().unwrap();
    portal.done("DELETE", &format!("{path}/{old}"), 204).await;
    assert!(first < second && second < version().await);
}

/// `whsec_` and the base64 of 24 bytes that differ.
const OWN: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

async fn actions(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("SELECT action FROM audit_log ORDER BY id")
        .fetch_all(pool)
        .await
        .unwrap()
}

#[testkit::test]
async fn a_secret_that_signs_is_shown_again_and_each_look_is_recorded(portal: Portal) {
    let created = portal.created().await;
    let path = format!("/subscriptions/{}/secrets", id_of(&created));
    let first = format!("{path}/{}", created["secret"]["id"].as_str().unwrap());
    let answer = portal.call("GET", &first).send().await.unwrap();
    assert_eq!(answer.headers()["cache-control"], "no-store");
    assert_eq!(answer.json::<Value>().await.unwrap(), created["secret"]);
    let stranger = portal
        .request("GET", &first)
        .bearer_auth(portal.key_of("b").await);
    assert_eq!(stranger.send().await.unwrap().status(), 404);
    portal.done("POST", &path, 201).await;
    portal.done("DELETE", &first, 204).await;
    portal.refused("GET", &first, None, (404, "not-found")).await;
    assert_eq!(
        actions(&portal.pool).await,
        [
            "subscription.create",
            "secret.view",
            "secret.create",
            "secret.revoke"
        ]
    );
}

#[testkit::test]
async fn a_secret_that_was_sealed_with_an_earlier_key_is_shown(pool: PgPool) {
    let before = Portal::start(pool.clone()).await;
    let created = before.created().await;
    let old = before.config.reseller.secrets.key.clone();
    before.stop().await;
    let after = Portal::start_with(pool, |config| {
        config.reseller.secrets.previous_keys.extend(old);
        config.reseller.secrets.key = Some(config::Secret::new(
            "CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=",
        ));
    })
    .await;
    let path = format!("/subscriptions/{}/secrets", id_of(&created));
    let shown = after
        .see(&format!("{path}/{}", created["secret"]["id"].as_str().unwrap()))
        .await;
    assert_eq!(shown["secret"], created["secret"]["secret"]);
}

#[testkit::test]
async fn looking_at_secrets_can_be_switched_off(pool: PgPool) {
    let portal = Portal::start_with(pool, |config| config.reseller.secrets.allow_viewing = false).await;
    let created = portal.created().await;
    let secret = created["secret"]["id"].as_str().unwrap();
    let path = format!("/subscriptions/{}/secrets/{secret}", id_of(&created));
    portal.refused("GET", &path, None, (403, "secrets-hidden")).await;
    assert_eq!(actions(&portal.pool).await, ["subscription.create"]);
}

#[testkit::test]
async fn a_reseller_brings_a_secret_of_its_own(portal: Portal) {
    let mut request = subscription();
    request["secret"] = OWN.into();
    let created = portal.sent("POST", "/subscriptions", &request, 201).await;
    assert_eq!(created["secret"]["secret"], OWN);
    let path = format!("/subscriptions/{}/secrets", id_of(&created));
    let other = OWN.replace("AAEC", "BBEC");
    let rotated = portal.sent("POST", &path, &json!({ "secret": other }), 201).await;
    assert_eq!(rotated["secret"], other);
    let shown = portal
        .see(&format!("{path}/{}", rotated["id"].as_str().unwrap()))
        .await;
    assert_eq!(shown["secret"], other);
}

#[testkit::test]
async fn a_secret_that_could_be_guessed_is_refused(portal: Portal) {
    let path = format!("/subscriptions/{}/secrets", id_of(&portal.created().await));
    let repeating = "whsec_cGFzc3dvcmRwYXNzd29yZHBhc3N3b3JkcGFzc3dvcmQ=";
    for (secret, why) in [
        ("hush", "has to begin with whsec_"),
        ("whsec_?", "is not base64"),
        ("whsec_AAEC", "has to have at least 24 bytes, and has 3"),
        (repeating, "has bytes that repeat"),
    ] {
        let body = json!({ "secret": secret });
        let problem = portal
            .refused("POST", &path, Some(&body), (422, "validation"))
            .await;
        assert_eq!(problem["errors"][0]["field"], "secret");
        let detail = problem["errors"][0]["detail"].as_str().unwrap();
        // Behind the name of the field it is a sentence.
        assert!(detail.starts_with(why), "{detail}");
    }
    assert_eq!(portal.see(&path).await["items"].as_array().unwrap().len(), 1);
}

#[testkit::test]
async fn bringing_secrets_can_be_switched_off(pool: PgPool) {
    let portal = Portal::start_with(pool, |config| config.reseller.secrets.allow_choosing = false).await;
    let mut request = subscription();
    request["secret"] = OWN.into();
    let refused = (422, "validation");
    let problem = portal
        .refused("POST", "/subscriptions", Some(&request), refused)
        .await;
    assert_eq!(problem["errors"][0]["field"], "secret");
    let path = format!("/subscriptions/{}/secrets", id_of(&portal.created().await));
    portal
        .refused("POST", &path, Some(&json!({ "secret": OWN })), refused)
        .await;
    portal.sent("POST", &path, &json!({}), 201).await;
}
