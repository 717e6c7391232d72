//! The story of one thing, and of what does not exist.

use chrono::TimeDelta;
use domain::clock::{Clock as _, SystemClock};
use domain::month::Month;
use domain::notification::NotificationState;
use domain::push::PushStatus;
use serde_json::json;
use store::webpush::{MessageBody, NewMessage};
use testkit::notification_factory::NotificationRow;
use testkit::push_request;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::rig::Rig;

#[testkit::test]
async fn a_push_is_explained_and_so_is_who_cancelled_it(rig: &Rig) {
    let id = rig
        .it
        .accept(PushStatus::Pending, push_request("device", "Hello client!"))
        .await;
    let path = format!("/explain/{id}");
    let story = rig.see(&path).await;
    assert_eq!(story["kind"], "push");
    assert_eq!(story["state"], "PENDING");
    assert_eq!(story["headline"], "Waits for room in the queue.");
    assert_eq!(
        (&story["headlineCode"], &story["next"]["code"]),
        (&json!("waits-room"), &json!("queued"))
    );
    assert_eq!(
        story["commands"],
        json!([format!("postrider cancel push {id} --yes --note '…'")])
    );

    rig.act(
        &format!("/pushes/{id}/cancel"),
        &json!({"note": "wrong text"}),
        200,
    )
    .await;
    let story = rig.see(&path).await;
    assert_eq!(story["state"], "GIVEN_UP");
    let headline = story["headline"].as_str().unwrap();
    assert!(
        headline.starts_with("Was cancelled by ") && headline.ends_with(", with the note \"wrong text\"."),
        "{headline}"
    );
    assert_eq!(story["next"]["text"], "Nothing: it will not be sent.");
    assert_eq!(
        (&story["headlineCode"], &story["headlineParams"]["note"]),
        (&json!("cancelled"), &json!("wrong text"))
    );
    assert_eq!(
        (&story["next"]["code"], &story["next"]["params"]),
        (&json!("not-sent"), &json!({}))
    );
}

#[testkit::test]
async fn a_pause_that_is_over_is_what_the_time_of_a_push_went_to(rig: &Rig) {
    let id = rig
        .it
        .accept(PushStatus::Pending, push_request("device", "Hello client!"))
        .await;
    rig.act("/lanes/push/pause", &json!({"note": "incident 17"}), 200)
        .await;
    rig.clock.advance(TimeDelta::minutes(10));
    let path = format!("/explain/{id}");
    for over in [false, true] {
        if over {
            rig.act("/lanes/push/resume", &json!({}), 200).await;
        }
        let story = rig.see(&path).await;
        assert_eq!(story["delay"]["parts"][0]["cause"], "PAUSED", "{story}");
        let mut lines = story["story"].as_array().unwrap().iter();
        let told = lines.any(|line| {
            let text = line["text"].as_str().unwrap();
            text.starts_with("The lane was paused from ") && text.ends_with(": incident 17.")
        });
        assert_eq!(told, over, "{story}");
    }
}

#[testkit::test]
async fn an_event_of_a_paused_reseller_waits_for_that_pause_and_says_so(rig: &Rig) {
    let subscription = SubscriptionRow::active().reseller("acme");
    let subscription = subscription.make(&rig.it.pool).await;
    let made = NotificationRow::in_state(NotificationState::Pending, subscription).reseller("acme");
    let event = made.make(&rig.it.pool).await.event;
    rig.act("/resellers/acme/pause", &json!({"note": "incident 17"}), 200)
        .await;
    let story = rig.see(&format!("/explain/{event}")).await;
    let headline = story["headline"].as_str().unwrap();
    assert!(
        headline.contains("It is held back: the reseller acme is paused by ")
            && headline.ends_with("incident 17."),
        "{headline}"
    );
    assert_eq!(
        story["next"]["text"],
        "It goes on when the reseller acme is resumed."
    );
    let status = rig.see("/status").await;
    assert_eq!(status["pauses"][0]["waiting"], 1, "{status}");
    rig.act("/resellers/acme/resume", &json!({}), 200).await;
    let story = rig.see(&format!("/explain/{event}")).await;
    assert_eq!(
        story["headline"],
        "Its one notification is still to be delivered."
    );
}

#[testkit::test]
async fn a_subscription_says_whose_pause_holds_it_and_what_waits(rig: &Rig) {
    let id = SubscriptionRow::active().make(&rig.it.pool).await;
    NotificationRow::in_state(NotificationState::Pending, id)
        .make(&rig.it.pool)
        .await;
    let path = format!("/explain/{id}");
    let story = rig.see(&path).await;
    assert_eq!(
        (&story["kind"], &story["state"]),
        (&json!("subscription"), &json!("ACTIVE"))
    );
    let headline = story["headline"].as_str().unwrap();
    assert!(
        headline.contains("1 notification waits: 1 for room in the queue. Of its daily quota of"),
        "{headline}"
    );
    // It was made by another clock, a moment after this one began.
    rig.clock.advance(TimeDelta::minutes(1));
    rig.act(
        &format!("/subscriptions/{id}/pause"),
        &json!({"note": "incident 17"}),
        200,
    )
    .await;
    let story = rig.see(&path).await;
    let headline = story["headline"].as_str().unwrap();
    assert!(
        headline.starts_with(&format!("Is held back: the subscription {id} is paused by "))
            && headline.contains("1 notification waits for the end of that."),
        "{headline}"
    );
    assert_eq!(
        story["commands"][0],
        json!(format!("postrider resume subscription {id}"))
    );
    let lines = story["story"].as_array().unwrap().iter();
    let lines: Vec<&str> = lines.filter_map(|line| line["text"].as_str()).collect();
    let says = |line: &&str| line.contains(" paused it: incident 17.") && !line.contains("an operator");
    assert!(lines.iter().any(says), "{lines:?}");
}

#[testkit::test]
async fn what_does_not_exist_is_answered_with_what_does(rig: &Rig) {
    for (path, said) in [
        (
            format!("/explain/{}", Uuid::now_v7()),
            "no push, event, notification, dead letter, subscription or user agent has this identifier",
        ),
        (
            "/explain/order-17".to_owned(),
            "use --device for a device's push key, --reseller for",
        ),
        (
            "/explain/gAAAAAunknown".to_owned(),
            "no message of Web Push has this id",
        ),
        ("/explain/order-17?reseller=acme".to_owned(), "acme has no event"),
        (
            "/explain/late.example?reseller=acme".to_owned(),
            "`postrider notifications list --reseller acme --value`, and any other text by `postrider find`",
        ),
    ] {
        let problem = rig.refused("GET", &path, None, (404, "not-found")).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(said), "{detail}");
    }
    rig.refused(
        "GET",
        "/explain/order-17?owner=acme",
        None,
        (400, "invalid-query"),
    )
    .await;
}

#[testkit::test]
async fn a_text_is_explained_when_a_search_finds_one_thing_for_it(rig: &Rig) {
    let mut subscriptions = Vec::new();
    let mut events = Vec::new();
    for reseller in ["acme", "demo2"] {
        let url = format!("https://hooks.{reseller}.example/postrider");
        let subscription = SubscriptionRow::active().reseller(reseller).url(&url);
        let subscription = subscription.make(&rig.it.pool).await;
        let row = NotificationRow::in_state(NotificationState::Sent, subscription).reseller(reseller);
        let event = row.make(&rig.it.pool).await.event;
        sqlx::query("INSERT INTO event_keys VALUES ('reseller/' || $2, 'order-17', $1, '\\x01', now())")
            .bind(event)
            .bind(reseller)
            .execute(&rig.it.pool)
            .await
            .unwrap();
        if events.is_empty() {
            let story = rig.see("/explain/order-17").await;
            assert_eq!((&story["kind"], &story["id"]), (&json!("event"), &json!(event)));
        }
        subscriptions.push(subscription);
        events.push(event);
    }
    let endpoint = "/explain/https:%2F%2Fhooks.acme.example%2Fpostrider";
    let story = rig.see(endpoint).await;
    assert_eq!(
        (&story["kind"], &story["id"]),
        (&json!("subscription"), &json!(subscriptions[0]))
    );
    let refused = async |text: &str| {
        let path = format!("/explain/{text}");
        let problem = rig.refused("GET", &path, None, (404, "not-found")).await;
        problem["detail"].as_str().unwrap().to_owned()
    };
    let several = refused("order-17").await;
    let is_named = |event: &Uuid| several.contains(&format!("event {event}"));
    assert!(
        several.starts_with("2 things are found") && events.iter().all(is_named),
        "{several}"
    );
    // What both have in their data is of one of them where that is named.
    for (reseller, event) in ["acme", "demo2"].iter().zip(&events) {
        let story = rig.see(&format!("/explain/example.lv?reseller={reseller}")).await;
        assert_eq!((&story["kind"], &story["id"]), (&json!("event"), &json!(event)));
    }
    let reseller = refused("acme").await;
    assert!(
        reseller.starts_with("reseller acme is all that is found"),
        "{reseller}"
    );
}

#[testkit::test]
async fn a_device_whose_key_looks_like_an_identifier_leads_to_its_push(rig: &Rig) {
    let device = Uuid::new_v4().to_string();
    let path = format!("/explain/{device}");
    let request = || push_request(&device, "Hello client!");
    let first = rig.it.accept(PushStatus::Pending, request()).await;
    let story = rig.see(&path).await;
    assert_eq!(
        (&story["kind"], &story["id"]),
        (&json!("push"), &json!(first.to_string()))
    );
    let second = rig.it.accept(PushStatus::Pending, request()).await;
    let problem = rig.refused("GET", &path, None, (404, "not-found")).await;
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("2 things are found")
            && [first, second]
                .iter()
                .all(|id| detail.contains(&format!("push {id}"))),
        "{detail}"
    );
}

#[testkit::test]
async fn an_event_of_another_reseller_is_named(rig: &Rig) {
    let told = async || {
        let path = "/explain/order-17?reseller=acme";
        let problem = rig.refused("GET", path, None, (404, "not-found")).await;
        problem["detail"].as_str().unwrap().to_owned()
    };
    let none = told().await;
    assert!(!none.contains("has one"), "{none}");
    for (reseller, said) in [
        ("demo2", "; demo2 has one."),
        ("demo3", "; demo2, demo3 have one."),
    ] {
        let subscription = SubscriptionRow::active()
            .reseller(reseller)
            .make(&rig.it.pool)
            .await;
        let row = NotificationRow::in_state(NotificationState::Sent, subscription).reseller(reseller);
        let event = row.make(&rig.it.pool).await.event;
        sqlx::query("INSERT INTO event_keys VALUES ('reseller/' || $2, 'order-17', $1, '\\x01', now())")
            .bind(event)
            .bind(reseller)
            .execute(&rig.it.pool)
            .await
            .unwrap();
        let detail = told().await;
        assert!(detail.contains(said), "{detail}");
    }
}

#[testkit::test]
async fn a_user_agent_is_explained_without_what_its_messages_say(rig: &Rig) {
    let (uaid, channel, now) = (Uuid::new_v4(), Uuid::new_v4(), SystemClock.now());
    let month = Month::containing(now);
    let store = &rig.it.store;
    let registered = store.webpush_register(uaid, Some("http://node-1:8085"), now, month, channel, 10);
    registered.await.unwrap();
    let message = NewMessage {
        uaid,
        channel,
        topic: None,
        version: "the-message".to_owned(),
        received_at: now,
        expires_at: now + TimeDelta::hours(1),
        body: Some(MessageBody {
            data: b"secret-of-the-sender".to_vec(),
            encoding: "aesgcm".to_owned(),
            encryption: Some("salt=secret-salt".to_owned()),
            crypto_key: Some("dh=secret-key".to_owned()),
        }),
    };
    store.webpush_store(&[message]).await.unwrap();
    // With dashes or without, as clients write it.
    for id in [uaid.to_string(), uaid.simple().to_string()] {
        let story = rig.see(&format!("/explain/{id}")).await;
        assert_eq!(
            (&story["kind"], &story["state"]),
            (&json!("userAgent"), &json!("CONNECTED"))
        );
        let headline = story["headline"].as_str().unwrap();
        assert!(
            headline.contains("http://node-1:8085") && headline.contains("1 message waits"),
            "{headline}"
        );
        let text = story.to_string();
        assert!(
            text.contains(&channel.to_string()) && !text.contains("secret"),
            "{text}"
        );
    }
}
