//! What operators note of groups of dead letters.

use chrono::TimeDelta;
use domain::key::Role;
use domain::push::PushState;
use serde_json::{Value, json};
use testkit::push_factory::PushRow;

use crate::rig::{Rig, answer, fields, problem};

async fn group(rig: &Rig) -> Value {
    let groups = rig.see("/dead-letters/groups").await;
    let [group] = &groups["items"].as_array().unwrap()[..] else {
        panic!("{groups}")
    };
    group.clone()
}

async fn put(rig: &Rig, body: &Value) -> reqwest::Response {
    let request = rig.call("PUT", "/dead-letters/groups/note").json(body);
    request.send().await.unwrap()
}

/// A note on the group, with these members besides.
fn note_on(group: &Value, members: Value) -> Value {
    let mut body = json!({});
    for name in ["lane", "fingerprint", "target"] {
        body[name] = group[name].clone();
    }
    let Value::Object(members) = members else {
        panic!("members of an object: {members}");
    };
    for (name, value) in members {
        body[name] = value;
    }
    body
}

#[testkit::test]
async fn a_note_is_shown_with_its_group_until_it_is_replaced_taken_away_or_over(rig: &Rig) {
    PushRow::in_state(PushState::Failed).make(&rig.it.pool).await;
    let found = group(rig).await;
    assert_eq!(found["note"], Value::Null);
    let until = rig.now() + TimeDelta::hours(1);
    let first = note_on(
        &found,
        json!({"note": " Swrve knows ", "owner": "ada", "until": until}),
    );
    assert_eq!(put(rig, &first).await.status(), 204);
    let note = group(rig).await["note"].clone();
    assert_eq!(
        (&note["note"], &note["owner"], &note["until"]),
        (&json!("Swrve knows"), &json!("ada"), &json!(until))
    );
    assert!(note["by"].as_str().unwrap().starts_with("test ("));

    assert_eq!(
        put(rig, &note_on(&found, json!({"owner": "ben"}))).await.status(),
        204
    );
    let note = group(rig).await["note"].clone();
    assert_eq!(
        (&note["note"], &note["owner"], &note["until"]),
        (&Value::Null, &json!("ben"), &Value::Null)
    );
    sqlx::query("UPDATE dead_letter_group_notes SET until = now() - interval '1 second'")
        .execute(&rig.it.pool)
        .await
        .unwrap();
    assert_eq!(group(rig).await["note"], Value::Null);
    assert_eq!(put(rig, &note_on(&found, json!({}))).await.status(), 204);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM dead_letter_group_notes")
        .fetch_one(&rig.it.pool)
        .await
        .unwrap();
    assert_eq!(left, 0);

    let log = rig.all("/audit?action=dead-letter-group", 10).await;
    let notes: Vec<_> = log.iter().map(|entry| &entry["note"]).collect();
    assert_eq!(notes, [&Value::Null, &Value::Null, &json!("Swrve knows")]);
    assert_eq!(log[1]["details"]["owner"], "ben");
    assert_eq!(
        log[1]["details"]["before"],
        json!({"note": "Swrve knows", "owner": "ada", "until": until})
    );
    let subject = format!(
        "dead-letter-group/push/{}",
        found["fingerprint"].as_str().unwrap()
    );
    assert!(
        log[0]["subject"].as_str().unwrap().starts_with(&subject),
        "{}",
        log[0]
    );
}

#[testkit::test]
async fn a_note_that_says_nothing_of_a_group_is_refused_and_viewers_note_nothing(rig: &Rig) {
    PushRow::in_state(PushState::Failed).make(&rig.it.pool).await;
    let found = group(rig).await;
    for (members, field) in [
        (json!({"lane": "fast", "note": "a"}), "lane"),
        (json!({"fingerprint": "", "note": "a"}), "fingerprint"),
        (json!({"target": "x".repeat(1_001), "note": "a"}), "target"),
        (json!({"owner": "x".repeat(1_001)}), "owner"),
        (json!({"note": "x".repeat(2_001)}), "note"),
        (json!({"owner": "ada", "until": rig.now()}), "until"),
    ] {
        let refused = problem(put(rig, &note_on(&found, members)).await, 422, "validation").await;
        assert_eq!(fields(&refused), [field]);
    }
    let other = note_on(&found, json!({"fingerprint": "swrve/nothing", "note": "a"}));
    problem(put(rig, &other).await, 409, "conflict").await;
    let viewer = rig.key_of(Role::Viewer).await;
    let request = rig
        .request("PUT", "/dead-letters/groups/note")
        .bearer_auth(&viewer);
    problem(request.json(&other).send().await.unwrap(), 403, "forbidden").await;
    let groups = rig.request("GET", "/dead-letters/groups").bearer_auth(&viewer);
    let groups = answer(groups.send().await.unwrap(), 200).await;
    assert_eq!(groups["items"][0]["note"], Value::Null);
    assert_eq!(rig.all("/audit", 10).await.len(), 0);
}
