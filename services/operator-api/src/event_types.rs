//! The catalogue of event types as on-call sees it: which there are, what is said of one, and retiring one.
//!
//! It deliberately puts none into the catalogue: that is `PUT /event-types/{name}` of ingest, which checks payloads by it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use http_api::paging::List;
use http_api::{Name, Payload, Problem, ProblemKind};
use serde::Serialize;
use serde_json::Value;
use store::webhook::EventType;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::note::{Note, NotePayload};
use crate::request::{Administrator, Viewer};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(find))
        .routes(routes!(retire))
}

/// An event type in the list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EventTypeListed)]
pub(crate) struct ListedDocument {
    /// Its name.
    #[schema(example = "domain.created")]
    name: String,
    /// When it occurs.
    #[schema(example = "A domain was registered.")]
    description: String,
    /// Whether payloads are checked by a schema.
    has_schema: bool,
    /// When what the catalogue says of it last changed.
    updated_at: DateTime<Utc>,
    /// Since when new events of it are refused, if they are.
    retired_at: Option<DateTime<Utc>>,
}

/// An event type, as `postrider event-types put` and `PUT /event-types/{name}` of ingest take it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EventType)]
pub(crate) struct EventTypeDocument {
    #[serde(flatten)]
    listed: ListedDocument,
    /// The attributes of the data.
    #[schema(value_type = Vec<Object>)]
    attributes: Value,
    /// An example of the data.
    #[schema(value_type = Object)]
    example: Value,
    /// How the data can differ from the example, with an example of each way.
    #[schema(value_type = Vec<Object>)]
    variants: Value,
    /// The JSON Schema that the data is checked against, if there is one.
    #[schema(value_type = Option<Object>)]
    schema: Option<Value>,
    /// What becomes of a field of the data that the schema does not list: REFUSE, DROP or ALLOW.
    #[schema(example = "REFUSE")]
    unknown_fields: &'static str,
    /// When it got into the catalogue.
    created_at: DateTime<Utc>,
}

impl From<EventType> for ListedDocument {
    fn from(event_type: EventType) -> Self {
        Self {
            name: event_type.name,
            description: event_type.description,
            has_schema: event_type.schema.is_some(),
            updated_at: event_type.updated_at,
            retired_at: event_type.retired_at,
        }
    }
}

impl From<EventType> for EventTypeDocument {
    fn from(event_type: EventType) -> Self {
        Self {
            attributes: event_type.attributes.clone(),
            example: event_type.example.clone(),
            variants: event_type.variants.clone(),
            schema: event_type.schema.clone(),
            unknown_fields: event_type.unknown_fields.as_str(),
            created_at: event_type.created_at,
            listed: event_type.into(),
        }
    }
}

/// Lists the catalogue of event types by name, retired ones included.
#[utoipa::path(
    get, path = "/event-types", tag = "event types", operation_id = "listEventTypes", security(("apiKey" = [])),
    responses((status = 200, description = "The catalogue.", body = List<ListedDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
) -> Result<Json<List<ListedDocument>>, Problem> {
    let reading = app.store.list_event_types();
    let types = http_api::by(viewer.deadline, ("the catalogue", "read"), reading).await?;
    let items = types.into_iter().map(ListedDocument::from).collect();
    Ok(Json(List::new(items, None)))
}

/// Shows one event type. Who changed it is in the audit log, under the subject `event-type/` and its name.
#[utoipa::path(
    get, path = "/event-types/{name}", tag = "event types", operation_id = "findEventType", security(("apiKey" = [])),
    params(("name" = String, Path, description = "The name of the event type.", example = "domain.created")),
    responses((status = 200, description = "The event type.", body = EventTypeDocument))
)]
pub(crate) async fn find(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Name(name): Name,
) -> Result<Json<EventTypeDocument>, Problem> {
    let reading = app.store.find_event_type(storable(&name)?);
    let found = http_api::by(viewer.deadline, ("the event type", "read"), reading).await?;
    Ok(Json(found.ok_or_else(unknown)?.into()))
}

/// Retires an event type: new events of it are refused, by every process within 5 seconds.
///
/// What was accepted is sent. One that was retired before stays as it is. `PUT /event-types/{name}` of ingest brings it back.
#[utoipa::path(
    post, path = "/event-types/{name}/retire", tag = "event types", operation_id = "retireEventType",
    security(("apiKey" = [])),
    params(("name" = String, Path, description = "The name of the event type.", example = "domain.created")),
    request_body = NotePayload,
    responses((status = 200, description = "The event type, which is retired.", body = EventTypeDocument))
)]
pub(crate) async fn retire(
    State(app): State<Arc<App>>,
    admin: Administrator,
    Name(name): Name,
    Payload(body): Note,
) -> Result<Json<EventTypeDocument>, Problem> {
    let act = admin.act(Some(body.required()?), app.now());
    let retiring = app.store.retire_event_type(storable(&name)?, act);
    http_api::by(admin.deadline, ("the event type", "retired"), retiring).await?;
    find(State(app), admin.viewer(), Name(name)).await
}

/// A path may hold U+0000, which the database does not even take in a question.
fn storable(name: &str) -> Result<&str, Problem> {
    Some(name).filter(|name| !name.contains('\0')).ok_or_else(unknown)
}

fn unknown() -> Problem {
    Problem::new(
        ProblemKind::NOT_FOUND,
        "the catalogue has no event type of this name",
    )
}
