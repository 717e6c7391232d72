//! From a payload to an event that can be stored, or to everything that is wrong with it.

use std::borrow::Cow;

use domain::event::{self, EventError, EventRequest};
use domain::push::PushId;
use event_schema::{Checked, PayloadRules, Rule, Violation};
use http_api::{FieldCode, FieldProblem, Problem, Wrong};
use serde_json::Value;
use store::webhook::NewEvent;
use tokio::time::Instant;

use crate::app::App;
use crate::event::idempotency;
use crate::event::payload::EventPayload;
use crate::request::{RequestContext, out_of_scope};

/// Why a payload is not an event.
pub(crate) enum Invalid {
    /// These fields are wrong.
    Fields(Vec<FieldProblem>),
    /// It cannot be told now, or the caller may not hand it in.
    Problem(Problem),
}

/// Makes an event of the payload at a place of the request, or says what is wrong with it and with what of it could not be read.
pub(crate) async fn check(
    app: &App,
    (payload, unread): (&EventPayload<'_>, Wrong),
    place: usize,
    context: &RequestContext,
) -> Result<NewEvent, Invalid> {
    let draft = payload.draft();
    let checked = EventRequest::check(draft, app.max_data_bytes, context.now);
    let mut wrong: Vec<FieldProblem> = checked.as_ref().err().into_iter().flatten().map(field).collect();
    let sound = |name| !wrong.iter().any(|problem| problem.field == name);
    // Before anything is said about the data. A field that is wrong itself is told so.
    let (reseller, named) = (draft.reseller_id, draft.event_type);
    let refused = context
        .scope
        .refuses_event(reseller.unwrap_or_default(), named.unwrap_or_default());
    if let Some(refused) = refused.filter(|refused| sound(refused.field)) {
        return Err(Invalid::Problem(out_of_scope(&refused)));
    }
    let event_type = named.filter(|_| sound("type"));
    let data = draft.data.filter(|_| sound("data"));
    let (data, mut further) = against_the_catalogue(app, event_type, data, context.deadline)
        .await
        .map_err(Invalid::Problem)?;
    wrong.append(&mut further);
    let wrong = unread.and(wrong);
    match checked {
        Ok(request) if wrong.is_empty() => {
            let data = data.as_deref().unwrap_or(request.data);
            Ok(event(&request, data, place, context))
        }
        _ => Err(Invalid::Fields(wrong)),
    }
}

pub(crate) fn field(error: &EventError) -> FieldProblem {
    let wrong = FieldProblem::new(error.field(), error.to_string());
    match error {
        EventError::Type | EventError::ResellerId | EventError::EventId | EventError::OccurredAt => {
            wrong.coded(FieldCode::WrongFormat)
        }
        EventError::Data => wrong.coded(FieldCode::WrongType),
        EventError::TooFarAhead => wrong.coded(FieldCode::OutOfRange),
        EventError::TooLong { limit, .. } => wrong.at_most(*limit),
        EventError::Reserved => wrong,
    }
}

/// What the catalogue, and those who have to read the data, say about it; and the data as it is passed on.
async fn against_the_catalogue<'a>(
    app: &App,
    event_type: Option<&str>,
    data: Option<&'a str>,
    deadline: Instant,
) -> Result<(Option<Cow<'a, str>>, Vec<FieldProblem>), Problem> {
    let mut wrong = Vec::new();
    let mut rules = None;
    if let Some(name) = event_type {
        match app.catalogue.find(name, deadline).await? {
            None => {
                let question = app.catalogue.question(name, deadline).await;
                let detail = format!("is not in the catalogue of event types{question}");
                wrong.push(FieldProblem::new("type", detail).coded(FieldCode::UnknownValue));
            }
            Some(known) if known.retired => {
                wrong.push(
                    FieldProblem::new("type", "is retired: no new events of it are accepted")
                        .coded(FieldCode::UnknownValue),
                );
            }
            Some(known) => rules = known.rules,
        }
    }
    let Some(data) = data else {
        return Ok((None, wrong));
    };
    let (data, further) = against_the_rules(data, rules.as_deref());
    wrong.extend(further);
    Ok((Some(data), wrong))
}

/// What those who have to read the data say about it, and the data without what its type drops.
pub(crate) fn against_the_rules<'a>(
    data: &'a str,
    rules: Option<&PayloadRules>,
) -> (Cow<'a, str>, Vec<FieldProblem>) {
    // Even without rules: what could be told apart as JSON may still be beyond those who read it, such as a number
    // that is too large, half a character, or a thousand lists in each other.
    let checked = match rules {
        Some(rules) => rules.check(data),
        None => serde_json::from_str::<Value>(data).map(|_| Checked {
            data: Cow::Borrowed(data),
            violations: Vec::new(),
        }),
    };
    match checked {
        Ok(Checked { data, violations }) => (data, violations.into_iter().map(violation).collect()),
        Err(error) => {
            let wrong =
                FieldProblem::new("data", format!("cannot be read: {error}")).coded(FieldCode::WrongFormat);
            (Cow::Borrowed(data), vec![wrong])
        }
    }
}

fn violation(violation: Violation) -> FieldProblem {
    let wrong = FieldProblem::new(format!("data{}", violation.pointer), violation.detail);
    let wrong = wrong.coded(FieldCode::Schema);
    match violation.rule {
        Some(rule) => breaking(wrong, rule),
        None => wrong,
    }
}

/// The same field, which breaks this rule.
pub(crate) fn breaking(wrong: FieldProblem, Rule { keyword, params }: Rule) -> FieldProblem {
    let code = match keyword.as_str() {
        "required" => FieldCode::Missing,
        "type" => FieldCode::WrongType,
        "enum" | "const" => FieldCode::UnknownValue,
        "format" | "pattern" | "contentEncoding" | "contentMediaType" => FieldCode::WrongFormat,
        "maxLength" => FieldCode::TooLong,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "minLength" | "minItems"
        | "maxItems" | "minProperties" | "maxProperties" => FieldCode::OutOfRange,
        "unknownFields" | "additionalProperties" | "unevaluatedProperties" => FieldCode::UnknownField,
        _ => FieldCode::Schema,
    };
    FieldProblem {
        params,
        ..wrong.coded(code)
    }
}

/// The event of a request, with the data that is passed on. It is known again by the data that was handed in: what a type
/// drops may change.
pub(crate) fn event(
    request: &EventRequest<'_>,
    data: &str,
    place: usize,
    context: &RequestContext,
) -> NewEvent {
    let now = context.now;
    let id = PushId::at(now).uuid();
    let event_id = request.event_id.map_or_else(|| id.to_string(), str::to_owned);
    let occurred_at = request.occurred_at.unwrap_or(now);
    NewEvent {
        id,
        body: event::body(&event_id, request.event_type, occurred_at, data),
        event_id,
        reseller_id: request.reseller_id.to_owned(),
        event_type: request.event_type.to_owned(),
        occurred_at,
        created_at: now,
        traceparent: context.traceparent.clone(),
        keys: idempotency::keys(request, context.key.as_ref(), place),
    }
}
