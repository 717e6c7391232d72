//! `tail` before a portal that says what a test wants it to say.

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Json, Response};
use axum::routing::get;
use serde_json::json;
use tokio::net::TcpListener;

use super::*;

/// Two subscriptions, of which the first was deleted as soon as it had been listed; each on a page of its own.
const SUBSCRIPTIONS: [Uuid; 2] = [Uuid::from_u128(1), Uuid::from_u128(2)];

async fn subscriptions(Query(query): Query<BTreeMap<String, String>>) -> Json<Value> {
    Json(match query.get("cursor") {
        None => json!({"items": [{"id": SUBSCRIPTIONS[0]}], "next": "more"}),
        Some(_) => json!({"items": [{"id": SUBSCRIPTIONS[1]}], "next": null}),
    })
}

async fn notifications(
    State(rows): State<Vec<Value>>,
    Path(id): Path<Uuid>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    if id == SUBSCRIPTIONS[0] {
        return StatusCode::NOT_FOUND.into_response();
    }
    let since: Option<DateTime<Utc>> = query.get("since").map(|since| since.parse().unwrap());
    let is_wanted = |row: &Value| {
        let status = query.get("status");
        since.is_none_or(|since| accepted_at(row).unwrap() >= since)
            && status.is_none_or(|known| known.contains(row["status"].as_str().unwrap()))
    };
    let items: Vec<Value> = rows.into_iter().filter(is_wanted).collect();
    Json(json!({"items": items, "next": null})).into_response()
}

/// What was sent this many seconds ago.
fn sent(id: u128, seconds_ago: i64) -> Value {
    let at = SystemClock.now() - chrono::TimeDelta::seconds(seconds_ago);
    json!({
        "id": Uuid::from_u128(id), "eventId": "e", "eventType": "domain.created", "status": "SENT", "reason": null,
        "attempts": 1, "nextAttemptAt": null, "acceptedAt": at, "updatedAt": at, "finishedAt": at,
    })
}

async fn tail(rows: Vec<Value>, chosen: Vec<Uuid>) -> Tail {
    lifecycle::crypto::install_default_provider();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new()
        .route("/subscriptions", get(subscriptions))
        .route("/subscriptions/{id}/notifications", get(notifications))
        .with_state(rows);
    tokio::spawn(axum::serve(listener, router).into_future());
    Tail {
        portal: Portal::new(&url, "key").unwrap(),
        chosen,
        followers: BTreeMap::new(),
        changes: None,
        json: false,
        left: Some(10),
    }
}

#[tokio::test]
async fn a_subscription_that_is_deleted_meanwhile_ends_nothing() {
    let mut all = tail(Vec::new(), Vec::new()).await;
    all.begin(None).await.unwrap();
    all.look().await.unwrap();
    let followed: Vec<Uuid> = all.followers.into_keys().collect();
    assert_eq!(followed, [SUBSCRIPTIONS[1]]);
    let mut named = tail(Vec::new(), SUBSCRIPTIONS.to_vec()).await;
    let error = named.begin(None).await.unwrap_err();
    assert!(is_hopeless(&error), "{error:#}");
}

#[tokio::test]
async fn nothing_is_said_of_what_is_older_than_it_was_told() {
    // The older one is among what is read again each time, for events that come late to the list.
    let rows = vec![sent(1, 60), sent(2, 3_630)];
    let mut tail = tail(rows, vec![SUBSCRIPTIONS[1]]).await;
    tail.begin(Some("1h".parse().unwrap())).await.unwrap();
    tail.look().await.unwrap();
    assert_eq!(tail.left, Some(9));
}
