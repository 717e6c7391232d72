//! The commands that go over the reseller portal, on all services.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::{any, get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use testkit::{Installation, eventually};
use tokio::net::TcpListener;

use super::json_line;
use crate::postrider::{Finished, postrider};
use crate::reseller::Lane;

/// Runs a command until it is not put off: the database may be too slow for the portal for a moment.
async fn call(lane: &Lane, arguments: &str) -> Finished {
    eventually("an answer", async || {
        let finished = lane.reseller(arguments).run();
        (!finished.stderr.contains("answered 503")).then_some(finished)
    })
    .await
}

async fn succeed(lane: &Lane, arguments: &str) -> String {
    let finished = call(lane, arguments).await;
    assert_eq!(finished.code, Some(0), "{arguments}: {finished:?}");
    finished.stdout
}

async fn document(lane: &Lane, arguments: &str) -> Value {
    let said = succeed(lane, &format!("{arguments} --json")).await;
    serde_json::from_str(&said).expect("JSON")
}

async fn refused(lane: &Lane, arguments: &str) -> String {
    let finished = call(lane, arguments).await;
    assert_eq!(finished.code, Some(1), "{arguments}: {finished:?}");
    finished.stderr
}

/// A verified subscription for everything; its identifier.
async fn subscribed(lane: &Lane) -> String {
    let url = lane.endpoint.url("/hook");
    let create = format!("subscriptions create --url {url} --event-types * --email ops@example.org --wait");
    let said = succeed(lane, &create).await;
    let mut lines = said.lines();
    let id = lines
        .next()
        .and_then(|line| line.strip_prefix("subscription "))
        .expect("an identifier");
    let secret = lines
        .next()
        .and_then(|line| line.strip_prefix("secret "))
        .expect("a secret");
    assert!(secret.starts_with("whsec_"), "{said}");
    id.to_owned()
}

#[testkit::test]
async fn a_subscription_is_made_shown_changed_and_deleted(it: Installation) {
    let lane = Lane::start(&it).await;
    let id = subscribed(&lane).await;
    let shown = succeed(&lane, &format!("subscriptions show {id}")).await;
    assert!(shown.contains("ACTIVE") && shown.contains("/hook"), "{shown}");
    succeed(
        &lane,
        &format!("subscriptions update {id} --event-types domain.*,contact.deleted"),
    )
    .await;
    let listed = document(&lane, "subscriptions list").await;
    assert_eq!(
        listed["items"][0]["eventTypes"],
        serde_json::json!(["domain.*", "contact.deleted"])
    );
    for (action, wanted) in [
        ("pause", "ACTIVE (VERIFIED), paused"),
        ("resume", "ACTIVE (VERIFIED)\n"),
        ("deactivate --yes", "DEACTIVATED"),
        ("activate --wait", "ACTIVE"),
    ] {
        let said = succeed(&lane, &format!("subscriptions {action} {id}")).await;
        assert!(said.contains(wanted), "{action}: {said}");
    }
    let state = refused(&lane, &format!("subscriptions verify {id}")).await;
    assert!(state.contains("409"), "{state}");
    let nothing = refused(&lane, &format!("subscriptions update {id}")).await;
    assert!(nothing.contains("--event-types"), "{nothing}");
    let fields = refused(
        &lane,
        "subscriptions create --url x --event-types nothing --email y",
    )
    .await;
    assert!(
        fields.contains("url ") && fields.contains("eventTypes") && fields.contains("email "),
        "{fields}"
    );
    let asked = refused(&lane, &format!("subscriptions delete {id}")).await;
    assert!(
        asked.contains(&format!("delete the subscription {id} to http"))
            && asked.contains("nothing more is sent to it")
            && asked.contains("add --yes"),
        "{asked}"
    );
    succeed(&lane, &format!("subscriptions show {id}")).await;
    succeed(&lane, &format!("subscriptions delete {id} --yes")).await;
    let gone = refused(&lane, &format!("subscriptions show {id}")).await;
    assert!(
        gone.contains("404") && gone.contains("`postrider subscriptions list`"),
        "{gone}"
    );
}

#[testkit::test]
async fn notifications_are_listed_sent_again_and_replayed(it: Installation) {
    let lane = Lane::start(&it).await;
    let id = subscribed(&lane).await;
    let sent = succeed(&lane, &format!("subscriptions test {id} --wait")).await;
    let notification = sent.trim();
    let listed = document(
        &lane,
        &format!("notifications list {id} --status SENT --newer-than 1h"),
    )
    .await;
    assert_eq!(listed["items"][0]["id"], notification);
    let shown = succeed(&lane, &format!("notifications show {notification}")).await;
    assert!(shown.contains("\"type\": \"postrider.test\""), "{shown}");
    succeed(&lane, &format!("resend {notification} --wait")).await;
    let attempts = document(&lane, &format!("attempts {notification}")).await;
    assert!(
        attempts["items"].as_array().is_some_and(|items| items.len() >= 2),
        "{attempts}"
    );
    assert_eq!(attempts["items"][0]["response"]["status"], 200);
    // What the endpoint refuses is FAILED, and a replay sends it again.
    lane.endpoint
        .script(vec![simulators::receiver::Rule::answering(400).first(1)])
        .expect("a rule");
    lane.send("refused once").await;
    let path = format!("notifications list {id} --status FAILED");
    eventually("the refusal", async || {
        let failed = document(&lane, &path).await;
        (failed["items"].as_array()?.len() == 1).then_some(())
    })
    .await;
    let replay = document(&lane, &format!("replay {id} --newer-than 1h --wait")).await;
    assert_eq!(
        (&replay["status"], &replay["replayed"]),
        (&"COMPLETED".into(), &1.into())
    );
    assert_eq!(replay["outcome"]["delivered"], 1, "{replay}");
    // What fails again is told, and the exit code says it.
    let refusals = simulators::receiver::Rule::answering(400).first(2);
    lane.endpoint.script(vec![refusals]).expect("a rule");
    lane.send("refused twice").await;
    eventually("the refusal", async || {
        let failed = document(&lane, &path).await;
        (failed["items"].as_array()?.len() == 1).then_some(())
    })
    .await;
    let again = format!("replay {id} --newer-than 1h --wait --outcome-within 5m");
    let again = call(&lane, &again).await;
    let told = "0 delivered, 0 waiting, 1 failed again";
    assert!(again.code == Some(4) && again.stdout.contains(told), "{again:?}");
    for (answer, count) in [
        ("--code 400", 1),
        ("--code 4xx", 1),
        ("--code 5xx", 0),
        ("--code 400 --error http", 1),
        ("--error timeout", 0),
    ] {
        for of in ["", id.as_str()] {
            let listed = document(&lane, &format!("notifications list {of} {answer}")).await;
            let found = listed["items"].as_array().map(Vec::len);
            assert_eq!(found, Some(count), "{of} {answer}: {listed}");
        }
    }
    let unknown = refused(&lane, "resend 019aa2f0-5b1c-8025-9519-0863916ea2df").await;
    assert!(unknown.contains("404"), "{unknown}");
    for several in ["--status failed,sent", "--status FAILED --status SENT"] {
        let listed = document(&lane, &format!("notifications list {id} {several}")).await;
        let items = listed["items"].as_array().expect("items");
        for status in ["FAILED", "SENT"] {
            assert!(
                items.iter().any(|it| it["status"] == status),
                "{several}: {listed}"
            );
        }
    }
    let status = call(&lane, &format!("notifications list {id} --status FAILED,FALED")).await;
    assert_eq!(status.code, Some(2), "{status:?}");
    assert!(
        status.stderr.contains("GIVEN_UP") && status.stderr.contains("'FAILED'"),
        "{status:?}"
    );
}

#[testkit::test]
async fn real_notifications_are_brought_to_an_endpoint_that_nothing_can_reach(it: Installation) {
    let lane = Lane::start(&it).await;
    let id = subscribed(&lane).await;
    lane.send("before it listens").await;
    lane.arrived(1).await;
    let mut process = lane
        .reseller(&format!("listen --json --count 1 --subscription {id}"))
        .start();
    let introduction = json_line(&mut process);
    assert!(introduction["listening"].is_string(), "{introduction}");
    lane.send("for the laptop").await;
    let brought = json_line(&mut process);
    assert_eq!(brought["verdict"], "verified", "{brought}");
    let body = brought["body"].as_str().expect("a body");
    assert!(body.contains("for the laptop"), "{body}");
    assert_eq!(process.end().await, Some(0));
    eventually("the subscription's own endpoint to have it as well", async || {
        let received = lane.endpoint.received(0, usize::MAX).items;
        let is_there = received.iter().any(|one| one.body.contains("for the laptop"));
        is_there.then_some(())
    })
    .await;
    let mut process = lane
        .reseller(&format!(
            "listen --json --count 1 --subscription {id} --newer-than 1h"
        ))
        .start();
    json_line(&mut process);
    let oldest = json_line(&mut process);
    let body = oldest["body"].as_str().expect("a body");
    assert!(body.contains("before it listens"), "{body}");
    assert_eq!(process.end().await, Some(0));
    let unknown = refused(
        &lane,
        "listen --subscription 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d",
    )
    .await;
    assert!(unknown.contains("404"), "{unknown}");
}

#[testkit::test]
async fn secrets_are_rotated_and_quotas_asked_for(it: Installation) {
    let lane = Lane::start(&it).await;
    let (id, _) = lane.subscribe().await;
    let rotated = succeed(&lane, &format!("secrets rotate {id}")).await;
    assert!(
        rotated.trim().starts_with("whsec_") && rotated.lines().count() == 1,
        "{rotated}"
    );
    let listed = document(&lane, &format!("secrets list {id}")).await;
    let secrets = listed["items"].as_array().expect("a list").clone();
    assert!(
        secrets.len() == 2 && !listed.to_string().contains("whsec_"),
        "{listed}"
    );
    let (new, old) = (secrets[0]["id"].as_str(), secrets[1]["id"].as_str());
    succeed(
        &lane,
        &format!("secrets revoke {id} {} --yes", old.expect("an identifier")),
    )
    .await;
    let last = refused(
        &lane,
        &format!("secrets revoke {id} {} --yes", new.expect("an identifier")),
    )
    .await;
    assert!(last.contains("make a new one first"), "{last}");
    succeed(
        &lane,
        &format!("quota request {id} --daily-quota 2000000 --reason merger"),
    )
    .await;
    let shown = succeed(&lane, &format!("quota show {id}")).await;
    assert!(
        shown.contains("left today") && shown.contains("REQUESTED"),
        "{shown}"
    );
    let types = succeed(&lane, "events list").await;
    assert!(types.contains("domain.transfer.completed"), "{types}");
    keys_are_asked_for(&lane).await;
}

#[testkit::test]
async fn what_stands_around_deliveries_is_looked_at(it: Installation) {
    let lane = Lane::start(&it).await;
    let (id, secret) = lane.subscribe().await;
    let states = document(&lane, &format!("subscriptions states {id}")).await;
    assert_eq!(states["items"][0]["state"], "ACTIVE", "{states}");
    let states = succeed(&lane, &format!("subscriptions states {id}")).await;
    assert!(states.contains("PENDING_VERIFICATION"), "{states}");
    let mails = document(&lane, "activity --mails").await;
    assert!(mails["items"].is_array(), "{mails}");
    let limits = succeed(&lane, "limits").await;
    assert!(
        limits.contains("notifications a day") && limits.contains("retries, plan DAY"),
        "{limits}"
    );
    let days = document(&lane, &format!("quota days {id}")).await;
    assert_eq!(days["days"].as_array().map(Vec::len), Some(28), "{days}");
    let days = call(&lane, &format!("quota days {id}")).await;
    assert!(days.stderr.contains("the busiest of these days"), "{days:?}");
    assert_eq!(document(&lane, "portal-links visits").await["items"], json!([]));
    let framed = "portal-links create --parent-origin https://elsewhere.example --landing /app/deliveries --time-zone Mars";
    let told = refused(&lane, framed).await;
    assert!(
        told.contains("parentOrigin") && told.contains("timeZone"),
        "{told}"
    );
    let none = refused(&lane, "portal-links end --all").await;
    assert!(none.contains("no such visit goes on"), "{none}");
    for (signed_with, code, verdict) in [
        (secret.as_str(), 0, "verified: kept"),
        (
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            1,
            "NOT VERIFIED (no_match)",
        ),
    ] {
        let kept = postrider(&format!(
            "trigger domain.created --id kept --to http://x --secret {signed_with} --dry-run --json"
        ))
        .run();
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), &kept.stdout).expect("it is written");
        let path = file.path().display();
        let judged = call(&lane, &format!("verify --request {path} --subscription {id}")).await;
        assert_eq!(judged.code, Some(code), "{judged:?}");
        assert!(
            judged.stdout.contains(verdict) && !judged.stdout.contains(&secret),
            "{judged:?}"
        );
    }
}

#[testkit::test]
async fn a_subscription_is_changed_only_as_it_was_read(it: Installation) {
    let lane = Lane::start(&it).await;
    let (id, _) = lane.subscribe().await;
    let version = async || {
        let shown = succeed(&lane, &format!("subscriptions show {id} -o tsv")).await;
        let version = shown.lines().find_map(|line| line.strip_prefix("version\t"));
        version.expect("a version").to_owned()
    };
    let read = version().await;
    let update = format!("subscriptions update {id} --if-version {read}");
    succeed(&lane, &format!("{update} --timeout-millis 4000")).await;
    assert_ne!(version().await, read);
    let stale = refused(&lane, &format!("{update} --timeout-millis 3000")).await;
    assert!(
        stale.contains("was changed meanwhile") && stale.contains(r#"timeoutMillis is "4000""#),
        "{stale}"
    );
    succeed(&lane, &format!("subscriptions update {id} --timeout-millis 3000")).await;
}

/// A caller with the wrong key, or the wrong address, is told which.
async fn keys_are_asked_for(lane: &Lane) {
    let unreachable = postrider("subscriptions list")
        .env("PORTAL_URL", "http://127.0.0.1:1")
        .env("RESELLER_KEY", "pr_x")
        .run();
    for said in ["is it running?", "PORTAL_URL or --portal-url sets its address"] {
        assert!(unreachable.stderr.contains(said), "{unreachable:?}");
    }
    let stranger = refused(lane, "subscriptions list --reseller-key pr_x").await;
    assert!(
        stranger.contains("the API key is not accepted; check RESELLER_KEY"),
        "{stranger}"
    );
}

/// A portal that answers as `router` does; its address.
pub(crate) async fn pretended(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(axum::serve(listener, router).into_future());
    url
}

const SUBSCRIPTION: &str = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
const REPLAY: &str = "01a1fd84-191a-7187-8c92-644d9a28fa8b";

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_replay_that_stands_still_ends_the_wait_with_the_reason() {
    let replay = || {
        let replay = json!({"id": REPLAY, "subscriptionId": SUBSCRIPTION, "status": "RUNNING", "examined": 0, "replayed": 0});
        async { Json(replay) }
    };
    for (subscription, wanted) in [
        (
            json!({"state": "DEACTIVATED", "stateReason": "GONE"}),
            "subscriptions activate",
        ),
        (json!({"state": "PENDING_VERIFICATION"}), "subscriptions verify"),
        (
            json!({"state": "ACTIVE", "pausedAt": "2026-11-21T12:00:00Z"}),
            "you have paused it",
        ),
        (
            json!({"state": "DEGRADED", "heldAt": "2026-11-21T12:00:00Z"}),
            "the operators have paused it",
        ),
    ] {
        let mut subscription = subscription;
        subscription["id"] = SUBSCRIPTION.into();
        let shown = subscription.clone();
        let router = Router::new()
            .route("/subscriptions/{id}", get(async || Json(shown)))
            .route("/subscriptions/{id}/replays", post(replay))
            .route("/subscriptions/{id}/replays/{replay}", get(replay));
        let url = pretended(router).await;
        let command =
            format!("replay {SUBSCRIPTION} --newer-than 1h --wait --reseller-key x --portal-url {url}");
        let finished = postrider(&command).run();
        assert_eq!(finished.code, Some(4), "{finished:?}");
        assert!(finished.stderr.contains(wanted), "{subscription}: {finished:?}");
        let ends = format!("postrider replays cancel {SUBSCRIPTION} {REPLAY}");
        assert!(
            finished.stderr.contains(&ends) && finished.stdout.is_empty(),
            "{finished:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_challenge_that_comes_too_early_is_asked_for_again_when_the_portal_wants_it() {
    let asked = Arc::new(AtomicU32::new(0));
    let counted = asked.clone();
    let subscription = |state: &str, failed: u32| {
        let verification = json!({"failedAttempts": failed, "error": "it answered 404", "nextAttemptAt": "2026-11-21T12:00:00Z"});
        Json(
            json!({"id": SUBSCRIPTION, "state": state, "stateReason": "CREATED", "verification": verification}),
        )
    };
    let verify = async move || {
        if counted.fetch_add(1, Ordering::SeqCst) < 2 {
            let problem = json!({"detail": "the endpoint was challenged a moment ago"});
            return (
                StatusCode::TOO_MANY_REQUESTS,
                [("retry-after", "1")],
                Json(problem),
            )
                .into_response();
        }
        subscription("PENDING_VERIFICATION", 3).into_response()
    };
    let looked = AtomicU32::new(0);
    let show = async move || match looked.fetch_add(1, Ordering::SeqCst) {
        0 => subscription("PENDING_VERIFICATION", 3),
        1 => subscription("PENDING_VERIFICATION", 4),
        _ => subscription("ACTIVE", 4),
    };
    let show = Arc::new(show);
    let router = Router::new()
        .route("/subscriptions/{id}", get(async move || show().await))
        .route("/subscriptions/{id}/verify", post(async move || verify().await));
    let url = pretended(router).await;
    let command = format!("subscriptions verify {SUBSCRIPTION} --wait --reseller-key x --portal-url {url}");
    let finished = postrider(&command).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let told: Vec<_> = finished.stderr.lines().collect();
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    assert_eq!(told.len(), 3, "what is new, once each: {finished:?}");
    assert!(
        told[0].contains("challenged a moment ago") && told[0].contains("in 1 s"),
        "{told:?}"
    );
    assert!(told[1].contains("challenge 4 was not met"), "{told:?}");
    assert!(
        finished.stdout.contains(": ACTIVE") && !finished.stdout.contains("PENDING"),
        "what a script reads is how it ended: {finished:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_address_is_confirmed_with_its_code() {
    let confirm = async |Json(body): Json<Value>| {
        assert_eq!(body, json!({"code": "5F0C81A94D"}));
        Json(json!({"id": SUBSCRIPTION, "email": "ops@reseller.example"}))
    };
    let router = Router::new()
        .route("/subscriptions/{id}/email/confirm", post(confirm))
        .route(
            "/subscriptions/{id}/email/resend",
            post(async || StatusCode::ACCEPTED),
        );
    let url = pretended(router).await;
    let command = format!("subscriptions confirm {SUBSCRIPTION} --reseller-key x --portal-url {url}");
    let confirmed = postrider(&format!("{command} --code 5F0C81A94D")).run();
    assert_eq!(confirmed.code, Some(0), "{confirmed:?}");
    assert_eq!(
        confirmed.stdout,
        format!("{SUBSCRIPTION}: ops@reseller.example is confirmed\n")
    );
    let sent = postrider(&format!("{command} --send-again")).run();
    assert!(
        sent.code == Some(0) && sent.stderr.contains("--code CODE"),
        "{sent:?}"
    );
    for wrong in ["", " --code 1 --send-again"] {
        assert_eq!(
            postrider(&format!("{command}{wrong}")).run().code,
            Some(2),
            "{wrong}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wait_ends_with_its_time() {
    let notification = || async { Json(json!({"id": REPLAY, "status": "PENDING", "attempts": 0})) };
    let router = Router::new()
        .route("/notifications/{id}", get(notification))
        .route("/notifications/{id}/resend", post(notification));
    let url = pretended(router).await;
    let resend = format!("resend {REPLAY} --reseller-key x --portal-url {url} --within 1s");
    let finished = postrider(&format!("{resend} --wait")).run();
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(
        finished
            .stderr
            .contains("has not ended within 1s; `postrider attempts"),
        "{finished:?}"
    );
    let wrong = postrider(&resend).run();
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let timeless = postrider(&format!("replay {SUBSCRIPTION}")).run();
    assert!(
        timeless.code == Some(2) && timeless.stderr.contains("--newer-than"),
        "{timeless:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_no_portal_is_called_so_whatever_it_answers() {
    let router = Router::new()
        .route("/page/{*path}", any(async || "<html>It works!</html>"))
        .route("/null/{*path}", any(async || "null"))
        .route("/list/{*path}", any(async || "[]"));
    let url = pretended(router).await;
    let id = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
    for base in ["page", "null", "list"] {
        for command in [
            "subscriptions list".to_owned(),
            format!("quota show {id}"),
            format!("secrets rotate {id}"),
            format!("replay {id} --newer-than 1h"),
            "tail".to_owned(),
        ] {
            let finished = postrider(&format!("{command} --reseller-key x --portal-url {url}/{base}")).run();
            assert_eq!(finished.code, Some(1), "{base}: {command}: {finished:?}");
            assert!(finished.stderr.contains("check PORTAL_URL"), "{finished:?}");
            assert_eq!(finished.stdout, "", "{base}: {command}");
        }
    }
}
