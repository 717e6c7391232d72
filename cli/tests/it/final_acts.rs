//! What cannot be undone is asked for first, or refused where there is no terminal to ask on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use axum::{Json, Router};

use serde_json::{Value, json};

use crate::kit::pretended;
use crate::postrider::{Finished, postrider};

const SUBSCRIPTION: &str = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
const WAITING: &str = "cancel waiting --lane push --prototype campaign-2026-11 --note over";

fn operator(command: &str, url: &str) -> Finished {
    postrider(&format!("{command} --key x --url {url}")).run()
}

fn reseller(command: &str, url: &str) -> Finished {
    postrider(&format!("{command} --reseller-key x --portal-url {url}")).run()
}

/// What cancels as many as match unless it is a dry run, and how often it did.
fn cancelling(matching: u32) -> (Router, Arc<AtomicU32>) {
    let done = Arc::new(AtomicU32::new(0));
    let counted = done.clone();
    let cancel = move |Json(body): Json<Value>| {
        let is_dry = body["dryRun"] == true;
        counted.fetch_add(u32::from(!is_dry), Ordering::SeqCst);
        let cancelled = if is_dry { 0 } else { matching };
        let answer = json!({"dryRun": is_dry, "matching": matching, "cancelled": cancelled, "more": false});
        async move { Json(answer) }
    };
    let router = Router::new()
        .route("/cancellations", post(cancel.clone()))
        .route("/subscriptions/{id}/cancellations", post(cancel));
    (router, done)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cancellation_of_many_is_refused_in_a_pipe_with_what_it_would_do() {
    let (router, done) = cancelling(1_204);
    let url = pretended(router).await;
    let refused = operator(WAITING, &url);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(
        refused.stderr,
        "error: this would cancel 1,204 pushes that wait and match --prototype campaign-2026-11: none of them is ever sent then, not by a replay \
         or a resend either; add --yes to do it, or --dry-run to count without cancelling\n"
    );
    let many = format!("notifications cancel --subscription {SUBSCRIPTION} --status scheduled");
    let refused = reseller(&many, &url);
    let target =
        format!("1,204 notifications that wait and match --subscription {SUBSCRIPTION} --status SCHEDULED");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for said in [&*target, "what had been delivered before stays so", "add --yes"] {
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
    assert_eq!(done.load(Ordering::SeqCst), 0);
    let cancelled = operator(&format!("{WAITING} --yes"), &url);
    assert_eq!(cancelled.stdout, "1,204 are cancelled\n", "{cancelled:?}");
    let cancelled = reseller(&format!("{many} -y"), &url);
    assert_eq!(
        cancelled.stdout, "1,204 notifications are cancelled\n",
        "{cancelled:?}"
    );
    assert_eq!(done.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn with_all_a_cancellation_goes_on_until_none_is_left_and_says_how_far_it_is() {
    let waiting = Arc::new(AtomicU32::new(12_000));
    let cancel = {
        let waiting = waiting.clone();
        move |Json(body): Json<Value>| {
            let now = waiting.load(Ordering::SeqCst);
            let matching = now.min(5_000);
            let cancelled = if body["dryRun"] == true { 0 } else { matching };
            waiting.store(now - cancelled, Ordering::SeqCst);
            let has_end = body["filter"]["until"].is_string();
            let left = now - matching;
            let answer = json!({"matching": matching, "byStatus": {"SCHEDULED": matching}, "left": left, "leftAtLeast": false,
                                "more": left > 0, "cancelled": cancelled, "delivered": 0});
            async move {
                assert!(has_end, "what comes meanwhile is not meant");
                Json(answer)
            }
        }
    };
    let url = pretended(Router::new().route("/cancellations", post(cancel))).await;
    let refused = operator(&format!("{WAITING} --all"), &url);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let told = "this would cancel 12,000 pushes that wait and match --prototype campaign-2026-11";
    assert!(refused.stderr.contains(told), "{refused:?}");
    let dry = operator(&format!("{WAITING} --all --dry-run"), &url);
    assert_eq!(
        dry.stdout, "5,000 wait and match; 7,000 more match than are cancelled at once; nothing was done\n",
        "{dry:?}"
    );
    assert_eq!(waiting.load(Ordering::SeqCst), 12_000);
    let done = operator(&format!("{WAITING} --all --yes"), &url);
    assert_eq!(
        (done.code, &*done.stdout),
        (Some(0), "12,000 are cancelled\n"),
        "{done:?}"
    );
    assert_eq!(
        done.stderr,
        "5,000 are cancelled, 7,000 to go\n10,000 are cancelled, 2,000 to go\n"
    );
    assert_eq!(waiting.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn where_nothing_matches_nothing_is_asked() {
    let (router, done) = cancelling(0);
    let url = pretended(router).await;
    let none = operator(WAITING, &url);
    assert_eq!(
        (none.code, &*none.stdout),
        (Some(0), "0 are cancelled\n"),
        "{none:?}"
    );
    assert_eq!(done.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deletion_is_refused_in_a_pipe_with_what_is_given_up() {
    let deleted = Arc::new(AtomicU32::new(0));
    let counted = deleted.clone();
    let delete = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { StatusCode::NO_CONTENT }
    };
    let show = async || Json(json!({"id": SUBSCRIPTION, "url": "https://hooks.acme.example/postrider"}));
    let summary = async || Json(json!({"total": 12, "countedUpTo": 10_000}));
    let router = Router::new()
        .route("/subscriptions/{id}", get(show).delete(delete))
        .route("/subscriptions/{id}/scheduled/summary", get(summary));
    let url = pretended(router).await;
    let command = format!("subscriptions delete {SUBSCRIPTION}");
    let refused = reseller(&command, &url);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for said in [
        "to https://hooks.acme.example/postrider",
        "12 notifications that wait are given up",
        "add --yes",
        "subscriptions pause",
    ] {
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
    assert_eq!(deleted.load(Ordering::SeqCst), 0);
    let done = reseller(&format!("{command} --yes"), &url);
    assert!(
        done.code == Some(0) && done.stderr.contains("is deleted"),
        "{done:?}"
    );
    assert_eq!(deleted.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deactivation_is_refused_in_a_pipe_with_what_is_given_up() {
    let deactivated = Arc::new(AtomicU32::new(0));
    let counted = deactivated.clone();
    let deactivate = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Json(json!({"state": "DEACTIVATED", "stateReason": "BY_RESELLER"})) }
    };
    let show = async || Json(json!({"id": SUBSCRIPTION, "url": "https://hooks.acme.example/postrider"}));
    let summary = async || Json(json!({"total": 12, "countedUpTo": 10_000}));
    let router = Router::new()
        .route("/subscriptions/{id}", get(show))
        .route("/subscriptions/{id}/deactivate", post(deactivate))
        .route("/subscriptions/{id}/scheduled/summary", get(summary));
    let url = pretended(router).await;
    let command = format!("subscriptions deactivate {SUBSCRIPTION}");
    let refused = reseller(&command, &url);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for said in [
        "12 notifications that wait are given up",
        "until it is activated",
        "add --yes",
    ] {
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
    assert_eq!(deactivated.load(Ordering::SeqCst), 0);
    let done = reseller(&format!("{command} --yes"), &url);
    assert!(
        done.code == Some(0) && done.stdout.contains("DEACTIVATED"),
        "{done:?}"
    );
    assert_eq!(deactivated.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_is_cancelled_and_a_secret_revoked_only_when_that_is_confirmed() {
    let done = Arc::new(AtomicU32::new(0));
    let counted = done.clone();
    let cancel = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Json(json!({"previous": "SCHEDULED", "status": "GIVEN_UP", "reason": "CANCELLED"})) }
    };
    let counted = done.clone();
    let revoke = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { StatusCode::NO_CONTENT }
    };
    let router = Router::new()
        .route("/pushes/{id}/cancel", post(cancel.clone()))
        .route("/notifications/{id}/cancel", post(cancel))
        .route("/subscriptions/{id}/secrets/{secret}", delete(revoke));
    let url = pretended(router).await;
    let acts = [
        (
            operator as fn(&str, &str) -> Finished,
            format!("cancel push {SUBSCRIPTION} --note over"),
            "cancel the push",
        ),
        (
            operator,
            format!("cancel notification {SUBSCRIPTION} --note over"),
            "what had been delivered before stays so",
        ),
        (
            reseller,
            format!("notifications cancel {SUBSCRIPTION}"),
            "postrider notifications story",
        ),
        (
            reseller,
            format!("secrets revoke {SUBSCRIPTION} {SUBSCRIPTION}"),
            "`postrider subscriptions check URL --secret-file FILE` tells whether the endpoint takes the one that stays",
        ),
    ];
    for (number, (run, command, told)) in (1..).zip(acts) {
        let refused = run(&command, &url);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        for said in ["this would", told, "add --yes"] {
            assert!(refused.stderr.contains(said), "{said}: {refused:?}");
        }
        assert_eq!(done.load(Ordering::SeqCst), number - 1, "{command}");
        let finished = run(&format!("{command} --yes"), &url);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(done.load(Ordering::SeqCst), number, "{command}");
    }
}
