//! `POST /subscriptions/{id}/cancellations`: cancelling what of a subscription waits and matches, so many at once.
//!
//! As over the operator API it is bounded instead of a job: what waits moves by itself. Asked again, it goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::event::EventError;
use domain::notification::NotificationStatus;
use http_api::{Draft, FieldCode, FieldProblem, Id, Problem};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::webhook::{NotificationSearch, NotificationsOf};
use store::{Act, CancelledMany, ToCancel};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::request::{Manager, Reseller};

/// What of a subscription is to be cancelled. One of status, eventType, since and until has to be given, unless they are only counted.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object", default)]
#[schema(as = CancellationRequest)]
pub(crate) struct CancellationPayload {
    /// In this status: SCHEDULED, RETRY, PENDING or IN_MEMORY; in any of them when missing.
    #[schema(example = "SCHEDULED")]
    pub(crate) status: Option<String>,
    /// Of events of this type.
    #[schema(example = "domain.created")]
    pub(crate) event_type: Option<String>,
    /// Of events that were accepted at this time or later.
    pub(crate) since: Option<DateTime<Utc>>,
    /// Of events that were accepted before this time.
    pub(crate) until: Option<DateTime<Utc>>,
    /// Why; at most 2,000 bytes.
    #[schema(max_length = 2_000, example = "The domains were transferred away.")]
    pub(crate) note: Option<String>,
    /// Whether they are only counted.
    pub(crate) dry_run: Option<bool>,
}

/// What was cancelled, or would be.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Cancellation)]
pub(crate) struct CancellationDocument {
    /// Whether they were only counted.
    pub(crate) dry_run: bool,
    /// How many were found that wait and match; at most 5,000.
    #[schema(example = 412)]
    pub(crate) matching: u64,
    /// The same by status.
    #[schema(value_type = BTreeMap<String, u64>, example = json!({"SCHEDULED": 400, "RETRY": 12}))]
    pub(crate) by_status: BTreeMap<&'static str, u64>,
    /// When the event of the first of them was accepted.
    pub(crate) oldest: Option<DateTime<Utc>>,
    /// When the event of the last of them was accepted. With an `until` after that, nothing is cancelled that came since it was counted.
    pub(crate) newest: Option<DateTime<Utc>>,
    /// Whether more may match: ask again for those. Where none was found, not all were looked at: restrict it further.
    pub(crate) more: bool,
    /// How many were cancelled. The others were being sent, or had ended, when it came to them; none when they were only counted.
    #[schema(example = 411)]
    pub(crate) cancelled: u64,
    /// How many of these had been delivered and were to be sent again: they are SENT as before.
    #[schema(example = 3)]
    pub(crate) delivered: u64,
}

impl CancellationPayload {
    /// What is written into the activity of it.
    fn chosen(&self) -> Value {
        let chosen = [
            ("status", json!(self.status)),
            ("eventType", json!(self.event_type)),
            ("since", json!(self.since)),
            ("until", json!(self.until)),
        ];
        let chosen = chosen.into_iter().filter(|(_, value)| !value.is_null());
        let chosen: Map<String, Value> = chosen.map(|(name, value)| (name.to_owned(), value)).collect();
        chosen.into()
    }

    fn search(&self, subscription: Uuid) -> Result<NotificationSearch, Problem> {
        let mut errors = Vec::new();
        let read = |name: &str| {
            let mut waiting = NotificationStatus::WAITING.into_iter();
            waiting.find(|status| status.as_str() == name)
        };
        let status = self.status.as_deref().and_then(read);
        if status.is_none() && self.status.is_some() {
            let names = NotificationStatus::WAITING.map(NotificationStatus::as_str);
            let detail = format!("must be one of {}: nothing else waits", names.join(", "));
            errors.push(FieldProblem::new("status", detail).coded(FieldCode::UnknownValue));
        }
        let is_type = |name: &String| domain::subscription::is_event_type(name);
        if !self.event_type.as_ref().is_none_or(is_type) {
            errors.push(
                FieldProblem::new("eventType", EventError::Type.to_string()).coded(FieldCode::WrongFormat),
            );
        }
        if self
            .since
            .zip(self.until)
            .is_some_and(|(since, until)| since >= until)
        {
            errors.push(FieldProblem::new("until", "must be later than since").coded(FieldCode::Conflict));
        }
        if let Err(problem) = http_api::note(self.note.as_deref()) {
            errors.extend(problem.errors().iter().cloned());
        }
        if self.chosen() == json!({}) && self.dry_run != Some(true) {
            let detail = "is missing: say which by status, eventType, since or until, so that not all are cancelled by mistake";
            errors.push(FieldProblem::new("status", detail).coded(FieldCode::Missing));
        }
        if !errors.is_empty() {
            return Err(Problem::fields(errors));
        }
        Ok(NotificationSearch {
            of: NotificationsOf::Subscription(subscription),
            statuses: status.into_iter().collect(),
            event_type: self.event_type.clone(),
            since: self.since,
            until: self.until,
            ..NotificationSearch::default()
        })
    }
}

/// What of a subscription of the reseller waits and matches, as far as it is cancelled at once.
async fn find(
    app: &App,
    reseller: &Reseller,
    (subscription, search): (Uuid, &NotificationSearch),
) -> Result<ToCancel, Problem> {
    app.subscription(reseller, subscription).await?;
    let finding = Box::pin(app.store.notifications_to_cancel(search, None));
    http_api::by(reseller.deadline, ("what waits", "read"), finding).await
}

/// The same, for a page that asks before it cancels them.
pub(crate) async fn count(
    app: &App,
    reseller: &Reseller,
    subscription: Uuid,
    payload: &CancellationPayload,
) -> Result<ToCancel, Problem> {
    let search = payload.search(subscription)?;
    find(app, reseller, (subscription, &search)).await
}

/// Cancels what of a subscription waits and matches, at most 5,000 at once: it is not sent any more, by no retry, resend or replay.
///
/// What had been delivered and was to be sent again is SENT as before. What is being sent at this moment is left alone. Places in the quota of the
/// day that they have are used up. `dryRun` only counts.
#[utoipa::path(
    post, path = "/subscriptions/{id}/cancellations", tag = "notifications", operation_id = "cancelNotifications",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    request_body = CancellationPayload,
    responses((status = 200, description = "What was cancelled, or would be.", body = CancellationDocument))
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    reseller: Manager,
    Id(subscription): Id,
    Draft(payload, unread): Draft<CancellationPayload>,
) -> Result<Json<CancellationDocument>, Problem> {
    let search = unread.merge(payload.search(subscription))?;
    let found = find(&app, &reseller, (subscription, &search)).await?;
    let ended = cancel_found(&app, &reseller, (subscription, &payload), found).await?;
    Ok(Json(ended))
}

/// Cancels what was found of a subscription of the reseller, unless it is only counted. What came since is left alone.
pub(crate) async fn cancel_found(
    app: &App,
    reseller: &Manager,
    (subscription, payload): (Uuid, &CancellationPayload),
    found: ToCancel,
) -> Result<CancellationDocument, Problem> {
    let dry_run = payload.dry_run.unwrap_or_default();
    let mut many = CancelledMany::default();
    if !dry_run && !found.ids.is_empty() {
        let act = Act {
            note: http_api::note(payload.note.as_deref())?,
            ..reseller.act(app.now())
        };
        // What moved on since it was found may be in another status than the one that was asked for.
        let of = NotificationsOf::Subscription(subscription);
        let which = (&of, payload.status.as_deref());
        let cancelling = app
            .store
            .cancel_notifications(&found.ids, which, payload.chosen(), act);
        many = http_api::by(reseller.deadline, ("what waits", "cancelled"), cancelling).await?;
    }
    Ok(CancellationDocument {
        dry_run,
        matching: found.ids.len() as u64,
        by_status: found.by_status,
        oldest: found.oldest,
        newest: found.newest,
        more: found.more,
        cancelled: many.cancelled,
        delivered: many.delivered,
    })
}
