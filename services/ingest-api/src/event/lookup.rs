//! `GET /events/{id}`, and `GET /events` by what the caller itself called the event.
//!
//! It deliberately does not show the data: who may look is not who may read.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use chrono::{DateTime, Utc};
use domain::notification::NotificationStatus;
use domain::origin::origin;
use domain::reason::NotificationReason;
use domain::subscription::{HeldBack, PausedBy};
use http::request::Parts;
use http_api::{Caller, FieldCode, FieldProblem, Params, Problem, ProblemKind};
use serde::{Deserialize, Serialize};
use store::webhook::{EventNotification, EventView, MissedSubscription};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;

/// An event as it stands.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Event)]
pub(crate) struct EventDocument {
    /// Its identifier.
    #[schema(example = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")]
    id: Uuid,
    /// What receivers know it by: the caller's eventId, else the identifier.
    #[schema(example = "order-4711-created")]
    event_id: String,
    /// Its type.
    #[serde(rename = "type")]
    #[schema(example = "domain.created")]
    event_type: String,
    /// Whose event it is.
    #[schema(example = "acme")]
    reseller_id: String,
    /// When it happened.
    occurred_at: DateTime<Utc>,
    /// When it was accepted.
    created_at: DateTime<Utc>,
    /// The length of what receivers are sent, in bytes.
    payload_bytes: u32,
    /// The one subscription that it is for, when it is a test.
    test_of: Option<Uuid>,
    /// What it became: one for each subscription that it matched when it was accepted, or that it was replayed to.
    notifications: Vec<NotificationDocument>,
    /// Of an event that became nothing when it was accepted: each subscription that its reseller had then, and why it got
    /// nothing. Null of any other, and when that was not recorded.
    missed: Option<Vec<MissedDocument>>,
}

/// A subscription that got nothing of an event.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MissedSubscription)]
pub(crate) struct MissedDocument {
    /// Which one.
    subscription_id: Uuid,
    /// Why: FILTER (it does not let the type through), UNVERIFIED (the endpoint had not answered its challenge) or
    /// DEACTIVATED. One of several would have been enough.
    #[schema(example = json!(["FILTER"]))]
    reasons: Vec<&'static str>,
    /// Whether it was paused. That is no reason: what a paused subscription gets waits for the end of the pause.
    paused: bool,
    /// The same in words.
    #[schema(example = "Got nothing of it: its filter did not let the type through.")]
    explanation: String,
}

/// A notification as it stands.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Notification)]
pub(crate) struct NotificationDocument {
    /// Its identifier.
    #[schema(example = "019aa2f0-5b1c-8025-9519-0863916ea2df")]
    id: Uuid,
    /// Who is notified.
    subscription_id: Uuid,
    /// Where to, as the subscription has it now: scheme, host and port, as the rest of such a URL often holds a token.
    #[schema(example = "https://example.org")]
    url: String,
    /// Where it stands.
    status: NotificationStatus,
    /// The same in words.
    #[schema(
        example = "Will be tried again after 2026-11-21 12:01:30 UTC: attempt 2 failed: the endpoint answered 503."
    )]
    explanation: String,
    /// Why it waits or has ended, as a stable text for programs; PAUSED while a pause holds it back, save one in RETRY, whose reason
    /// is its last failure.
    #[schema(example = "QUOTA")]
    reason: Option<String>,
    /// Whose pause holds it back: LANE, ALL_OF_RESELLER or OPERATOR (an operator has paused all deliveries, those of the reseller, or
    /// those of the subscription), or RESELLER (its reseller has paused the subscription).
    #[schema(example = "RESELLER")]
    paused_by: Option<&'static str>,
    /// Attempts to deliver it so far.
    attempts: u32,
    /// When it is due, if it is SCHEDULED or RETRY.
    next_attempt_at: Option<DateTime<Utc>>,
    /// When its status last changed.
    updated_at: DateTime<Utc>,
    /// When it ended, if it has.
    finished_at: Option<DateTime<Utc>>,
    /// What the endpoint answered at the last attempt that has ended.
    #[schema(example = 503)]
    response_status: Option<i32>,
}

/// Tells where the notifications of an event stand.
///
/// Any API key of the house may ask. The data is not shown.
#[utoipa::path(
    get,
    path = "/events/{id}",
    tag = "events",
    operation_id = "findEvent",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The event's identifier, from Location. What is no identifier is not found.",
        example = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")),
    responses((status = 200, description = "The event as it stands.", body = EventDocument))
)]
pub(crate) async fn find(
    State(app): State<Arc<App>>,
    id: Result<Path<Uuid>, PathRejection>,
    head: Parts,
) -> Result<Json<EventDocument>, Problem> {
    let (caller, deadline) = app.reader(&head).await?;
    let not_found = || Problem::new(ProblemKind::NOT_FOUND, "no event has this identifier");
    let Path(id) = id.map_err(|_| not_found())?;
    let found = http_api::by(deadline, ("the event", "read"), app.store.find_event(id)).await?;
    let found = found.filter(|event| may_see(&caller, event));
    Ok(Json(document(found.ok_or_else(not_found)?, app.clock.now())))
}

/// Whether an event is among what the caller's key is limited to: any other does not exist for it.
fn may_see(caller: &Caller, event: &EventView) -> bool {
    let refused = caller.scope.refuses_event(&event.reseller_id, &event.event_type);
    refused.is_none()
}

/// Which event.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OwnName {
    /// What its caller called it.
    #[param(required = true, example = "order-4711-created")]
    event_id: Option<String>,
    /// Whose event it is.
    #[param(required = true, example = "acme")]
    reseller_id: Option<String>,
}

/// Tells where the notifications of an event stand, by what its caller called it.
///
/// For as long as an `eventId` is remembered (`reseller.event.keyRetentionInDays`); the identifier leads to the event for longer. Any API
/// key of the house may ask.
#[utoipa::path(
    get,
    path = "/events",
    tag = "events",
    operation_id = "findEventByOwnId",
    security(("apiKey" = [])),
    params(OwnName),
    responses((status = 200, description = "The event as it stands.", body = EventDocument))
)]
pub(crate) async fn find_by_own_id(
    State(app): State<Arc<App>>,
    params: Result<Params<OwnName>, Problem>,
    head: Parts,
) -> Result<Json<EventDocument>, Problem> {
    let (caller, deadline) = app.reader(&head).await?;
    let Params(OwnName {
        event_id,
        reseller_id,
    }) = params?;
    let (Some(event), Some(reseller)) = (&event_id, &reseller_id) else {
        let given = [
            ("eventId", event_id.is_some()),
            ("resellerId", reseller_id.is_some()),
        ];
        let missing = given.into_iter().filter(|(_, is_there)| !is_there);
        let missing = missing
            .map(|(name, _)| FieldProblem::new(name, "is missing").coded(FieldCode::Missing))
            .collect();
        let detail = "both eventId and resellerId are needed: an eventId is one of a reseller's";
        return Err(Problem::new(ProblemKind::INVALID_QUERY, detail).with_errors(missing));
    };
    let finding = async {
        match app.store.event_of_key(reseller, event).await? {
            Some(id) => app.store.find_event(id).await,
            None => Ok(None),
        }
    };
    let found = http_api::by(deadline, ("the event", "read"), finding).await?;
    let not_found = || {
        Problem::new(
            ProblemKind::NOT_FOUND,
            "the reseller has no event of this eventId, or it is forgotten",
        )
    };
    let found = found.filter(|event| may_see(&caller, event));
    Ok(Json(document(found.ok_or_else(not_found)?, app.clock.now())))
}

fn document(event: EventView, now: DateTime<Utc>) -> EventDocument {
    EventDocument {
        id: event.id,
        event_id: event.event_id,
        event_type: event.event_type,
        reseller_id: event.reseller_id,
        occurred_at: event.occurred_at,
        created_at: event.created_at,
        payload_bytes: event.body_bytes,
        test_of: event.test_of,
        notifications: event
            .notifications
            .into_iter()
            .map(|notification| notified(notification, now))
            .collect(),
        missed: event
            .missed
            .map(|missed| missed.into_iter().map(MissedDocument::from).collect()),
    }
}

impl From<MissedSubscription> for MissedDocument {
    fn from(missed: MissedSubscription) -> Self {
        Self {
            subscription_id: missed.id,
            reasons: missed.miss.reasons(),
            paused: missed.miss.paused,
            explanation: format!("Got nothing of it: {}.", missed.miss),
        }
    }
}

fn notified(notification: EventNotification, now: DateTime<Utc>) -> NotificationDocument {
    let paused_by = notification.waits_for();
    let held = HeldBack {
        paused_by,
        ..notification.held_back
    };
    NotificationDocument {
        explanation: explain::event_notification(&notification, now),
        paused_by: paused_by.map(PausedBy::as_str),
        id: notification.id.uuid(),
        subscription_id: notification.subscription_id,
        url: origin(&notification.url),
        status: notification.status,
        reason: NotificationReason::told(notification.reason, notification.status, held)
            .map(|reason| reason.to_string()),
        attempts: notification.attempts,
        next_attempt_at: notification.next_attempt_at,
        updated_at: notification.updated_at,
        finished_at: notification.finished_at,
        response_status: notification.last.and_then(|last| last.response_status),
    }
}
