//! Rotating, listing and revoking secrets.

use chrono::TimeDelta;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::portal::{Portal, id_of};

fn ids(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|secret| secret["id"].as_str().unwrap()).collect()
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_rotated_secret_signs_along_until_the_overlap_is_over(pool: PgPool) {
    let portal = Portal::start(pool).await;
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
    portal.stop().await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_later_rotation_does_not_prolong_what_was_rotated_before(pool: PgPool) {
    let portal = Portal::start(pool).await;
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
    portal.stop().await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn the_last_secret_without_an_end_cannot_be_revoked(pool: PgPool) {
    let portal = Portal::start(pool).await;
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
    portal.stop().await;
}

/// Two at once must not each leave the other's secret as the last one.
#[sqlx::test(migrator = "store::MIGRATOR")]
async fn one_secret_without_an_end_is_always_left(pool: PgPool) {
    let portal = Portal::start(pool).await;
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
    portal.stop().await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn only_so_many_secrets_are_valid_at_once(pool: PgPool) {
    let portal = Portal::start(pool).await;
    let path = format!("/subscriptions/{}/secrets", id_of(&portal.created().await));
    for _ in 0..4 {
        portal.done("POST", &path, 201).await;
    }
    portal
        .refused("POST", &path, None, (409, "too-many-secrets"))
        .await;
    portal.clock.advance(TimeDelta::hours(25));
    portal.done("POST", &path, 201).await;
    portal.stop().await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn whoever_delivers_notices_every_change_of_the_secrets(pool: PgPool) {
    let portal = Portal::start(pool).await;
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
    portal.stop().await;
}
