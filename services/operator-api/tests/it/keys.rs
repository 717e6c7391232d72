//! Access over the API: keys are made, used and revoked.

use chrono::{DateTime, TimeDelta, Utc};
use domain::key::Role;
use serde_json::{Value, json};
use testkit::eventually;

use crate::rig::{Rig, answer, fields, problem};

async fn create(rig: &Rig, admin: &str, body: Value) -> reqwest::Response {
    let request = rig.request("POST", "/keys").bearer_auth(admin);
    request.json(&body).send().await.unwrap()
}

async fn revoke(rig: &Rig, admin: &str, id: &Value) -> reqwest::Response {
    let path = format!("/keys/{}", id.as_str().unwrap());
    rig.request("DELETE", &path)
        .bearer_auth(admin)
        .send()
        .await
        .unwrap()
}

#[testkit::test]
async fn a_key_is_answered_once_opens_what_its_role_may_and_is_revoked(rig: &Rig) {
    let admin = rig.key_of(Role::Admin).await;
    let body = json!({"name": " ada ", "roles": ["viewer", "viewer"], "note": "her first day"});
    let response = create(rig, &admin, body).await;
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let made = answer(response, 201).await;
    assert_eq!(
        (&made["name"], &made["roles"]),
        (&json!("ada"), &json!(["viewer"]))
    );
    assert_eq!(location, format!("/keys/{}", made["id"].as_str().unwrap()));
    let key = made["key"].as_str().unwrap();
    let looks = async || {
        let request = rig.request("GET", "/keys?role=viewer").bearer_auth(key);
        request.send().await.unwrap()
    };
    let mut listed = answer(looks().await, 200).await;
    let mut expected = made.clone();
    expected.as_object_mut().unwrap().remove("key");
    // It has just been used.
    listed["items"][0]["usedAt"] = Value::Null;
    assert_eq!(listed["items"], json!([expected]));

    assert_eq!(revoke(rig, &admin, &made["id"]).await.status(), 204);
    let again = problem(revoke(rig, &admin, &made["id"]).await, 404, "not-found").await;
    let said = again["detail"].as_str().unwrap();
    assert!(
        said.contains(" was revoked at ") && said.contains(" by "),
        "{said}"
    );
    eventually("the key to be refused", async || {
        (looks().await.status() == 401).then_some(())
    })
    .await;
    assert_eq!(rig.see("/keys?role=viewer").await["items"], json!([]));
    let revoked = rig.see("/keys?role=viewer&revoked=true").await;
    assert!(revoked["items"][0]["revokedAt"].is_string());

    let log = rig.all("/audit?action=api-key", 10).await;
    let by = ["revokedBy", "createdBy"].map(|by| &revoked["items"][0][by]);
    assert_eq!(by, [&log[0]["actor"], &log[1]["actor"]]);
    let told: Vec<_> = log
        .iter()
        .map(|entry| (&entry["action"], &entry["note"]))
        .collect();
    assert_eq!(
        told,
        [
            (&json!("api-key.revoke"), &Value::Null),
            (&json!("api-key.create"), &json!("her first day"))
        ]
    );
    assert!(
        log.iter()
            .all(|entry| entry["subject"] == format!("api-key/{}", made["id"].as_str().unwrap()))
    );
    assert!(!serde_json::to_string(&log).unwrap().contains(key));
}

#[testkit::test]
async fn the_key_of_a_reseller_names_it_and_is_found_by_it(rig: &Rig) {
    let admin = rig.key_of(Role::Admin).await;
    let body = json!({"name": "acme", "roles": ["reseller"], "resellerId": "acme"});
    let made = answer(create(rig, &admin, body).await, 201).await;
    let listed = rig.see("/keys?reseller=acme").await;
    assert_eq!(listed["items"][0]["id"], made["id"]);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

#[testkit::test]
async fn the_last_key_of_an_administrator_does_not_revoke_itself(rig: &Rig) {
    let admin = rig.key_of(Role::Admin).await;
    let own = rig.see("/keys?role=admin").await["items"][0]["id"].clone();
    let refused = problem(revoke(rig, &admin, &own).await, 409, "conflict").await;
    assert!(
        refused["detail"]
            .as_str()
            .unwrap()
            .contains("make another one first")
    );
    let rotate = async |body: Value| {
        let path = format!("/keys/{}/rotate", own.as_str().unwrap());
        let request = rig.request("POST", &path).bearer_auth(&admin).json(&body);
        request.send().await.unwrap()
    };
    let ends = json!({"expiresAt": rig.now() + TimeDelta::days(30)});
    problem(rotate(ends).await, 409, "conflict").await;
    let other = json!({"name": "ben", "roles": ["admin"]});
    answer(create(rig, &admin, other).await, 201).await;
    assert_eq!(revoke(rig, &admin, &own).await.status(), 204);
}

#[testkit::test]
async fn a_key_that_cannot_be_is_refused_by_the_field_that_is_wrong(rig: &Rig) {
    let admin = rig.key_of(Role::Admin).await;
    for (body, field) in [
        (json!({"roles": ["viewer"]}), "name"),
        (json!({"name": " ", "roles": ["viewer"]}), "name"),
        (json!({"name": "a\u{0}", "roles": ["viewer"]}), "name"),
        (json!({"name": "x".repeat(201), "roles": ["viewer"]}), "name"),
        (json!({"name": "a"}), "roles"),
        (json!({"name": "a", "roles": ["root"]}), "roles"),
        (
            json!({"name": "a", "roles": ["reseller", "viewer"], "resellerId": "acme"}),
            "roles",
        ),
        (json!({"name": "a", "roles": ["reseller"]}), "resellerId"),
        (
            json!({"name": "a", "roles": ["viewer"], "resellerId": "acme"}),
            "resellerId",
        ),
        (
            json!({"name": "a", "roles": ["reseller"], "resellerId": "a b"}),
            "resellerId",
        ),
        (
            json!({"name": "a", "roles": ["viewer"], "note": "x".repeat(2_001)}),
            "note",
        ),
    ] {
        let refused = problem(create(rig, &admin, body.clone()).await, 422, "validation").await;
        assert_eq!(fields(&refused), [field], "{body}");
    }
    for query in ["role=root", "revoked=perhaps", "reseller="] {
        let path = format!("/keys?{query}");
        rig.refused("GET", &path, None, (400, "invalid-query")).await;
    }
    assert_eq!(rig.all("/audit", 10).await.len(), 0);
}

#[testkit::test]
async fn a_key_has_the_limits_that_it_was_made_with(rig: &Rig) {
    let admin = rig.key_of(Role::Admin).await;
    let body = json!({
        "name": "shop", "roles": ["ingest"], "expiresAt": "2999-01-01T00:00:00Z", "perSecond": 50,
        "scope": {"lane": "reseller", "resellers": ["acme"], "eventTypes": ["domain.*"]},
    });
    let made = answer(create(rig, &admin, body.clone()).await, 201).await;
    for field in ["expiresAt", "perSecond", "scope"] {
        assert_eq!(made[field], body[field], "{field}");
    }
    let entry = &rig.all("/audit?action=api-key.create", 10).await[0];
    assert_eq!(
        (&entry["details"]["scope"], &entry["details"]["perSecond"]),
        (&body["scope"], &json!(50)),
        "{entry}"
    );
    for (changed, field) in [
        (json!({"expiresAt": "2020-01-01T00:00:00Z"}), "expiresAt"),
        (json!({"perSecond": 0}), "perSecond"),
        (json!({"roles": ["ingest", "viewer"], "scope": {}}), "perSecond"),
        (json!({"roles": ["viewer"], "perSecond": null}), "scope"),
        (
            json!({"scope": {"lane": "push", "resellers": ["acme"]}}),
            "scope.resellers",
        ),
        (json!({"scope": {"resellers": ["a b"]}}), "scope.resellers"),
        (json!({"scope": {"eventTypes": ["domain"]}}), "scope.eventTypes"),
        (json!({"scope": {"prototypes": [" "]}}), "scope.prototypes"),
    ] {
        let mut body = body.clone();
        body.as_object_mut()
            .unwrap()
            .extend(changed.as_object().unwrap().clone());
        let refused = problem(create(rig, &admin, body.clone()).await, 422, "validation").await;
        assert_eq!(fields(&refused), [field], "{body}");
    }
    let unknown = json!({"name": "shop", "roles": ["ingest"], "scope": {"countries": ["LV"]}});
    problem(create(rig, &admin, unknown).await, 422, "validation").await;
}

#[testkit::test]
async fn a_rotated_key_works_beside_its_successor_until_the_overlap_is_over(rig: &Rig) {
    let admin = rig.key_of(Role::Admin).await;
    let body = json!({"name": "ada", "roles": ["viewer"]});
    let old = answer(create(rig, &admin, body).await, 201).await;
    let rotate = async |id: &Value, body: Value| {
        let path = format!("/keys/{}/rotate", id.as_str().unwrap());
        let request = rig.request("POST", &path).bearer_auth(&admin);
        request.json(&body).send().await.unwrap()
    };
    let looks = async |key: &Value| {
        let request = rig
            .request("GET", "/keys?role=viewer")
            .bearer_auth(key.as_str().unwrap());
        request.send().await.unwrap().status()
    };
    let new = answer(
        rotate(&old["id"], json!({"note": "a year has passed"})).await,
        201,
    )
    .await;
    assert_eq!(
        (&new["name"], &new["roles"], &new["successorOf"]),
        (&old["name"], &old["roles"], &old["id"])
    );
    assert_ne!(new["key"], old["key"]);
    assert!(new["oldExpiresAt"].is_string(), "{new}");
    let again = problem(rotate(&old["id"], json!({})).await, 409, "conflict").await;
    assert!(
        again["detail"]
            .as_str()
            .unwrap()
            .contains(new["id"].as_str().unwrap()),
        "{again}"
    );
    for key in [&old["key"], &new["key"]] {
        assert_eq!(looks(key).await, 200);
    }
    let listed = rig.see("/keys?role=viewer").await["items"].clone();
    assert!(
        listed[1]["expiresAt"].is_string() && listed[0]["expiresAt"].is_null(),
        "{listed}"
    );
    eventually("the use of the keys to be noted", async || {
        let listed = rig.see("/keys?role=viewer").await["items"].clone();
        (listed[0]["usedAt"].is_string() && listed[1]["usedAt"].is_string()).then_some(())
    })
    .await;

    let last = answer(rotate(&new["id"], json!({"overlapHours": 0})).await, 201).await;
    assert_eq!(last["successorOf"], old["id"], "the first of the line");
    eventually("the old key to be refused", async || {
        (looks(&new["key"]).await == 401).then_some(())
    })
    .await;
    problem(rotate(&new["id"], json!({})).await, 404, "not-found").await;
    for (body, field) in [
        (json!({"overlapHours": 8_761}), "overlapHours"),
        (json!({"expiresAt": "2020-01-01T00:00:00Z"}), "expiresAt"),
    ] {
        let refused = problem(rotate(&last["id"], body.clone()).await, 422, "validation").await;
        assert_eq!(fields(&refused), [field], "{body}");
    }
    let log = rig.all("/audit?action=api-key.rotate", 10).await;
    assert_eq!(log.len(), 2);
    assert_eq!(log[1]["note"], "a year has passed");
}

#[testkit::test]
async fn a_rotated_key_is_followed_by_one_that_lasts_as_long_unless_another_end_is_said(rig: &Rig) {
    let admin = rig.key_of(Role::Admin).await;
    let body = json!({"name": "ada", "roles": ["viewer"], "expiresAt": rig.now() + TimeDelta::days(90)});
    let old = answer(create(rig, &admin, body).await, 201).await;
    let rotate = async |id: &Value, body: Value| {
        let path = format!("/keys/{}/rotate", id.as_str().unwrap());
        let request = rig.request("POST", &path).bearer_auth(&admin);
        answer(request.json(&body).send().await.unwrap(), 201).await
    };
    let life = |key: &Value| {
        let at = |name: &str| key[name].as_str()?.parse::<DateTime<Utc>>().ok();
        Some(at("expiresAt")? - at("createdAt")?)
    };
    let new = rotate(&old["id"], json!({})).await;
    // The database keeps microseconds.
    let difference = life(&new).expect("an end") - life(&old).expect("an end");
    assert_eq!(difference.num_seconds(), 0, "{new}");
    let endless = rotate(&new["id"], json!({ "expiresAt": null })).await;
    assert!(endless["expiresAt"].is_null(), "{endless}");
}
