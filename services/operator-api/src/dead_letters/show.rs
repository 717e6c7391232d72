//! `GET /dead-letters/{id}`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::dead_letter::FailureClass;
use domain::dead_letter::curl::{self, NotificationRequest, PushRequest};
use domain::reason::NotificationReason;
use http_api::{Id, Problem, ProblemKind};
use serde::Serialize;
use serde_json::Value;
use store::push::AttemptView;
use store::timeline::{NotificationTimeline, PushTimeline};
use store::webhook::DeliveryAttemptView;
use store::{AuditView, DeadLetterHistory, DeadLetterState, DeadLetterSubject, DeadLetterView};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::request::Viewer;

/// A dead letter with everything that is known of what it is about.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterDetails)]
pub(crate) struct DetailsDocument {
    #[serde(flatten)]
    pub(crate) letter: DeadLetterView,
    /// What happened to the push or the notification; missing when there is none, or it is not kept any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<HistoryDocument>,
    /// The event that the notification tells of; it may have others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<Uuid>,
    /// What the broker handed back, of a dead letter that comes from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) broker: Option<BrokerDocument>,
    /// The trace that the request which brought it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "0af7651916cd43dd8448eb211c80319c")]
    pub(crate) trace_id: Option<String>,
    /// A command for a shell that repeats the request. Secrets and the device are environment variables in it, which have
    /// to be set: `SWRVE_PUSH_KEY` and `DEVICE`, or `SIGNATURE`. None of a push that was not sent for want of a push key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) curl: Option<String>,
    /// Other dead letters about the same push or notification, the oldest one first.
    pub(crate) other_letters: Vec<Uuid>,
}

/// What happened to a push or a notification.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterHistory)]
pub(crate) struct HistoryDocument {
    /// Where it stands now.
    #[schema(example = "GIVEN_UP")]
    pub(crate) status: &'static str,
    /// Why it waits or has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// When it was accepted.
    pub(crate) created_at: DateTime<Utc>,
    /// When it is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    /// Its attempts, the first one first.
    pub(crate) attempts: Vec<AttemptDocument>,
    /// What else happened to it, the first first: dead letters, and what people did.
    pub(crate) events: Vec<EventDocument>,
}

/// An attempt.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterAttempt)]
pub(crate) struct AttemptDocument {
    /// Counts from 1.
    pub(crate) number: u32,
    /// `IN_PROCESS`, `OK` or `ERROR`.
    #[schema(example = "ERROR")]
    pub(crate) status: &'static str,
    /// When it began.
    pub(crate) started_at: DateTime<Utc>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) millis: Option<i64>,
    /// What kind of failure it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_type: Option<String>,
    /// The HTTP status of the answer; missing where there was none, and of an attempt of a push of before it was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 503)]
    pub(crate) response_status: Option<u16>,
    /// The status code of the answer, or Swrve's own code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<i64>,
    /// The failure in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// The first bytes of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response: Option<String>,
    /// Where it went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
}

/// Something that happened.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadLetterEvent)]
pub(crate) struct EventDocument {
    /// When.
    pub(crate) at: DateTime<Utc>,
    /// What.
    #[schema(example = "became a dead letter: GIVEN_UP (delivery/timeout)")]
    pub(crate) text: String,
}

/// What the broker handed back.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadLetterMessage)]
pub(crate) struct BrokerDocument {
    /// Why the broker gave it up: `delivery_limit`, `rejected`, `expired` or `maxlen`.
    #[schema(example = "delivery_limit")]
    pub(crate) reason: Option<String>,
    /// In which queue it was.
    #[schema(example = "reseller.ready")]
    pub(crate) queue: Option<String>,
    /// How often that has happened to it.
    pub(crate) count: Option<i64>,
    /// Its body.
    pub(crate) body: Option<String>,
    /// Its headers.
    #[schema(value_type = Object)]
    pub(crate) headers: Value,
}

impl BrokerDocument {
    fn of(message: &Value) -> Self {
        let text = |name: &str| message[name].as_str().map(str::to_owned);
        Self {
            reason: text("reason"),
            queue: text("queue"),
            count: message["count"].as_i64(),
            body: text("body"),
            headers: message["headers"].clone(),
        }
    }
}

impl AttemptDocument {
    /// The code, where it is not the status.
    pub(crate) fn own_code(&self) -> Option<i64> {
        let status = self.response_status.map(i64::from);
        self.code.filter(|code| status != Some(*code))
    }
}

impl From<&AttemptView> for AttemptDocument {
    fn from(attempt: &AttemptView) -> Self {
        let error = attempt
            .swrve_error_message
            .as_ref()
            .or(attempt.other_error.as_ref());
        Self {
            number: attempt.number,
            status: attempt.status.as_str(),
            started_at: attempt.started_at,
            millis: attempt.millis,
            error_type: attempt.error_type.map(|kind| kind.as_str().to_owned()),
            response_status: attempt.response_status,
            code: attempt.swrve_error_code,
            error: error.cloned(),
            response: None,
            url: None,
        }
    }
}

impl From<&DeliveryAttemptView> for AttemptDocument {
    fn from(attempt: &DeliveryAttemptView) -> Self {
        Self {
            number: attempt.number,
            status: attempt.status.as_str(),
            started_at: attempt.started_at,
            millis: attempt.millis,
            error_type: attempt.error_type.clone(),
            response_status: attempt.response_status,
            code: attempt.response_status.map(i64::from),
            error: attempt.error.clone(),
            response: attempt.response_body.clone(),
            url: Some(attempt.url.clone()),
        }
    }
}

fn of_push(story: &PushTimeline, acts: &[AuditView]) -> HistoryDocument {
    HistoryDocument {
        status: story.push.status.as_str(),
        reason: story.push.reason.map(|reason| reason.to_string()),
        created_at: story.push.created_at,
        next_attempt_at: story.push.next_attempt_at,
        attempts: story.push.history.iter().map(AttemptDocument::from).collect(),
        events: events(&story.dead_letters, &[&story.acts, acts]),
    }
}

fn of_notification(story: &NotificationTimeline, acts: &[AuditView]) -> HistoryDocument {
    HistoryDocument {
        status: story.status.as_str(),
        reason: story.reason.as_ref().map(NotificationReason::to_string),
        created_at: story.created_at,
        next_attempt_at: story.next_attempt_at,
        attempts: story.history.iter().map(AttemptDocument::from).collect(),
        events: events(&story.dead_letters, &[&story.acts, acts]),
    }
}

/// Dead letters and what people did, in the order of time. Each dead letter tells of its own resolution.
fn events(letters: &[DeadLetterView], acts: &[&[AuditView]]) -> Vec<EventDocument> {
    let mut events = Vec::new();
    for letter in letters {
        events.push(EventDocument {
            at: letter.created_at,
            text: format!("became a dead letter: {} ({})", letter.reason, letter.fingerprint),
        });
        if let Some(at) = letter.resolved_at {
            let by = letter.resolved_by.as_deref().unwrap_or("an operator");
            let verb = if letter.state == DeadLetterState::Replayed {
                "replayed"
            } else {
                "discarded"
            };
            events.push(EventDocument {
                at,
                text: said(&format!("{verb} by {by}"), letter.note.as_deref()),
            });
        }
    }
    for act in acts.iter().copied().flatten() {
        if !act.action.starts_with("dead-letter.") {
            events.push(EventDocument {
                at: act.at,
                text: said(&format!("{} by {}", act.action, act.actor), act.note.as_deref()),
            });
        }
    }
    events.sort_by_key(|event| event.at);
    events
}

fn said(what: &str, note: Option<&str>) -> String {
    match note {
        Some(note) => format!("{what}: {note}"),
        None => what.to_owned(),
    }
}

/// The trace of a W3C `traceparent`: its second part.
pub(crate) fn trace_id(traceparent: &str) -> Option<String> {
    traceparent.split('-').nth(1).map(str::to_owned)
}

fn curl_of(subject: &DeadLetterSubject, app: &App) -> Option<String> {
    match subject {
        DeadLetterSubject::Push {
            message, traceparent, ..
        } => Some(curl::of_push(&PushRequest {
            base_url: app.config.swrve.url.expose(),
            message,
            test: app.config.swrve.test,
            traceparent: traceparent.as_deref(),
        })),
        DeadLetterSubject::Notification {
            story,
            body,
            traceparent,
        } => {
            let (body, last) = (body.as_deref()?, story.history.last());
            Some(curl::of_notification(&NotificationRequest {
                url: last.map_or(&*story.subscription.url, |attempt| &*attempt.url),
                event_id: story.event_id.as_deref()?,
                idempotency_key: &signing::idempotency_key(body.as_bytes()),
                signed_at: last.map_or(story.created_at, |attempt| attempt.started_at),
                body,
                traceparent: traceparent.as_deref(),
            }))
        }
    }
}

fn details(history: DeadLetterHistory, app: &App) -> DetailsDocument {
    let subject = history.subject.as_ref();
    let (letters, traceparent, shown) = match subject {
        Some(DeadLetterSubject::Push {
            story, traceparent, ..
        }) => (
            &*story.dead_letters,
            traceparent.as_deref(),
            Some(of_push(story, &history.acts)),
        ),
        Some(DeadLetterSubject::Notification {
            story, traceparent, ..
        }) => (
            &*story.dead_letters,
            traceparent.as_deref(),
            Some(of_notification(story, &history.acts)),
        ),
        None => (&[][..], None, None),
    };
    let others = letters.iter().map(|letter| letter.id);
    // Without a push key Swrve was asked nothing.
    let asked =
        subject.filter(|_| FailureClass::of(&history.dead_letter.fingerprint) != FailureClass::PrototypeKey);
    let event = match subject {
        Some(DeadLetterSubject::Notification { story, .. }) => Some(story.event),
        Some(DeadLetterSubject::Push { .. }) | None => None,
    };
    DetailsDocument {
        event,
        other_letters: others.filter(|id| *id != history.dead_letter.id).collect(),
        trace_id: traceparent.and_then(trace_id),
        curl: asked.and_then(|subject| curl_of(subject, app)),
        history: shown,
        broker: history.message.as_ref().map(BrokerDocument::of),
        letter: history.dead_letter,
    }
}

/// Shows one dead letter with the whole history of what it is about, and a command that repeats its request.
#[utoipa::path(
    get, path = "/dead-letters/{id}", tag = "dead letters", operation_id = "showDeadLetter",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The dead letter's identifier.")),
    responses((status = 200, description = "The dead letter.", body = DetailsDocument))
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Id(id): Id,
) -> Result<Json<DetailsDocument>, Problem> {
    let shown = app.store.show_dead_letter(id);
    let shown = http_api::by(viewer.deadline, ("the dead letter", "read"), shown).await?;
    let history =
        shown.ok_or_else(|| Problem::new(ProblemKind::NOT_FOUND, "no dead letter has this identifier"))?;
    Ok(Json(details(history, &app)))
}
