//! One text, and whatever it is the identifier of.

use domain::key::{KeyDigest, Role};
use domain::notification::NotificationState;
use domain::push::{PushState, PushStatus};
use serde_json::{Value, json};
use store::webhook::NewQuotaRequest;
use store::{Act, ApiKey};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::push_request;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::rig::Rig;

async fn found(rig: &Rig, query: &str) -> Vec<(String, String)> {
    let answer = rig.see(&format!("/search?q={query}")).await;
    let items = answer["items"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    items
        .inspect(|item| assert!(!text(&item["headline"]).is_empty(), "{item}"))
        .map(|item| (text(&item["kind"]), text(&item["id"])))
        .collect()
}

#[testkit::test]
async fn each_identifier_leads_to_what_it_is_of(rig: &Rig) {
    let subscription = SubscriptionRow::active()
        .reseller("acme")
        .url("https://hooks.acme.example/postrider");
    let subscription = subscription.make(&rig.it.pool).await;
    let row = NotificationRow::in_state(NotificationState::Failed, subscription).reseller("acme");
    let notification = row.make(&rig.it.pool).await;
    let push = PushRow::in_state(PushState::Failed).make(&rig.it.pool).await;
    let letter: Uuid = sqlx::query_scalar("SELECT id FROM dead_letters WHERE push_id = $1")
        .bind(push.id.uuid())
        .fetch_one(&rig.it.pool)
        .await
        .unwrap();
    let body = json!({"action": "replay", "ids": [letter]});
    let job = rig.act("/dead-letters/jobs", &body, 202).await["id"].clone();
    let made = rig.it.store.list_api_keys().await.unwrap();
    let key = made.first().expect("the key of the rig").id;
    for (kind, id) in [
        ("push", push.id.to_string()),
        ("deadLetter", letter.to_string()),
        ("notification", notification.id.uuid().to_string()),
        ("event", notification.event.to_string()),
        ("subscription", subscription.to_string()),
        ("job", job.as_str().unwrap().to_owned()),
        ("key", key.to_string()),
        ("reseller", "acme".to_owned()),
    ] {
        let expected = vec![(kind.to_owned(), id.clone())];
        assert_eq!(found(rig, &format!("%20{id}%20")).await, expected, "{kind}");
    }
    for endpoint in [
        "https://hooks.acme.example/postrider",
        "https://hooks.acme.example/postrider/",
        "hooks.acme.example/postrider",
    ] {
        let expected = [("subscription".to_owned(), subscription.to_string())];
        assert_eq!(found(rig, endpoint).await, expected, "{endpoint}");
    }
    for place in ["/push/", "http://127.0.0.1:8080/push/"] {
        let expected = [("push".to_owned(), push.id.to_string())];
        assert_eq!(
            found(rig, &format!("{place}{}", push.id)).await,
            expected,
            "{place}"
        );
        let part = format!("{place}{}", push.id).replace('/', "%2F");
        let story = rig.see(&format!("/explain/{part}")).await;
        assert_eq!(story["id"], json!(push.id.uuid()), "{place}");
    }
    for (id, command) in [
        (job.as_str().unwrap().to_owned(), "`postrider jobs show "),
        (key.to_string(), "`postrider keys list`"),
    ] {
        let refused = rig
            .refused("GET", &format!("/explain/{id}"), None, (404, "not-found"))
            .await;
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(command), "{detail}");
    }
    sqlx::query(
        "INSERT INTO event_keys (scope, key, event, request, created_at)
         VALUES ('reseller/acme', 'order-17', $1, sha256('x'), now())",
    )
    .bind(notification.event)
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let event = vec![("event".to_owned(), notification.event.to_string())];
    for query in ["order-17&reseller=acme", "acme/order-17"] {
        assert_eq!(found(rig, query).await, event, "{query}");
    }
    let for_device = push_request("463B3209", "Hello client!");
    let push = rig.it.accept(PushStatus::Pending, for_device).await;
    assert_eq!(
        found(rig, "463B3209").await,
        [("push".to_owned(), push.to_string())]
    );
}

#[testkit::test]
async fn a_key_is_found_by_its_name_and_a_quota_request_by_its_identifier(rig: &Rig) {
    let key = ApiKey::new(
        "shop-of-the-house".to_owned(),
        vec![Role::Viewer],
        None,
        rig.now(),
    );
    let digest = KeyDigest::of("shop-of-the-house");
    rig.it.store.insert_api_key(&key, &digest).await.unwrap();
    assert_eq!(
        found(rig, "shop-of-the-house").await,
        [("key".to_owned(), key.id.to_string())]
    );
    let subscription = SubscriptionRow::active().reseller("acme");
    let asked = NewQuotaRequest {
        id: Uuid::now_v7(),
        subscription: subscription.make(&rig.it.pool).await,
        requested: 5,
        asks_daily: true,
        requests_per_second: None,
        reason: "A merger.".to_owned(),
        created_at: rig.now(),
    };
    let act = Act {
        by: "acme",
        note: None,
        at: asked.created_at,
    };
    let store = &rig.it.store;
    store.insert_quota_request("acme", &asked, act).await.unwrap();
    assert_eq!(
        found(rig, &asked.id.to_string()).await,
        [("quotaRequest".to_owned(), asked.id.to_string())]
    );
    for (text, command) in [
        ("shop-of-the-house".to_owned(), "`postrider keys list`"),
        (
            asked.id.to_string(),
            "`postrider quotas requests --status REQUESTED`",
        ),
    ] {
        let path = format!("/explain/{text}");
        let refused = rig.refused("GET", &path, None, (404, "not-found")).await;
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(command), "{detail}");
    }
    // One that was rotated has the name, too, and neither has a story.
    let rotated = ApiKey::new(key.name.clone(), vec![Role::Viewer], None, rig.now());
    let digest = KeyDigest::of("shop-of-the-house, rotated");
    rig.it.store.insert_api_key(&rotated, &digest).await.unwrap();
    let path = format!("/explain/{}", key.name);
    let refused = rig.refused("GET", &path, None, (404, "not-found")).await;
    let detail = refused["detail"].as_str().unwrap();
    let lists = "of which `postrider keys list --name \"shop-of-the-house\"` lists API keys, and `postrider audit --subject api-key/ID`";
    assert!(
        detail.starts_with("2 things are found") && detail.contains(lists),
        "{detail}"
    );
    assert!(!detail.contains("postrider explain"), "{detail}");
}

#[testkit::test]
async fn what_is_nothing_is_an_answer_that_says_what_was_looked_for(rig: &Rig) {
    let id = Uuid::now_v7();
    let answer = rig.see(&format!("/search?q={id}")).await;
    assert_eq!(answer["items"], json!([]));
    assert_eq!(
        answer["tried"],
        json!([
            "push",
            "notification",
            "event",
            "deadLetter",
            "userAgent",
            "subscription",
            "job",
            "key",
            "quotaRequest",
            "reseller",
            "device",
            "eventId",
            "keyName",
            "value"
        ])
    );
    assert!(answer["valuesSince"].is_string(), "{answer}");
    for (query, tried) in [
        ("q=order-17&reseller=acme", json!(["event", "value"])),
        (
            "q=acme/order-17",
            json!(["event", "reseller", "device", "endpoint", "value"]),
        ),
    ] {
        let named = rig.see(&format!("/search?{query}")).await;
        assert_eq!(
            (&named["items"], &named["tried"]),
            (&json!([]), &tried),
            "{query}"
        );
    }
}

#[testkit::test]
async fn an_event_type_is_found_beside_the_events_that_say_it(rig: &Rig) {
    let of_catalogue = ("eventType".to_owned(), "domain.created".to_owned());
    assert_eq!(
        found(rig, "domain.created").await,
        std::slice::from_ref(&of_catalogue)
    );
    let subscription = SubscriptionRow::active().make(&rig.it.pool).await;
    let row = NotificationRow::in_state(NotificationState::Sent, subscription);
    let event = row.make(&rig.it.pool).await.event;
    let body = r#"{"type":"domain.created","data":{}}"#;
    sqlx::query("UPDATE events SET body = $2 WHERE id = $1")
        .bind(event)
        .bind(body)
        .execute(&rig.it.pool)
        .await
        .unwrap();
    assert_eq!(
        found(rig, "domain.created").await,
        [of_catalogue, ("event".to_owned(), event.to_string())]
    );
    assert_eq!(found(rig, "no.such").await.len(), 0);
}

#[testkit::test]
async fn a_search_for_nothing_is_refused(rig: &Rig) {
    let long = format!("q={}", "x".repeat(1_001));
    for query in ["", "q=", "q=%20", "q=%00", &long, "q=a&reseller=", "q=a&who=me"] {
        let path = format!("/search?{query}");
        rig.refused("GET", &path, None, (400, "invalid-query")).await;
    }
}

#[testkit::test]
async fn an_event_that_is_found_says_how_its_notifications_stand(rig: &Rig) {
    for (state, key, standing) in [
        (NotificationState::Sent, "order-18", "1 delivered"),
        (NotificationState::Pending, "order-19", "1 still to be delivered"),
        (NotificationState::Failed, "order-20", "1 not to be delivered"),
    ] {
        let subscription = SubscriptionRow::active().make(&rig.it.pool).await;
        let row = NotificationRow::in_state(state, subscription);
        let notification = row.make(&rig.it.pool).await;
        sqlx::query(
            "INSERT INTO event_keys (scope, key, event, request, created_at)
             VALUES ('reseller/acme', $1, $2, sha256('x'), now())",
        )
        .bind(key)
        .bind(notification.event)
        .execute(&rig.it.pool)
        .await
        .unwrap();
        let answer = rig.see(&format!("/search?q={key}")).await;
        let headline = answer["items"][0]["headline"].as_str().unwrap();
        let said = format!("it became 1 notification: {standing}.");
        assert!(headline.ends_with(&said), "{headline}");
    }
}
