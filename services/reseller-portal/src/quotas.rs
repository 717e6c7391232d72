//! Quotas: `/subscriptions/{id}/quota` and `/subscriptions/{id}/quota-requests`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use config::Config;
use domain::quota::{day_of, start_of};
use domain::subscription::QuotaRequestStatus;
use http::StatusCode;
use http_api::paging::{self, List};
use http_api::{Draft, FieldCode, FieldProblem, Id, Ids, Problem, ProblemKind, ReadParams};
use serde::{Deserialize, Serialize};
use store::webhook::{NewQuotaRequest, QuotaRequestView, QuotaRequested, QuotaView, Withdrawn};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::{App, new_id};
use crate::problems::{self, QUOTA_REQUEST_DECIDED, QUOTA_REQUEST_OPEN};
use crate::request::{PartParams, QuotaKeeper, Reseller};

/// Greatest daily quota.
const QUOTA_MAX: u32 = 1_000_000_000;
/// Most attempts a second.
const PER_SECOND_MAX: u32 = 100_000;
/// Longest reason, in bytes.
const REASON_MAX_BYTES: usize = 2_000;

/// Days that are shown, the present one included.
const DAYS: u64 = 28;
/// A day that is younger tells nothing of its end.
const LEAST_ELAPSED: TimeDelta = TimeDelta::minutes(15);

/// How much a subscription may get, and has got.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Quota)]
pub(crate) struct QuotaDocument {
    /// Notifications a day.
    #[schema(example = 1_000_000)]
    pub(crate) daily_quota: u32,
    /// Those of today that are sent or have their place; more than the quota when that was lowered since.
    #[schema(example = 812_345)]
    pub(crate) used_today: u64,
    /// What is left of today.
    #[schema(example = 187_655)]
    pub(crate) remaining_today: u64,
    /// When the quota of today is used up, if the day goes on as it began; null when it lasts, or too little was sent to tell, and
    /// when it is used up already: since when is not kept.
    pub(crate) used_up_at: Option<DateTime<Utc>>,
    /// Notifications that wait for a coming day, counted up to 100,000: of so many in line it is looked how many wait for that.
    pub(crate) scheduled: u64,
    /// When the next day begins.
    pub(crate) resets_at: DateTime<Utc>,
    /// In which time zone days begin.
    #[schema(example = "UTC")]
    pub(crate) time_zone: &'static str,
    /// How many attempts are made in a second; null: there is no limit.
    pub(crate) requests_per_second: Option<u32>,
    /// The quota request that waits for a decision, if there is one.
    pub(crate) open_request: Option<QuotaRequestDocument>,
}

/// A higher quota that is asked for: a day, a second or both.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[schema(as = QuotaRequestRequest)]
pub(crate) struct QuotaRequestPayload {
    /// Notifications a day; as many as the subscription has when missing, which `requestsPerSecond` has to be given for.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1_000_000_000, example = 2_000_000)]
    pub(crate) daily_quota: Option<i64>,
    /// Attempts a second; as many as the subscription has when missing.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 100_000, example = 50)]
    pub(crate) requests_per_second: Option<i64>,
    /// Why; an administrator reads it. Bytes of UTF-8 are counted.
    #[schema(value_type = String, required = true, max_length = 2000, example = "We take over the domains of another registrar.")]
    pub(crate) reason: Option<String>,
}

/// A quota request.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuotaRequest)]
pub(crate) struct QuotaRequestDocument {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// For which subscription.
    pub(crate) subscription_id: Uuid,
    /// The daily quota that is asked for; the one that the subscription had when only `requestsPerSecond` was given.
    #[schema(example = 2_000_000)]
    pub(crate) daily_quota: u32,
    /// The attempts a second that are asked for; null when they are to stay as they are.
    pub(crate) requests_per_second: Option<u32>,
    /// Why.
    pub(crate) reason: String,
    /// Where it stands.
    pub(crate) status: QuotaRequestStatus,
    /// The daily quota that was given; null when it stays as it is.
    pub(crate) granted: Option<u32>,
    /// The attempts a second that were given; null when they stay as they are.
    pub(crate) granted_per_second: Option<u32>,
    /// What the administrator says about it.
    pub(crate) note: Option<String>,
    /// When it was made.
    pub(crate) created_at: DateTime<Utc>,
    /// When it was decided.
    pub(crate) decided_at: Option<DateTime<Utc>>,
}

impl From<QuotaRequestView> for QuotaRequestDocument {
    fn from(view: QuotaRequestView) -> Self {
        Self {
            id: view.id,
            subscription_id: view.subscription,
            daily_quota: view.requested,
            requests_per_second: view.requests_per_second,
            reason: view.reason,
            status: view.status,
            granted: view.granted,
            granted_per_second: view.granted_per_second,
            note: view.note,
            created_at: view.created_at,
            decided_at: view.decided_at,
        }
    }
}

/// Shows how much of the quota is used.
#[utoipa::path(
    get, path = "/subscriptions/{id}/quota", tag = "quotas", operation_id = "findQuota",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 200, description = "The quota.", body = QuotaDocument))
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
) -> Result<Json<QuotaDocument>, Problem> {
    let find = async {
        let Some(quota) = app.store.find_quota(&reseller.id, id).await? else {
            return Ok(None);
        };
        let waits = Some(QuotaRequestStatus::Requested);
        let open = app.store.list_quota_requests(Some(id), waits, None, 1).await?;
        Ok(Some((quota, open)))
    };
    let found = http_api::by(reseller.deadline, ("the quota", "read"), find).await?;
    let (quota, mut open) = found.ok_or_else(problems::no_subscription)?;
    let mut document = document(quota, &app.config, app.now());
    document.open_request = open.pop().map(QuotaRequestDocument::from);
    Ok(Json(document))
}

fn document(view: QuotaView, config: &Config, now: DateTime<Utc>) -> QuotaDocument {
    let (defaults, zone) = (&config.reseller.subscription, config.reseller.quota.time_zone);
    let daily_quota = view.daily_quota.unwrap_or(defaults.daily_quota);
    let today = day_of(now, zone);
    let (used, left) = view
        .budget
        .map_or((0, u64::from(daily_quota)), |(budget, quota)| {
            let used = budget.used_on(today, quota, daily_quota);
            (used, budget.free(today, quota, daily_quota))
        });
    let tomorrow = today.checked_add_days(Days::new(1)).unwrap_or(today);
    let (began, resets_at) = (start_of(today, zone), start_of(tomorrow, zone));
    QuotaDocument {
        daily_quota,
        used_today: used,
        remaining_today: left,
        used_up_at: used_up_at((began, now), (used, daily_quota.into())).filter(|at| *at < resets_at),
        scheduled: view.scheduled,
        resets_at,
        time_zone: zone.name(),
        requests_per_second: view.requests_per_second.or(defaults.requests_per_second),
        open_request: None,
    }
}

/// How much of a quota was used day by day.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuotaDays)]
pub(crate) struct QuotaDaysDocument {
    /// Notifications a day.
    #[schema(example = 1_000_000)]
    pub(crate) daily_quota: u32,
    /// In which time zone days begin.
    #[schema(example = "UTC")]
    pub(crate) time_zone: &'static str,
    /// The present day.
    pub(crate) today: NaiveDate,
    /// Those of today that are sent or have their place; more than the quota when that was lowered since.
    #[schema(example = 812_345)]
    pub(crate) used_today: u64,
    /// When the quota of today is used up, if the day goes on as it began; null when it lasts, or too little was sent to tell, and
    /// when it is used up already: since when is not kept.
    pub(crate) used_up_at: Option<DateTime<Utc>>,
    /// The most of these days: as many as were charged to one, or ended on it where that was not kept, and of today those that wait for a
    /// coming day with them. What waited on a day before that used up its quota is not in it.
    #[schema(example = 1_040_000)]
    pub(crate) busiest: u64,
    /// The last 28 days, the present one last.
    pub(crate) days: Vec<QuotaDayDocument>,
}

/// A day of a quota.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuotaDay)]
pub(crate) struct QuotaDayDocument {
    /// The day.
    pub(crate) day: NaiveDate,
    /// Notifications that were charged to it; null for days of which that was not kept.
    pub(crate) used: Option<u64>,
    /// The quota of that day; null where `used` is.
    pub(crate) quota: Option<u32>,
    /// Notifications that ended on it, delivered or failed for good, whichever day they were charged to.
    pub(crate) ended: u64,
}

/// Shows how much of the quota was used in the last 28 days, and when that of today is used up.
#[utoipa::path(
    get, path = "/subscriptions/{id}/quota/days", tag = "quotas", operation_id = "quotaDays",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 200, description = "The days.", body = QuotaDaysDocument))
)]
pub(crate) async fn days(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
) -> Result<Json<QuotaDaysDocument>, Problem> {
    let (now, zone) = (app.now(), app.config.reseller.quota.time_zone);
    let today = day_of(now, zone);
    let first = today.checked_sub_days(Days::new(DAYS - 1)).unwrap_or(today);
    let read = async {
        let Some(quota) = app.store.find_quota(&reseller.id, id).await? else {
            return Ok(None);
        };
        let days = app.store.quota_days(id, first, start_of(first, zone)).await?;
        Ok(Some((quota, days)))
    };
    let found = http_api::by(reseller.deadline, ("the quota", "read"), read).await?;
    let (quota, kept) = found.ok_or_else(problems::no_subscription)?;
    let present = document(quota, &app.config, now);
    let days: Vec<QuotaDayDocument> = first
        .iter_days()
        .take_while(|day| *day <= today)
        .map(|day| {
            let kept = kept.iter().find(|kept| kept.day == day);
            let is_today = day == today;
            QuotaDayDocument {
                day,
                used: if is_today {
                    Some(present.used_today)
                } else {
                    kept.and_then(|kept| kept.used)
                },
                quota: if is_today {
                    Some(present.daily_quota)
                } else {
                    kept.and_then(|kept| kept.quota)
                },
                ended: kept.map_or(0, |kept| kept.ended),
            }
        })
        .collect();
    Ok(Json(QuotaDaysDocument {
        daily_quota: present.daily_quota,
        time_zone: present.time_zone,
        today,
        used_today: present.used_today,
        used_up_at: present.used_up_at,
        busiest: busiest(&days, present.used_today + present.scheduled),
        days,
    }))
}

/// The most of all days, where `today` is what it has used with what waits. What ended on a day may have been charged to others, so that it
/// counts only where the use was not kept.
fn busiest(days: &[QuotaDayDocument], today: u64) -> u64 {
    let used = days.iter().map(|day| day.used.unwrap_or(day.ended));
    used.fold(today, u64::max)
}

/// When a day that `began` then and has used so much by `now` will have used up its quota, at the pace that it had so far.
fn used_up_at(
    (began, now): (DateTime<Utc>, DateTime<Utc>),
    (used, quota): (u64, u64),
) -> Option<DateTime<Utc>> {
    let elapsed = (now - began).max(TimeDelta::zero());
    // Since when it is used up is not kept, and the present time would be read as that.
    if used >= quota || used == 0 || elapsed < LEAST_ELAPSED {
        return None;
    }
    let seconds = i128::from(elapsed.num_seconds()) * i128::from(quota) / i128::from(used);
    let whole = TimeDelta::try_seconds(i64::try_from(seconds).ok()?)?;
    began.checked_add_signed(whole)
}

/// Asks for a higher quota.
///
/// An administrator decides. Only one request of a subscription can wait at a time. It has to ask for more than the subscription has: a
/// day, a second or both.
#[utoipa::path(
    post, path = "/subscriptions/{id}/quota-requests", tag = "quotas", operation_id = "requestQuota",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    request_body = QuotaRequestPayload,
    responses((status = 201, description = "It waits for a decision.", body = QuotaRequestDocument))
)]
pub(crate) async fn request(
    State(app): State<Arc<App>>,
    reseller: QuotaKeeper,
    Id(subscription): Id,
    Draft(payload, unread): Draft<QuotaRequestPayload>,
) -> Result<(StatusCode, Json<QuotaRequestDocument>), Problem> {
    let asked = unread.merge(check(payload))?;
    let find = app.store.find_quota(&reseller.id, subscription);
    let found = http_api::by(reseller.deadline, ("the quota", "read"), find).await?;
    let has = found.ok_or_else(problems::no_subscription)?;
    let defaults = &app.config.reseller.subscription;
    let requested = asked.more_than(
        has.daily_quota.unwrap_or(defaults.daily_quota),
        has.requests_per_second.or(defaults.requests_per_second),
    )?;
    let (asks_daily, requests_per_second) = (asked.daily_quota.is_some(), asked.requests_per_second);
    let now = app.now();
    let new = NewQuotaRequest {
        id: new_id(now),
        subscription,
        requested,
        asks_daily,
        requests_per_second,
        reason: asked.reason,
        created_at: now,
    };
    let insert = app
        .store
        .insert_quota_request(&reseller.id, &new, reseller.act(now));
    match http_api::by(reseller.deadline, ("the quota request", "stored"), insert).await? {
        QuotaRequested::Done => {}
        QuotaRequested::Open => {
            return Err(Problem::new(
                QUOTA_REQUEST_OPEN,
                "an earlier quota request has not been decided yet",
            ));
        }
        QuotaRequested::Unknown => return Err(problems::no_subscription()),
    }
    let document = QuotaRequestDocument {
        id: new.id,
        subscription_id: subscription,
        daily_quota: requested,
        requests_per_second,
        reason: new.reason,
        status: QuotaRequestStatus::Requested,
        granted: None,
        granted_per_second: None,
        note: None,
        created_at: now,
        decided_at: None,
    };
    Ok((StatusCode::CREATED, Json(document)))
}

/// What a request asks for.
pub(crate) struct Asked {
    pub(crate) daily_quota: Option<u32>,
    pub(crate) requests_per_second: Option<u32>,
    pub(crate) reason: String,
}

impl Asked {
    /// The daily quota that is asked for, of a subscription that has these limits: one of both is to be higher, and none lower.
    fn more_than(&self, daily_quota: u32, requests_per_second: Option<u32>) -> Result<u32, Problem> {
        let refused = |field, detail| {
            Err(Problem::fields(vec![
                FieldProblem::new(field, detail).coded(FieldCode::Conflict),
            ]))
        };
        let already = |limit: u32| format!("must be more than {limit}, which the subscription has already");
        match (self.requests_per_second, requests_per_second) {
            (Some(_), None) => {
                return refused(
                    "requestsPerSecond",
                    "cannot be raised: the subscription has no limit a second".to_owned(),
                );
            }
            (Some(asked), Some(has)) if asked <= has => return refused("requestsPerSecond", already(has)),
            _ => {}
        }
        let requested = self.daily_quota.unwrap_or(daily_quota);
        if requested < daily_quota || requested == daily_quota && self.requests_per_second.is_none() {
            return refused("dailyQuota", already(daily_quota));
        }
        Ok(requested)
    }
}

pub(crate) fn check(payload: QuotaRequestPayload) -> Result<Asked, Problem> {
    let mut errors = Vec::new();
    let mut limit = |name, given: Option<i64>, most| {
        let asked = given.and_then(|given| u32::try_from(given).ok());
        let asked = asked.filter(|asked| (1..=most).contains(asked));
        if given.is_some() && asked.is_none() {
            errors.push(FieldProblem::new(name, format!("must be between 1 and {most}")).between(1, most));
        }
        asked
    };
    let daily_quota = limit("dailyQuota", payload.daily_quota, QUOTA_MAX);
    let requests_per_second = limit("requestsPerSecond", payload.requests_per_second, PER_SECOND_MAX);
    if payload.daily_quota.is_none() && payload.requests_per_second.is_none() {
        let detail = format!("must be between 1 and {QUOTA_MAX}, unless requestsPerSecond is given");
        errors.push(FieldProblem::new("dailyQuota", detail).coded(FieldCode::Missing));
    }
    let reason = payload.reason.filter(|reason| !reason.trim().is_empty());
    match &reason {
        None => errors.push(
            FieldProblem::new("reason", "must be a string that is not blank").coded(FieldCode::Missing),
        ),
        Some(reason) if reason.len() > REASON_MAX_BYTES => {
            let detail = format!(
                "is {} bytes long, but may be at most {REASON_MAX_BYTES}",
                reason.len()
            );
            errors.push(FieldProblem::new("reason", detail).at_most(REASON_MAX_BYTES));
        }
        Some(_) => {}
    }
    match reason {
        Some(reason) if errors.is_empty() => Ok(Asked {
            daily_quota,
            requests_per_second,
            reason,
        }),
        _ => Err(Problem::fields(errors)),
    }
}

/// Takes a quota request back.
///
/// One that waits for a decision is gone then, so that another one can be made. Your activity tells of both, as `quota-request.create` and
/// `quota-request.withdraw`.
#[utoipa::path(
    delete, path = "/subscriptions/{id}/quota-requests/{request}", tag = "quotas", operation_id = "withdrawQuotaRequest",
    security(("apiKey" = [])),
    params(
        ("id" = Uuid, Path, description = "The subscription's identifier."),
        ("request" = Uuid, Path, description = "The quota request's identifier."),
    ),
    responses((status = 204, description = "It is withdrawn."))
)]
pub(crate) async fn withdraw(
    State(app): State<Arc<App>>,
    reseller: QuotaKeeper,
    Ids(subscription, request): Ids,
) -> Result<StatusCode, Problem> {
    app.subscription(&reseller, subscription).await?;
    let act = reseller.act(app.now());
    let withdraw = app
        .store
        .withdraw_quota_request(&reseller.id, (subscription, request), act);
    match http_api::by(reseller.deadline, ("the quota request", "withdrawn"), withdraw).await? {
        Withdrawn::Done => Ok(StatusCode::NO_CONTENT),
        Withdrawn::Decided => Err(Problem::new(
            QUOTA_REQUEST_DECIDED,
            "the quota request has been decided already",
        )),
        Withdrawn::Unknown => Err(Problem::new(
            ProblemKind::NOT_FOUND,
            "no quota request has this identifier",
        )),
    }
}

/// Lists the quota requests of a subscription that wait for a decision or have been decided, the newest first.
///
/// Those that were withdrawn are not among them: your activity tells of them, as `quota-request.withdraw`.
#[utoipa::path(
    get, path = "/subscriptions/{id}/quota-requests", tag = "quotas", operation_id = "listQuotaRequests",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier."), PartParams),
    responses((status = 200, description = "A part of the list.", body = List<QuotaRequestDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
    ReadParams(params, mut wrong): ReadParams<PartParams>,
) -> Result<Json<List<QuotaRequestDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let before = wrong.take(paging::read_id(params.cursor.as_deref()));
    wrong.end()?;
    let subscription = app.subscription(&reseller, id).await?;
    let list = app
        .store
        .list_quota_requests(Some(subscription.id), None, before, limit + 1);
    let found = http_api::by(reseller.deadline, ("the quota requests", "read"), list).await?;
    Ok(Json(List::by_id(
        found,
        limit,
        |view| view.id,
        QuotaRequestDocument::from,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_used_up_at_the_pace_that_it_had_so_far() {
        let at = |time: &str| format!("2026-11-21T{time}Z").parse::<DateTime<Utc>>().unwrap();
        let foretold = |now, used| used_up_at((at("00:00:00"), at(now)), (used, 100));
        assert_eq!(foretold("06:00:00", 50), Some(at("12:00:00")));
        assert_eq!(foretold("06:00:00", 100), None, "it has come true");
        assert_eq!(foretold("06:00:00", 0), None);
        assert_eq!(foretold("00:10:00", 50), None, "too early to tell");
    }

    #[test]
    fn the_busiest_day_counts_what_was_charged_to_it_and_what_waits_today() {
        let day = |used, ended| QuotaDayDocument {
            day: NaiveDate::default(),
            used,
            quota: used.map(|_| 120),
            ended,
        };
        let days = [day(None, 90), day(Some(120), 171), day(Some(40), 12)];
        assert_eq!(
            busiest(&days, 40),
            120,
            "what ended was charged to other days, too"
        );
        assert_eq!(busiest(&[day(None, 130), day(Some(120), 12)], 40), 130);
        assert_eq!(
            busiest(&days, 40 + 300),
            340,
            "what waits for a coming day came too"
        );
        assert_eq!(busiest(&[day(Some(120), 12)], 0), 120);
        assert_eq!(busiest(&[], 0), 0);
    }
}
