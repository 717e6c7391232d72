//! The catalogue of event types: `GET /event-types`, and `GET`, `PUT` and `DELETE /event-types/{name}`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::key::Role;
use event_schema::{DEFINITION_MAX, Definition, Finding};
use http::StatusCode;
use http::request::Parts;
use http_api::{FieldCode, FieldProblem, Handling, Name, Problem, ProblemKind, Wrong};
use serde::Serialize;
use serde_json::Value;
use store::Act;
use store::webhook::{EventType, NewEventType};
use utoipa::ToSchema;

use crate::app::App;
use crate::event::validate::breaking;

/// The catalogue.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EventTypes)]
pub(crate) struct EventTypeList {
    /// Every event type by name, retired ones included.
    event_types: Vec<EventTypeDocument>,
}

/// An event type.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EventType)]
pub(crate) struct EventTypeDocument {
    /// Its name.
    #[schema(example = "domain.created")]
    name: String,
    /// When it occurs.
    #[schema(example = "A domain was registered.")]
    description: String,
    /// The attributes of the data.
    #[schema(value_type = Vec<AttributeDocument>)]
    attributes: Value,
    /// An example of the data.
    #[schema(value_type = Object)]
    example: Value,
    /// How the data can differ from the example, with an example of each way.
    #[schema(value_type = Vec<VariantDocument>)]
    variants: Value,
    /// The JSON Schema that the data is checked against, if there is one.
    #[schema(value_type = Option<Object>)]
    schema: Option<Value>,
    /// What becomes of a field of the data that the schema does not list: the event is refused, the field is dropped, or
    /// allowed.
    #[schema(value_type = UnknownFields)]
    unknown_fields: &'static str,
    /// When it got into the catalogue.
    created_at: DateTime<Utc>,
    /// When it last changed.
    updated_at: DateTime<Utc>,
    /// Since when new events of it are refused, if they are.
    retired_at: Option<DateTime<Utc>>,
}

/// What the catalogue is to say of an event type.
#[derive(ToSchema)]
#[schema(as = EventTypeDefinition, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes a type of another crate")]
pub(crate) struct DefinitionDocument {
    /// When it occurs, for people.
    #[schema(min_length = 1, example = "A domain was registered.")]
    description: String,
    /// The attributes of the data, for people.
    #[schema(required = false)]
    attributes: Vec<AttributeDocument>,
    /// An example of the data, which has to keep to the schema.
    #[schema(value_type = Object, example = json!({"domain": {"name": "example.org"}}))]
    example: Value,
    /// How the data can differ from the example, with an example of each way: at most 50, with at most 262144 bytes of
    /// data together. A caller that leaves them out takes away those that were there.
    #[schema(required = false, max_items = 50)]
    variants: Vec<VariantDocument>,
    /// A JSON Schema that the data is checked against; it may not refer to anything outside itself.
    #[schema(value_type = Option<Object>, example = json!({"type": "object", "required": ["domain"],
        "properties": {"domain": {"type": "object", "properties": {"name": {"type": "string"}}}}}))]
    schema: Option<Value>,
    /// What becomes of a field of the data that the schema does not list.
    #[schema(required = false, default = "REFUSE")]
    unknown_fields: UnknownFields,
}

/// What becomes of a field of an event's data that the schema of its type does not list.
#[derive(ToSchema)]
#[schema(rename_all = "UPPERCASE")]
#[expect(dead_code, reason = "describes a type of another crate")]
pub(crate) enum UnknownFields {
    /// The event is refused, and the field named.
    Refuse,
    /// It is taken out, and the rest passed on.
    Drop,
    /// It is passed on, unless the schema itself forbids it.
    Allow,
}

/// An attribute of an event's data.
#[derive(ToSchema)]
#[schema(as = EventAttribute, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes a type of another crate")]
pub(crate) struct AttributeDocument {
    /// Its name, with dots between the names of nested objects.
    #[schema(example = "domain.name")]
    name: String,
    /// Its JSON type, or what of it is expected.
    #[schema(rename = "type", example = "string")]
    kind: String,
    /// What it says.
    #[schema(required = false, example = "The name of the domain, in lower case.")]
    description: String,
    /// Whether it is always there.
    #[schema(required = false)]
    required: bool,
}

/// A way that an event's data can differ from the example of its type.
#[derive(ToSchema)]
#[schema(as = EventVariant, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes a type of another crate")]
pub(crate) struct VariantDocument {
    /// Tells it from the other variants of its event type.
    #[schema(
        max_length = 50,
        pattern = "^[a-z0-9]+(-[a-z0-9]+)*$",
        example = "court-order"
    )]
    name: String,
    /// When it occurs.
    #[schema(min_length = 1, example = "A court ordered it.")]
    description: String,
    /// An example of the data, which has to keep to the schema.
    #[schema(value_type = Object, example = json!({"domain": {"name": "example.org"}, "reason": "court_order"}))]
    data: Value,
}

/// Lists the catalogue of event types.
#[utoipa::path(
    get, path = "/event-types", tag = "event types", operation_id = "listEventTypes", security(("apiKey" = [])),
    responses((status = 200, description = "The catalogue.", body = EventTypeList))
)]
pub(crate) async fn list(State(app): State<Arc<App>>, head: Parts) -> Result<Json<EventTypeList>, Problem> {
    let (_, deadline) = app.reader(&head).await?;
    let reading = app.store.list_event_types();
    let types = http_api::by(deadline, ("the catalogue", "read"), reading).await?;
    let event_types = types.into_iter().map(document).collect();
    Ok(Json(EventTypeList { event_types }))
}

/// Shows one event type.
#[utoipa::path(
    get, path = "/event-types/{name}", tag = "event types", operation_id = "findEventType",
    security(("apiKey" = [])),
    params(("name" = String, Path, description = "The name of the event type.", example = "domain.created")),
    responses((status = 200, description = "The event type.", body = EventTypeDocument))
)]
pub(crate) async fn find(
    State(app): State<Arc<App>>,
    Name(name): Name,
    head: Parts,
) -> Result<Response, Problem> {
    let (_, deadline) = app.reader(&head).await?;
    let reading = app.store.find_event_type(storable(&name)?);
    let found = http_api::by(deadline, ("the event type", "read"), reading).await?;
    Ok(Json(document(found.ok_or_else(unknown)?)).into_response())
}

/// Adds an event type to the catalogue, or replaces what the catalogue says of it.
///
/// Needs the role admin. One that was retired is in use again. Every process has seen the change within 5 seconds.
#[utoipa::path(
    put, path = "/event-types/{name}", tag = "event types", operation_id = "putEventType",
    security(("apiKey" = [])),
    params(("name" = String, Path, example = "domain.created",
        description = "The name of the event type: words of small letters, digits and underscores, at least two, with dots \
                       between them.")),
    request_body(content = DefinitionDocument, content_type = "application/json",
        description = "text/json and application/*+json are accepted as well."),
    responses(
        (status = 200, description = "The event type, which was there before.", body = EventTypeDocument),
        (status = 201, description = "The event type, which is new.", body = EventTypeDocument),
    )
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    name: Result<Name, Problem>,
    request: Request,
) -> Result<Response, Problem> {
    let deadline = app.deadline();
    let (head, body) = request.into_parts();
    let caller = app.caller(&head.headers, deadline).await?;
    caller.require(is_admin)?;
    http_api::refuse_in_vain(&head)?;
    let Name(name) = name.map_err(|_| {
        Problem::fields(vec![
            FieldProblem::new("name", "must be UTF-8").coded(FieldCode::WrongFormat),
        ])
    })?;
    http_api::require_json(&head.headers)?;
    let limit = app.max_body_bytes.max(DEFINITION_MAX);
    let body = http_api::read_body(&head.headers, body, limit, deadline).await?;
    let (definition, wrong): (Definition, Wrong) =
        http_api::read_json(&body, Handling::preferred(&head.headers))?;
    let findings = definition.findings(&name).into_iter();
    let wrong = wrong.and(findings.map(wrong_field).collect());
    if !wrong.is_empty() {
        return Err(Problem::fields(wrong));
    }
    let event_type = NewEventType {
        name,
        description: definition.description,
        attributes: listed(&definition.attributes),
        example: definition.example,
        variants: listed(&definition.variants),
        schema: definition.schema,
        unknown_fields: definition.unknown_fields,
    };
    let by = caller.signature();
    let act = by_hand(&by, app.clock.now());
    let writing = app.store.put_event_type(&event_type, act);
    let new = http_api::by(deadline, ("the event type", "stored"), writing).await?;
    app.catalogue.forget(&event_type.name).await;
    tracing::info!(
        name = event_type.name,
        by,
        new,
        "an event type was put into the catalogue"
    );
    let reading = app.store.find_event_type(&event_type.name);
    let found = http_api::by(deadline, ("the event type", "read"), reading).await?;
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(document(found.ok_or_else(unknown)?))).into_response())
}

/// Retires an event type.
///
/// Needs the role admin. New events of it are refused, by every process within 5 seconds; old ones keep their meaning. An
/// event type is never deleted.
#[utoipa::path(
    delete, path = "/event-types/{name}", tag = "event types", operation_id = "retireEventType",
    security(("apiKey" = [])),
    params(("name" = String, Path, description = "The name of the event type.", example = "domain.created")),
    responses((status = 204, description = "The event type is retired, now or since earlier."))
)]
pub(crate) async fn retire(
    State(app): State<Arc<App>>,
    Name(name): Name,
    head: Parts,
) -> Result<Response, Problem> {
    let deadline = app.deadline();
    let caller = app.caller(&head.headers, deadline).await?;
    caller.require(is_admin)?;
    http_api::refuse_in_vain(&head)?;
    let by = caller.signature();
    let act = by_hand(&by, app.clock.now());
    let writing = app.store.retire_event_type(storable(&name)?, act);
    if http_api::by(deadline, ("the event type", "retired"), writing).await? {
        app.catalogue.forget(&name).await;
        tracing::info!(name, by, "an event type was retired");
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let reading = app.store.find_event_type(&name);
    let found = http_api::by(deadline, ("the event type", "read"), reading).await?;
    found
        .map(|_| StatusCode::NO_CONTENT.into_response())
        .ok_or_else(unknown)
}

/// What a change of the catalogue is signed with in the audit log.
fn by_hand(by: &str, at: DateTime<Utc>) -> Act<'_> {
    Act { by, note: None, at }
}

fn wrong_field(finding: Finding) -> FieldProblem {
    let wrong = FieldProblem::new(finding.field, finding.detail);
    match finding.rule {
        Some(rule) => breaking(wrong, rule),
        None => wrong,
    }
}

fn is_admin(role: Role) -> bool {
    role == Role::Admin
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

fn listed<T: Serialize>(parts: &[T]) -> Value {
    serde_json::to_value(parts).expect("invariant: a list of structs of texts and JSON is always valid JSON")
}

fn document(event_type: EventType) -> EventTypeDocument {
    EventTypeDocument {
        name: event_type.name,
        description: event_type.description,
        attributes: event_type.attributes,
        example: event_type.example,
        variants: event_type.variants,
        schema: event_type.schema,
        unknown_fields: event_type.unknown_fields.as_str(),
        created_at: event_type.created_at,
        updated_at: event_type.updated_at,
        retired_at: event_type.retired_at,
    }
}
