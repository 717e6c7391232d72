//! `postrider notifications resend`: what it counts, asks and waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::Uri;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::pretended;
use super::told::{OTHER, SUBSCRIPTION, run};

/// What fails again is told, and the exit code says it: of the failures only those count that came since.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_resend_of_many_waits_for_its_outcome_and_ends_with_it() {
    let resent = || json!({"dryRun": false, "at": "2026-11-21T12:00:00Z", "count": 2, "seconds": 0});
    let row = |at: &str| json!({"id": OTHER, "status": "FAILED", "updatedAt": at});
    for (failures, code, told) in [
        (
            vec!["2026-11-21T12:00:01Z", "2026-11-21T11:59:59Z"],
            4,
            "1 delivered, 0 waiting, 1 failed again",
        ),
        (
            vec!["2026-11-21T11:59:59Z"],
            0,
            "2 delivered, 0 waiting, 0 failed again",
        ),
    ] {
        let items: Vec<Value> = failures.iter().map(|at| row(at)).collect();
        let router = Router::new()
            .route("/subscriptions/{id}/resends", post(async move || Json(resent())))
            .route(
                "/subscriptions/{id}/notifications",
                get(async move || Json(json!({ "items": items }))),
            );
        let url = pretended(router).await;
        let command = format!("notifications resend {SUBSCRIPTION} --status FAILED");
        let waited = run(&format!("{command} --wait"), &url);
        assert_eq!(waited.code, Some(code), "{waited:?}");
        assert!(waited.stdout.contains(told), "{waited:?}");
        let asked = run(&format!("{command} --subscription {SUBSCRIPTION}"), &url);
        assert_eq!(asked.code, Some(2), "named twice: {asked:?}");
        let left = run(&command, &url);
        assert!(
            left.code == Some(0) && left.stderr.contains("--wait waits"),
            "{left:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_resend_of_all_subscriptions_is_counted_first_and_needs_a_yes() {
    let sent = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&sent);
    let resend = move |uri: Uri, Json(asked): Json<Value>| {
        if asked["dryRun"] == false {
            seen.fetch_add(1, Ordering::SeqCst);
        }
        let count = if uri.path().contains(SUBSCRIPTION) { 3 } else { 0 };
        async move { Json(json!({"dryRun": asked["dryRun"], "count": count})) }
    };
    let subscriptions = async || {
        let one = |id: &str, state: &str| json!({"id": id, "state": state, "url": "https://a.example/"});
        let deactivated = "01a1fd84-191a-7334-a6ae-613178d80d71";
        let items = [
            one(SUBSCRIPTION, "ACTIVE"),
            one(OTHER, "DEGRADED"),
            one(deactivated, "DEACTIVATED"),
        ];
        Json(json!({"items": items, "next": null}))
    };
    let router = Router::new()
        .route("/subscriptions", get(subscriptions))
        .route("/subscriptions/{id}/resends", post(resend));
    let url = pretended(router).await;
    let all = "notifications resend --code 5xx";
    let counted = run(&format!("{all} --dry-run --json"), &url);
    assert_eq!(counted.code, Some(0), "{counted:?}");
    let told: Value = serde_json::from_str(&counted.stdout).unwrap();
    assert_eq!((&told["count"], &told["dryRun"]), (&json!(3), &json!(true)));
    assert_eq!(told["items"].as_array().unwrap().len(), 1, "{told}");
    assert_eq!(told["items"][0]["subscriptionId"], SUBSCRIPTION);
    let refused = run(all, &url);
    assert!(
        refused.code != Some(0)
            && refused
                .stderr
                .contains("send 3 notifications of 1 subscription again"),
        "{refused:?}"
    );
    let of_one = run(&format!("{all} --id {OTHER} --yes"), &url);
    assert_eq!(of_one.code, Some(2), "{of_one:?}");
    let of_none = run(&format!("notifications resend --id {OTHER} --yes"), &url);
    assert!(of_none.stderr.contains("name one subscription"), "{of_none:?}");
    assert_eq!(sent.load(Ordering::SeqCst), 0, "only counted");
    let done = run(&format!("{all} --yes"), &url);
    assert!(
        done.code == Some(0)
            && done
                .stderr
                .contains("3 notifications of all subscriptions sent again"),
        "{done:?}"
    );
    assert_eq!(sent.load(Ordering::SeqCst), 1);
}

/// All of a reseller's subscriptions, or those that are named: what becomes of each is told, and the exit code says whether all was delivered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_resend_of_several_subscriptions_waits_for_the_outcome_of_each() {
    for (status, code, told) in [
        ("FAILED", 4, "3 delivered, 0 waiting, 1 failed again"),
        ("RETRY", 4, "3 delivered, 1 waiting, 0 failed again"),
        ("", 0, "4 delivered, 0 waiting, 0 failed again"),
    ] {
        let one = |id: &str| json!({"id": id, "state": "ACTIVE", "url": "https://a.example/"});
        let all = async move || Json(json!({"items": [one(SUBSCRIPTION), one(OTHER)], "next": null}));
        let named = move |uri: Uri| {
            let named = one(uri.path().rsplit('/').next().unwrap_or_default());
            async move { Json(named) }
        };
        let resend = |Json(asked): Json<Value>| async move {
            Json(json!({"dryRun": asked["dryRun"], "at": "2026-11-21T12:00:00Z", "count": 2, "seconds": 0}))
        };
        let notifications = move |uri: Uri| {
            let row = json!({"id": OTHER, "status": status, "updatedAt": "2026-11-21T12:00:01Z"});
            let is_troubled = uri.path().contains(OTHER) && !status.is_empty();
            let items = if is_troubled { vec![row] } else { Vec::new() };
            async move { Json(json!({ "items": items })) }
        };
        let router = Router::new()
            .route("/subscriptions", get(all))
            .route("/subscriptions/{id}", get(named))
            .route("/subscriptions/{id}/resends", post(resend))
            .route("/subscriptions/{id}/notifications", get(notifications));
        let url = pretended(router).await;
        for (which, of) in [
            ("--yes".to_owned(), "all subscriptions"),
            (format!("{OTHER} {SUBSCRIPTION}"), "2 subscriptions"),
            (
                format!("--subscription {OTHER},{SUBSCRIPTION}"),
                "2 subscriptions",
            ),
        ] {
            let command = format!("notifications resend {which} --code 5xx --wait --outcome-within 1s");
            let waited = run(&command, &url);
            assert_eq!(waited.code, Some(code), "{waited:?}");
            let said = format!("4 notifications of {of} sent again: {told}");
            assert!(waited.stderr.contains(&said), "{waited:?}");
            let document = run(&format!("{command} --json"), &url);
            let document: Value = serde_json::from_str(&document.stdout).expect("JSON");
            let delivered = |of: &Value| of["outcome"]["delivered"].as_u64();
            let each: u64 = document["items"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(delivered)
                .sum();
            assert_eq!(delivered(&document), Some(each), "{document}");
        }
    }
}
