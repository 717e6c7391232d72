//! `POST /subscriptions/{id}/test`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::event;
use domain::quota::day_of;
use http::{HeaderMap, HeaderName, StatusCode, header};
use http_api::{Id, Problem};
use serde::Serialize;
use serde_json::json;
use store::webhook::{NewTestEvent, Tested};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::{App, new_id};
use crate::problems;
use crate::request::Manager;

/// The type of test events. It is in no catalogue: no reseller can subscribe to it, and no caller can hand one in.
const TEST: &str = "postrider.test";

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
/// It is of the type postrider.test, is signed and retried as every other one, and uses no quota.
#[utoipa::path(
    post, path = "/subscriptions/{id}/test", tag = "subscriptions", operation_id = "testSubscription",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 202, description = "It will be sent in a moment.", body = TestDocument,
        headers(("Location" = String, description = "Where the notification is: /notifications/{id}"))))
)]
pub(crate) async fn send_test(
    State(app): State<Arc<App>>,
    reseller: Manager,
    Id(subscription): Id,
    headers: HeaderMap,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<TestDocument>), Problem> {
    let now = app.now();
    let id = new_id(now);
    let data = json!({"message": "This is a test event.", "subscriptionId": subscription});
    let test = NewTestEvent {
        id,
        subscription,
        event_type: TEST,
        body: event::body(&id.to_string(), TEST, now, &data.to_string()),
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
        Tested::Unknown => Err(problems::no_subscription()),
    }
}
