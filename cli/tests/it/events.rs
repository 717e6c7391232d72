//! `event send` and `event show` against a running ingest-api.

use serde_json::{Value, json};
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};

use crate::postrider::{key_of, postrider};

#[testkit::test]
async fn an_event_is_sent_shown_and_sent_again(it: Installation) {
    let service = postrider("serve ingest-api").within(&it).start();
    let url = format!("http://{}", service.address_logged_with("listening"));
    let key = key_of(&it.pool, "ingest");
    let caller = |arguments: &str| {
        postrider(arguments)
            .env("INGEST_URL", &url)
            .env("INGEST_KEY", &key)
    };
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    let send = |data: &str| {
        caller("event send --type contact.deleted --reseller acme --event-id e-1 --data")
            .arg(data)
            .run()
    };
    let data = r#"{"contact": {"id": "contact-42"}}"#;
    let first = eventually("the service to accept an event", async || {
        let sent = send(data);
        (sent.code == Some(0)).then_some(sent)
    })
    .await;
    let again = send(data);
    assert_eq!(first.stdout, again.stdout);
    assert!(again.stderr.contains("nothing new was stored"), "{again:?}");
    assert!(!first.stderr.contains("no subscription"), "{first:?}");
    let mistyped = caller("event send --type contact.deleted --reseller Acme --data")
        .arg(data)
        .run();
    assert_eq!(mistyped.code, Some(0), "any reseller is accepted: {mistyped:?}");
    assert!(
        mistyped.stderr.contains("the reseller Acme has no subscription"),
        "{mistyped:?}"
    );
    let waited = |reseller: &str| {
        let command = format!(
            "event send --type contact.deleted --reseller {reseller} --event-id e-2 --wait --within 1s --data"
        );
        caller(&command).arg(data).run()
    };
    let pending = waited("acme");
    assert_eq!(pending.code, Some(4), "nothing sends it: {pending:?}");
    assert!(pending.stderr.contains("within 1s"), "{pending:?}");
    let to_none = waited("Acme");
    assert_eq!(to_none.code, Some(1), "{to_none:?}");
    assert!(to_none.stderr.contains("became no notification"), "{to_none:?}");
    let other = send(r#"{"contact": {"id": "contact-43"}}"#);
    assert!(other.code == Some(1) && other.stderr.contains("422"), "{other:?}");
    let broken = send("{");
    assert!(
        broken.code == Some(1) && broken.stderr.contains("not JSON"),
        "{broken:?}"
    );

    let show = format!("event show {}", first.stdout.trim());
    let table = caller(&show).run().stdout;
    assert!(
        table.contains("contact.deleted") && table.contains("e-1"),
        "{table}"
    );
    let document = caller(&format!("{show} --json")).run().stdout;
    let document: Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(
        document["notifications"][0]["subscriptionId"],
        json!(subscription.to_string())
    );
    service.stop().await;
}
