//! `event-types`: the catalogue on the command line.

use domain::key::Role;
use serde_json::{Value, json};
use sqlx::PgPool;
use testkit::{Installation, key_of_the_house};

use crate::postrider::{Finished, postrider};

fn definition(schema: &Value) -> Value {
    json!({
        "name": "certificate.issued",
        "description": "A certificate was issued.",
        "attributes": [{"name": "serial", "type": "string", "description": "Its number.", "required": true}],
        "example": {"serial": "01"},
        "variants": [{"name": "renewed", "description": "Another one ended.", "data": {"serial": "02"}}],
        "schema": schema,
    })
}

/// A file of the test's own.
fn file(name: &str, content: &Value) -> String {
    let path = std::env::temp_dir().join(format!("{name}-{}.json", uuid::Uuid::now_v7()));
    std::fs::write(&path, content.to_string()).expect("a temporary file");
    path.to_str().expect("a path of text").to_owned()
}

#[testkit::database_test]
async fn a_type_is_put_shown_retired_and_put_again(pool: PgPool) {
    let schema = json!({"required": ["serial"], "properties": {"serial": {}}});
    let path = file("put", &definition(&schema));
    let put = || postrider("event-types put").arg(&path).on(&pool).run();
    let first = put();
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.stderr.contains("new in the catalogue"), "{first:?}");
    let shown = postrider("event-types show certificate.issued").on(&pool).run();
    let shown: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert_eq!(
        (&shown["schema"], &shown["unknownFields"]),
        (&schema, &json!("REFUSE"))
    );
    assert_eq!(shown["variants"][0]["data"], json!({"serial": "02"}));
    // What is shown can be put as it is.
    let again = postrider("event-types put")
        .arg(&file("again", &shown))
        .on(&pool)
        .run();
    assert!(
        again.code == Some(0) && again.stderr.contains("replaced"),
        "{again:?}"
    );

    let retire = || {
        let retire = "event-types retire certificate.issued --note unused";
        postrider(retire).on(&pool).run()
    };
    assert_eq!(retire().code, Some(0));
    let twice = retire();
    assert!(
        twice.code == Some(1) && twice.stderr.contains("retired since"),
        "{twice:?}"
    );
    let listed = postrider("event-types list --json").on(&pool).run().stdout;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let listed = listed["items"].as_array().expect("items").iter();
    let retired: Vec<_> = listed
        .filter(|event_type| !event_type["retiredAt"].is_null())
        .map(|event_type| &event_type["name"])
        .collect();
    assert_eq!(retired, ["certificate.issued"]);
    assert_eq!(put().code, Some(0));
    let table = postrider("event-types list").on(&pool).run().stdout;
    assert!(table.contains("domain.transfer.completed"), "{table}");
    let log: Vec<(Option<String>, Value)> = sqlx::query_as("SELECT note, details FROM audit_log ORDER BY id")
        .fetch_all(&pool)
        .await
        .expect("the audit log");
    let [new, same, (note, _), back] = &log[..] else {
        panic!("{log:?}")
    };
    assert_eq!(
        (&new.1, &same.1),
        (&json!({"new": true}), &json!({"new": false, "fields": []}))
    );
    assert_eq!(note.as_deref(), Some("unused"));
    let since = &back.1["retiredAt"];
    assert!(since["from"].is_string() && since["to"].is_null(), "{back:?}");
}

#[testkit::database_test]
async fn what_cannot_be_accepted_is_told_and_changes_nothing(pool: PgPool) {
    let path = file(
        "bad",
        &definition(&json!({"properties": {"serial": {"type": "integer"}}})),
    );
    let refused = postrider("event-types put").arg(&path).on(&pool).run();
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("example/serial"), "{refused:?}");
    let shown = postrider("event-types show certificate.issued").on(&pool).run();
    assert!(
        shown.code == Some(1) && shown.stderr.contains("no event type"),
        "{shown:?}"
    );
}

#[testkit::test]
async fn without_a_database_a_type_is_retired_with_the_key_of_an_administrator(it: Installation) {
    let service = postrider("serve operator-api").within(&it).start();
    let url = format!("http://{}", service.address_logged_with("listening"));
    let key = key_of_the_house(&it.store, &[Role::Admin]).await;
    let retire = "event-types retire domain.updated --note unused";
    let without = postrider(retire).run();
    assert_eq!(without.code, Some(64), "{without:?}");
    assert!(
        without.stderr.contains("with a key of the role admin"),
        "{without:?}"
    );

    let asked = |key: &str| {
        postrider(retire)
            .env("OPERATOR_URL", &url)
            .env("OPERATOR_KEY", key)
    };
    // Another mistake in the configuration: a database may be meant.
    let wrong = asked(&key).env("POSTRIDER__ADMIN__LISTEN", "nowhere").run();
    assert_eq!(wrong.code, Some(64), "{wrong:?}");
    assert!(!wrong.stderr.contains("is retired"), "{wrong:?}");
    let operator = key_of_the_house(&it.store, &[Role::Operator]).await;
    let refused = asked(&operator).run();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let said = "none of the API key's roles allows this request; it needs admin";
    assert!(refused.stderr.contains(said), "{refused:?}");
    assert!(
        !refused.stderr.contains("do not allow this"),
        "told twice: {refused:?}"
    );

    let retired = asked(&key).run();
    assert_eq!(retired.code, Some(0), "{retired:?}");
    let says = format!("says the operator API at {url}");
    assert!(
        retired.stderr.contains(&says) && retired.stderr.contains("PUT /event-types/domain.updated"),
        "{retired:?}"
    );
    let since = |finished: &Finished| {
        let (_, since) = finished.stderr.split_once("is retired since ")?;
        since.split_once(',').map(|(since, _)| since.to_owned())
    };
    let again = asked(&key).run();
    assert!(
        since(&again).is_some() && since(&again) == since(&retired),
        "it is retired since the first time: {again:?}"
    );
    let entry: (String, Option<String>, String) = sqlx::query_as(
        "SELECT action, note, actor FROM audit_log WHERE subject = 'event-type/domain.updated'",
    )
    .fetch_one(&it.pool)
    .await
    .expect("the audit log");
    assert_eq!(
        (entry.0.as_str(), entry.1.as_deref()),
        ("event-type.retire", Some("unused"))
    );
    assert!(!entry.2.starts_with("postrider-cli"), "{entry:?}");
}
