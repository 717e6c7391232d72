//! The catalogue of event types over the API: seen by all, retired by administrators, with a note in the audit log.

use domain::key::Role;
use serde_json::{Value, json};

use crate::rig::{Rig, answer, fields, problem};

const PATH: &str = "/event-types/domain.created";

#[testkit::test]
async fn a_type_is_seen_and_retired_with_a_note_that_the_audit_log_keeps(rig: &Rig) {
    let listed = rig.see("/event-types").await;
    let of = |listed: &Value| {
        let mut items = listed["items"].as_array().unwrap().iter();
        items
            .find(|item| item["name"] == "domain.created")
            .unwrap()
            .clone()
    };
    let before = of(&listed);
    assert_eq!(
        (&before["hasSchema"], &before["retiredAt"]),
        (&json!(true), &Value::Null)
    );
    let shown = rig.see(PATH).await;
    assert!(
        shown["schema"].is_object() && shown["example"].is_object(),
        "{shown}"
    );

    let admin = rig.key_of(Role::Admin).await;
    let retire = async |key: &str, path: &str, body: Value| {
        let request = rig.request("POST", path).bearer_auth(key).json(&body);
        request.send().await.unwrap()
    };
    let path = format!("{PATH}/retire");
    let unnoted = problem(retire(&admin, &path, json!({})).await, 422, "validation").await;
    assert_eq!(fields(&unnoted), ["note"]);
    let note = json!({"note": "the registry does not tell it any more"});
    for unknown in ["/event-types/no.such/retire", "/event-types/a%00b/retire"] {
        problem(retire(&admin, unknown, note.clone()).await, 404, "not-found").await;
    }
    let retired = answer(retire(&admin, &path, note.clone()).await, 200).await;
    assert!(retired["retiredAt"].is_string(), "{retired}");
    let again = answer(retire(&admin, &path, json!({"note": "me too"})).await, 200).await;
    assert_eq!(again["retiredAt"], retired["retiredAt"]);
    assert_eq!(
        of(&rig.see("/event-types").await)["retiredAt"],
        retired["retiredAt"]
    );

    let log = rig.all("/audit?subject=event-type/domain.created", 10).await;
    let told: Vec<_> = log
        .iter()
        .map(|entry| (&entry["action"], &entry["note"]))
        .collect();
    assert_eq!(told, [(&json!("event-type.retire"), &note["note"])]);
}
