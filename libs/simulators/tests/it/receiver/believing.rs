//! What is believed: signatures, secrets of one path, challenges.

use chrono::TimeDelta;
use reqwest::StatusCode;
use signing::Secret;
use simulators::receiver::{Options, SecretFor, Verdict};

use crate::receiver::{Rig, json};

fn knowing(secrets: &[(&str, &Secret)]) -> Options {
    let known = |(path, secret): &(&str, &Secret)| match *path {
        "*" => SecretFor::everywhere(&secret.reveal()).unwrap(),
        path => SecretFor::path(path, &secret.reveal()).unwrap(),
    };
    Options {
        secrets: secrets.iter().map(known).collect(),
        ..Options::default()
    }
}

async fn verdict(rig: &Rig, request: reqwest::RequestBuilder) -> (StatusCode, Verdict) {
    let status = request.send().await.unwrap().status();
    let last = rig.running.report().last.pop().unwrap();
    (status, last.verdict)
}

#[tokio::test]
async fn without_secrets_everything_is_accepted_unchecked() {
    let rig = Rig::start(Options::default()).await;
    let found = verdict(&rig, rig.post("/hook", "1", "domain.created")).await;
    assert_eq!(found, (StatusCode::OK, Verdict::Unchecked));
}

#[tokio::test]
async fn only_what_was_signed_with_a_known_secret_is_accepted() {
    let (a, b, foreign) = (Secret::generate(), Secret::generate(), Secret::generate());
    let rig = Rig::start(knowing(&[("*", &a), ("*", &b)])).await;
    for secrets in [vec![&a], vec![&b], vec![&foreign, &a]] {
        let found = verdict(&rig, rig.signed("/hook", "1", &secrets)).await;
        assert_eq!(found, (StatusCode::OK, Verdict::Verified));
    }
    let refused = [
        (rig.signed("/hook", "1", &[&foreign]), Verdict::Forged),
        (rig.signed("/hook", "1", &[&a]).body("{}"), Verdict::Forged),
        (rig.post("/hook", "1", "domain.created"), Verdict::Unsigned),
    ];
    for (request, wanted) in refused {
        assert_eq!(verdict(&rig, request).await, (StatusCode::UNAUTHORIZED, wanted));
    }
    let report = rig.running.report();
    assert_eq!((report.accepted, report.received), (3, 6));
    assert_eq!(report.by_verdict[&Verdict::Forged], 2);
}

#[tokio::test]
async fn an_old_signature_is_refused_and_the_clock_is_the_one_given() {
    let secret = Secret::generate();
    let rig = Rig::start(knowing(&[("*", &secret)])).await;
    for (step, wanted) in [(300, Verdict::Verified), (1, Verdict::Untimely)] {
        let request = rig.signed("/hook", "1", &[&secret]);
        rig.clock.advance(TimeDelta::seconds(step));
        let recorded = request.try_clone().unwrap();
        assert_eq!(verdict(&rig, recorded).await.1, Verdict::Verified, "{step}");
        rig.clock
            .advance(TimeDelta::seconds(if step == 1 { 300 } else { 0 }));
        assert_eq!(verdict(&rig, request).await.1, wanted, "{step}");
    }
}

#[tokio::test]
async fn a_secret_can_be_for_one_path_alone() {
    let (a, b) = (Secret::generate(), Secret::generate());
    let rig = Rig::start(knowing(&[("/a", &a), ("/b", &b)])).await;
    for (path, secret, wanted) in [
        ("/a", &a, Verdict::Verified),
        ("/b", &b, Verdict::Verified),
        ("/b", &a, Verdict::Forged),
        ("/c", &a, Verdict::Unchecked),
    ] {
        assert_eq!(
            verdict(&rig, rig.signed(path, "1", &[secret])).await.1,
            wanted,
            "{path}"
        );
    }
    assert_eq!(
        verdict(&rig, rig.signed("/a?x=1", "1", &[&a])).await.1,
        Verdict::Verified
    );
}

#[tokio::test]
async fn secrets_can_be_replaced_and_are_never_shown() {
    let secret = Secret::generate();
    let rig = Rig::start(Options::default()).await;
    let order = format!(
        r#"{{"secrets": [{{"path": "/hook", "secret": "{}"}}]}}"#,
        secret.reveal().as_str()
    );
    assert_eq!(rig.control(&order).await.status(), StatusCode::NO_CONTENT);
    let found = verdict(&rig, rig.post("/hook", "1", "domain.created")).await;
    assert_eq!(found, (StatusCode::UNAUTHORIZED, Verdict::Unsigned));
    assert_eq!(rig.get("/_control").await["secrets"], 1);
    for path in ["/_control", "/_report"] {
        assert!(!rig.get(path).await.to_string().contains("whsec_"));
    }
    let refused = rig
        .control(r#"{"rules": [], "secrets": [{"secret": "whsec_AAAA"}]}"#)
        .await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    let reason = json(refused).await["error"].to_string();
    assert!(
        reason.contains("at least 24 bytes") && !reason.contains("AAAA"),
        "{reason}"
    );
    assert_eq!(rig.get("/_control").await["secrets"], 1);
}

#[tokio::test]
async fn a_challenge_is_met_also_while_everything_else_fails() {
    let rig = Rig::start(Options::default()).await;
    rig.control(r#"{"rules": [{"status": 500}]}"#).await;
    let response = rig
        .post("/hook", "1", "postrider.verification")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(json(response).await, serde_json::json!({"challenge": "c-1"}));
    assert_eq!(rig.status("2", "domain.created").await, 500);
    let report = rig.running.report();
    assert_eq!((report.challenges, report.accepted, report.received), (1, 1, 2));
}

#[tokio::test]
async fn a_challenge_with_a_wrong_signature_is_not_met() {
    let (known, foreign) = (Secret::generate(), Secret::generate());
    let rig = Rig::start(knowing(&[("*", &known)])).await;
    let request = rig.signed("/hook", "1", &[&foreign]);
    let forged = request.body(crate::receiver::body("1", "postrider.verification"));
    assert_eq!(
        verdict(&rig, forged).await,
        (StatusCode::UNAUTHORIZED, Verdict::Forged)
    );
    assert_eq!(rig.running.report().challenges, 0);
}
