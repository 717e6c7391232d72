//! Access over the API: keys are made, used and revoked.

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
    let listed = answer(looks().await, 200).await;
    let mut expected = made.clone();
    expected.as_object_mut().unwrap().remove("key");
    assert_eq!(listed["items"], json!([expected]));

    assert_eq!(revoke(rig, &admin, &made["id"]).await.status(), 204);
    problem(revoke(rig, &admin, &made["id"]).await, 404, "not-found").await;
    eventually("the key to be refused", async || {
        (looks().await.status() == 401).then_some(())
    })
    .await;
    assert_eq!(rig.see("/keys?role=viewer").await["items"], json!([]));
    let revoked = rig.see("/keys?role=viewer&revoked=true").await;
    assert!(revoked["items"][0]["revokedAt"].is_string());

    let log = rig.all("/audit?action=api-key", 10).await;
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
