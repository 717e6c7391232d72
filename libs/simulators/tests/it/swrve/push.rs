use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::json;
use simulators::swrve::{Options, ResponseTime};

use crate::swrve::{Sim, json as fetch, quick};

#[tokio::test]
async fn a_push_is_accepted_in_swrves_format() {
    let sim = Sim::start(quick()).await;
    assert_eq!(
        sim.push("device", "Hello").await,
        (StatusCode::OK, json!({"code": 200, "message": "OK"}))
    );
}

#[tokio::test]
async fn every_field_is_required() {
    let sim = Sim::start(quick()).await;
    let fields = [("push_key", "k"), ("user", "u"), ("message", "m")];
    for (missing, (name, _)) in fields.iter().enumerate() {
        let mut some = fields.to_vec();
        some.remove(missing);
        let mut empty = fields.to_vec();
        empty[missing].1 = "";
        for form in [some, empty] {
            let wanted = json!({"code": 400, "message": format!("missing parameter: {name}")});
            let answer = fetch(sim.client.post(sim.url("/push")).form(&form)).await;
            assert_eq!(answer, (StatusCode::BAD_REQUEST, wanted));
        }
    }
}

#[tokio::test]
async fn only_forms_are_taken() {
    let sim = Sim::start(quick()).await;
    let (status, body) = fetch(sim.client.post(sim.url("/push")).json(&json!({"user": "u"}))).await;
    assert_eq!(
        (status, &body["code"]),
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, &json!(415))
    );

    let form = [("user", "u"), ("user", "v")];
    let (status, body) = fetch(sim.client.post(sim.url("/push")).form(&form)).await;
    assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!(400)));

    let form = [("message", "x".repeat(3_000_000))];
    let (status, body) = fetch(sim.client.post(sim.url("/push")).form(&form)).await;
    assert_eq!(
        (status, &body["code"]),
        (StatusCode::PAYLOAD_TOO_LARGE, &json!(413))
    );
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let sim = Sim::start(quick()).await;
    let (status, body) = fetch(sim.client.get(sim.url("/elsewhere"))).await;
    assert_eq!((status, &body["code"]), (StatusCode::NOT_FOUND, &json!(404)));
    let response = sim.client.get(sim.url("/push")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(sim.running.report().received, 0);
}

#[tokio::test]
async fn it_says_that_it_is_alive() {
    let sim = Sim::start(quick()).await;
    assert_eq!(
        sim.client.get(sim.url("/healthz")).send().await.unwrap().status(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn requests_above_the_limit_of_a_second_get_429() {
    let sim = Sim::start(Options {
        requests_per_second: Some(3),
        ..quick()
    })
    .await;
    // Without the limit none is refused; with it, forty requests pass only on a machine that takes ten seconds for them.
    let mut limited = 0;
    for _ in 0..40 {
        let (status, body) = sim.push("u", "m").await;
        if status == StatusCode::TOO_MANY_REQUESTS {
            assert_eq!(body, json!({"code": 429, "message": "Rate Limit Exceeded"}));
            limited += 1;
        }
    }
    let report = sim.running.report();
    assert!(limited > 0, "{report:?}");
    assert!(report.max_in_any_second > 3);
    assert_eq!(report.by_status[&429], limited);
    assert_eq!(report.accepted, 40 - limited);
}

#[tokio::test]
async fn without_a_limit_nothing_is_refused() {
    let sim = Sim::start(quick()).await;
    for _ in 0..400 {
        assert_eq!(sim.push("u", "m").await.0, StatusCode::OK);
    }
}

#[tokio::test]
async fn answers_take_the_fixed_time() {
    let time = Duration::from_millis(120);
    let sim = Sim::start(Options {
        response_time: ResponseTime::Fixed(time),
        ..quick()
    })
    .await;
    let started = Instant::now();
    sim.push("u", "m").await;
    assert!(started.elapsed() >= time);
}

#[tokio::test]
async fn answers_take_times_of_the_measured_table() {
    let sim = Sim::start(Options {
        response_time: ResponseTime::Seed,
        random_seed: Some(7),
        ..quick()
    })
    .await;
    let started = Instant::now();
    sim.push("u", "m").await;
    assert!(
        started.elapsed() >= Duration::from_millis(233),
        "the least of the table"
    );
}

#[tokio::test]
async fn shutdown_ends_unanswered_requests_and_frees_the_port() {
    let sim = Sim::start(Options {
        response_time: ResponseTime::Fixed(Duration::from_secs(600)),
        ..quick()
    })
    .await;
    let addr = sim.running.addr();
    let waiting = tokio::spawn(sim.request("u", "m").send());
    sim.report_when(|report| report.in_flight == 1).await;
    sim.running.shutdown().await;
    assert!(waiting.await.unwrap().is_err());
    assert!(tokio::net::TcpStream::connect(addr).await.is_err());
}
