//! `POST /subscriptions/{id}/test`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::quota::day_of;
use domain::{event, nearest};
use http::{HeaderMap, HeaderName, StatusCode, header};
use http_api::{FieldCode, FieldProblem, Id, Payload, Problem};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::webhook::{NewTestEvent, Tested};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::{App, new_id};
use crate::problems;
use crate::request::{Manager, Reseller};

/// The type of test events. It is in no catalogue: no reseller can subscribe to it, and no caller can hand one in.
const TEST: &str = "postrider.test";

/// What a test event is to look like.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object", default)]
#[schema(as = TestRequest)]
pub(crate) struct TestPayload {
    /// The event type whose example is sent, whatever the subscription selects; postrider.test when missing.
    #[serde(rename = "type")]
    #[schema(example = "domain.created")]
    pub(crate) event_type: Option<String>,
    /// Which of its variants; the example when missing.
    #[schema(example = "court-order")]
    pub(crate) variant: Option<String>,
}

/// A test event on its way.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TestEvent)]
pub(crate) struct TestDocument {
    /// The event, as the endpoint gets to know it.
    pub(crate) event_id: Uuid,
    /// What becomes of it is told at /notifications/{id}.
    pub(crate) notification_id: Uuid,
}

/// Sends a test event to this subscription alone.
///
/// Without a body it is of the type postrider.test; with a type it is the catalogue's example of that. It is signed and retried as every other one, and uses no quota; a subscription is sent at most 1,000 in a day.
#[utoipa::path(
    post, path = "/subscriptions/{id}/test", tag = "subscriptions", operation_id = "testSubscription",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    request_body(content = TestPayload, description = "May be left out."),
    responses((status = 202, description = "It will be sent in a moment.", body = TestDocument,
        headers(("Location" = String, description = "Where the notification is: /notifications/{id}"))))
)]
pub(crate) async fn send_test(
    State(app): State<Arc<App>>,
    reseller: Manager,
    Id(subscription): Id,
    headers: HeaderMap,
    payload: Option<Payload<TestPayload>>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<TestDocument>), Problem> {
    let now = app.now();
    let id = new_id(now);
    let payload = payload.map(|Payload(payload)| payload).unwrap_or_default();
    let (event_type, data) = content(&app, &reseller, subscription, payload).await?;
    let test = NewTestEvent {
        id,
        subscription,
        body: event::body(&id.to_string(), &event_type, now, &data.to_string()),
        event_type,
        today: day_of(now, app.config.reseller.quota.time_zone),
        created_at: now,
        traceparent: http_api::traceparent(&headers, app.config.telemetry.otlp_endpoint.is_some()),
    };
    let insert = app
        .store
        .insert_test_event(&reseller.id, &test, reseller.act(now));
    match http_api::by(reseller.deadline, ("the test event", "stored"), insert).await? {
        Tested::Done(notification) => {
            let location = [(header::LOCATION, format!("/notifications/{notification}"))];
            let document = TestDocument {
                event_id: id,
                notification_id: notification.uuid(),
            };
            Ok((StatusCode::ACCEPTED, location, Json(document)))
        }
        Tested::NotActive(state) => Err(problems::not_active(state)),
        Tested::NotBefore(then) => {
            let detail = "as many test events were sent to the subscription as may be in a day";
            Err(problems::not_before(detail, then, now))
        }
        Tested::Unknown => Err(problems::no_subscription()),
    }
}

/// The type and the data of a test event.
async fn content(
    app: &App,
    reseller: &Reseller,
    subscription: Uuid,
    payload: TestPayload,
) -> Result<(String, Value), Problem> {
    let wrong = |field: &'static str, detail: String, code| {
        Problem::fields(vec![FieldProblem::new(field, detail).coded(code)])
    };
    let Some(name) = payload.event_type else {
        if payload.variant.is_some() {
            return Err(wrong(
                "variant",
                "is of an event type: name that as well".to_owned(),
                FieldCode::Conflict,
            ));
        }
        let data = json!({"message": "This is a test event.", "subscriptionId": subscription});
        return Ok((TEST.to_owned(), data));
    };
    // What can be no name is not asked for, and not said: it may hold what the database does not take.
    if !domain::subscription::is_event_type(&name) {
        let detail = "is not in the catalogue; GET /event-types lists what it has";
        return Err(wrong("type", detail.to_owned(), FieldCode::UnknownValue));
    }
    let find = app.store.find_event_type(&name);
    let found = http_api::by(reseller.deadline, ("the event type", "read"), find).await?;
    let Some(found) = found else {
        let known = app.event_types(reseller).await?;
        let question = nearest::question(&name, known.iter().map(String::as_str));
        let detail = format!(
            "is {name:?}, but the catalogue has no such event type; GET /event-types lists what it has{question}"
        );
        return Err(wrong("type", detail, FieldCode::UnknownValue));
    };
    let Some(asked) = payload.variant else {
        return Ok((found.name, found.example));
    };
    let variants = found.variants.as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = variants
        .iter()
        .filter_map(|variant| variant["name"].as_str())
        .collect();
    let variant = variants
        .iter()
        .find(|variant| variant["name"].as_str() == Some(&asked));
    match variant {
        Some(variant) => Ok((found.name, variant["data"].clone())),
        None if names.is_empty() => Err(wrong(
            "variant",
            format!("{name} has none"),
            FieldCode::UnknownValue,
        )),
        None => Err(wrong(
            "variant",
            format!("must be one of {}", names.join(", ")),
            FieldCode::UnknownValue,
        )),
    }
}
