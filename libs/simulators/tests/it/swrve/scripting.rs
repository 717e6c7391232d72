use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};
use simulators::swrve::{
    Options, ResponseTime, Rule, RuleError, ScriptError, SimError, SwrveSim, parse_script,
};

use crate::swrve::{Sim, json as fetch, quick};

async fn put(sim: &Sim, script: &Value) -> StatusCode {
    sim.client
        .put(sim.url("/script"))
        .json(script)
        .send()
        .await
        .unwrap()
        .status()
}

#[tokio::test]
async fn rules_choose_by_user_message_and_push_key() {
    let sim = Sim::start(quick()).await;
    let script = json!([
        {"match": {"user": "bad"}, "status": 503, "code": 5031, "message": "try later"},
        {"match": {"message": {"prefix": "reject"}}, "status": 400},
        {"match": {"pushKey": "k", "user": {"prefix": "both-"}}, "status": 403}
    ]);
    assert_eq!(put(&sim, &script).await, StatusCode::NO_CONTENT);
    let unavailable = (
        StatusCode::SERVICE_UNAVAILABLE,
        json!({"code": 5031, "message": "try later"}),
    );
    assert_eq!(sim.push("bad", "m").await, unavailable);
    let bad_request = (
        StatusCode::BAD_REQUEST,
        json!({"code": 400, "message": "Bad Request"}),
    );
    assert_eq!(sim.push("u", "reject me").await, bad_request);
    assert_eq!(sim.push("both-1", "m").await.0, StatusCode::FORBIDDEN);
    assert_eq!(sim.push("u", "m").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_rule_can_be_used_up() {
    let sim = Sim::start(quick()).await;
    put(
        &sim,
        &json!([{"match": {"user": "u"}, "status": 500, "times": 2}]),
    )
    .await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(sim.push("u", "m").await.0.as_u16());
    }
    assert_eq!(statuses, [500, 500, 200, 200]);
    let shown = sim.get("/script").await;
    assert_eq!(
        shown,
        json!([{"match": {"user": "u"}, "status": 500, "times": 2, "used": 2}])
    );
}

#[tokio::test]
async fn a_script_can_be_given_at_the_start_and_cleared() {
    let sim = Sim::start(Options {
        script: parse_script(br#"[{"status": 500}]"#).unwrap(),
        ..quick()
    })
    .await;
    assert_eq!(sim.push("u", "m").await.0, StatusCode::INTERNAL_SERVER_ERROR);
    let cleared = sim.client.delete(sim.url("/script")).send().await.unwrap();
    assert_eq!(cleared.status(), StatusCode::NO_CONTENT);
    assert_eq!(sim.push("u", "m").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_raw_body_and_headers_are_sent_as_they_are() {
    let sim = Sim::start(quick()).await;
    put(&sim, &json!([{"status": 302, "body": "<html>", "headers": {"Location": "/else", "Content-Type": "text/html"}}]))
        .await;
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let form = [("push_key", "k"), ("user", "u"), ("message", "m")];
    let response = client.post(sim.url("/push")).form(&form).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::FOUND);
    assert_eq!(response.headers()["location"], "/else");
    assert_eq!(response.headers()["content-type"], "text/html");
    assert_eq!(response.text().await.unwrap(), "<html>");
}

#[tokio::test]
async fn a_delay_replaces_the_response_time() {
    let slow = Options {
        response_time: ResponseTime::Fixed(Duration::from_secs(600)),
        ..quick()
    };
    let sim = Sim::start(slow).await;
    let delay = Duration::from_millis(60);
    put(&sim, &json!([{"delayMillis": 60}])).await;
    let started = Instant::now();
    assert_eq!(sim.push("u", "m").await.0, StatusCode::OK);
    assert!(started.elapsed() >= delay);
}

#[tokio::test]
async fn a_dropped_connection_has_no_answer() {
    let sim = Sim::start(quick()).await;
    put(&sim, &json!([{"match": {"user": "gone"}, "drop": true}])).await;
    let error = sim.request("gone", "m").send().await.unwrap_err();
    assert!(!error.is_timeout());
    let report = sim.running.report();
    assert_eq!((report.dropped, report.accepted, report.in_flight), (1, 0, 0));
    assert_eq!(sim.push("u", "m").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_hanging_request_is_never_answered() {
    let sim = Sim::start(quick()).await;
    put(&sim, &json!([{"hang": true}])).await;
    let error = sim
        .request("u", "m")
        .timeout(Duration::from_secs(3))
        .send()
        .await
        .unwrap_err();
    assert!(error.is_timeout());
    let report = sim.report_when(|report| report.abandoned == 1).await;
    assert_eq!(report.in_flight, 0);
}

#[tokio::test]
async fn an_invalid_script_is_explained_and_changes_nothing() {
    let sim = Sim::start(quick()).await;
    put(&sim, &json!([{"status": 418}])).await;
    for (script, said) in [
        (
            json!([{"status": 418}, {"status": 7}]),
            "rule 2 is invalid: status 7 is not between 200 and 599",
        ),
        (
            json!([{"satus": 7}]),
            "not a JSON list of rules: unknown field `satus`",
        ),
    ] {
        let (status, body) = fetch(sim.client.put(sim.url("/script")).json(&script)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(body["message"].as_str().unwrap().starts_with(said), "{body}");
    }
    assert_eq!(sim.push("u", "m").await.0.as_u16(), 418);
}

#[tokio::test]
async fn invalid_rules_are_refused_in_process_too() {
    let sim = Sim::start(quick()).await;
    let rule = Rule {
        status: Some(100),
        ..Rule::default()
    };
    let error = sim.running.script(vec![rule.clone()]).unwrap_err();
    assert!(matches!(
        error,
        ScriptError::Rule {
            number: 1,
            source: RuleError::Status(100)
        }
    ));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let error = SwrveSim::start(
        listener,
        Options {
            script: vec![rule],
            ..quick()
        },
    )
    .unwrap_err();
    assert!(matches!(error, SimError::Script(_)));
}
