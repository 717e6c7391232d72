use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::json;
use simulators::swrve::{Options, Outcome, ReceivedPage, Report, ResponseTime};

use crate::swrve::{Sim, json as fetch, quick};

#[tokio::test]
async fn the_report_counts_what_arrived_and_how_it_was_answered() {
    let sim = Sim::start(quick()).await;
    for (user, message) in [("a", "1"), ("a", "2"), ("b", "1"), ("b", "1"), ("", "x")] {
        sim.push(user, message).await;
    }
    let text = sim
        .client
        .get(sim.url("/report"))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let report: Report = serde_json::from_str(&text).unwrap();
    assert_eq!((report.received, report.accepted), (5, 4));
    assert_eq!(report.by_status, BTreeMap::from([(200, 4), (400, 1)]));
    assert_eq!(
        (report.distinct_users, report.distinct_pushes),
        (3, 4),
        "an empty user is one as well"
    );
    assert_eq!((report.repeats, report.duplicates), (1, 1));
    assert_eq!((report.in_flight, report.dropped, report.abandoned), (0, 0, 0));
    // As texts: reading a fraction back from JSON may change its last digit.
    assert_eq!(text, serde_json::to_string(&sim.running.report()).unwrap());
}

#[tokio::test]
async fn a_retry_after_a_failure_is_a_repeat_but_no_duplicate() {
    let rules = simulators::swrve::parse_script(br#"[{"status": 503, "times": 1}]"#).unwrap();
    let sim = Sim::start(Options {
        script: rules,
        ..quick()
    })
    .await;
    sim.push("a", "1").await;
    sim.push("a", "1").await;
    let report = sim.running.report();
    assert_eq!((report.repeats, report.duplicates, report.accepted), (1, 0, 1));
}

#[tokio::test]
async fn gaps_and_rate_agree_with_the_listed_arrivals() {
    let sim = Sim::start(Options {
        shortest_allowed_gap: Duration::from_secs(600),
        ..quick()
    })
    .await;
    for _ in 0..20 {
        sim.push("u", "m").await;
    }
    let report = sim.running.report();
    let arrivals: Vec<f64> = sim
        .running
        .received(0, 100)
        .items
        .iter()
        .map(|received| received.arrival_micros)
        .collect();
    let smallest = arrivals
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .fold(f64::INFINITY, f64::min);
    assert!((report.smallest_gap_micros.unwrap() - smallest).abs() < 0.01);
    assert_eq!((report.short_gaps, report.short_gap_micros), (19, 600e6));
    let span = arrivals[19] - arrivals[0];
    assert!((report.span_millis - span / 1_000.0).abs() < 0.01);
    assert!((report.rate_per_second.unwrap() - 19e6 / span).abs() < 0.01);
}

#[tokio::test]
async fn concurrent_requests_are_counted_at_their_peak() {
    let sim = Sim::start(Options {
        response_time: ResponseTime::Fixed(Duration::from_secs(600)),
        ..quick()
    })
    .await;
    let requests: Vec<_> = (0..10)
        .map(|_| tokio::spawn(sim.request("u", "m").send()))
        .collect();
    sim.report_when(|report| report.in_flight == 10).await;
    for request in &requests {
        request.abort();
    }
    let report = sim.report_when(|report| report.in_flight == 0).await;
    assert_eq!(
        (report.max_concurrent, report.abandoned, report.accepted),
        (10, 10, 0)
    );
}

#[tokio::test]
async fn received_requests_can_be_listed_page_by_page() {
    let sim = Sim::start(quick()).await;
    for number in 1..=5 {
        let form = [
            ("push_key", "k"),
            ("user", &format!("u{number}")),
            ("message", "m"),
            ("test", "1"),
        ];
        fetch(sim.client.post(sim.url("/push")).form(&form)).await;
    }
    let page: ReceivedPage = serde_json::from_value(sim.get("/received?limit=2").await).unwrap();
    let first = &page.items[0];
    assert_eq!(
        (first.number, first.push_key.as_str(), first.user.as_str()),
        (1, "k", "u1")
    );
    assert_eq!((first.message.as_str(), first.test), ("m", true));
    assert_eq!((first.outcome, first.status), (Outcome::Answered, Some(200)));
    assert_eq!((page.items.len(), page.oldest, page.next_after), (2, 1, 2));
    let page: ReceivedPage = serde_json::from_value(sim.get("/received?after=2").await).unwrap();
    assert_eq!(
        page.items
            .iter()
            .map(|item| item.user.as_str())
            .collect::<Vec<_>>(),
        ["u3", "u4", "u5"]
    );
}

#[tokio::test]
async fn a_full_list_forgets_the_oldest() {
    let sim = Sim::start(Options {
        received_capacity: 3,
        ..quick()
    })
    .await;
    for _ in 0..5 {
        sim.push("u", "m").await;
    }
    let page = sim.running.received(0, 100);
    assert_eq!((page.items.len(), page.oldest), (3, 3));
    assert_eq!(sim.running.report().received, 5);
}

#[tokio::test]
async fn too_many_users_to_tell_apart_are_admitted() {
    let sim = Sim::start(Options {
        distinct_capacity: 2,
        ..quick()
    })
    .await;
    for user in ["a", "b", "c"] {
        sim.push(user, "m").await;
    }
    let report = sim.running.report();
    assert_eq!((report.distinct_users, report.distinct_saturated), (2, true));
}

#[tokio::test]
async fn a_reset_forgets_all_but_the_numbering_and_the_script() {
    let sim = Sim::start(quick()).await;
    let fresh = sim.running.report();
    sim.running
        .script(simulators::swrve::parse_script(br#"[{"status": 418}]"#).unwrap())
        .unwrap();
    sim.push("u", "m").await;
    assert_ne!(sim.running.report(), fresh);

    let response = sim.client.delete(sim.url("/report")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    assert_eq!(sim.running.report(), fresh);
    assert_eq!(
        sim.get("/received").await,
        json!({"items": [], "oldest": 2, "nextAfter": 0})
    );

    assert_eq!(sim.push("u", "m").await.0.as_u16(), 418);
    assert_eq!(sim.running.received(0, 10).items[0].number, 2);
}

#[tokio::test]
async fn requests_from_before_a_reset_do_not_count_when_they_end() {
    let sim = Sim::start(quick()).await;
    let fresh = sim.running.report();
    sim.running
        .script(simulators::swrve::parse_script(br#"[{"delayMillis": 500}]"#).unwrap())
        .unwrap();
    let slow = tokio::spawn(sim.request("u", "m").send());
    sim.report_when(|report| report.in_flight == 1).await;
    sim.running.reset();
    assert_eq!(slow.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(sim.running.report(), fresh);
}
