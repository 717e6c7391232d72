//! Following changes: asked for again and again, or as a stream.

use domain::notification::NotificationState;
use reqwest::header::ACCEPT;
use serde_json::{Value, json};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::app::entered;
use crate::portal::{Portal, fields};

async fn made(portal: &Portal) -> (Uuid, Uuid) {
    let subscription = SubscriptionRow::active().make(&portal.pool).await;
    let row = NotificationRow::in_state(NotificationState::Pending, subscription);
    (subscription, row.make(&portal.pool).await.id.uuid())
}

fn begins(changes: &Value) -> &str {
    assert_eq!(
        (&changes["items"], &changes["missed"]),
        (&json!([]), &json!(false))
    );
    changes["next"].as_str().unwrap()
}

#[testkit::test]
async fn a_change_is_told_to_those_who_wait_for_it_and_to_no_others(portal: Portal) {
    let start = portal.see("/changes").await;
    let path = format!("/changes?after={}", begins(&start));
    let asked = async {
        loop {
            let changes = portal.see(&path).await;
            if changes["items"] != json!([]) {
                return changes;
            }
        }
    };
    let (changes, (subscription, notification)) = tokio::join!(asked, made(&portal));
    let [change] = changes["items"].as_array().unwrap().as_slice() else {
        panic!("{changes}");
    };
    assert_eq!(change["subscriptionId"], subscription.to_string());
    assert_eq!(change["notificationId"], notification.to_string());
    let after = changes["next"].as_str().unwrap();
    begins(&portal.see(&format!("/changes?after={after}&wait=0")).await);
    let lost = portal.see("/changes?after=1-0&wait=0").await;
    assert_eq!(lost["missed"], true);
    let other = portal.key_of("globex").await;
    let answer = portal
        .request("GET", "/changes?after=1-0&wait=0")
        .bearer_auth(other);
    let answer: Value = answer.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["items"], json!([]));
    for (query, field) in [("after=x", "after"), ("wait=21", "wait"), ("limit=0", "limit")] {
        let refused = portal
            .refused("GET", &format!("/changes?{query}"), None, (400, "invalid-query"))
            .await;
        assert_eq!(fields(&refused), [field]);
    }
}

/// The next event of a stream that is no comment, whatever pieces it comes in.
async fn event(stream: &mut reqwest::Response) -> Value {
    let mut text = String::new();
    loop {
        let piece = stream.chunk().await.unwrap().expect("the stream goes on");
        text.push_str(std::str::from_utf8(&piece).unwrap());
        if let Some(data) = text.lines().find_map(|line| line.strip_prefix("data: "))
            && text.ends_with("\n\n")
        {
            return serde_json::from_str(data).unwrap();
        }
    }
}

#[testkit::test]
async fn a_stream_tells_changes_to_a_browser_and_ends_when_the_service_does(portal: Portal) {
    let browser = entered(&portal, &[]).await;
    let page = browser.see("/app/live").await;
    assert!(page.contains("data-changes=\"/app/changes\""), "{page}");
    let request = browser
        .request("GET", "/app/changes")
        .header(ACCEPT, "text/event-stream");
    let mut stream = request.send().await.unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    begins(&event(&mut stream).await);
    let (_, notification) = made(&portal).await;
    let changes = loop {
        let told = event(&mut stream).await;
        if told["items"] != json!([]) {
            break told;
        }
    };
    assert_eq!(changes["items"][0]["notificationId"], notification.to_string());
    drop(browser);
    // Within its grace period, which is shorter than a stream.
    portal.stop().await;
    while let Ok(Some(_)) = stream.chunk().await {}
}
