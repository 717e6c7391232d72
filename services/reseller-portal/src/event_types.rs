//! The catalogue of event types: `/event-types`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use chrono::{DateTime, Utc};
use http_api::paging::List;
use http_api::{Problem, ProblemKind};
use serde::Serialize;
use serde_json::Value;
use store::reseller::EventType;
use utoipa::ToSchema;

use crate::app::App;
use crate::request::Reseller;

/// An event type.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EventType)]
pub(crate) struct EventTypeDocument {
    /// Its name.
    #[schema(example = "domain.created")]
    name: String,
    /// When it occurs.
    description: String,
    /// The attributes of its data: name, type, description, and whether they are always there.
    #[schema(value_type = Vec<Object>)]
    attributes: Value,
    /// An example of its data.
    #[schema(value_type = Object)]
    example: Value,
    /// A JSON Schema of its data, if there is one.
    #[schema(value_type = Option<Object>)]
    schema: Option<Value>,
    /// When it was retired; no new events of it come in since then.
    retired_at: Option<DateTime<Utc>>,
}

impl From<EventType> for EventTypeDocument {
    fn from(event_type: EventType) -> Self {
        Self {
            name: event_type.name,
            description: event_type.description,
            attributes: event_type.attributes,
            example: event_type.example,
            schema: event_type.schema,
            retired_at: event_type.retired_at,
        }
    }
}

/// Lists all event types by name.
#[utoipa::path(
    get, path = "/event-types", tag = "event types", operation_id = "listEventTypes",
    security(("apiKey" = [])),
    responses((status = 200, description = "All of them.", body = List<EventTypeDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    reseller: Reseller,
) -> Result<Json<List<EventTypeDocument>>, Problem> {
    let list = app.store.list_event_types();
    let types = http_api::by(reseller.deadline, ("the event types", "read"), list).await?;
    let items = types.into_iter().map(EventTypeDocument::from).collect();
    Ok(Json(List::new(items, None)))
}

/// Shows an event type.
#[utoipa::path(
    get, path = "/event-types/{name}", tag = "event types", operation_id = "findEventType",
    security(("apiKey" = [])),
    params(("name" = String, Path, description = "Its name.", example = "domain.created")),
    responses((status = 200, description = "The event type.", body = EventTypeDocument))
)]
pub(crate) async fn find(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Path(name): Path<String>,
) -> Result<Json<EventTypeDocument>, Problem> {
    let no_type = || Problem::new(ProblemKind::NOT_FOUND, "no event type has this name");
    // What can be no name is not asked for: it may hold what the database does not take.
    if !domain::subscription::is_event_type(&name) {
        return Err(no_type());
    }
    let find = app.store.find_event_type(&name);
    let found = http_api::by(reseller.deadline, ("the event type", "read"), find).await?;
    Ok(Json(found.ok_or_else(no_type)?.into()))
}
