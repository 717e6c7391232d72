//! `listen` and `trigger`, with each other.

use std::io::Write as _;
use std::net::TcpStream;

use axum::extract::Path;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::{SECRET, json_line, listen, pretended, url};
use crate::postrider::{Finished, postrider};

pub(super) fn trigger(arguments: &str) -> Finished {
    postrider(&format!("trigger {arguments}"))
        .env("SIGNING_SECRET", SECRET)
        .run()
}

#[tokio::test]
async fn what_is_triggered_is_verified_here_and_where_it_is_handed_on_to() {
    let (mut last, introduction) = listen(&format!("--secret {SECRET} --count 1"));
    let target = format!("{}/hooks?from=first", url(&introduction));
    let (mut first, introduction) = listen(&format!("--secret {SECRET} --count 1 --forward-to {target}"));
    let sent = trigger(&format!(
        "domain.created --to {}/anything --set domain.name=ünï.example --id order-17 --json",
        url(&introduction)
    ));
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let sent: Value = serde_json::from_str(&sent.stdout).expect("JSON");
    assert_eq!(sent["status"], 200);
    let (here, there) = (json_line(&mut first), json_line(&mut last));
    for arrived in [&here, &there] {
        assert_eq!(
            (&arrived["verdict"], &arrived["id"]),
            (&"verified".into(), &"order-17".into())
        );
        for member in ["id", "type", "body"] {
            assert_eq!(arrived[member], sent[member], "{member}");
        }
        for (name, value) in sent["headers"].as_object().expect("headers") {
            assert_eq!(&arrived["headers"][name], value, "{name}");
        }
    }
    let body: Value = serde_json::from_str(there["body"].as_str().expect("text")).expect("JSON");
    assert_eq!(body["data"]["domain"]["name"], "ünï.example");
    assert_eq!(
        (&here["forwarded"]["url"], &there["path"]),
        (&target.into(), &"/hooks?from=first".into())
    );
    // Each had its one request.
    assert_eq!((first.end().await, last.end().await), (Some(0), Some(0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_cancelled_before_it_was_tried_is_not_brought() {
    const SUBSCRIPTION: &str = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
    // The newest first, as the portal lists them.
    let rows = [
        ("SENT", Value::Null, 1),
        ("GIVEN_UP", "CANCELLED".into(), 1),
        ("GIVEN_UP", "CANCELLED".into(), 0),
    ];
    let items: Vec<Value> = (0..)
        .zip(rows)
        .map(|(number, (status, reason, attempts))| {
            json!({"id": format!("019aa2f0-5b1c-8025-9519-00000000000{number}"), "acceptedAt": "2999-01-01T00:00:00Z",
                   "status": status, "reason": reason, "attempts": attempts})
        })
        .collect();
    let list = json!({ "items": items });
    let show = async |Path(id): Path<String>| {
        let body =
            json!({"id": id, "type": "domain.created", "timestamp": "2026-11-21T12:00:00.000Z", "data": {}});
        Json(json!({"eventId": id, "body": body.to_string()}))
    };
    let router = Router::new()
        .route(
            "/subscriptions/{id}",
            get(async || Json(json!({"id": SUBSCRIPTION, "state": "ACTIVE"}))),
        )
        .route("/subscriptions/{id}/notifications", get(async move || Json(list)))
        .route("/notifications/{id}", get(show));
    let portal = pretended(router).await;
    let (mut process, _) = listen(&format!(
        "--count 2 --subscription {SUBSCRIPTION} --newer-than 1h --reseller-key x --portal-url {portal}"
    ));
    for last in [1, 0] {
        let brought = json_line(&mut process);
        let id = brought["id"].as_str().expect("an id");
        assert!(id.ends_with(&format!("0{last}")), "{brought}");
    }
    assert_eq!(process.end().await, Some(0));
}

#[tokio::test]
async fn a_secret_is_made_when_none_is_given_and_people_can_read_what_comes() {
    let mut process = postrider("listen --count 1").start();
    let url = process.line();
    let url = url
        .trim()
        .strip_prefix("listening on ")
        .expect("where it listens")
        .to_owned();
    let secret = process.line();
    let secret = secret
        .trim()
        .strip_prefix("secret ")
        .expect("a secret")
        .to_owned();
    let sent = postrider(&format!(
        "trigger contact.deleted --to {url} --id evt_1 --secret {secret}"
    ))
    .run();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(
        sent.stdout.starts_with(&format!(
            "sent contact.deleted evt_1 to {url}/\nanswered 200 OK in "
        )),
        "{sent:?}"
    );
    let head = process.line();
    assert!(
        head.contains("  verified  contact.deleted  evt_1  POST /  answered 200"),
        "{head}"
    );
    let rest = process.rest();
    assert!(
        rest.contains("    webhook-id: evt_1\n") && rest.contains("      \"contact\": {\n"),
        "{rest}"
    );
    assert_eq!(process.end().await, Some(0));
}

#[tokio::test]
async fn what_is_not_verified_gets_401_and_the_reason_is_shown() {
    let (mut process, introduction) = listen(&format!("--secret {SECRET} --count 2"));
    let to = url(&introduction);
    let stale = trigger(&format!("domain.created --to {to} --age 10m"));
    assert_eq!(stale.code, Some(1), "{stale:?}");
    assert!(stale.stdout.contains("answered 401 Unauthorized"), "{stale:?}");
    assert!(
        stale.stderr.contains("as it should be if --age is more"),
        "{stale:?}"
    );
    let line = json_line(&mut process);
    assert_eq!(
        (&line["verdict"], &line["status"]),
        (&"too_old".into(), &401.into())
    );
    assert_eq!(line["causes"][0]["code"], "too_old");
    let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let unknown = postrider(&format!("trigger domain.created --to {to} --secret {other}")).run();
    assert!(
        unknown.stderr.contains("does the endpoint know this secret?"),
        "{unknown:?}"
    );
    let line = json_line(&mut process);
    assert_eq!(
        (&line["verdict"], &line["causes"][0]["code"]),
        (&"no_match".into(), &"wrong_secret".into())
    );
    assert_eq!(process.end().await, Some(1));
}

#[tokio::test]
async fn answers_are_those_that_were_chosen() {
    let options = "--status 500,503,200 --status contact.*=410 --delay 1ms";
    let (process, introduction) = listen(&format!("--secret {SECRET} {options}"));
    let to = url(&introduction);
    let answers = [
        "domain.created",
        "contact.deleted",
        "host.created",
        "domain.created",
        "domain.created",
    ]
    .map(|event_type| {
        let sent = trigger(&format!("{event_type} --to {to} --json"));
        let document: Value = serde_json::from_str(&sent.stdout).expect("JSON");
        (document["status"].as_u64(), sent.code)
    });
    let failed = |status| (Some(status), Some(1));
    let wanted = [
        failed(500),
        failed(410),
        failed(503),
        (Some(200), Some(0)),
        (Some(200), Some(0)),
    ];
    assert_eq!(answers, wanted);
    assert_eq!(process.stop().await.0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_subscription_that_gets_nothing_is_told_when_it_begins() {
    const ID: &str = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
    let off = async || Json(json!({"id": ID, "state": "DEACTIVATED", "stateReason": "BY_RESELLER"}));
    let router = Router::new().route("/subscriptions/{id}", get(off)).route(
        "/subscriptions/{id}/notifications",
        get(async || Json(json!({"items": [], "next": null}))),
    );
    let portal = pretended(router).await;
    let (process, _) = listen(&format!(
        "--subscription {ID} --reseller-key x --portal-url {portal}"
    ));
    process.until_said(&format!("`postrider subscriptions activate {ID}` activates it"));
}

#[test]
fn a_challenge_is_answered_and_an_answer_without_it_is_told() {
    let (_process, introduction) = listen(&format!("--secret {SECRET}"));
    let met = trigger(&format!("postrider.verification --to {}", url(&introduction)));
    assert_eq!(met.code, Some(0), "{met:?}");
    // An endpoint that answers 200 to everything, as one does whose maker has not thought of challenges.
    let mut receiver = postrider("receive --listen 127.0.0.1:0 --answer postrider.verification=200").start();
    let to = receiver.line();
    let to = to.trim().strip_prefix("listening on ").expect("where it listens");
    let unmet = trigger(&format!("postrider.verification --to {to}"));
    assert_eq!(unmet.code, Some(1), "{unmet:?}");
    assert!(unmet.stderr.contains("does not hold the challenge"), "{unmet:?}");
}

#[test]
fn what_a_stranger_asks_for_steers_no_terminal() {
    let (process, introduction) = listen(&format!("--secret {SECRET}"));
    let address = url(&introduction)
        .strip_prefix("http://")
        .expect("an address")
        .trim_end_matches('/');
    let mut stranger = TcpStream::connect(address).expect("it listens");
    let request = "GET /a\u{9b}2J\u{202e}b HTTP/1.1\r\nhost: x\r\n\r\n";
    stranger.write_all(request.as_bytes()).expect("a request");
    process.until_said("GET /a\u{fffd}2J\u{fffd}b: answered 405");
}

#[test]
fn a_target_that_cannot_be_reached_is_a_502_that_says_why() {
    let (mut process, introduction) = listen(&format!("--secret {SECRET} --forward-to http://127.0.0.1:1/"));
    let sent = trigger(&format!("domain.created --to {}", url(&introduction)));
    assert!(sent.stdout.contains("answered 502"), "{sent:?}");
    let line = json_line(&mut process);
    let error = line["forwarded"]["error"].as_str().expect("an error");
    assert!(error.contains("failed to reach http://127.0.0.1:1/"), "{error}");
}

#[test]
fn nonsense_is_refused_with_what_to_do() {
    for (arguments, code, part) in [
        ("listen --secret whsec_c2hvcnQ=", 1, "copy it again"),
        ("listen --secrets-file /nowhere", 1, "/nowhere"),
        ("listen --status 42", 2, "between 200 and 599"),
        ("listen --delay 5", 2, "500ms or 2s"),
        ("listen --forward-to ftp://x", 1, "is no HTTP URL"),
        (
            "listen --forward-to http://x --status 500",
            2,
            "cannot be used with",
        ),
        ("trigger domain.created --to http://x", 1, "SIGNING_SECRET"),
        (
            "trigger domain.craeted --to http://x --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            1,
            "domain.created",
        ),
        (
            "trigger domain.created --to x --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            2,
            "--to",
        ),
        (
            "trigger domain.created --to http://x --set domain",
            2,
            "PATH=VALUE",
        ),
        (
            "trigger domain.created --to http://x --id a.b --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            1,
            "full stop",
        ),
        ("verify --request /nowhere --secret x", 1, "/nowhere"),
        (
            "trigger postrider.test --variant x --to http://x --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            1,
            "leave --variant out",
        ),
        ("subscriptions list", 1, "RESELLER_KEY"),
        (
            "subscriptions list --reseller-key x --portal-url portal.example",
            1,
            "no HTTP URL",
        ),
        ("subscriptions list --reseller-key ä", 1, "copy it again"),
        ("tail", 1, "postrider keys create"),
        ("tail order-17", 2, "`postrider subscriptions list`"),
    ] {
        let finished = postrider(arguments).run();
        assert_eq!(finished.code, Some(code), "{arguments}: {finished:?}");
        assert!(finished.stderr.contains(part), "{arguments}: {}", finished.stderr);
        assert!(!finished.stderr.contains("c2hvcnQ"), "{}", finished.stderr);
    }
}
