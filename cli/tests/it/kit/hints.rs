//! What commands for resellers say of what comes next, and of what was meant.

use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::pretended;
use super::told::{OTHER, SUBSCRIPTION, run};

async fn unknown() -> (StatusCode, Json<Value>) {
    let problem = json!({"detail": "no notification has this identifier"});
    (StatusCode::NOT_FOUND, Json(problem))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_subscription_in_place_of_a_notification_is_told_to_be_one() {
    let router = Router::new()
        .route("/notifications/{id}", get(unknown))
        .route("/notifications/{id}/resend", post(unknown))
        .route("/notifications/{id}/cancel", post(unknown))
        .route("/notifications/{id}/story", get(unknown))
        .route(
            &format!("/subscriptions/{SUBSCRIPTION}"),
            get(async || Json(json!({"id": SUBSCRIPTION}))),
        );
    let url = pretended(router).await;
    let said = "is a subscription of yours";
    for command in [
        "notifications show",
        "notifications story",
        "notifications cancel --yes",
        "attempts",
        "resend",
    ] {
        let refused = run(&format!("{command} {SUBSCRIPTION}"), &url);
        assert!(
            refused.code == Some(1) && refused.stderr.contains(said),
            "{command}: {refused:?}"
        );
    }
    let refused = run(&format!("attempts {OTHER}"), &url);
    assert!(
        refused.code == Some(1) && !refused.stderr.contains(said),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_activation_names_the_replay_of_what_was_missed() {
    let before = async || {
        Json(json!({"id": SUBSCRIPTION, "state": "DEACTIVATED", "stateChangedAt": "2026-11-21T12:00:00Z"}))
    };
    let activated =
        async || Json(json!({"id": SUBSCRIPTION, "state": "ACTIVE", "stateReason": "BY_RESELLER"}));
    let router = Router::new()
        .route("/subscriptions/{id}", get(before))
        .route("/subscriptions/{id}/activate", post(activated));
    let url = pretended(router).await;
    let finished = run(&format!("subscriptions activate {SUBSCRIPTION}"), &url);
    let replay = format!("`postrider replay {SUBSCRIPTION} --since 2026-11-21T12:00:00Z`");
    assert!(
        finished.code == Some(0) && finished.stderr.contains(&replay),
        "{finished:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_new_endpoint_can_be_waited_for() {
    let shown = async || {
        (
            [("etag", "\"v0\"")],
            Json(json!({"id": SUBSCRIPTION, "state": "ACTIVE"})),
        )
    };
    let changed = async || {
        let waits = json!({
            "id": SUBSCRIPTION, "state": "PENDING_VERIFICATION", "stateReason": "ENDPOINT_CHANGED",
            "verification": {"failedAttempts": 0, "nextAttemptAt": "2026-11-21T12:00:00Z"},
        });
        Json(waits)
    };
    let router = Router::new().route("/subscriptions/{id}", get(shown).patch(changed));
    let url = pretended(router).await;
    let update = format!("subscriptions update {SUBSCRIPTION} --url https://b.example/");
    let at_once = run(&update, &url);
    assert!(at_once.stdout.contains("PENDING_VERIFICATION"), "{at_once:?}");
    let waited = run(&format!("{update} --wait"), &url);
    assert_eq!(waited.code, Some(0), "{waited:?}");
    assert!(
        waited.stdout.contains("ACTIVE") && !waited.stdout.contains("PENDING_VERIFICATION"),
        "{waited:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_waits_of_all_subscriptions_is_added_up_and_a_day_is_of_one() {
    let overview = async || {
        let waiting = json!([{"reason": "QUOTA", "count": 12}]);
        Json(
            json!({"hasMore": false, "countedUpTo": 1000, "subscriptions": [{"id": SUBSCRIPTION, "waiting": waiting}]}),
        )
    };
    let url = pretended(Router::new().route("/overview", get(overview))).await;
    let told = run("notifications scheduled -o tsv", &url);
    assert!(
        told.code == Some(0) && told.stdout.contains(&format!("{SUBSCRIPTION}\tQUOTA\t12")),
        "{told:?}"
    );
    let refused = run("notifications scheduled --day 2026-11-22", &url);
    assert!(
        refused.code == Some(1) && refused.stderr.contains("of one subscription"),
        "{refused:?}"
    );
}
