//! Events: what is accepted, what is refused, what becomes of it.

mod accepting;
mod batch;
mod catalogue;
mod group_commit;
mod idempotency;
mod looking_up;
mod metrics;
mod outages;
mod refusing;

use domain::key::Role;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use sqlx::PgPool;
use testkit::Installation;
use uuid::Uuid;

use crate::running::{Running, make_key};

/// An event that is accepted.
pub(crate) fn event() -> Value {
    json!({
        "type": "contact.deleted",
        "resellerId": "acme",
        "data": {"contact": {"id": "contact-42"}},
    })
}

/// The same with other fields.
pub(crate) fn event_with(fields: Value) -> Value {
    let mut event = event();
    let Value::Object(fields) = fields else {
        panic!("fields are an object")
    };
    for (name, value) in fields {
        event[name] = value;
    }
    event
}

impl Running {
    /// `POST /events` with this body.
    pub(crate) fn post_event(&self, body: &Value) -> RequestBuilder {
        self.request("POST", "/events").bearer_auth(&self.key).json(body)
    }

    /// `POST /events/batch` with these events.
    pub(crate) fn post_batch(&self, events: &[Value]) -> RequestBuilder {
        let request = self.request("POST", "/events/batch").bearer_auth(&self.key);
        request.json(&json!({"events": events}))
    }

    /// `POST /events` with a body as it is written.
    pub(crate) fn post_written(&self, body: &str) -> RequestBuilder {
        let request = self.request("POST", "/events").bearer_auth(&self.key);
        request
            .header("content-type", "application/json")
            .body(body.to_owned())
    }

    /// Hands in an event that is accepted, and returns its identifier.
    pub(crate) async fn accepted_event(&self, body: &Value) -> Uuid {
        event_location(&self.post_event(body).send().await.unwrap())
    }

    /// `GET /events/{id}` of an event that exists.
    pub(crate) async fn look_up_event(&self, id: Uuid) -> Value {
        let answer = self.get(&format!("/events/{id}")).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        answer.json().await.unwrap()
    }
}

/// The identifier in the `Location` of a 202.
pub(crate) fn event_location(answer: &Response) -> Uuid {
    assert_eq!(answer.status(), StatusCode::ACCEPTED);
    let location = answer.headers()["location"].to_str().unwrap();
    location.strip_prefix("/events/").unwrap().parse().unwrap()
}

/// How many rows a table has.
pub(crate) async fn count(pool: &PgPool, table: &str) -> i64 {
    sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}")))
        .fetch_one(pool)
        .await
        .unwrap()
}

/// Everything that may be written: events, notifications, keys.
pub(crate) async fn nothing_is_stored(pool: &PgPool) {
    for table in ["events", "notifications", "event_keys"] {
        assert_eq!(count(pool, table).await, 0, "{table}");
    }
}

/// What receivers are sent of an event.
pub(crate) async fn body_of(pool: &PgPool, id: Uuid) -> String {
    sqlx::query_scalar("SELECT body FROM events WHERE id = $1")
        .bind(id)
        .fetch_one(pool)
        .await
        .unwrap()
}

/// A key with this role.
pub(crate) async fn key_with(it: &Installation, role: Role) -> String {
    make_key(&it.store, &[role]).await.1
}
