//! What is remembered and shown.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use simulators::receiver::{Options, Outcome, Received, Report};

use crate::receiver::Rig;

#[tokio::test]
async fn a_notification_is_listed_with_all_that_came() {
    let rig = Rig::start(Options::default()).await;
    let request = rig
        .post("/hook?x=1", "evt_1", "domain.created")
        .header("x-more", "a");
    request.header("x-more", "b").send().await.unwrap();
    let page = rig.running.received(0, 10);
    let Received {
        number,
        method,
        path,
        headers,
        body,
        id,
        event_type,
        arrivals,
        delay_millis,
        outcome,
        status,
        received_at,
        ..
    } = &page.items[0];
    assert_eq!(
        (*number, method.as_str(), path.as_str()),
        (1, "POST", "/hook?x=1")
    );
    assert_eq!(
        (headers["webhook-id"].as_str(), headers["x-more"].as_str()),
        ("evt_1", "a, b")
    );
    assert_eq!(
        (id.as_str(), event_type.as_str(), *arrivals),
        ("evt_1", "domain.created", 1)
    );
    assert_eq!(body, &crate::receiver::body("evt_1", "domain.created"));
    assert_eq!(
        (*delay_millis, *outcome, *status),
        (Some(500), Outcome::Answered, Some(200))
    );
    assert_eq!(received_at.timestamp(), crate::receiver::NOW);
    let listed: simulators::receiver::ReceivedPage =
        serde_json::from_value(rig.get("/_received?after=0&limit=5").await).unwrap();
    assert_eq!(listed, page);
    assert!(rig.running.received(1, 10).items.is_empty());
}

#[tokio::test]
async fn the_report_over_http_is_the_one_of_the_library() {
    let rig = Rig::start(Options::default()).await;
    for (id, event_type) in [
        ("1", "domain.created"),
        ("2", "contact.updated"),
        ("1", "domain.created"),
    ] {
        rig.status(id, event_type).await;
    }
    let report: Report = serde_json::from_value(rig.get("/_report").await).unwrap();
    assert_eq!(report, rig.running.report());
    assert_eq!((report.received, report.accepted, report.in_flight), (3, 3, 0));
    assert_eq!(
        (report.repeats, report.duplicates, report.distinct_ids),
        (1, 1, 2)
    );
    assert_eq!((report.by_status[&200], report.by_type["domain.created"]), (3, 2));
    let delay = report.delay_millis.unwrap();
    assert_eq!((delay.min, delay.median, delay.max), (500, 500, 500));
    assert_eq!(report.last.len(), 3);
    let short: Report = serde_json::from_value(rig.get("/_report?last=1").await).unwrap();
    assert_eq!((short.last.len(), short.last[0].number), (1, 3));
}

#[tokio::test]
async fn a_reset_forgets_everything_but_the_numbers() {
    let rig = Rig::start(Options::default()).await;
    rig.status("1", "domain.created").await;
    let request = rig.client.delete(rig.running.url("/_report"));
    assert_eq!(request.send().await.unwrap().status(), StatusCode::NO_CONTENT);
    assert_eq!(rig.running.report().received, 0);
    rig.status("1", "domain.created").await;
    let report = rig.running.report();
    assert_eq!(
        (report.received, report.repeats, report.last[0].number),
        (1, 0, 2)
    );
}

#[tokio::test]
async fn what_is_no_notification_is_listed_as_well() {
    let rig = Rig::start(Options::default()).await;
    let url = rig.running.url("/hook");
    let get = rig.client.get(&url).send().await.unwrap();
    assert_eq!(get.status(), StatusCode::METHOD_NOT_ALLOWED);
    let text = rig
        .client
        .post(&url)
        .body("not JSON \u{fffd}")
        .send()
        .await
        .unwrap();
    assert_eq!(text.status(), StatusCode::OK);
    let last = rig.running.report().last;
    assert_eq!(
        (last[0].method.as_str(), last[0].id.as_str()),
        (Method::GET.as_str(), "")
    );
    assert_eq!(
        (last[1].body.as_str(), last[1].delay_millis),
        ("not JSON \u{fffd}", None)
    );
    assert_eq!(
        rig.client
            .get(rig.running.url("/_else"))
            .send()
            .await
            .unwrap()
            .status(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(rig.running.report().received, 2);
}

#[tokio::test]
async fn a_body_over_the_limit_is_not_read() {
    let options = Options {
        max_body_bytes: 100,
        ..Options::default()
    };
    let rig = Rig::start(options).await;
    let request = rig.client.post(rig.running.url("/hook")).body("x".repeat(101));
    assert_eq!(
        request.send().await.unwrap().status(),
        StatusCode::PAYLOAD_TOO_LARGE
    );
    let last = rig.report_when(|report| report.in_flight == 0).await.last;
    assert_eq!((last[0].body.as_str(), last[0].status), ("", Some(413)));
}

#[tokio::test]
async fn a_follower_sees_each_request_at_its_end() {
    let rig = Rig::start(Options::default()).await;
    let mut followed = rig.running.follow();
    rig.status("1", "domain.created").await;
    let seen = tokio::time::timeout(Duration::from_secs(30), followed.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!((seen.id.as_str(), seen.status), ("1", Some(200)));
}

#[tokio::test]
async fn shutting_down_closes_what_hangs() {
    let rig = Rig::start(Options::default()).await;
    rig.control(r#"{"rules": [{"hang": true}]}"#).await;
    let request = rig.post("/hook", "1", "domain.created").send();
    let hanging = tokio::spawn(request);
    rig.report_when(|report| report.in_flight == 1).await;
    rig.running.shutdown().await;
    assert!(!hanging.await.unwrap().unwrap_err().is_timeout());
}
