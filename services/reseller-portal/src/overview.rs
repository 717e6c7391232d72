//! `GET /overview`: how it stands with every subscription, and what needs its reseller first.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Days, DurationRound as _, TimeDelta, Utc};
use domain::counted::number;
use domain::latency::Latencies;
use domain::notification::NotificationStatus;
use domain::quota::{Budget, day_of, start_of};
use domain::subscription::{PausedBy, SubscriptionState};
use explain::reseller::{Sentence, Step};
use explain::words::when;
use http_api::Problem;
use serde::Serialize;
use store::webhook::{HourCounts, NewestFailure, SubscriptionView, WAITING_COUNTED_MAX, Waiting};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::metrics::{ratio, tenths};
use crate::notifications::WaitsFor;
use crate::request::Reseller;

/// Subscriptions that are shown; the others are in the list of subscriptions.
const SHOWN: u32 = 50;
/// Seven days.
pub(crate) const HOURS: i64 = 168;
/// From which part of the daily quota on its reseller is told.
const QUOTA_TOLD: f64 = 0.8;
/// How long before a secret ends its reseller is told.
const SECRET_TOLD: TimeDelta = TimeDelta::hours(24);
/// For how long it is told that attempts fail on our side while nothing else is tried.
const OURS_TOLD: TimeDelta = TimeDelta::hours(24);

/// How it stands with everything.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Overview)]
pub(crate) struct OverviewDocument {
    /// As of when.
    pub(crate) as_of: DateTime<Utc>,
    /// What needs you, the worst first.
    pub(crate) needs_you: Vec<NeedDocument>,
    /// The subscriptions, the oldest first; 50 at most.
    pub(crate) subscriptions: Vec<OverviewRowDocument>,
    /// Whether there are more subscriptions than these.
    pub(crate) has_more: bool,
    /// Up to how many are counted as waiting in each status.
    #[schema(example = 1_000)]
    pub(crate) counted_up_to: u32,
}

/// What needs you. Codes: deactivated, deactivated-failing, deactivated-redirected, deactivated-gone, degraded, failing, unverified,
/// challenge-failed, secret-ends, quota-used, quota-used-up, held, failing-on-our-side.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Need)]
pub(crate) struct NeedDocument {
    /// Which subscription.
    pub(crate) subscription_id: Uuid,
    /// What is the matter.
    #[serde(flatten)]
    pub(crate) sentence: Sentence,
}

/// How it stands with a subscription.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OverviewRow)]
pub(crate) struct OverviewRowDocument {
    /// The subscription's identifier.
    pub(crate) id: Uuid,
    /// Where notifications are sent.
    #[schema(example = "https://reseller.example/hooks/domains")]
    pub(crate) url: String,
    /// The reseller's own words.
    pub(crate) description: String,
    /// Which events it gets.
    #[schema(example = json!(["domain.*", "contact.updated"]))]
    pub(crate) event_types: Vec<String>,
    /// Where it stands.
    pub(crate) state: SubscriptionState,
    /// Whose pause holds it back: RESELLER or OPERATOR; null when none does.
    #[schema(value_type = Option<String>, example = "RESELLER")]
    pub(crate) paused_by: Option<&'static str>,
    /// The state with its reason.
    pub(crate) said: Sentence,
    /// Hours of the last 7 days in which attempts ended a notification; the others are left out.
    pub(crate) hours: Vec<OverviewHourDocument>,
    /// Notifications delivered in 7 days.
    pub(crate) delivered: u64,
    /// Notifications that failed for good in 7 days.
    pub(crate) failed: u64,
    /// Of those that failed, how many a resend or a replay has delivered since; counted up to `countedUpTo`.
    pub(crate) delivered_by_resending: u64,
    /// While the endpoint fails, what it answered the newest attempt that failed since then; otherwise what it answered most of what failed,
    /// in the last hour in which anything did. Null when that had no answer.
    #[schema(example = 401)]
    pub(crate) failing_answer: Option<u16>,
    /// Notifications delivered, of those that ended; null when none did.
    pub(crate) success_rate: Option<f64>,
    /// 95 of 100 attempts took no longer, in milliseconds; null when there were none.
    pub(crate) p95_millis: Option<f64>,
    /// What waits now, the most first.
    pub(crate) waiting: Vec<WaitingDocument>,
    /// How much of today's quota is used.
    pub(crate) quota: QuotaUseDocument,
    /// What happens next by itself; null when nothing is known to.
    pub(crate) next: Option<Step>,
}

/// An hour.
#[derive(Serialize, ToSchema)]
#[schema(as = OverviewHour)]
pub(crate) struct OverviewHourDocument {
    /// When it began.
    pub(crate) hour: DateTime<Utc>,
    /// Notifications that were delivered in it.
    pub(crate) delivered: u64,
    /// Notifications that failed for good in it.
    pub(crate) failed: u64,
}

/// What waits for the same.
#[derive(Serialize, ToSchema)]
#[schema(as = WaitingCount)]
pub(crate) struct WaitingDocument {
    /// What for.
    pub(crate) reason: WaitsFor,
    /// How many.
    pub(crate) count: u64,
}

/// How much of today's quota is used.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuotaUse)]
pub(crate) struct QuotaUseDocument {
    /// Notifications a day.
    #[schema(example = 1_000_000)]
    pub(crate) daily_quota: u32,
    /// Those of today that are sent or have their place; more than the quota when that was lowered since.
    #[schema(example = 812_345)]
    pub(crate) used_today: u64,
    /// When the next day begins.
    pub(crate) resets_at: DateTime<Utc>,
}

/// What is read of all subscriptions, by subscription.
struct Facts {
    now: DateTime<Utc>,
    hours: HashMap<Uuid, Vec<HourCounts>>,
    latencies: HashMap<Uuid, Latencies>,
    resent: HashMap<Uuid, u64>,
    newest_failures: HashMap<Uuid, NewestFailure>,
    waiting: HashMap<Uuid, Vec<Waiting>>,
    budgets: HashMap<Uuid, (Budget, u32)>,
    secrets: HashMap<Uuid, DateTime<Utc>>,
    paused_by: HashMap<Uuid, PausedBy>,
}

/// Shows how it stands with every subscription, and what needs you first.
///
/// All of it is read at once, so that a page need not ask for each subscription.
#[utoipa::path(
    get, path = "/overview", tag = "overview", operation_id = "overview",
    security(("apiKey" = [])),
    responses((status = 200, description = "The overview.", body = OverviewDocument))
)]
pub(crate) async fn overview(
    State(app): State<Arc<App>>,
    reseller: Reseller,
) -> Result<Json<OverviewDocument>, Problem> {
    let (overview, _) = first(&app, &reseller, SHOWN).await?;
    Ok(Json(overview))
}

/// The same of the first `shown` subscriptions, and these, in the same order.
pub(crate) async fn first(
    app: &App,
    reseller: &Reseller,
    shown: u32,
) -> Result<(OverviewDocument, Vec<SubscriptionView>), Problem> {
    let list = app
        .store
        .list_subscriptions(&reseller.id, None, shown.saturating_add(1));
    let mut views = http_api::by(reseller.deadline, ("the subscriptions", "read"), list).await?;
    let has_more = views.len() > shown as usize;
    views.truncate(shown as usize);
    let facts = read(app, reseller, &views).await?;
    let mut needs: Vec<(u8, NeedDocument)> = Vec::new();
    let subscriptions = views
        .iter()
        .map(|view| {
            let row = row(app, view, &facts);
            needs.extend(needs_of(view, &row, &facts));
            row
        })
        .collect();
    needs.sort_by_key(|(rank, _)| *rank);
    let overview = OverviewDocument {
        as_of: facts.now,
        needs_you: needs.into_iter().map(|(_, need)| need).collect(),
        subscriptions,
        has_more,
        counted_up_to: WAITING_COUNTED_MAX,
    };
    Ok((overview, views))
}

async fn read(app: &App, reseller: &Reseller, views: &[SubscriptionView]) -> Result<Facts, Problem> {
    let now = app.now();
    let present = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
    let ids: Vec<Uuid> = views.iter().map(|view| view.id).collect();
    let read = async {
        let since = present - TimeDelta::hours(HOURS - 1);
        let mut hours: HashMap<Uuid, Vec<HourCounts>> = HashMap::new();
        for row in app.store.hour_counts_of(&ids, since).await? {
            hours.entry(row.subscription).or_default().push(row);
        }
        let failing = hours
            .iter()
            .filter_map(|(id, hours)| hours.iter().any(|hour| hour.failed > 0).then_some(*id));
        let failing: Vec<Uuid> = failing.collect();
        let mut waiting: HashMap<Uuid, Vec<Waiting>> = HashMap::new();
        for row in app.store.waiting_of(&ids).await? {
            waiting.entry(row.subscription).or_default().push(row);
        }
        let held = app.store.held_back(&ids).await?.into_iter();
        Ok(Facts {
            now,
            hours,
            latencies: app.store.latency_sums_of(&ids, since).await?,
            resent: app.store.delivered_by_resending(&failing, since).await?,
            newest_failures: app
                .store
                .newest_failures_of(&failing_since(views, &waiting, now))
                .await?,
            waiting,
            budgets: app.store.budgets_of(&ids).await?,
            secrets: app.store.secrets_ending(&ids, (now, now + SECRET_TOLD)).await?,
            paused_by: held
                .filter_map(|(id, held)| Some((id, held.paused_by?)))
                .collect(),
        })
    };
    http_api::by(reseller.deadline, ("the overview", "read"), read).await
}

/// Since when the newest failure of each is looked for. An attempt that fails on our side is noted of no subscription: of one with retries the
/// newest failure tells.
fn failing_since(
    views: &[SubscriptionView],
    waiting: &HashMap<Uuid, Vec<Waiting>>,
    now: DateTime<Utc>,
) -> Vec<(Uuid, DateTime<Utc>)> {
    let has_retries = |id: &Uuid| {
        let mut rows = waiting.get(id).into_iter().flatten();
        rows.any(|row| row.status == NotificationStatus::Retry)
    };
    let since_when = views.iter().filter_map(|view| {
        let ours = || has_retries(&view.id).then_some(now - OURS_TOLD);
        Some((view.id, view.failing_since.or_else(ours)?))
    });
    since_when.collect()
}

fn row(app: &App, view: &SubscriptionView, facts: &Facts) -> OverviewRowDocument {
    let hours = facts.hours.get(&view.id).map_or(&[][..], Vec::as_slice);
    let delivered: u64 = hours.iter().map(|hour| hour.delivered).sum();
    let failed: u64 = hours.iter().map(|hour| hour.failed).sum();
    let latencies = facts.latencies.get(&view.id);
    let paused_by = facts.paused_by.get(&view.id).copied();
    let waiting = waiting(view, facts, paused_by);
    let quota = quota(app, view, facts);
    let newest = facts.newest_failures.get(&view.id);
    // An hour may hold other answers of before it began to fail.
    let failing_answer = match view.failing_since {
        Some(_) => newest.and_then(|failure| failure.answer),
        None => most_answered(hours),
    };
    let said = explain::reseller::subscription(view, paused_by, facts.now);
    let is_failing = matches!(said.code, "failing" | "degraded");
    let said = match (
        failing_answer,
        newest.and_then(|failure| failure.error_type.as_deref()),
    ) {
        (Some(status), _) if is_failing => explain::reseller::answered(said, status),
        (None, Some(error_type)) if is_failing => explain::reseller::unanswered(said, error_type),
        (None, Some("OTHER")) if said.code == "active" && is_nothing_answered(hours) => {
            explain::reseller::failing_on_our_side()
        }
        _ => said,
    };
    let resent = facts.resent.get(&view.id).copied().unwrap_or_default();
    OverviewRowDocument {
        id: view.id,
        url: view.url.clone(),
        description: view.description.clone(),
        event_types: view.event_types.clone(),
        state: view.state,
        paused_by: paused_by.map(PausedBy::for_reseller),
        said,
        hours: hours
            .iter()
            .filter(|hour| hour.delivered + hour.failed > 0)
            .map(|hour| OverviewHourDocument {
                hour: hour.hour,
                delivered: hour.delivered,
                failed: hour.failed,
            })
            .collect(),
        delivered,
        failed,
        delivered_by_resending: resent.min(failed),
        failing_answer,
        success_rate: ratio(delivered, delivered + failed),
        p95_millis: latencies.and_then(|counted| counted.percentile(0.95)).map(tenths),
        next: next(view, facts, (&waiting, &quota)),
        waiting,
        quota,
    }
}

/// Whether nothing was delivered or answered in the last hour in which there were attempts.
fn is_nothing_answered(hours: &[HourCounts]) -> bool {
    let has_attempts = |hour: &&HourCounts| hour.delivered + hour.failed + hour.retried > 0;
    let last = hours.iter().rev().find(has_attempts);
    last.is_some_and(|hour| hour.delivered == 0 && hour.statuses.is_empty())
}

/// What most of what failed was answered with, in the last hour in which anything did.
fn most_answered(hours: &[HourCounts]) -> Option<u16> {
    let hour = hours.iter().rev().find(|hour| hour.failed + hour.retried > 0)?;
    let others = hour
        .statuses
        .iter()
        .filter(|(status, _)| !(200..300).contains(*status));
    let (status, count) = others.max_by_key(|(_, count)| **count)?;
    (count * 2 > hour.failed + hour.retried).then_some(*status)
}

fn waiting(view: &SubscriptionView, facts: &Facts, paused_by: Option<PausedBy>) -> Vec<WaitingDocument> {
    let is_verified = view.state != SubscriptionState::PendingVerification;
    let mut counts: Vec<WaitingDocument> = Vec::new();
    for waiting in facts.waiting.get(&view.id).into_iter().flatten() {
        let reason = WaitsFor::of(
            waiting.status,
            waiting.reason.as_ref(),
            paused_by.is_some(),
            is_verified,
        );
        match counts.iter_mut().find(|known| known.reason == reason) {
            Some(known) => known.count += waiting.count,
            None => counts.push(WaitingDocument {
                reason,
                count: waiting.count,
            }),
        }
    }
    counts.sort_by_key(|waiting| Reverse(waiting.count));
    counts
}

fn quota(app: &App, view: &SubscriptionView, facts: &Facts) -> QuotaUseDocument {
    let zone = app.config.reseller.quota.time_zone;
    let daily_quota = view
        .daily_quota
        .unwrap_or(app.config.reseller.subscription.daily_quota);
    let today = day_of(facts.now, zone);
    let used = facts
        .budgets
        .get(&view.id)
        .map_or(0, |(budget, quota)| budget.used_on(today, *quota, daily_quota));
    let tomorrow = today.checked_add_days(Days::new(1)).unwrap_or(today);
    QuotaUseDocument {
        daily_quota,
        used_today: used,
        resets_at: start_of(tomorrow, zone),
    }
}

/// The first of what is known to happen by itself.
fn next(
    view: &SubscriptionView,
    facts: &Facts,
    (waiting, quota): (&[WaitingDocument], &QuotaUseDocument),
) -> Option<Step> {
    let is_paused = facts.paused_by.contains_key(&view.id);
    let waits_for = |reason| waiting.iter().any(|waiting| waiting.reason == reason);
    let said = |at: DateTime<Utc>, code, what: &str| Step {
        at: Some(at),
        sentence: Sentence::new(code, format!("{what} {}.", when(at, facts.now))).with("at", at),
    };
    match view.state {
        SubscriptionState::PendingVerification => {
            return view
                .verification_due_at
                .map(|at| said(at.max(facts.now), "challenged", "The endpoint is challenged at"));
        }
        SubscriptionState::Deactivated => return None,
        _ if is_paused => return None,
        _ => {}
    }
    let retry = facts
        .waiting
        .get(&view.id)
        .into_iter()
        .flatten()
        .filter_map(|waiting| waiting.next_at)
        .min()
        .map(|at| said(at.max(facts.now), "retried", "The next retry is at"));
    let by_quota = waits_for(WaitsFor::Quota).then(|| {
        said(
            quota.resets_at,
            "quota-resets",
            "What waits for the quota is sent from",
        )
    });
    let secret = facts
        .secrets
        .get(&view.id)
        .map(|at| said(*at, "secret-ends", "A replaced secret signs no more from"));
    [retry, by_quota, secret]
        .into_iter()
        .flatten()
        .min_by_key(|step| step.at)
}

/// What of a subscription needs its reseller, with how bad that is: 0 is the worst.
fn needs_of(view: &SubscriptionView, row: &OverviewRowDocument, facts: &Facts) -> Vec<(u8, NeedDocument)> {
    let mut needs = Vec::new();
    let mut add = |rank, sentence| {
        let need = NeedDocument {
            subscription_id: view.id,
            sentence,
        };
        needs.push((rank, need));
    };
    // What is paused by its reseller is meant to be so.
    let rank = match row.said.code {
        code if code.starts_with("deactivated") => Some(0),
        "degraded" => Some(1),
        "failing" => Some(2),
        "unverified" | "challenge-failed" => Some(3),
        "held" | "failing-on-our-side" => Some(6),
        _ => None,
    };
    if let Some(rank) = rank {
        add(rank, row.said.clone());
    }
    if let Some(at) = facts.secrets.get(&view.id) {
        let text = format!(
            "A secret that was replaced signs until {}: the endpoint has to accept the new one by then.",
            when(*at, facts.now)
        );
        add(4, Sentence::new("secret-ends", text).with("at", at));
    }
    let QuotaUseDocument {
        daily_quota,
        used_today,
        resets_at,
    } = row.quota;
    let part = ratio(used_today, daily_quota.into()).unwrap_or_default();
    if part >= QUOTA_TOLD {
        let (code, rest) = if used_today >= u64::from(daily_quota) {
            ("quota-used-up", "what comes now waits for the next day")
        } else {
            (
                "quota-used",
                "what comes after it is used up waits for the next day",
            )
        };
        let (used, quota) = (number(used_today), number(daily_quota.into()));
        let used = if used_today > u64::from(daily_quota) {
            format!("{used} notifications of today are used, and the quota is {quota} now")
        } else {
            format!("{used} of {quota} notifications of today's quota are used")
        };
        let text = format!("{used}; {rest}, which begins at {}.", when(resets_at, facts.now));
        let sentence = Sentence::new(code, text)
            .with("dailyQuota", daily_quota)
            .with("usedToday", used_today)
            .with("resetsAt", resets_at);
        add(5, sentence);
    }
    needs
}
