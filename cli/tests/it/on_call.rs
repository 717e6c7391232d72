//! Commands for those on call that put together what the operator API answers.

use axum::extract::{Query, Request};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::HashMap;

use crate::kit::pretended;
use crate::postrider::{Finished, postrider};

const SUBSCRIPTION: &str = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
const EVENT: &str = "01a1fd84-191a-7187-8c92-644d9a28fa8b";
const URL: &str = "https://hooks.acme.example/postrider";

fn run(command: &str, url: &str) -> Finished {
    postrider(&format!("{command} --key x --url {url}")).run()
}

/// What answers every question with `items`, but for the URL of one subscription and the names of resellers.
fn answers(items: &'static str) -> Router {
    let list = move || async move {
        let items: Value = serde_json::from_str(items).expect("JSON");
        Json(json!({"items": items, "next": null, "examined": 1, "total": 0, "atLeast": false}))
    };
    let subscriptions = async |Query(query): Query<HashMap<String, String>>| {
        let one =
            json!({"id": SUBSCRIPTION, "resellerId": "acme", "url": URL, "heldAt": "2026-11-21T12:00:00Z"});
        let is_one = query.get("url").is_none_or(|part| URL.contains(part.as_str()));
        let is_one = is_one && query.get("reseller").is_none_or(|reseller| reseller == "acme");
        Json(json!({"items": if is_one { vec![one] } else { Vec::new() }, "next": null}))
    };
    let echoed = async |request: Request| {
        Json(json!({"retries": 1, "more": false, "stillPaused": [request.uri().path()]}))
    };
    Router::new()
        .route("/notifications", get(list))
        .route("/events", get(list))
        .route("/dead-letters", get(async |request: Request| {
            let item = json!({"id": EVENT, "lane": "reseller", "state": "OPEN", "reason": "FAILED", "fingerprint": request.uri().query(),
                              "target": "", "detail": "", "createdAt": "2026-11-21T12:00:00Z"});
            Json(json!({"items": [item], "next": null}))
        }))
        .route("/dead-letters/resellers", get(list))
        .route("/resellers", get(async || Json(json!({"items": [{"id": "acme"}], "next": null}))))
        .route("/subscriptions", get(subscriptions))
        .route("/subscriptions/{id}/retry-now", post(echoed))
        .route("/lanes/{lane}/retry-now", post(echoed))
        .route("/waiting", get(async || {
            let item = json!({"lane": "push", "reason": "RETRY", "count": 46, "more": false});
            Json(json!({"items": [item]}))
        }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_event_that_matched_nothing_is_told_beside_notifications_and_unknown_resellers_are_named() {
    let found = pretended(answers(
        r#"[{"id": "01a1fd84-191a-7187-8c92-644d9a28fa8b", "resellerId": "acme", "notifications": 0}]"#,
    ))
    .await;
    let listed = run("notifications list --all --value found.example", &found);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let told = format!("the event {EVENT} of acme has it and matched no subscription");
    assert!(listed.stderr.contains(&told), "{listed:?}");
    let events = run("event list --value found.example -o name", &found);
    assert_eq!(events.stdout, format!("{EVENT}\n"), "{events:?}");

    let nothing = pretended(answers("[]")).await;
    for command in [
        "notifications list --reseller acne",
        "event list --reseller acne",
        "subscriptions list --reseller acne",
        "dead-letters groups --by reseller --reseller acne",
    ] {
        let finished = run(command, &nothing);
        let told = "no reseller acne is known: none of that name has a subscription; did you mean acme?";
        assert!(finished.stderr.contains(told), "{command}: {finished:?}");
    }
    let listed = run("subscriptions list --reseller acme -o tsv", &nothing);
    assert!(
        listed.stdout.contains("2026-11-21T12:00:00Z\tan operator"),
        "{listed:?}"
    );
    for command in ["resellers", "resellers list"] {
        assert_eq!(run(&format!("{command} -o name"), &nothing).stdout, "acme\n");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn notifications_of_all_resellers_are_found_by_what_their_endpoint_answered() {
    let echoed = async |request: Request| {
        Json(json!({"items": [{"id": request.uri().query()}], "next": null, "examined": 1}))
    };
    let url = pretended(Router::new().route("/notifications", get(echoed))).await;
    let listed = run(
        "notifications list --all --status retry --code 503 --error http --json",
        &url,
    );
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let asked = listed["items"][0]["id"].as_str().expect("a query");
    for part in ["status=RETRY", "code=503", "error=HTTP"] {
        assert!(asked.contains(part), "{asked}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn user_agents_are_asked_for_by_state_and_node() {
    let echoed = async |request: Request| {
        let agent =
            json!({"id": request.uri().query(), "state": "CONNECTED", "connectedAt": "2026-11-21T12:00:00Z"});
        Json(json!({"items": [agent], "next": null, "examined": 1}))
    };
    let url = pretended(Router::new().route("/webpush/user-agents", get(echoed))).await;
    let listed = run(
        "user-agents list --state connected --node http://node-1:8085 -o name",
        &url,
    );
    for part in ["state=CONNECTED", "node=http"] {
        assert!(listed.stdout.contains(part), "{listed:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn resellers_are_asked_for_by_how_their_names_begin() {
    let echoed =
        async |request: Request| Json(json!({"items": [{"id": request.uri().query()}], "next": null}));
    let url = pretended(Router::new().route("/resellers", get(echoed))).await;
    let listed = run("resellers --name acm --json", &url);
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let asked = listed["items"][0]["id"].as_str().expect("a query");
    assert!(asked.contains("name=acm"), "{asked}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn several_statuses_are_one_parameter_and_what_waits_is_better_asked_for_without_what_has_ended() {
    let echoed = async |request: Request| {
        Json(json!({"items": [{"id": request.uri().query()}], "next": null, "examined": 1}))
    };
    let echo = Router::new()
        .route("/pushes", get(echoed))
        .route("/notifications", get(echoed));
    let url = pretended(echo).await;
    for command in [
        "push list --status failed,GIVEN_UP --reason cancelled --json",
        "push list --status FAILED --status given_up --reason CANCELLED --json",
        "notifications list --status failed,given_up --reason cancelled --json",
        "notifications list --all --status FAILED --status GIVEN_UP --reason CANCELLED --json",
    ] {
        let listed = run(command, &url);
        let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
        let asked = listed["items"][0]["id"].as_str().expect("a query");
        for part in ["status=FAILED%2CGIVEN_UP", "reason=CANCELLED"] {
            assert!(asked.contains(part), "{command}: {asked}");
        }
    }
    for command in [
        "push list --ended-since 2026-11-21T12:00:00Z --ended-until 2026-11-21T13:00:00Z --json",
        "notifications list --all --ended-since 2026-11-21T12:00:00Z --ended-until 2026-11-21T13:00:00Z --json",
    ] {
        let listed = run(command, &url);
        let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
        let asked = listed["items"][0]["id"].as_str().expect("a query");
        let ended = ["endedSince=2026-11-21T12", "endedUntil=2026-11-21T13"];
        assert!(
            ended.iter().all(|part| asked.contains(part)),
            "{command}: {asked}"
        );
    }
    for command in [
        "push list --waiting --json",
        "notifications list --all --waiting --json",
        "notifications list --reseller acme --waiting --json",
    ] {
        let listed = run(command, &url);
        let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
        let asked = listed["items"][0]["id"].as_str().expect("a query");
        let waiting = "status=SCHEDULED%2CPENDING%2CIN_MEMORY%2CRETRY";
        assert!(asked.contains(waiting), "{command}: {asked}");
    }
    let wrong = run("push list --status FALED,SENT", &url);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(
        wrong.stderr.contains("SCHEDULED") && wrong.stderr.contains("'FAILED'"),
        "{wrong:?}"
    );

    let held = async || {
        Json(json!({"items": [{"id": EVENT, "status": "RETRY", "held": true}], "next": null, "examined": 1}))
    };
    let held = pretended(Router::new().route("/pushes", get(held))).await;
    let listed = run("push list --waiting", &held);
    assert!(
        listed.stderr.contains("Swrve is out of order and the lane held"),
        "{listed:?}"
    );

    let nothing = async || Json(json!({"items": [], "next": "more", "examined": 10}));
    let nothing = Router::new()
        .route("/pushes", get(nothing))
        .route("/notifications", get(nothing));
    let url = pretended(nothing).await;
    let told = "--waiting lists all that wait, the oldest first";
    for list in ["push list", "notifications list --all"] {
        let several = run(&format!("{list} --status RETRY,SENT"), &url);
        assert!(several.stderr.contains(told), "{several:?}");
        for status in ["RETRY", "RETRY,PENDING", "FAILED,GIVEN_UP"] {
            let other = run(&format!("{list} --status {status}"), &url);
            assert!(!other.stderr.contains(told), "{other:?}");
        }
        // The latest was accepted longest ago.
        let by_end = "such as --ended-since 1d, go by when it ended";
        let late = run(&format!("{list} --late 5m --newer-than 1d"), &url);
        assert!(late.stderr.contains(by_end), "{late:?}");
        for other in ["--late 5m --ended-since 1d", "--newer-than 1d"] {
            let other = run(&format!("{list} {other}"), &url);
            assert!(!other.stderr.contains(by_end), "{other:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_whole_url_stands_for_its_subscription() {
    let url = pretended(answers("[]")).await;
    let listed = run(&format!("dead-letters list --target {URL} --json"), &url);
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let asked = listed["items"][0]["fingerprint"].as_str().expect("a query");
    assert!(
        asked.contains(&format!("subscription={SUBSCRIPTION}")) && !asked.contains("target"),
        "{asked}"
    );
    let origin = run(
        "dead-letters list --target https://hooks.acme.example/ --json",
        &url,
    );
    assert!(
        origin.stdout.contains("target=https%3A%2F%2Fhooks.acme.example"),
        "{origin:?}"
    );
    let asked = run(&format!("retry-now endpoint {URL}/"), &url);
    assert!(
        asked.code == Some(1) && asked.stdout.is_empty() && asked.stderr.contains("of 1 subscription:"),
        "{asked:?}"
    );
    let retried = run(&format!("retry-now endpoint {URL}/ --yes"), &url);
    assert_eq!(retried.code, Some(0), "{retried:?}");
    assert!(
        retried
            .stdout
            .contains(&format!("/subscriptions/{SUBSCRIPTION}/retry-now")),
        "{retried:?}"
    );
    let asked = run("retry-now lane push", &url);
    assert!(
        asked.code == Some(1)
            && asked.stdout.is_empty()
            && asked.stderr.contains("in the lane push, 46 in all"),
        "{asked:?}"
    );
    let lane = run("retry-now lane push --json --yes", &url);
    assert!(lane.stdout.contains("/lanes/push/retry-now"), "{lane:?}");
    let none = run("retry-now endpoint https://elsewhere.example/x", &url);
    assert_eq!(none.code, Some(1), "{none:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_operator_opens_the_dashboard_of_a_reseller_and_says_why() {
    let made = async |request: Request| {
        let url = format!("https://dashboard.example{}", request.uri().path());
        Json(json!({"id": EVENT, "url": url, "expiresAt": "2026-11-21T12:05:00Z", "visitMinutes": 60}))
    };
    let api = Router::new().route("/resellers/{reseller}/portal-links", post(made));
    let url = pretended(api).await;
    let link = run("portal-links create --reseller acme --note ticket-4711", &url);
    assert_eq!(link.code, Some(0), "{link:?}");
    assert_eq!(
        link.stdout.trim(),
        "https://dashboard.example/resellers/acme/portal-links"
    );
    assert!(link.stderr.contains("lasts 60 minutes at most"), "{link:?}");
    let silent = run("portal-links create --reseller acme", &url);
    assert_ne!(silent.code, Some(0), "{silent:?}");
    assert!(silent.stderr.contains("why, with --note"), "{silent:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn metrics_of_an_event_type_without_numbers_say_so() {
    let counted = json!({"byEventType": [{"eventType": "domain.created", "attempts": 1, "hours": [
        {"hour": "2026-11-21T12:00:00Z", "attempts": 1, "delivered": 1, "failed": 0}
    ]}]});
    let metrics = get(move || async move { Json(counted) });
    let url = pretended(Router::new().route("/subscriptions/{id}/metrics", metrics)).await;
    let of = |name: &str| {
        let command = format!("subscriptions metrics {SUBSCRIPTION} --event-type {name}");
        postrider(&format!("{command} --reseller-key x --portal-url {url}")).run()
    };
    let told = "no attempt of the last 24 h was for an event of the type domain.creatde";
    let nothing = of("domain.creatde");
    assert_eq!(nothing.code, Some(0), "{nothing:?}");
    assert!(nothing.stderr.contains(told), "{nothing:?}");
    assert!(!of("domain.creatde --json").stderr.contains(told));
    assert!(!of("domain.created --json").stderr.contains("estimates"));
    let listed = of("domain.created");
    assert!(
        listed.stdout.contains("2026-11-21T12:00:00Z") && !listed.stderr.contains("no attempt"),
        "{listed:?}"
    );
    assert!(listed.stderr.contains("times are estimates"), "{listed:?}");
    assert!(
        listed.stdout.contains(" - ") && listed.stderr.contains("sent again or replayed"),
        "a delay that is not known: {listed:?}"
    );
}

/// So many resellers, in pages of at most 200; a page in between may be empty.
fn resellers(all: usize) -> Router {
    let page = move |Query(query): Query<HashMap<String, String>>| async move {
        let number = |name: &str| {
            query
                .get(name)
                .map(|text| text.parse::<usize>().expect("a number"))
        };
        let (begin, limit) = (number("cursor").unwrap_or(0), number("limit").expect("a limit"));
        assert!((1..=200).contains(&limit), "{limit}");
        if begin == 200 && query["cursor"].len() == 3 {
            return Json(json!({"items": [], "next": "0200"}));
        }
        let end = (begin + limit).min(all);
        let items: Vec<Value> = (begin..end).map(|it| json!({"id": format!("r{it}")})).collect();
        Json(json!({"items": items, "next": (end < all).then(|| end.to_string())}))
    };
    Router::new().route("/resellers", get(page))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_list_goes_on_by_itself_until_there_are_as_many_as_are_asked_for() {
    let url = pretended(resellers(450)).await;
    for (options, count, next) in [
        ("", 50, Some(50)),
        ("--limit 200", 200, Some(200)),
        ("--limit 250", 250, Some(250)),
        ("--limit 450", 450, None),
        ("--limit 1000000 --cursor 1", 449, None),
    ] {
        let names = run(&format!("resellers {options} -o name"), &url);
        assert_eq!(names.stdout.lines().count(), count, "{options}: {names:?}");
        let said = next.map(|next| format!("there are more: add --cursor {next}\n"));
        assert_eq!(names.stderr, said.unwrap_or_default(), "{options}");
        let json = run(&format!("resellers {options} --json"), &url).stdout;
        let json: Value = serde_json::from_str(&json).expect("one document");
        let ids = json["items"].as_array().expect("items").iter();
        let ids: Vec<&str> = ids.filter_map(|item| item["id"].as_str()).collect();
        assert_eq!(ids, names.stdout.lines().collect::<Vec<_>>(), "{options}");
        for form in ["tsv", "table"] {
            let shown = run(&format!("resellers {options} -o {form}"), &url).stdout;
            let heads = shown.lines().filter(|line| line.starts_with("reseller")).count();
            assert_eq!(
                (shown.lines().count(), heads),
                (count + 1, 1),
                "{options}: {shown}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_list_of_which_no_more_is_read_asks_for_no_more() {
    let url = pretended(resellers(usize::MAX)).await;
    let command = format!("resellers --limit 1000000000 -o name --key x --url {url}");
    let mut process = postrider(&command).start();
    assert_eq!(process.line(), "r0\n");
    process.read_no_more();
    assert_eq!(process.end().await, Some(0));
}
