//! `POST /subscriptions/{id}/resends`: many notifications sent again at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::NotificationStatus;
use http::StatusCode;
use http_api::{Draft, FieldCode, FieldProblem, Id, Problem, last_answer, words};
use serde::{Deserialize, Deserializer, Serialize};
use store::webhook::{BulkResent, NotificationsAsked, RESENT_MAX, ResendCount, ToResend};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::notifications::SHOWN;
use crate::problems::{self, TOO_MANY_MATCH};
use crate::request::Resender;

/// Most notifications that are named one by one.
const IDS_MAX: usize = 500;
/// Most event types that can be asked for at once.
const EVENT_TYPES_MAX: usize = 50;
/// What can be sent again.
const STATUSES: [NotificationStatus; 3] = [
    NotificationStatus::Sent,
    NotificationStatus::Failed,
    NotificationStatus::GivenUp,
];

/// Which notifications are to be sent again: `ids`, or the other fields, of which none restricts nothing.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object", default)]
#[schema(as = ResendRequest)]
pub(crate) struct ResendPayload {
    /// These notifications. One in RETRY is tried at once, as the next of the attempts that it has left.
    #[schema(max_items = 500)]
    pub(crate) ids: Option<Vec<Uuid>>,
    /// Of these statuses: SENT, FAILED, GIVEN_UP.
    #[schema(example = json!(["FAILED", "GIVEN_UP"]))]
    pub(crate) statuses: Option<Vec<String>>,
    /// Of these event types.
    #[schema(max_items = 50, example = json!(["domain.created"]))]
    pub(crate) event_types: Option<Vec<String>>,
    /// The endpoint answered the last attempt with this status code, or with one of a class, such as 5xx. A number is taken as well.
    #[schema(example = "503")]
    #[serde(deserialize_with = "code")]
    pub(crate) code: Option<String>,
    /// Of events that were accepted at this time or later; never of more than 7 days ago.
    pub(crate) since: Option<DateTime<Utc>>,
    /// Of events that were accepted before this time; the present one when missing.
    pub(crate) until: Option<DateTime<Utc>>,
    /// Of those that were delivered, failed or were given up at this time or later, however long before their event was accepted.
    pub(crate) ended_since: Option<DateTime<Utc>>,
    /// Of those that ended so before this time.
    pub(crate) ended_until: Option<DateTime<Utc>>,
    /// Whether they are only counted.
    pub(crate) dry_run: Option<bool>,
    /// Most of them that are sent in a second, at most reseller.replay.perSecond, which is also the default.
    #[schema(minimum = 1, example = 10)]
    pub(crate) per_second: Option<u32>,
}

/// A status code was a number before there were classes of them.
fn code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "must be a status code such as 503, or the text of a class such as \"5xx\""
    )]
    enum Code {
        One(u16),
        Text(String),
    }
    let given = Option::<Code>::deserialize(deserializer)?;
    Ok(given.map(|code| match code {
        Code::One(code) => code.to_string(),
        Code::Text(text) => text,
    }))
}

/// What is sent again, or would be.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Resends)]
pub(crate) struct ResendsDocument {
    /// Whether they were only counted.
    pub(crate) dry_run: bool,
    /// When that was asked for, by the clock of the portal. What is sent again has changed since.
    pub(crate) at: DateTime<Utc>,
    /// How many are sent again, or would be.
    pub(crate) count: u64,
    /// The same by the status that they had. Those that were in RETRY are tried at once, and not at the rate.
    #[schema(example = json!({"FAILED": 12, "GIVEN_UP": 30}))]
    pub(crate) by_status: BTreeMap<&'static str, u64>,
    /// The same by event type.
    #[schema(example = json!({"domain.created": 42}))]
    pub(crate) by_event_type: BTreeMap<String, u64>,
    /// What is left alone.
    pub(crate) skipped: SkippedDocument,
    /// How many are sent in a second.
    #[schema(example = 100)]
    pub(crate) per_second: u32,
    /// How long that takes, in seconds; within the limits of the subscription.
    pub(crate) seconds: u64,
}

/// What is left alone.
#[derive(Serialize, ToSchema)]
#[schema(as = SkippedResends)]
pub(crate) struct SkippedDocument {
    /// Cancelled, which is final.
    pub(crate) cancelled: u64,
    /// Not ended, and due, in line or being sent, so that they are sent anyhow.
    pub(crate) unfinished: u64,
    /// Named, but not found.
    pub(crate) unknown: u64,
}

impl ResendsDocument {
    fn of(counted: ResendCount, dry_run: bool, per_second: u32, at: DateTime<Utc>) -> Self {
        let (count, paced) = (counted.resendable(), counted.paced());
        Self {
            dry_run,
            at,
            count,
            by_status: counted.by_status,
            by_event_type: counted.by_event_type,
            skipped: SkippedDocument {
                cancelled: counted.cancelled,
                unfinished: counted.unfinished,
                unknown: counted.unknown,
            },
            per_second,
            seconds: paced.div_ceil(u64::from(per_second.max(1))),
        }
    }

    /// Adds those of another subscription, which are sent at the same time.
    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        for (status, count) in other.by_status {
            *self.by_status.entry(status).or_default() += count;
        }
        for (name, count) in other.by_event_type {
            *self.by_event_type.entry(name).or_default() += count;
        }
        self.skipped.cancelled += other.skipped.cancelled;
        self.skipped.unfinished += other.skipped.unfinished;
        self.skipped.unknown += other.skipped.unknown;
        self.seconds = self.seconds.max(other.seconds);
    }
}

/// Of the statuses that a list is restricted to, those that can be sent again, and the others.
pub(crate) fn resendable(listed: &str) -> (Vec<&str>, Vec<&str>) {
    words::listed(Some(listed)).partition(|name| STATUSES.iter().any(|known| known.as_str() == *name))
}

/// What is asked for.
struct Asked {
    which: ToResend,
    dry_run: bool,
    per_second: u32,
}

/// Sends notifications of a subscription again that have ended, delivered ones too.
///
/// They are the same notifications, with the same ids and bodies: an endpoint that keeps the ids of what it has processed knows those that it
/// has already. The oldest event is sent first. Of those that `ids` names the ones in RETRY are tried at once. `dryRun` only counts. At most 10,000
/// at once: more are the affair of a replay.
#[utoipa::path(
    post, path = "/subscriptions/{id}/resends", tag = "notifications", operation_id = "resendNotifications",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    request_body = ResendPayload,
    responses(
        (status = 200, description = "They were only counted.", body = ResendsDocument),
        (status = 202, description = "They are sent one after the other.", body = ResendsDocument),
    )
)]
pub(crate) async fn resend(
    State(app): State<Arc<App>>,
    reseller: Resender,
    Id(subscription): Id,
    Draft(payload, unread): Draft<ResendPayload>,
) -> Result<(StatusCode, Json<ResendsDocument>), Problem> {
    let now = app.now();
    let per_second_max = app.config.reseller.replay.per_second;
    let asked = unread.merge(check(payload, subscription, per_second_max, now))?;
    let target = (reseller.id.as_str(), subscription);
    let carry_out = async {
        if asked.dry_run {
            app.store.count_resends(target, &asked.which, now).await
        } else {
            let act = reseller.act(now);
            let resend = app
                .store
                .resend_notifications(target, &asked.which, asked.per_second, act);
            resend.await
        }
    };
    match http_api::by(reseller.deadline, ("the notifications", "sent again"), carry_out).await? {
        BulkResent::Done(counted) => {
            let document = ResendsDocument::of(counted, asked.dry_run, asked.per_second, now);
            let status = if asked.dry_run {
                StatusCode::OK
            } else {
                StatusCode::ACCEPTED
            };
            Ok((status, Json(document)))
        }
        BulkResent::TooMany => Err(Problem::new(
            TOO_MANY_MATCH,
            format!(
                "more than {RESENT_MAX} notifications match, or they lie too far apart to be found at once"
            ),
        )),
        BulkResent::NotActive(state) => Err(problems::not_active(state)),
        BulkResent::Unknown => Err(problems::no_subscription()),
    }
}

fn check(
    payload: ResendPayload,
    subscription: Uuid,
    per_second_max: u32,
    now: DateTime<Utc>,
) -> Result<Asked, Problem> {
    let mut errors = Vec::new();
    let per_second = payload.per_second.unwrap_or(per_second_max);
    if !(1..=per_second_max).contains(&per_second) {
        let detail = format!("must be between 1 and {per_second_max}");
        errors.push(FieldProblem::new("perSecond", detail).between(1, per_second_max));
    }
    let statuses = match payload.statuses.as_deref() {
        None => STATUSES.to_vec(),
        Some(names) => {
            let read = |name: &String| STATUSES.into_iter().find(|status| status.as_str() == name);
            let known: Option<Vec<_>> = names.iter().map(read).collect();
            known.filter(|known| !known.is_empty()).unwrap_or_else(|| {
                let detail = "must be some of SENT, FAILED, GIVEN_UP; what is in RETRY is tried again by itself, and at once where ids name it, or all of it by retry-now of the subscription";
                errors.push(FieldProblem::new("statuses", detail).coded(FieldCode::UnknownValue));
                Vec::new()
            })
        }
    };
    let event_types = payload.event_types.clone().unwrap_or_default();
    if event_types.len() > EVENT_TYPES_MAX
        || !event_types
            .iter()
            .all(|name| domain::subscription::is_event_type(name))
    {
        let detail = format!("must be at most {EVENT_TYPES_MAX} event types such as domain.created");
        errors.push(FieldProblem::new("eventTypes", detail).coded(FieldCode::WrongFormat));
    }
    let code = payload.code.as_deref().and_then(last_answer::status_codes);
    if payload.code.is_some() && code.is_none() {
        errors.push(FieldProblem::new("code", last_answer::NO_CODE).coded(FieldCode::WrongFormat));
    }
    let earliest = now - SHOWN;
    let (since, until) = (
        payload.since.map_or(earliest, |since| since.max(earliest)),
        payload.until.unwrap_or(now + TimeDelta::minutes(1)),
    );
    if since >= until {
        errors.push(FieldProblem::new("since", "must be before until").coded(FieldCode::Conflict));
    }
    let (ended_since, ended_until) = (payload.ended_since, payload.ended_until);
    if ended_since
        .zip(ended_until)
        .is_some_and(|(since, until)| since >= until)
    {
        errors.push(FieldProblem::new("endedSince", "must be before endedUntil").coded(FieldCode::Conflict));
    }
    let filtered = payload.statuses.is_some()
        || payload.event_types.is_some()
        || payload.code.is_some()
        || payload.since.is_some()
        || payload.until.is_some()
        || ended_since.is_some()
        || ended_until.is_some();
    let which = match payload.ids {
        Some(_) if filtered => {
            let detail = "names the notifications: leave out statuses, eventTypes, code, since, until, endedSince and endedUntil";
            errors.push(FieldProblem::new("ids", detail).coded(FieldCode::Conflict));
            ToResend::Ids(Vec::new())
        }
        Some(ids) if ids.is_empty() || ids.len() > IDS_MAX => {
            errors.push(
                FieldProblem::new("ids", format!("must be 1 to {IDS_MAX} identifiers")).between(1, IDS_MAX),
            );
            ToResend::Ids(Vec::new())
        }
        Some(mut ids) => {
            ids.sort_unstable();
            ids.dedup();
            ToResend::Ids(ids)
        }
        None if !filtered => {
            let detail = "is missing: name notifications, or say which by statuses, eventTypes, code, since, until, endedSince or endedUntil";
            errors.push(FieldProblem::new("ids", detail).coded(FieldCode::Missing));
            ToResend::Ids(Vec::new())
        }
        None => ToResend::Matching(Box::new(NotificationsAsked {
            subscriptions: vec![subscription],
            statuses,
            event_types,
            code,
            errors: Vec::new(),
            value: None,
            since,
            until,
            // What ended earlier was accepted earlier, and the time may lie before all that the database knows.
            ended_since: ended_since.map(|since| since.max(earliest)),
            ended_until: ended_until.map(|until| until.max(earliest)),
            before: None,
            limit: 0,
        })),
    };
    if !errors.is_empty() {
        return Err(Problem::fields(errors));
    }
    Ok(Asked {
        which,
        dry_run: payload.dry_run.unwrap_or_default(),
        per_second,
    })
}
