//! The catalogue of event types: `/event-types`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use http_api::paging::List;
use http_api::{Name, Problem, ProblemKind};
use serde::Serialize;
use serde_json::Value;
use store::webhook::EventType;
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
    pub(crate) name: String,
    /// When it occurs.
    pub(crate) description: String,
    /// The attributes of its data.
    #[schema(value_type = Vec<AttributeDocument>)]
    pub(crate) attributes: Value,
    /// An example of its data.
    #[schema(value_type = Object)]
    pub(crate) example: Value,
    /// How its data can differ from the example.
    #[schema(value_type = Vec<VariantDocument>)]
    pub(crate) variants: Value,
    /// A JSON Schema of its data, if there is one.
    #[schema(value_type = Option<Object>)]
    pub(crate) schema: Option<Value>,
    /// When it was retired; no new events of it come in since then.
    pub(crate) retired_at: Option<DateTime<Utc>>,
}

/// An attribute of an event's data.
#[derive(ToSchema)]
#[schema(as = EventAttribute, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is stored")]
pub(crate) struct AttributeDocument {
    /// Its name, with dots between the names of nested objects.
    #[schema(example = "domain.name")]
    pub(crate) name: String,
    /// Its JSON type, or `time`, `texts` (a list of strings), `objects` (a list of objects).
    #[schema(rename = "type", example = "string")]
    pub(crate) kind: String,
    /// What it says.
    #[schema(example = "The name of the domain.")]
    pub(crate) description: String,
    /// Whether it is always there.
    pub(crate) required: bool,
}

/// A way that an event's data can differ from the example of its type.
#[derive(ToSchema)]
#[schema(as = EventVariant, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is stored")]
pub(crate) struct VariantDocument {
    /// Tells it from the other variants of its event type.
    #[schema(example = "court-order")]
    pub(crate) name: String,
    /// When it occurs.
    #[schema(example = "A court ordered it.")]
    pub(crate) description: String,
    /// An example of the data.
    #[schema(value_type = Object)]
    pub(crate) data: Value,
}

impl From<EventType> for EventTypeDocument {
    fn from(event_type: EventType) -> Self {
        Self {
            name: event_type.name,
            description: event_type.description,
            attributes: event_type.attributes,
            example: event_type.example,
            variants: event_type.variants,
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
    Name(name): Name,
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
