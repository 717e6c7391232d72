//! The client against the simulator: both must mean the same protocol.

use std::time::Duration;

use domain::push::SendOutcome;
use http_client::{Pacer, SwrveClient, SwrveSettings};
use simulators::swrve::{Options, ResponseTime, Running, SwrveSim, parse_script};
use tokio::net::TcpListener;

use crate::swrve::LONG;

async fn start(script: &[u8]) -> (Running, SwrveClient) {
    let options = Options {
        response_time: ResponseTime::Fixed(Duration::ZERO),
        script: parse_script(script).unwrap(),
        ..Options::default()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let simulator = SwrveSim::start(listener, options).unwrap();
    let url = format!("http://{}", simulator.addr());
    (
        simulator,
        SwrveClient::new(&SwrveSettings {
            url,
            timeout: LONG,
            test: true,
        })
        .unwrap(),
    )
}

#[tokio::test]
async fn a_push_arrives_as_it_was_sent() {
    let (simulator, client) = start(b"[]").await;
    let reply = client.send("key", "device", "Olá & tchau", None).await;
    assert_eq!(reply.outcome, SendOutcome::Delivered);
    let received = simulator.received(0, 10).items.remove(0);
    assert_eq!(
        (received.push_key.as_str(), received.user.as_str()),
        ("key", "device")
    );
    assert_eq!((received.message.as_str(), received.test), ("Olá & tchau", true));
}

#[tokio::test]
async fn scripted_failures_have_their_outcomes() {
    let (_simulator, client) = start(
        br#"[{"match": {"user": "limited"}, "status": 429, "code": 4290, "message": "slow down"},
             {"match": {"user": "broken"}, "status": 502, "body": "<html>"},
             {"match": {"user": "gone"}, "drop": true}]"#,
    )
    .await;
    let outcome = async |user| client.send("key", user, "m", None).await.outcome;
    let limited = SendOutcome::Refused {
        status: 429,
        code: Some(4290),
        message: "slow down".to_owned(),
    };
    assert_eq!(outcome("limited").await, limited);
    let broken = SendOutcome::Refused {
        status: 502,
        code: None,
        message: "502 Bad Gateway".to_owned(),
    };
    assert_eq!(outcome("broken").await, broken);
    assert!(matches!(outcome("gone").await, SendOutcome::Unreachable { .. }));
}

#[tokio::test]
async fn watched_sends_start_at_their_distance_and_arrive_complete() {
    let (simulator, client) = start(b"[]").await;
    let delay = Duration::from_millis(4);
    let mut pacer = Pacer::new(delay).unwrap();
    for number in 0..20 {
        let mut push = client.prepare("key", &format!("device-{number}"), "m", None);
        let hand_over = push.hand_over(|| true);
        let start = pacer.turn().await.start();
        assert!(start.gap.is_none_or(|gap| gap >= delay));
        let send = tokio::spawn(push.send());
        pacer.watch(hand_over);
        assert_eq!(send.await.unwrap().unwrap().outcome, SendOutcome::Delivered);
    }
    let report = simulator.report();
    assert_eq!((report.received, report.distinct_users), (20, 20));
}

#[tokio::test]
async fn a_send_that_is_not_permitted_any_more_when_its_connection_is_there_is_withheld() {
    let (simulator, client) = start(b"[]").await;
    for (number, permitted) in [false, true, false].into_iter().enumerate() {
        let mut push = client.prepare("key", &format!("device-{number}"), "m", None);
        let _hand_over = push.hand_over(move || permitted);
        let outcome = push.send().await.map(|reply| reply.outcome);
        assert_eq!(outcome, permitted.then_some(SendOutcome::Delivered));
    }
    let report = simulator.report();
    assert_eq!((report.received, report.accepted), (1, 1));
}
