//! `GET /notifications`: one list over all subscriptions of a reseller.

use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use domain::capability::Capability;
use domain::notification::NotificationStatus;
use domain::subscription::HeldBack;
use http_api::{FieldCode, FieldProblem, Problem, ReadParams, WrongQuery, last_answer, paging};
use serde::{Deserialize, Serialize};
use store::Examined;
use store::webhook::{LastAnswer, NotificationsAsked, ResellerNotification};
use utoipa::ToSchema;
use uuid::Uuid;

use super::RowDocument;
use super::document::{ErrorTypeName, told_failure};
use super::list::{self, SHOWN};
use crate::app::App;
use crate::request::Reseller;

/// More subscriptions of a reseller are not asked for their notifications at once.
pub(crate) const SUBSCRIPTIONS_MAX: u32 = 1_000;
/// The longest identifier of an event, or value in its data, that is looked for, in bytes.
const TEXT_MAX_BYTES: usize = 256;

const DNS: &str = "DNS";
const EGRESS: &str = "EGRESS";

/// Which notifications.
#[derive(Clone, Default, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AllParams {
    /// Of this subscription; of all when missing.
    pub(crate) subscription: Option<Uuid>,
    /// Of these statuses, separated by commas; of any when missing.
    #[param(example = "FAILED,GIVEN_UP")]
    pub(crate) status: Option<String>,
    /// Of these event types of the catalogue, retired ones among them, separated by commas; of any when missing. Prefixes are not taken.
    #[param(example = "domain.created")]
    pub(crate) event_type: Option<String>,
    /// The endpoint answered the last attempt with this status code, or with one of a class, such as 5xx.
    #[param(example = "503")]
    pub(crate) code: Option<String>,
    /// The last attempt failed in this way: HTTP, TIMEOUT, DNS, TLS, CONNECT, PROTOCOL, EGRESS or OTHER.
    #[param(example = "TIMEOUT")]
    pub(crate) error: Option<String>,
    /// Of the event with this identifier, as the endpoint knows it. The other filters are applied as well.
    pub(crate) event_id: Option<String>,
    /// Of events whose data has this text as a whole value, at whatever place, such as the name of a domain, A to Z in either case; the name of a field
    /// and the event's own identifier are found as well. At most 10,000 notifications are looked at for a part: `next` leads further back.
    #[param(example = "example.org")]
    pub(crate) value: Option<String>,
    /// Of events that were accepted at this time or later; never of more than 7 days ago.
    pub(crate) since: Option<DateTime<Utc>>,
    /// Of events that were accepted before this time.
    pub(crate) until: Option<DateTime<Utc>>,
    /// Of those that were delivered, failed, were given up or cancelled at this time or later, however long before their event was accepted. What
    /// was sent again counts from when it ended again.
    pub(crate) ended_since: Option<DateTime<Utc>>,
    /// Of those that ended so before this time.
    pub(crate) ended_until: Option<DateTime<Utc>>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// A notification with what came of its last attempt.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NotificationOfAll)]
pub(crate) struct ListedDocument {
    #[serde(flatten)]
    pub(crate) row: RowDocument,
    /// To which subscription it goes.
    pub(crate) subscription_id: Uuid,
    /// What came of the last attempt; null before the first one is over.
    pub(crate) last: Option<LastDocument>,
}

/// What came of an attempt.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LastAttempt)]
pub(crate) struct LastDocument {
    /// The status code of the answer, if there was one.
    #[schema(example = 503)]
    pub(crate) status: Option<u16>,
    /// How long it took, in milliseconds.
    pub(crate) millis: Option<i64>,
    /// What kind of failure it was, if it was one.
    #[schema(value_type = Option<ErrorTypeName>)]
    pub(crate) error_type: Option<String>,
    /// The failure in words.
    pub(crate) error: Option<String>,
}

impl ListedDocument {
    pub(crate) fn of(found: ResellerNotification, held: HeldBack) -> Self {
        Self {
            row: RowDocument::of(found.row, held),
            subscription_id: found.subscription,
            last: found.last.map(LastDocument::of),
        }
    }
}

impl LastDocument {
    fn of(last: LastAnswer) -> Self {
        let (error_type, error) = told_failure(&last.url, last.error_type, last.error);
        Self {
            status: last.response_status,
            millis: last.millis,
            error_type,
            error,
        }
    }
}

/// A part of the list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NotificationsOfAll)]
pub(crate) struct PartDocument {
    /// What is in it.
    pub(crate) items: Vec<ListedDocument>,
    /// The `cursor` with which the list goes on; null when it has ended. A part that a filter has thinned out, even to nothing, may be
    /// followed by others.
    pub(crate) next: Option<String>,
    /// Everything of events that were accepted at this time or later has been looked at.
    pub(crate) looked_back_to: DateTime<Utc>,
}

/// Lists the notifications of the last 7 days of all subscriptions, the newest event first.
///
/// A part that a filter has thinned out, even to nothing, may be followed by others.
#[utoipa::path(
    get, path = "/notifications", tag = "notifications", operation_id = "listAllNotifications",
    security(("apiKey" = [])),
    params(AllParams),
    responses((status = 200, description = "A part of the list.", body = PartDocument))
)]
pub(crate) async fn list_all(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    ReadParams(params, wrong): ReadParams<AllParams>,
) -> Result<Json<PartDocument>, Problem> {
    // What is found by a value says that the body has it.
    if params.value.is_some() {
        reseller.require(Capability::Bodies, app.now())?;
    }
    let subscriptions = subscriptions(&app, &reseller, params.subscription).await?;
    let asked = wrong.with(asked(subscriptions, &params, app.now()))?;
    app.require_event_types(&reseller, &asked.event_types).await?;
    let look = async {
        match &params.event_id {
            None => app.store.reseller_notifications(&asked).await,
            Some(event) => {
                let find = app
                    .store
                    .notifications_of_event_id(&reseller.id, event, &asked.subscriptions);
                let mut items = find.await?;
                items.retain(|found| passes(found, &asked));
                Ok(Examined {
                    examined: items.len() as u64,
                    items,
                    next: None,
                })
            }
        }
    };
    let page = http_api::by(reseller.deadline, ("the notifications", "read"), look).await?;
    let look = app.store.held_back(&asked.subscriptions);
    let held_back = http_api::by(reseller.deadline, ("the subscriptions", "read"), look).await?;
    let shown = page.items.into_iter().map(|found| {
        let held = held_back.get(&found.subscription).copied();
        ListedDocument::of(found, held.unwrap_or_default())
    });
    // An address that is not public is told like a name without one, so that the two are looked for together and told apart by what is told.
    let is_told = |shown: &ListedDocument| {
        let told = shown.last.as_ref().and_then(|last| last.error_type.as_deref());
        params.error.is_none() || told == params.error.as_deref()
    };
    let items = shown.filter(is_told).collect();
    Ok(Json(PartDocument {
        items,
        next: page.next.map(|(_, id)| paging::write_id(id)),
        looked_back_to: page.next.map_or(asked.since, |(at, _)| at),
    }))
}

/// All subscriptions of the reseller, or the one that is asked for.
pub(super) async fn subscriptions(
    app: &App,
    reseller: &Reseller,
    asked: Option<Uuid>,
) -> Result<Vec<Uuid>, Problem> {
    if let Some(id) = asked {
        return Ok(vec![app.subscription(reseller, id).await?.id]);
    }
    let list = app
        .store
        .list_subscriptions(&reseller.id, None, SUBSCRIPTIONS_MAX);
    let found = http_api::by(reseller.deadline, ("the subscriptions", "read"), list).await?;
    Ok(found.into_iter().map(|view| view.id).collect())
}

fn asked(
    subscriptions: Vec<Uuid>,
    params: &AllParams,
    now: DateTime<Utc>,
) -> Result<NotificationsAsked, Problem> {
    let mut wrong = WrongQuery::default();
    let code = wrong.take(last_answer::code(params.code.as_deref()));
    for (name, text) in [("eventId", &params.event_id), ("value", &params.value)] {
        let text = text.as_deref();
        if text.is_some_and(|text| text.is_empty() || text.len() > TEXT_MAX_BYTES) {
            let detail = format!("must have 1 to {TEXT_MAX_BYTES} bytes");
            wrong.add(Problem::parameter(
                FieldProblem::new(name, detail).between(1, TEXT_MAX_BYTES),
            ));
        }
    }
    if params.event_id.is_some() && params.value.is_some() {
        wrong.add(
            Problem::query(
                "value",
                "cannot be combined with eventId, which names the event already",
            )
            .coded(FieldCode::Conflict),
        );
    }
    let earliest = now - SHOWN;
    let statuses = wrong.take(list::statuses(params.status.as_deref()));
    wrong.take(check_ended(params, &statuses));
    let asked = NotificationsAsked {
        subscriptions,
        statuses,
        event_types: wrong.take(list::event_types(params.event_type.as_deref())),
        code,
        errors: wrong.take(errors(params.error.as_deref())),
        value: params.value.clone(),
        since: params.since.map_or(earliest, |since| since.max(earliest)),
        // The clock of the process that took an event in may be a little ahead of ours.
        until: params.until.unwrap_or(now + TimeDelta::days(1)),
        // What ended earlier was accepted earlier, and the time may lie before all that the database knows.
        ended_since: params.ended_since.map(|since| since.max(earliest)),
        ended_until: params.ended_until.map(|until| until.max(earliest)),
        before: wrong.take(paging::read_id(params.cursor.as_deref())),
        limit: wrong.take(paging::limit(params.limit)),
    };
    wrong.with(Ok(asked))
}

/// What waits has not ended.
fn check_ended(params: &AllParams, statuses: &[NotificationStatus]) -> Result<(), Problem> {
    let (since, until) = (params.ended_since, params.ended_until);
    let mut wrong = WrongQuery::default();
    for (name, at) in [("endedSince", since), ("endedUntil", until)] {
        if at.is_some() && !statuses.iter().all(|status| status.is_terminal()) {
            let detail = "is of what has ended: leave it out, or ask for SENT, FAILED or GIVEN_UP";
            wrong.add(Problem::query(name, detail).coded(FieldCode::Conflict));
        }
    }
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        wrong.add(Problem::query("endedUntil", "must be later than endedSince").coded(FieldCode::Conflict));
    }
    wrong.end()
}

fn errors(asked: Option<&str>) -> Result<Vec<&'static str>, Problem> {
    Ok(match last_answer::error_type(asked)? {
        Some(DNS | EGRESS) => vec![DNS, EGRESS],
        kind => kind.into_iter().collect(),
    })
}

/// Whether one that was found by its event is what is asked for.
fn passes(found: &ResellerNotification, asked: &NotificationsAsked) -> bool {
    let (row, last) = (&found.row, found.last.as_ref());
    let kind = last.and_then(|last| last.error_type.as_deref());
    let answered = last.and_then(|last| last.response_status);
    let is_answered = |codes: &RangeInclusive<u16>| answered.is_some_and(|code| codes.contains(&code));
    (asked.statuses.is_empty() || asked.statuses.contains(&row.status))
        && (asked.event_types.is_empty() || asked.event_types.contains(&row.event_type))
        && asked.code.as_ref().is_none_or(is_answered)
        && (asked.errors.is_empty() || kind.is_some_and(|kind| asked.errors.contains(&kind)))
        && (asked.since..asked.until).contains(&row.accepted_at)
        && asked
            .ended_since
            .is_none_or(|since| row.finished_at.is_some_and(|at| at >= since))
        && asked
            .ended_until
            .is_none_or(|until| row.finished_at.is_some_and(|at| at < until))
}
