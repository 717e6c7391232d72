//! Each row of the outcome table, from the answer to the notification, the attempt, the subscription and the mails.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::Clock;
use domain::notification::NotificationStatus::{self, Failed, Retry, Sent};
use engine::webhook::Lane;
use simulators::receiver::Rule;
use testkit::{Installation, eventually};
use tokio::net::TcpSocket;

use crate::rig::{Rig, frozen, row};

/// Where a retry is put off to, counted from now.
type Window = Option<(TimeDelta, TimeDelta)>;

struct Case {
    name: String,
    rule: Option<Rule>,
    url: Option<String>,
    status: NotificationStatus,
    /// The kind of the error and the fingerprint; `None` for a success.
    error: Option<(&'static str, String)>,
    state: &'static str,
    window: Window,
    /// The longest time for the attempt: long where an answer comes to its end, since a slow machine takes its time.
    timeout_millis: i32,
}

const LONG: i32 = 20_000;

/// A quarter less or more than half a minute.
fn backoff() -> Window {
    Some((TimeDelta::milliseconds(22_499), TimeDelta::milliseconds(37_501)))
}

fn answering(rule: Rule, status: NotificationStatus) -> Case {
    let code = rule.status.expect("an answer has a status");
    let error = (status != Sent).then(|| ("HTTP", format!("delivery/http/{code}/empty")));
    Case {
        name: format!("answer-{code}"),
        rule: Some(rule),
        url: None,
        status,
        error,
        state: "ACTIVE",
        window: if status == Retry { backoff() } else { None },
        timeout_millis: LONG,
    }
}

fn failing(name: &str, rule: Option<Rule>, url: Option<String>, kind: &'static str) -> Case {
    Case {
        name: name.to_owned(),
        rule,
        url,
        status: Retry,
        error: Some((kind, format!("delivery/{}", kind.to_lowercase()))),
        state: "ACTIVE",
        window: backoff(),
        timeout_millis: LONG,
    }
}

fn with_header(mut rule: Rule, name: &str, value: String) -> Rule {
    rule.headers = BTreeMap::from([(name.to_owned(), value)]);
    rule
}

fn put_off(status: u16, retry_after: &str, seconds: i64) -> Case {
    let rule = with_header(Rule::answering(status), "Retry-After", retry_after.to_owned());
    let mut case = answering(rule, Retry);
    case.name = format!(
        "answer-{status}-after-{}",
        retry_after.replace([' ', ',', ':'], "-")
    );
    case.window = Some((TimeDelta::seconds(seconds - 1), TimeDelta::seconds(seconds)));
    case
}

#[derive(sqlx::FromRow)]
struct Outcome {
    id: uuid::Uuid,
    error_type: Option<String>,
    fingerprint: Option<String>,
    error: Option<String>,
    attempt: String,
    response_status: Option<i32>,
    state: String,
    failing: bool,
    dead_letters: i64,
    mails: i64,
}

/// Runs all cases at once, each with a subscription of its own to one event.
async fn run(rig: &Rig, now: DateTime<Utc>, clock: std::sync::Arc<dyn Clock>, cases: Vec<Case>) {
    let mut rules = vec![Rule::answering(200).at("/target")];
    let mut subscriptions = BTreeMap::new();
    for case in cases {
        let path = format!("/{}", case.name);
        rules.extend(case.rule.clone().map(|rule| rule.at(path.clone())));
        let url = case.url.clone().unwrap_or_else(|| rig.receiver.url(&path));
        let subscription = rig.subscription().url(&url).timeout_millis(case.timeout_millis);
        subscriptions.insert(subscription.make(&rig.it.pool).await, case);
    }
    rig.script(rules);
    let engine = rig.start_at(Lane::First, clock).await;
    let fanned = rig.send(1).await;
    assert_eq!(fanned.len(), subscriptions.len());
    eventually("every attempt to be over", async || {
        (rig.count(NotificationStatus::InMemory).await == 0).then_some(())
    })
    .await;
    engine.stop().await;
    for (subscription, case) in subscriptions {
        let outcome: Outcome = sqlx::query_as(
            "SELECT n.id, a.error_type, a.fingerprint, a.error, a.status AS attempt, a.response_status, s.state,
                    s.failing_since IS NOT NULL AS failing,
                    (SELECT count(*) FROM dead_letters d WHERE d.notification_id = n.id) AS dead_letters,
                    (SELECT count(*) FROM emails e WHERE e.subscription_id = s.id) AS mails
             FROM notifications n JOIN subscriptions s ON s.id = n.subscription_id
             JOIN delivery_attempts a ON a.notification_id = n.id WHERE s.id = $1",
        )
        .bind(subscription)
        .fetch_one(&rig.it.pool)
        .await
        .expect("there is one attempt");
        check(rig, now, &case, outcome).await;
    }
    assert!(rig.arrived_at("/target").is_empty(), "a redirect was followed");
}

async fn check(rig: &Rig, now: DateTime<Utc>, case: &Case, outcome: Outcome) {
    let name = &case.name;
    let row = row(&rig.it.pool, outcome.id.into()).await;
    let error = outcome.error.as_deref().unwrap_or_default();
    assert_eq!(row.status, case.status.as_str(), "{name}: {error}");
    assert_eq!(row.attempts, 1, "{name}");
    let found = outcome.error_type.as_deref().zip(outcome.fingerprint.clone());
    assert_eq!(found, case.error, "{name}: {error}");
    assert_eq!(
        outcome.attempt,
        if case.error.is_none() { "OK" } else { "ERROR" },
        "{name}"
    );
    assert_eq!(outcome.failing, case.error.is_some(), "{name}");
    assert_eq!(outcome.state, case.state, "{name}");
    assert_eq!(outcome.dead_letters, i64::from(case.status == Failed), "{name}");
    // About the state of the subscription, or about what its endpoint refused.
    let told = case.state != "ACTIVE" || case.status == Failed;
    assert_eq!(outcome.mails, i64::from(told), "{name}");
    let answered = case.rule.as_ref().and_then(|rule| rule.status).map(i32::from);
    assert_eq!(outcome.response_status, answered, "{name}");
    let delay = row.next_attempt_at.map(|at| at - now);
    match (delay, case.window) {
        (None, None) => {}
        (Some(delay), Some((least, most))) if delay >= least && delay <= most => {}
        other => panic!("{name}: {other:?}"),
    }
    if case.url.is_none() {
        assert_eq!(rig.arrived_at(&format!("/{name}")).len(), 1, "{name}");
    }
}

#[testkit::test]
async fn every_answer_has_its_row_in_the_outcome_table(it: Installation) {
    let rig = Rig::new(it).await;
    let clock = frozen();
    let now = clock.now();
    let mut cases = Vec::new();
    for code in [200, 201, 202, 204, 299] {
        cases.push(answering(Rule::answering(code), Sent));
    }
    for code in [301, 302, 303, 307, 308, 410] {
        let rule = with_header(Rule::answering(code), "Location", rig.receiver.url("/target"));
        let mut case = answering(rule, Failed);
        case.state = "DEACTIVATED";
        cases.push(case);
    }
    for code in [400, 401, 402, 403, 404, 405, 409, 413, 415, 422, 451] {
        cases.push(answering(Rule::answering(code), Failed));
    }
    for code in [408, 425, 429, 500, 501, 502, 503, 504, 599] {
        cases.push(answering(Rule::answering(code), Retry));
    }
    for code in [408, 425, 429, 503] {
        cases.push(put_off(code, "120", 120));
        let date = (now + TimeDelta::seconds(600))
            .format("%a, %d %b %Y %H:%M:%S GMT")
            .to_string();
        cases.push(put_off(code, &date, 600));
    }
    cases.push(put_off(429, "8640000", 86_400));
    let mut unreadable = put_off(429, "soon", 0);
    unreadable.window = backoff();
    cases.push(unreadable);
    run(&rig, now, clock, cases).await;
}

#[testkit::test]
async fn the_strict_reading_retries_no_4xx(mut it: Installation) {
    it.config.reseller.retry.strict_client_errors = true;
    let rig = Rig::new(it).await;
    let clock = frozen();
    let mut cases = Vec::new();
    for code in [400, 408, 425, 429, 499] {
        cases.push(answering(Rule::answering(code), Failed));
    }
    cases.push(answering(Rule::answering(503), Retry));
    cases.push(answering(Rule::answering(200), Sent));
    run(&rig, clock.now(), clock, cases).await;
}

#[testkit::test]
async fn a_subscription_says_for_how_long_and_whether_refusals_are_tried_again(it: Installation) {
    let rig = Rig::new(it).await;
    let clock = frozen();
    let patient = rig.subscription().make(&rig.it.pool).await;
    rig.subscription().make(&rig.it.pool).await;
    sqlx::query("UPDATE subscriptions SET retry_plan = 'DAY', retry_client_errors = true WHERE id = $1")
        .bind(patient)
        .execute(&rig.it.pool)
        .await
        .expect("the row is changed");
    rig.script(vec![Rule::answering(401).first(2), Rule::answering(503)]);
    let engine = rig.start_at(Lane::First, clock.clone()).await;
    let refused = rig.send(1).await;
    rig.count_becomes(Retry, 1).await;
    rig.count_becomes(Failed, 1).await;
    engine.stop().await;
    let told: Vec<(uuid::Uuid, bool)> = sqlx::query_as(
        "SELECT subscription_id, (data ->> 'retried')::boolean FROM emails WHERE kind = 'DELIVERY_REFUSED' ORDER BY 2 DESC",
    )
    .fetch_all(&rig.it.pool)
    .await
    .expect("mails are read");
    assert_eq!(told.iter().map(|mail| mail.1).collect::<Vec<_>>(), [true, false]);
    assert_eq!(told[0].0, patient, "told although it is tried again");
    let again = refused
        .iter()
        .find(|one| one.subscription_id == patient)
        .expect("there is one");

    // The attempt after the configured retries.
    sqlx::query("UPDATE notifications SET attempts = 3, next_attempt_at = $1 WHERE status = 'RETRY'")
        .bind(clock.now())
        .execute(&rig.it.pool)
        .await
        .expect("the row is changed");
    let engine = rig.start_at(Lane::Retry, clock.clone()).await;
    assert_eq!(rig.promote(clock.now()).await, 1);
    eventually("the attempt after the configured retries", async || {
        let row = row(&rig.it.pool, again.id).await;
        (row.attempts == 4 && row.status != "IN_MEMORY").then_some(())
    })
    .await;
    let row = row(&rig.it.pool, again.id).await;
    assert_eq!(row.status, "RETRY", "a day has more");
    let wait = row.next_attempt_at.expect("it is tried again") - clock.now();
    assert!((24..=40).contains(&wait.num_minutes()), "{wait}");
    engine.stop().await;
}

#[testkit::test]
async fn whatever_keeps_an_answer_from_coming_is_tried_again(it: Installation) {
    let rig = Rig::new(it).await;
    let clock = frozen();
    // Has the port, so that no other process gets it, and takes no connections.
    let silent = TcpSocket::new_v4().expect("a socket");
    silent
        .bind("127.0.0.1:0".parse().expect("an address"))
        .expect("a free port");
    let refusing = format!("http://{}/", silent.local_addr().expect("an address"));
    let hang = Rule {
        hang: true,
        ..Rule::default()
    };
    let drop_it = Rule {
        drop: true,
        ..Rule::default()
    };
    let tls_to_plain = rig.receiver.url("/").replace("http://", "https://");
    let cases = vec![
        Case {
            timeout_millis: 1_500,
            ..failing("hangs", Some(hang), None, "TIMEOUT")
        },
        failing("closes", Some(drop_it), None, "CONNECT"),
        failing("refuses", None, Some(refusing), "CONNECT"),
        failing("plain", None, Some(tls_to_plain), "TLS"),
        failing(
            "nowhere",
            None,
            Some("https://does-not-exist.invalid/".to_owned()),
            "DNS",
        ),
        failing("private", None, Some("https://10.0.0.1/".to_owned()), "EGRESS"),
        failing(
            "metadata",
            None,
            Some("http://169.254.169.254/".to_owned()),
            "EGRESS",
        ),
        failing("nonsense", None, Some("no url at all".to_owned()), "EGRESS"),
    ];
    run(&rig, clock.now(), clock, cases).await;
}

#[testkit::test]
async fn the_status_decides_even_if_the_body_never_ends(it: Installation) {
    let rig = Rig::new(it).await;
    let clock = frozen();
    let endless = |code, byte_millis, status| {
        let rule = Rule {
            endless: true,
            byte_millis,
            ..Rule::answering(code)
        };
        let case = answering(rule, status);
        Case {
            timeout_millis: 5_000,
            error: case
                .error
                .map(|(kind, _)| (kind, format!("delivery/http/{code}/text"))),
            ..case
        }
    };
    let cases = vec![
        endless(200, None, Sent),
        endless(201, Some(50), Sent),
        endless(404, Some(50), Failed),
        endless(500, None, Retry),
    ];
    run(&rig, clock.now(), clock, cases).await;
}
