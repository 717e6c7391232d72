//! `GET /notifications`: notifications of all resellers, of one, of a subscription, of an event.

use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::counted::number;
use domain::notification::NotificationStatus;
use domain::reason::{ENDED_FOR, NotificationReason, WAITS_FOR};
use domain::subscription::{HeldBack, PausedBy};
use http_api::{FieldCode, Problem, ReadParams, WrongQuery, last_answer, paging, words};
use serde::{Deserialize, Serialize};
use store::Examined;
use store::webhook::{NotificationFound, NotificationSearch, NotificationsOf};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::examined::{Part, accepted_until, ended, event_type, late_by, text, times};
use crate::request::Viewer;

/// Most subscriptions whose notifications are searched by a part of their URL.
const WITH_URL_MAX: u32 = 1_000;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Which notifications: of a reseller, of a subscription, of an event, or of all resellers.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct NotificationParams {
    /// Of this reseller.
    #[param(example = "acme")]
    pub(crate) reseller: Option<String>,
    /// Of this subscription.
    pub(crate) subscription: Option<Uuid>,
    /// Of subscriptions with this in their URL as it is now; refused where more than 1,000 have it.
    #[param(example = "acme.example")]
    pub(crate) url: Option<String>,
    /// Of this event: its identifier, or with `reseller` the `eventId` that its caller gave.
    #[param(example = "order-4711")]
    pub(crate) event_id: Option<String>,
    /// In these statuses, separated by commas: SCHEDULED, PENDING, IN_MEMORY, RETRY, SENT, FAILED, GIVEN_UP; in any when missing.
    #[param(example = "FAILED,GIVEN_UP")]
    pub(crate) status: Option<String>,
    /// Ended for these reasons, separated by commas: CANCELLED, EXPIRED, SUBSCRIPTION_DEACTIVATED, SUBSCRIPTION_DELETED; or waiting for these:
    /// QUOTA, RATE, POSTPONED, which are of what is SCHEDULED, BUSY, WITHHELD, PAUSED, UNVERIFIED, BACKLOG, RESENT, REPLAYED, in any status that
    /// waits where none is asked for; for any when missing. What failed is found by `code` and `error`.
    #[param(example = "CANCELLED")]
    pub(crate) reason: Option<String>,
    /// Of events of this type.
    pub(crate) event_type: Option<String>,
    /// Of events whose data has this text as a whole value, at whatever place, such as the name of a domain, A to Z in either case; the name of
    /// a field is found as well.
    #[param(example = "example.org")]
    pub(crate) value: Option<String>,
    /// The endpoint answered the last attempt with this status code, or with one of a class, such as 5xx.
    #[param(example = "503")]
    pub(crate) code: Option<String>,
    /// The last attempt failed in this way: HTTP, TIMEOUT, DNS, TLS, CONNECT, PROTOCOL, EGRESS or OTHER.
    #[param(example = "TIMEOUT")]
    pub(crate) error: Option<String>,
    /// Of events that were accepted at this time or later.
    pub(crate) since: Option<DateTime<Utc>>,
    /// Of events that were accepted before this time.
    pub(crate) until: Option<DateTime<Utc>>,
    /// Ended at this time or later: delivered, failed, given up or cancelled.
    pub(crate) ended_since: Option<DateTime<Utc>>,
    /// Ended before this time.
    pub(crate) ended_until: Option<DateTime<Utc>>,
    /// Ended more than so many seconds after its event was accepted, or after a reseller or an operator last had it sent again; what was sent again
    /// by itself after an outage counts from its event on. What waits has not ended.
    #[param(example = 600)]
    pub(crate) late_by_seconds: Option<u32>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// A notification in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NotificationListed)]
pub(crate) struct NotificationDocument {
    /// Its identifier; `GET /explain/{id}` tells its story.
    pub(crate) id: Uuid,
    /// The event that it tells of.
    pub(crate) event: Uuid,
    /// What receivers know the event by: the caller's eventId, else its identifier.
    #[schema(example = "order-4711")]
    pub(crate) event_id: Option<String>,
    /// The event's type.
    #[schema(example = "domain.created")]
    pub(crate) event_type: String,
    /// Whose it is.
    #[schema(example = "acme")]
    pub(crate) reseller_id: String,
    /// To which subscription it goes.
    pub(crate) subscription_id: Uuid,
    /// Where to, as the subscription has it now.
    #[schema(example = "https://acme.example/hooks/domains")]
    pub(crate) url: String,
    /// Where it stands.
    #[schema(example = "SENT")]
    pub(crate) status: &'static str,
    /// Why it waits or has ended.
    #[schema(example = "QUOTA")]
    pub(crate) reason: Option<String>,
    /// Whether it waits for the end of a pause.
    pub(crate) paused: bool,
    /// Whose pause that is: LANE of all notifications, ALL_OF_RESELLER or OPERATOR by an operator, RESELLER by its reseller.
    #[schema(example = "OPERATOR")]
    pub(crate) paused_by: Option<&'static str>,
    /// Attempts so far.
    pub(crate) attempts: u32,
    /// When it is due, if it is RETRY; when its turn in line comes, by the limits as they are now, if it is SCHEDULED.
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    /// When its event was accepted.
    pub(crate) accepted_at: DateTime<Utc>,
    /// When a reseller or an operator last had it sent again, from which `lateBySeconds` counts; not when that was done by itself after an outage.
    pub(crate) resent_at: Option<DateTime<Utc>>,
    /// When its status last changed.
    pub(crate) updated_at: DateTime<Utc>,
    /// When it ended.
    pub(crate) finished_at: Option<DateTime<Utc>>,
    /// The status code of the endpoint's last answer.
    #[schema(example = 503)]
    pub(crate) response_status: Option<u16>,
    /// What kind of failure the last attempt was, if it failed: HTTP, TIMEOUT, DNS, TLS, CONNECT, PROTOCOL, EGRESS or OTHER.
    #[schema(example = "HTTP")]
    pub(crate) error_type: Option<String>,
    /// How the last attempt failed, if it did.
    pub(crate) error: Option<String>,
}

impl NotificationDocument {
    /// Of a subscription of which this holds notifications back.
    fn of(found: NotificationFound, held: HeldBack) -> Self {
        let (paused_by, reason) = told(&found, held);
        Self {
            id: found.id.uuid(),
            event: found.event,
            event_id: found.event_id,
            event_type: found.event_type,
            reseller_id: found.reseller,
            subscription_id: found.subscription,
            url: found.url,
            status: found.status.as_str(),
            reason: reason.map(|reason| reason.to_string()),
            paused: paused_by.is_some(),
            paused_by: paused_by.map(PausedBy::as_str),
            attempts: found.attempts,
            next_attempt_at: found.next_attempt_at,
            accepted_at: found.accepted_at,
            resent_at: found.resent_at,
            updated_at: found.updated_at,
            finished_at: found.finished_at,
            response_status: found.response_status,
            error_type: found.error_type,
            error: found.error,
        }
    }
}

/// Whose pause a notification waits for, and why it waits or has ended, where this holds those of its subscription back.
fn told(found: &NotificationFound, held: HeldBack) -> (Option<PausedBy>, Option<NotificationReason>) {
    let paused_by = held
        .paused_by
        .filter(|_| !found.status.is_terminal() && !found.claimed);
    let held = HeldBack { paused_by, ..held };
    let reason = NotificationReason::told(found.reason.clone(), found.status, held);
    (paused_by, reason)
}

/// Lists notifications, the newest first; those of one status that waits by how long they have been due, of several that all wait the oldest first.
///
/// SCHEDULED, PENDING and RETRY wait, and so does IN_MEMORY beside others; of what is SCHEDULED comes first what has been in line longest.
/// `status=SCHEDULED,PENDING,IN_MEMORY,RETRY` begins with the oldest that waits. It has all that are PENDING, of each subscription those in line and
/// those to be tried again that are due first, 10,000 at most and 201 at least, and of what is in the queue the 10,000 that came into it first. With
/// other statuses among them the newest event comes first. At most 10,000 notifications are looked at for a part, fewer of more than 20
/// subscriptions together, so that one may be short, or even empty, although others follow: only `next` tells the end, and `lookedBackTo` how far
/// such a part has looked. With `eventId` there is one part.
/// Without reseller, subscription, `url` and `eventId` they are those of all resellers. Those of subscriptions that were deleted are among them.
#[utoipa::path(
    get, path = "/notifications", tag = "search", operation_id = "listNotifications", security(("apiKey" = [])),
    params(NotificationParams),
    responses((status = 200, description = "A part of the list.", body = Part<NotificationDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    ReadParams(params, mut wrong): ReadParams<NotificationParams>,
) -> Result<Json<Part<NotificationDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let after = wrong.take(paging::read_at(params.cursor.as_deref()));
    let (waits_for, ended_for) = wrong.take(reasons(params.reason.as_deref()));
    let mut search = wrong.with(read(&params))?;
    search.reasons = ended_for;
    if !waits_for.is_empty() {
        look_for_waiting(&mut search, &waits_for);
    }
    if let Some(url) = &params.url {
        search.of = with_url(&app, viewer, (url, params.reseller.as_deref())).await?;
    }
    let found = async {
        match &params.event_id {
            Some(event) => of_event(&app, event, params.reseller.as_deref(), &search).await,
            None => app.store.search_notifications(&search, after, limit).await,
        }
    };
    let mut found = http_api::by(viewer.deadline, ("the notifications", "read"), found).await?;
    let subscriptions: Vec<Uuid> = found.items.iter().map(|found| found.subscription).collect();
    let look = app.store.held_back(&subscriptions);
    let held_back = http_api::by(viewer.deadline, ("the pauses", "read"), look).await?;
    let held = |found: &NotificationFound| held_back.get(&found.subscription).copied().unwrap_or_default();
    if !waits_for.is_empty() {
        let is_told = |reason: NotificationReason| waits_for.contains(&reason);
        found
            .items
            .retain(|found| told(found, held(found)).1.is_some_and(is_told));
    }
    let show = |found: NotificationFound| {
        let held = held(&found);
        NotificationDocument::of(found, held)
    };
    Ok(Json(if search.is_newest_first() {
        Part::newest_first(found, limit, show)
    } else {
        Part::of(found, show)
    }))
}

/// Those of the subscriptions with this in their URL. Of more than can be searched together none is left out unsaid.
pub(crate) async fn with_url(
    app: &App,
    viewer: Viewer,
    (url, reseller): (&str, Option<&str>),
) -> Result<NotificationsOf, Problem> {
    let look = app.store.subscriptions_with_url(url, reseller, WITH_URL_MAX + 1);
    let found = http_api::by(viewer.deadline, ("the subscriptions", "read"), look).await?;
    if found.len() > WITH_URL_MAX as usize {
        let most = number(WITH_URL_MAX.into());
        let detail =
            format!("is in the URLs of more than {most} subscriptions: give more of it, or reseller too");
        return Err(Problem::query("url", detail));
    }
    Ok(NotificationsOf::Subscriptions(found))
}

/// What the parameters say, but for the reasons, and for the subscriptions of `url`, which are to be looked up.
pub(crate) fn read(params: &NotificationParams) -> Result<NotificationSearch, Problem> {
    let known = NotificationStatus::ALL.map(NotificationStatus::as_str);
    let mut wrong = WrongQuery::default();
    let statuses: Vec<NotificationStatus> =
        wrong.take(words::some_of("status", params.status.as_deref(), &known));
    let (since, until) = wrong.take(times(params.since, params.until));
    let can_have_ended = statuses.iter().all(|status| status.is_terminal());
    let (ended_since, ended_until) =
        wrong.take(ended(params.ended_since, params.ended_until, can_have_ended));
    let late_by = wrong.take(late_by(params.late_by_seconds, can_have_ended));
    let reseller = wrong.take(text("reseller", params.reseller.as_deref()));
    let url = wrong.take(text("url", params.url.as_deref()));
    if url.is_some() && params.subscription.is_some() {
        let detail = "does not go with subscription, which has one: leave one of the two out";
        wrong.add(Problem::query("url", detail).coded(FieldCode::Conflict));
    }
    let search = NotificationSearch {
        of: match (params.subscription, reseller) {
            (Some(id), _) => NotificationsOf::Subscription(id),
            (None, Some(reseller)) => NotificationsOf::Reseller(reseller),
            (None, None) => NotificationsOf::All,
        },
        statuses,
        reasons: Vec::new(),
        event_type: wrong.take(event_type(params.event_type.as_deref())),
        value: wrong.take(text("value", params.value.as_deref())),
        code: wrong.take(last_answer::code(params.code.as_deref())),
        error: wrong.take(last_answer::error_type(params.error.as_deref())),
        since,
        until: until.or(accepted_until(ended_until)),
        ended_since,
        ended_until,
        late_by,
    };
    if let Some(event) = wrong.take(text("eventId", params.event_id.as_deref())) {
        wrong.take(check_event(params, &event));
    }
    wrong.with(Ok(search))
}

/// The reasons to wait that are asked for, and those to have ended: what waits has not ended.
fn reasons(given: Option<&str>) -> Result<(Vec<NotificationReason>, Vec<NotificationReason>), Problem> {
    let known = [&WAITS_FOR[..], &ENDED_FOR].concat();
    let given: Vec<NotificationReason> = words::some_of("reason", given, &known)?;
    let waits = |reason: &NotificationReason| WAITS_FOR.contains(&reason.as_str());
    let (waits_for, ended_for): (Vec<_>, Vec<_>) = given.into_iter().partition(waits);
    if !waits_for.is_empty() && !ended_for.is_empty() {
        let detail = "is of what waits and of what has ended: ask for one of the two at a time";
        return Err(Problem::query("reason", detail).coded(FieldCode::Conflict));
    }
    Ok((waits_for, ended_for))
}

/// Has a search find what is told to wait for these reasons: what is stored is one of them, but for a pause, which holds back what waits for
/// whatever else. What is in line has an index of its own, which leads through all of it; of several statuses only the heads are read.
fn look_for_waiting(search: &mut NotificationSearch, waits_for: &[NotificationReason]) {
    use NotificationReason::{Postponed, Quota, Rate};
    if search.statuses.is_empty() {
        let is_of_line = |reason: &NotificationReason| matches!(reason, Quota | Rate | Postponed);
        search.statuses = match waits_for.iter().all(is_of_line) {
            true => vec![NotificationStatus::Scheduled],
            false => NotificationStatus::WAITING.to_vec(),
        };
    }
    if !waits_for.contains(&NotificationReason::Paused) {
        search.reasons = waits_for.to_vec();
    }
}

/// An event has few notifications, which are there at once.
fn check_event(params: &NotificationParams, event: &str) -> Result<(), Problem> {
    let mut wrong = WrongQuery::default();
    for (name, is_given) in [
        ("value", params.value.is_some()),
        ("since", params.since.is_some()),
        ("until", params.until.is_some()),
        ("endedSince", params.ended_since.is_some()),
        ("endedUntil", params.ended_until.is_some()),
        ("lateBySeconds", params.late_by_seconds.is_some()),
        ("cursor", params.cursor.is_some()),
    ] {
        if is_given {
            let detail = "does not go with eventId, which names one event: leave one of the two out";
            wrong.add(Problem::query(name, detail).coded(FieldCode::Conflict));
        }
    }
    if params.reseller.is_none() && event.parse::<Uuid>().is_err() {
        let detail = "an eventId that a caller gave is one of a reseller's: give reseller too";
        wrong.add(Problem::query("reseller", detail).coded(FieldCode::Missing));
    }
    wrong.end()
}

/// Those of one event, by what its caller called it or by its identifier.
async fn of_event(
    app: &App,
    event: &str,
    reseller: Option<&str>,
    search: &NotificationSearch,
) -> Result<Examined<NotificationFound>, store::Error> {
    let known = match reseller {
        Some(reseller) => app.store.event_of_key(reseller, event).await?,
        None => None,
    };
    let mut items = match known.or_else(|| event.parse().ok()) {
        Some(id) => app.store.notifications_of_event(id).await?,
        None => Vec::new(),
    };
    let examined = items.len() as u64;
    items.retain(|found| {
        let is_theirs = match &search.of {
            NotificationsOf::All => true,
            NotificationsOf::Reseller(reseller) => *reseller == found.reseller,
            NotificationsOf::Subscription(id) => *id == found.subscription,
            NotificationsOf::Subscriptions(ids) => ids.contains(&found.subscription),
        };
        let is_of_type = |name: &String| *name == found.event_type;
        let is_for = |reason: &NotificationReason| search.reasons.contains(reason);
        let is_answered =
            |codes: &RangeInclusive<u16>| found.response_status.is_some_and(|code| codes.contains(&code));
        let is_error = |error| found.error_type.as_deref() == Some(error);
        is_theirs
            && search.code.as_ref().is_none_or(is_answered)
            && search.error.is_none_or(is_error)
            && (search.statuses.is_empty() || search.statuses.contains(&found.status))
            && (search.reasons.is_empty() || found.reason.as_ref().is_some_and(is_for))
            && search.event_type.as_ref().is_none_or(is_of_type)
    });
    Ok(Examined {
        items,
        examined,
        next: None,
    })
}
