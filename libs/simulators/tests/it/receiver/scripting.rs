//! Failing on demand.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use simulators::receiver::{Options, Outcome, Rule};

use crate::receiver::{Rig, json};

async fn scripted(rules: Vec<Rule>) -> Rig {
    let options = Options {
        script: rules,
        ..Options::default()
    };
    Rig::start(options).await
}

#[tokio::test]
async fn statuses_come_by_type_and_in_sequence() {
    let rig = scripted(vec![
        Rule::answering(410).about("domain.deleted"),
        Rule {
            times: Some(1),
            ..Rule::answering(503)
        },
        Rule::answering(202),
    ])
    .await;
    let mut found = Vec::new();
    for (id, event_type) in [
        ("1", "domain.created"),
        ("2", "domain.deleted"),
        ("3", "domain.created"),
    ] {
        found.push(rig.status(id, event_type).await);
    }
    assert_eq!(found, [503, 410, 202]);
}

#[tokio::test]
async fn each_notification_can_fail_at_first() {
    let rig = scripted(vec![Rule::answering(503).first(2)]).await;
    for id in ["1", "2"] {
        for wanted in [503, 503, 200, 200] {
            assert_eq!(rig.status(id, "domain.created").await, wanted, "{id}");
        }
    }
    let report = rig.running.report();
    assert_eq!(
        (report.repeats, report.duplicates, report.distinct_ids),
        (6, 2, 2)
    );
}

#[tokio::test]
async fn rules_are_replaced_at_run_time_and_bad_ones_change_nothing() {
    let rig = scripted(Vec::new()).await;
    let order = r#"{"rules": [{"match": {"type": {"prefix": "domain."}}, "status": 307, "headers": {"Location": "/else", "Retry-After": "9"}}]}"#;
    assert_eq!(rig.control(order).await.status(), StatusCode::NO_CONTENT);
    let response = rig.post("/hook", "1", "domain.created").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(
        (
            &response.headers()["location"],
            &response.headers()["retry-after"]
        ),
        (&"/else".parse().unwrap(), &"9".parse().unwrap())
    );
    for bad in [r#"{"rules": [{"status": 42}]}"#, r#"{"ruls": []}"#, "["] {
        let refused = rig.control(bad).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{bad}");
        assert!(json(refused).await["error"].is_string());
    }
    let rules = &rig.get("/_control").await["rules"];
    assert_eq!((&rules[0]["status"], &rules[0]["used"]), (&307.into(), &1.into()));
    assert_eq!(rig.running.rules()[0].used, 1);
    rig.running.script(Vec::new()).unwrap();
    assert_eq!(rig.status("2", "domain.created").await, 200);
    assert!(rig.running.script(vec![Rule::answering(99)]).is_err());
}

#[tokio::test]
async fn a_dropped_connection_is_no_answer() {
    let rig = scripted(vec![Rule {
        drop: true,
        ..Rule::default()
    }])
    .await;
    let error = rig.post("/hook", "1", "domain.created").send().await.unwrap_err();
    assert!(!error.is_timeout(), "{error:?}");
    let report = rig.report_when(|report| report.in_flight == 0).await;
    assert_eq!((report.dropped, report.abandoned, report.received), (1, 0, 1));
    assert_eq!(report.last[0].outcome, Outcome::Dropped);
}

#[tokio::test]
async fn a_hanging_request_ends_when_the_client_gives_up() {
    let rig = scripted(vec![Rule {
        hang: true,
        ..Rule::default()
    }])
    .await;
    let request = rig
        .post("/hook", "1", "domain.created")
        .timeout(Duration::from_secs(3));
    let (sent, pending) = tokio::join!(request.send(), rig.report_when(|report| report.in_flight == 1));
    assert!(sent.unwrap_err().is_timeout());
    assert_eq!(pending.last[0].outcome, Outcome::Pending);
    let report = rig.report_when(|report| report.abandoned == 1).await;
    assert_eq!(
        (report.in_flight, report.last[0].outcome),
        (0, Outcome::Abandoned)
    );
}

#[tokio::test]
async fn a_delay_is_waited_out() {
    let rig = scripted(vec![Rule {
        delay_millis: Some(150),
        ..Rule::answering(204)
    }])
    .await;
    let started = Instant::now();
    assert_eq!(rig.status("1", "domain.created").await, 204);
    assert!(
        started.elapsed() >= Duration::from_millis(150),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn bodies_have_the_size_asked_for() {
    let rig = scripted(vec![Rule {
        body_bytes: Some(200_000),
        ..Rule::answering(500)
    }])
    .await;
    let response = rig.post("/hook", "1", "domain.created").send().await.unwrap();
    assert_eq!(response.content_length(), Some(200_000));
    assert_eq!(response.bytes().await.unwrap().len(), 200_000);
    rig.control(r#"{"rules": [{"body": "so sorry", "status": 400}]}"#)
        .await;
    let response = rig.post("/hook", "2", "domain.created").send().await.unwrap();
    assert_eq!(
        (
            response.status().as_u16(),
            response.text().await.unwrap().as_str()
        ),
        (400, "so sorry")
    );
}

/// Reads from a plain connection until `enough`; returns how many bytes came.
fn read_until(rig: &Rig, enough: impl Fn(usize, Duration) -> bool) -> usize {
    let mut stream = TcpStream::connect(rig.running.addr()).unwrap();
    stream
        .write_all(b"POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        .unwrap();
    let (started, mut total, mut buffer) = (Instant::now(), 0, vec![0; 65_536]);
    while !enough(total, started.elapsed()) {
        match stream.read(&mut buffer).unwrap() {
            0 => panic!("it ended after {total} bytes"),
            read => total += read,
        }
    }
    total
}

#[tokio::test]
async fn an_endless_body_goes_on_until_the_reader_leaves() {
    let rig = scripted(vec![Rule {
        endless: true,
        ..Rule::default()
    }])
    .await;
    assert!(read_until(&rig, |total, _| total > 20_000_000) > 20_000_000);
}

#[tokio::test]
async fn a_trickling_body_comes_byte_by_byte() {
    let rig = scripted(vec![Rule {
        byte_millis: Some(20),
        body_bytes: Some(10_000_000_000),
        ..Rule::default()
    }])
    .await;
    let total = read_until(&rig, |_, elapsed| elapsed > Duration::from_millis(400));
    assert!((5..1_000).contains(&total), "{total}");
}
