//! What commands for resellers tell of what waits, and what they leave out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::pretended;
use crate::postrider::{Finished, postrider};

pub(super) const SUBSCRIPTION: &str = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
pub(super) const OTHER: &str = "01a1fd84-191a-7187-8c92-644d9a28fa8b";

pub(super) fn run(command: &str, url: &str) -> Finished {
    postrider(&format!("{command} --reseller-key x --portal-url {url}")).run()
}

/// A notification that a pause holds back.
fn held() -> Value {
    json!({"id": OTHER, "subscriptionId": SUBSCRIPTION, "status": "PENDING", "attempts": 0, "pausedBy": "RESELLER"})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wait_for_what_is_paused_ends_with_the_reason() {
    let tested = async || Json(json!({"eventId": OTHER, "notificationId": OTHER}));
    let router = Router::new()
        .route("/subscriptions/{id}/test", post(tested))
        .route("/notifications/{id}/resend", post(async || Json(held())))
        .route("/notifications/{id}", get(async || Json(held())));
    let url = pretended(router).await;
    for command in [
        format!("subscriptions test {SUBSCRIPTION} --wait"),
        format!("resend {OTHER} --wait"),
    ] {
        let finished = run(&command, &url);
        assert_eq!(finished.code, Some(4), "{finished:?}");
        let mend = format!("postrider subscriptions resume {SUBSCRIPTION}");
        assert!(
            finished.stderr.contains("you have paused") && finished.stderr.contains(&mend),
            "{finished:?}"
        );
    }
    let told = run(&format!("subscriptions test {SUBSCRIPTION} --wait --json"), &url);
    let told: Value = serde_json::from_str(&told.stdout).expect("JSON");
    assert_eq!(
        (&told["notificationId"], &told["status"], &told["pausedBy"]),
        (&json!(OTHER), &json!("PENDING"), &json!("RESELLER"))
    );
    let sent = run(&format!("subscriptions test {SUBSCRIPTION}"), &url);
    assert!(
        sent.code == Some(0)
            && sent.stdout == format!("{OTHER}\n")
            && sent
                .stderr
                .contains("waits for the end of the pause: you have paused"),
        "{sent:?}"
    );
    let later = run(&format!("resend {OTHER}"), &url);
    assert!(
        later.code == Some(0)
            && later
                .stdout
                .contains("sent again after the pause: you have paused"),
        "{later:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_waited_for_is_told_once() {
    let sent = async || Json(json!({"id": OTHER, "status": "SENT", "attempts": 2}));
    let router = Router::new()
        .route("/notifications/{id}/resend", post(sent))
        .route("/notifications/{id}", get(sent));
    let url = pretended(router).await;
    let told = run(&format!("resend {OTHER} --wait"), &url);
    assert_eq!(
        told.stdout,
        format!("{OTHER} is SENT after 2 attempts\n"),
        "{told:?}"
    );
    assert!(!told.stderr.contains("SENT"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_test_event_is_of_the_type_and_variant_that_are_named() {
    let tested = async |Json(asked): Json<Value>| {
        Json(json!({"eventId": OTHER, "notificationId": OTHER, "asked": asked}))
    };
    let url = pretended(Router::new().route("/subscriptions/{id}/test", post(tested))).await;
    for (options, asked) in [
        ("", json!({})),
        ("--event-type domain.created", json!({"type": "domain.created"})),
        (
            "--event-type domain.created --variant court-order",
            json!({"type": "domain.created", "variant": "court-order"}),
        ),
    ] {
        let command = format!("subscriptions test {SUBSCRIPTION} --json {options}");
        let told = run(command.trim(), &url);
        let told: Value = serde_json::from_str(&told.stdout).expect("JSON");
        assert_eq!(told["asked"], asked);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_story_is_told_of_the_only_notification_of_an_event() {
    let list = async |uri: Uri| {
        let is_known = uri
            .query()
            .is_some_and(|query| query.contains("eventId=order-17"));
        let items = if is_known {
            json!([{"id": OTHER}])
        } else {
            json!([])
        };
        Json(json!({ "items": items, "next": null }))
    };
    let story = json!({"headline": {"text": "It was delivered."}, "story": [], "next": {"text": "Nothing."}, "waited": []});
    let router = Router::new().route("/notifications", get(list)).route(
        &format!("/notifications/{OTHER}/story"),
        get(async || Json(story)),
    );
    let url = pretended(router).await;
    let told = run("notifications story order-17", &url);
    assert!(
        told.code == Some(0) && told.stdout.contains("It was delivered.") && told.stderr.contains(OTHER),
        "{told:?}"
    );
    for unknown in ["example.org", SUBSCRIPTION] {
        let refused = run(&format!("notifications story {unknown}"), &url);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        for option in ["--event-id", "--value"] {
            let command = format!("`postrider notifications list {option} {unknown}`");
            assert!(refused.stderr.contains(&command), "{refused:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn of_an_event_that_became_several_notifications_each_has_its_headline() {
    let list = async |uri: Uri| {
        let first = json!({"id": OTHER, "subscriptionId": SUBSCRIPTION});
        let second = json!({"id": SUBSCRIPTION, "subscriptionId": OTHER});
        let is_of_one = uri.query().is_some_and(|query| query.contains("subscription="));
        let items = if is_of_one {
            vec![first]
        } else {
            vec![first, second]
        };
        Json(json!({ "items": items, "next": null }))
    };
    let story = async |uri: Uri| {
        Json(
            json!({"headline": {"text": uri.path()}, "story": [], "next": {"text": "Nothing."}, "waited": []}),
        )
    };
    let router = Router::new()
        .route("/notifications", get(list))
        .route("/notifications/{id}/story", get(story));
    let url = pretended(router).await;
    let told = run("notifications story order-17", &url);
    let lines = [(SUBSCRIPTION, OTHER), (OTHER, SUBSCRIPTION)].map(|(subscription, id)| {
        format!("subscription {subscription}: notification {id}: /notifications/{id}/story\n")
    });
    assert_eq!(told.stdout, lines.concat(), "{told:?}");
    assert!(
        told.code == Some(0)
            && told.stderr.contains("became several notifications: 2;")
            && told.stderr.contains("--subscription ID"),
        "{told:?}"
    );
    let one = run(
        &format!("notifications story order-17 --subscription {SUBSCRIPTION}"),
        &url,
    );
    assert!(
        one.stdout.starts_with(&format!("/notifications/{OTHER}/story\n"))
            && one.stdout.contains("next: Nothing."),
        "{one:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn with_both_keys_the_portal_is_asked_and_named_unless_an_option_for_operators_is_given() {
    let list = async || Json(json!({"items": [{"id": OTHER}], "next": null}));
    let router = Router::new()
        .route("/notifications", get(list))
        .route("/subscriptions", get(list));
    let url = pretended(router).await;
    let run = |command: &str| {
        postrider(command)
            .env("PORTAL_URL", &url)
            .env("RESELLER_KEY", "x")
            .env("OPERATOR_URL", "http://127.0.0.1:1")
            .env("OPERATOR_KEY", "y")
            .run()
    };
    for command in [
        "notifications list --value example.org -o name",
        "notifications list --ended-since 1h -o name",
        "subscriptions list -o name",
    ] {
        let told = run(command);
        assert_eq!(told.stdout, format!("{OTHER}\n"), "{told:?}");
        assert!(told.stderr.contains("the reseller portal is asked"), "{told:?}");
    }
    for command in [
        "notifications list --value example.org --reseller acme",
        "subscriptions list --failing",
        "subscriptions list --state deactivated",
    ] {
        let told = run(command);
        assert_eq!(told.code, Some(1), "{told:?}");
        assert!(
            told.stderr.contains("http://127.0.0.1:1") && !told.stderr.contains("portal is asked"),
            "{told:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_empty_list_of_an_event_names_the_command_that_says_why() {
    let event = async || {
        let missed = json!([{"subscriptionId": SUBSCRIPTION, "explanation": "Got nothing of it: it was deactivated."}]);
        Json(json!({
            "eventId": "rs-1", "type": "domain.created", "acceptedAt": "2026-11-21T12:00:00Z", "notifications": [], "missed": missed,
        }))
    };
    let nothing = async || Json(json!({"items": [], "next": null}));
    let notification = async || Json(json!({"id": OTHER, "eventId": "rs-1"}));
    let router = Router::new()
        .route("/notifications", get(nothing))
        .route(&format!("/notifications/{OTHER}"), get(notification))
        .route("/events/rs-1", get(event));
    let url = pretended(router).await;
    let empty = run("notifications list --event-id rs-1", &url);
    assert!(
        empty.code == Some(0) && empty.stderr.contains("`postrider notifications why rs-1`"),
        "{empty:?}"
    );
    let why = run("notifications why rs-1", &url);
    let told = format!("  subscription {SUBSCRIPTION}: Got nothing of it: it was deactivated.");
    assert!(why.code == Some(0) && why.stdout.contains(&told), "{why:?}");
    let refused = run("notifications why example.org", &url);
    let found_by = "`postrider notifications list --value example.org`";
    assert!(
        refused.code == Some(1)
            && refused.stderr.contains("example.org is no event of yours")
            && refused.stderr.contains(found_by),
        "{refused:?}"
    );
    let refused = run(&format!("notifications why {OTHER}"), &url);
    let told = format!("{OTHER} is a notification, of the event rs-1; `postrider notifications why rs-1`");
    assert!(
        refused.code == Some(1) && refused.stderr.contains(&told),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_replay_tells_what_it_left_alone() {
    let replay = || async {
        Json(json!({
            "id": OTHER, "subscriptionId": SUBSCRIPTION, "status": "COMPLETED", "examined": 3, "replayed": 0,
            "createdAt": "2026-11-21T12:00:00Z",
        }))
    };
    let waiting = || async {
        let retry = json!({"id": OTHER, "status": "RETRY", "updatedAt": "2026-11-21T11:00:00Z"});
        Json(json!({"items": [retry], "next": null}))
    };
    let subscription = || async { Json(json!({"id": SUBSCRIPTION, "state": "ACTIVE"})) };
    let router = Router::new()
        .route("/subscriptions/{id}", get(subscription))
        .route("/subscriptions/{id}/replays", post(replay))
        .route("/subscriptions/{id}/replays/{replay}", get(replay))
        .route("/subscriptions/{id}/notifications", get(waiting));
    let url = pretended(router).await;
    let finished = run(&format!("replay {SUBSCRIPTION} --newer-than 1h --wait"), &url);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(
        finished.stderr.contains("1 more notification of that time"),
        "{finished:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_replay_of_nothing_says_what_it_leaves_out() {
    let replay = || async {
        Json(json!({
            "id": OTHER, "subscriptionId": SUBSCRIPTION, "status": "COMPLETED", "examined": 1, "replayed": 0,
            "createdAt": "2026-11-21T12:00:00Z", "count": 0, "isWhole": true,
        }))
    };
    // The test event that failed before the replay began.
    let failed = async || {
        let failed = json!({"id": OTHER, "status": "FAILED", "updatedAt": "2026-11-21T11:00:00Z"});
        Json(json!({"items": [failed], "next": null}))
    };
    let router = Router::new()
        .route("/subscriptions/{id}/replays", post(replay))
        .route("/subscriptions/{id}/replays/{replay}", get(replay))
        .route("/subscriptions/{id}/notifications", get(failed));
    let url = pretended(router).await;
    let delivered = "what the subscription gets of the 1 event of that time was delivered already";
    for (how, why) in [
        ("--dry-run", format!("{delivered} or is on its way; ")),
        ("--wait", format!("{delivered}; ")),
        (
            "--wait --status MISSED",
            "none of the 1 event of that time matches; ".to_owned(),
        ),
    ] {
        let finished = run(&format!("replay {SUBSCRIPTION} --newer-than 1h {how}"), &url);
        assert!(
            finished.code == Some(0)
                && finished
                    .stderr
                    .contains(&format!("{why}test events are left out")),
            "{how}: {finished:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_change_that_another_came_before_says_what_was_changed() {
    let looked = Arc::new(AtomicU32::new(0));
    let show = move || {
        let number = looked.fetch_add(1, Ordering::SeqCst);
        let url = if number == 0 {
            "https://a.example/"
        } else {
            "https://b.example/"
        };
        let document = json!({"id": SUBSCRIPTION, "state": "ACTIVE", "url": url, "eventTypes": ["*"]});
        async move { ([("etag", format!("\"v{number}\""))], Json(document)) }
    };
    let change = async |headers: HeaderMap| {
        assert_eq!(headers["if-match"], "\"v0\"");
        (
            StatusCode::PRECONDITION_FAILED,
            Json(json!({"detail": "it has the version v1"})),
        )
    };
    let router = Router::new().route("/subscriptions/{id}", get(show).patch(change));
    let url = pretended(router).await;
    let refused = run(
        &format!("subscriptions update {SUBSCRIPTION} --event-types domain.*"),
        &url,
    );
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{refused:?}");
    let changed = r#"url was "https://a.example/" and is "https://b.example/""#;
    assert!(
        refused.stderr.contains(changed) && !refused.stderr.contains("eventTypes"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn visits_to_the_dashboard_are_listed_and_ended() {
    let visits = async |uri: Uri| {
        let query = uri.query().unwrap_or_default();
        assert!(query.contains("person=anna"), "{query}");
        let person = json!({"id": "anna", "name": "Anna Ozola"});
        let visit = json!({"id": OTHER, "resellerId": "acme", "person": person, "capabilities": ["bodies", "resend"]});
        Json(json!({"items": [visit], "next": null}))
    };
    let end_all = async |uri: Uri| {
        let is_of_one = uri.query().is_some_and(|query| query.contains("person=anna"));
        Json(json!({"ended": if is_of_one { 1 } else { 2 }}))
    };
    let router = Router::new()
        .route("/visits", get(visits).delete(end_all))
        .route("/visits/{id}", delete(async || StatusCode::NO_CONTENT));
    let url = pretended(router).await;
    let listed = run("portal-links visits --person anna", &url);
    assert!(listed.stdout.contains("bodies, resend"), "{listed:?}");
    for (which, told) in [
        (OTHER, format!("the visit {OTHER} is over\n")),
        ("--person anna", "1 visit is over\n".to_owned()),
        ("--all", "2 visits are over\n".to_owned()),
    ] {
        let ended = run(&format!("portal-links end {which}"), &url);
        assert_eq!((ended.code, ended.stdout), (Some(0), told), "{which}");
    }
    for wrong in ["", "--all --person anna"] {
        assert_eq!(
            run(&format!("portal-links end {wrong}"), &url).code,
            Some(2),
            "{wrong}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_link_is_asked_for_with_all_that_the_options_say() {
    let made = async |Json(asked): Json<Value>| {
        Json(json!({"id": OTHER, "url": asked.to_string(), "expiresAt": "2026-11-21T12:05:00Z"}))
    };
    let url = pretended(Router::new().route("/portal-links", post(made))).await;
    let asked = |options: &str| -> Value {
        let made = run(&format!("portal-links create {options}"), &url);
        serde_json::from_str(&made.stdout).expect("what was asked for")
    };
    let everything = asked("");
    assert_eq!(everything["capabilities"].as_array().map(Vec::len), Some(6));
    assert_eq!(everything["theme"], Value::Null);
    let little = asked(
        "--person user-17 --name Anna --only-look --minutes 15 --link-seconds 60 --landing /app/deliveries \
         --parent-origin https://panel.example --return-url https://panel.example/x --theme dark --locale lv-LV \
         --time-zone Europe/Riga",
    );
    let expected = json!({
        "resellerId": null, "person": {"id": "user-17", "name": "Anna"}, "capabilities": [], "linkSeconds": 60, "visitMinutes": 15,
        "landing": "/app/deliveries", "parentOrigin": "https://panel.example", "returnUrl": "https://panel.example/x",
        "theme": "dark", "locale": "lv-LV", "timeZone": "Europe/Riga", "authTime": little["authTime"],
    });
    assert_eq!(little, expected);
    for wrong in [
        "--only-look --capability bodies",
        "--theme blue",
        "--link-seconds 901",
        "--reseller acme --note why --theme dark",
    ] {
        let refused = run(&format!("portal-links create {wrong}"), &url);
        assert_eq!(refused.code, Some(2), "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_waits_is_added_up_with_whose_pause_it_waits_for() {
    let summary = async || {
        let waiting = json!([{"reason": "PAUSED", "day": null, "firstAt": null, "lastAt": null, "count": 7}]);
        Json(json!({
            "timeZone": "UTC", "pausedBy": "RESELLER", "countedUpTo": 100_000, "total": 7, "waiting": waiting,
        }))
    };
    let of_day = async |uri: Uri| {
        assert_eq!(uri.query(), Some("day=2026-11-22&limit=1"));
        Json(json!({"items": [held()], "next": "17-x"}))
    };
    let router = Router::new()
        .route("/subscriptions/{id}/scheduled/summary", get(summary))
        .route("/subscriptions/{id}/scheduled", get(of_day));
    let url = pretended(router).await;
    let command = format!("notifications scheduled {SUBSCRIPTION}");
    let told = run(&command, &url);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.contains("PAUSED"), "{told:?}");
    let mend = format!("postrider subscriptions resume {SUBSCRIPTION}");
    assert!(
        told.stderr.contains("7 notifications in all") && told.stderr.contains(&mend),
        "{told:?}"
    );
    let json: Value = serde_json::from_str(&run(&format!("{command} -o json"), &url).stdout).expect("JSON");
    assert_eq!(json["total"], 7);
    assert_eq!(run(&format!("{command} -o name"), &url).stdout, "PAUSED\n");

    let told = run(&format!("{command} --day 2026-11-22 --limit 1"), &url);
    assert!(
        told.stdout.contains(OTHER) && told.stderr.contains("add --cursor 17-x"),
        "{told:?}"
    );
    let day = "--day 2026-11-22 --limit 0";
    for wrong in ["--day tomorrow", day, "--limit 1", "--cursor 17-x"] {
        assert_eq!(run(&format!("{command} {wrong}"), &url).code, Some(2), "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn forms_for_scripts_have_what_the_next_command_needs() {
    let quota = || async {
        let open = json!({"id": OTHER, "dailyQuota": 5000, "status": "REQUESTED", "reason": "we grow"});
        Json(json!({"remainingToday": 30, "usedUpAt": "2026-11-21T15:40:00Z", "openRequest": open}))
    };
    let secrets = || async {
        let secret = |id: &str, active: bool| json!({"id": id, "active": active});
        Json(json!({"items": [secret(OTHER, true), secret(SUBSCRIPTION, false)], "next": null}))
    };
    let requests = || async { Json(json!({"items": [{"id": OTHER, "status": "REQUESTED"}], "next": null})) };
    let created = async || {
        let secret = json!({"id": OTHER, "secret": "whsec_x"});
        Json(json!({"id": SUBSCRIPTION, "secret": secret}))
    };
    let found = async || Json(json!({"items": [held()], "next": null}));
    let router = Router::new()
        .route("/subscriptions", post(created).get(async || {
            Json(json!({"items": [{"id": SUBSCRIPTION, "url": "https://a.example/", "description": "", "state": "ACTIVE", "stateReason": "VERIFIED", "verification": {"failedAttempts": 0}}]}))
        }))
        .route("/subscriptions/{id}/quota", get(quota))
        .route("/subscriptions/{id}/quota-requests", get(requests))
        .route("/subscriptions/{id}/quota-requests/{request}", delete(async || ()))
        .route("/subscriptions/{id}/secrets", get(secrets))
        .route("/subscriptions/{id}/notifications", get(found))
        .route("/notifications", get(found));
    let url = pretended(router).await;
    let only = format!("{OTHER}\n");
    for command in ["quota show", "secrets list"] {
        let finished = run(&format!("{command} {SUBSCRIPTION} -o name"), &url);
        assert_eq!(finished.stdout, only, "{command}: {finished:?}");
    }
    let tsv = run(&format!("quota show {SUBSCRIPTION} -o tsv"), &url);
    assert!(
        tsv.stdout.contains(&format!("open quota request\t{OTHER}")) && tsv.stdout.contains("\twe grow\n"),
        "{tsv:?}"
    );
    assert!(
        tsv.stdout.contains("used up at this pace\t2026-11-21T15:40:00Z"),
        "{tsv:?}"
    );
    let withdrawn = run(&format!("quota withdraw {SUBSCRIPTION} --json"), &url);
    let withdrawn: Value = serde_json::from_str(&withdrawn.stdout).expect("JSON");
    assert_eq!(withdrawn, json!({"id": OTHER, "withdrawn": true}));
    let create = "subscriptions create --url https://a.example/ --event-types * --email a@a.example -o name";
    let created = run(create, &url);
    assert_eq!(created.stdout, format!("{SUBSCRIPTION}\n"), "{created:?}");
    assert!(created.stderr.contains("secret whsec_x"), "{created:?}");
    for named in ["", SUBSCRIPTION] {
        let listed = run(
            &format!("notifications list {named} --event-id order-17 -o name"),
            &url,
        );
        assert_eq!(listed.stdout, only, "{listed:?}");
    }
}
