//! `GET /subscriptions/{id}/metrics`: deliveries in numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use domain::event::EventError;
use domain::latency::{Delays, Histogram};
use http_api::{FieldCode, FieldProblem, Id, Problem, ReadParams};
use serde::{Deserialize, Serialize};
use store::webhook::{EndedInHour, StatisticsDelta, TypeStatistics, TypeSums};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::request::Reseller;

const DEFAULT_HOURS: u32 = 24;
/// Four weeks.
const HOURS_MAX: u32 = 672;

/// Of which time.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MetricsParams {
    /// How many hours back, the present one included.
    #[param(minimum = 1, maximum = 672, default = 24)]
    pub(crate) hours: Option<u32>,
    /// Of how many hours each entry of `hours` is.
    #[param(minimum = 1, maximum = 672, default = 1)]
    pub(crate) step: Option<u32>,
    /// The event type whose hours are listed by themselves, in its entry of `byEventType`.
    #[param(example = "domain.created")]
    pub(crate) event_type: Option<String>,
}

/// Deliveries in numbers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Metrics)]
pub(crate) struct MetricsDocument {
    /// From this hour on.
    pub(crate) since: DateTime<Utc>,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Notifications delivered, of those that ended; null when none did, as while all are tried again: see `retryRate`.
    pub(crate) success_rate: Option<f64>,
    /// Notifications that failed for good, of those that ended; null when none did.
    pub(crate) failure_rate: Option<f64>,
    /// Attempts that led to another one, of all; null when there were none.
    pub(crate) retry_rate: Option<f64>,
    /// How long attempts took.
    pub(crate) latency_millis: LatencyDocument,
    /// How long after their event notifications were delivered, whatever they waited for; those that were sent again or replayed are left out.
    pub(crate) delivery_delay_millis: LatencyDocument,
    /// The size of request bodies.
    pub(crate) payload_bytes: PayloadDocument,
    /// Answers by status code.
    pub(crate) answers: BTreeMap<u16, u64>,
    /// Attempts without an answer: it did not come in time, or there was no connection.
    pub(crate) unanswered: u64,
    /// Those answers that blame the request.
    pub(crate) client_errors: BTreeMap<u16, u64>,
    /// The same counts hour by hour, or by `step`; those without attempts are left out.
    pub(crate) hours: Vec<HourDocument>,
    /// The same counts by event type, in the order of their names; of what was counted since the installation does that.
    pub(crate) by_event_type: Vec<TypeDocument>,
}

/// Attempts by how they ended.
#[derive(Serialize, ToSchema, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    /// All of them.
    pub(crate) attempts: u64,
    /// The endpoint took the notification.
    pub(crate) delivered: u64,
    /// It did not, and the notification had failed for good.
    pub(crate) failed: u64,
    /// It did not, and the notification was tried again.
    pub(crate) retried: u64,
}

/// Estimates from counts by duration, which may be off: by a fifth of how long attempts took, by two fifths of how long after their event
/// notifications were delivered. Null when there was nothing to count.
#[derive(Serialize, ToSchema)]
#[schema(as = Latency)]
pub(crate) struct LatencyDocument {
    /// Half of them took no longer.
    pub(crate) p50: Option<f64>,
    /// 95 of 100 took no longer.
    pub(crate) p95: Option<f64>,
    /// 99 of 100 took no longer.
    pub(crate) p99: Option<f64>,
}

/// The size of request bodies.
#[derive(Serialize, ToSchema)]
#[schema(as = PayloadSize)]
pub(crate) struct PayloadDocument {
    /// Of all attempts.
    pub(crate) total: u64,
    /// Of one attempt; null when there were none.
    pub(crate) average: Option<f64>,
}

/// An hour, or as many as were asked for with `step`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Hour)]
pub(crate) struct HourDocument {
    /// When it began.
    pub(crate) hour: DateTime<Utc>,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// How long after their event notifications were delivered in it.
    pub(crate) delivery_delay_millis: LatencyDocument,
    /// The same before it is estimated, for those who add hours up.
    #[serde(skip)]
    pub(crate) delays: Delays,
}

/// Events of a type.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MetricsOfEventType)]
pub(crate) struct TypeDocument {
    /// Which type.
    #[schema(example = "domain.created")]
    pub(crate) event_type: String,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// How long after their event notifications of it were delivered.
    pub(crate) delivery_delay_millis: LatencyDocument,
    /// The same hour by hour, or by `step`, of the one that is asked for with `eventType`; null of others.
    pub(crate) hours: Option<Vec<HourDocument>>,
}

/// Shows deliveries to a subscription in numbers.
#[utoipa::path(
    get, path = "/subscriptions/{id}/metrics", tag = "metrics", operation_id = "subscriptionMetrics",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier."), MetricsParams),
    responses((status = 200, description = "The numbers.", body = MetricsDocument))
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
    ReadParams(params, mut wrong): ReadParams<MetricsParams>,
) -> Result<Json<MetricsDocument>, Problem> {
    let step = wrong.take(within("step", params.step, 1));
    let hours = wrong.take(within("hours", params.hours, DEFAULT_HOURS));
    let is_type = |name: &String| domain::subscription::is_event_type(name);
    if !params.event_type.as_ref().is_none_or(is_type) {
        wrong.add(Problem::query("eventType", EventError::Type.to_string()).coded(FieldCode::WrongFormat));
    }
    wrong.end()?;
    let (since, rows) = counted(&app, &reseller, id, hours).await?;
    let read = async {
        let types = app.store.type_sums(id, since, step).await?;
        let of_one = match params.event_type.as_deref() {
            Some(name) => app.store.type_statistics((id, name), since).await?,
            None => Vec::new(),
        };
        Ok((types, of_one))
    };
    let (types, of_one) = http_api::by(reseller.deadline, ("the metrics", "read"), read).await?;
    Ok(Json(document((id, since, step), &rows, (&types, &of_one))))
}

/// The same without event types and delays, which are many rows that few pages show.
pub(crate) async fn without_types(
    app: &App,
    reseller: &Reseller,
    id: Uuid,
    hours: u32,
) -> Result<MetricsDocument, Problem> {
    let (since, rows) = counted(app, reseller, id, hours).await?;
    Ok(document((id, since, 1), &rows, (&TypeSums::default(), &[])))
}

/// When the first of so many hours began, and how many notifications of several subscriptions together were delivered and failed in each. Whose they
/// are, is for the caller to know.
pub(crate) async fn ended_of(
    app: &App,
    reseller: &Reseller,
    subscriptions: &[Uuid],
    hours: u32,
) -> Result<(DateTime<Utc>, Vec<EndedInHour>), Problem> {
    let since = began(app, hours);
    let read = app.store.ended_by_hour(subscriptions, since);
    let counts = http_api::by(reseller.deadline, ("the metrics", "read"), read).await?;
    Ok((since, counts))
}

/// What is counted for each of these hours, and when the first of them began.
async fn counted(
    app: &App,
    reseller: &Reseller,
    id: Uuid,
    hours: u32,
) -> Result<(DateTime<Utc>, Vec<StatisticsDelta>), Problem> {
    let subscription = app.subscription(reseller, id).await?;
    let since = began(app, hours);
    let read = app.store.delivery_statistics(subscription.id, since);
    let rows = http_api::by(reseller.deadline, ("the metrics", "read"), read).await?;
    Ok((since, rows))
}

/// When the first of so many hours began, of which the present one is the last.
fn began(app: &App, hours: u32) -> DateTime<Utc> {
    let now = app.now();
    let present = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
    present - TimeDelta::hours(i64::from(hours) - 1)
}

fn within(name: &'static str, hours: Option<u32>, default: u32) -> Result<u32, Problem> {
    let hours = hours.unwrap_or(default);
    if (1..=HOURS_MAX).contains(&hours) {
        Ok(hours)
    } else {
        Err(Problem::parameter(
            FieldProblem::new(name, format!("must be between 1 and {HOURS_MAX}")).between(1, HOURS_MAX),
        ))
    }
}

fn document(
    (subscription, since, step): (Uuid, DateTime<Utc>, u32),
    rows: &[StatisticsDelta],
    (types, of_one): (&TypeSums, &[TypeStatistics]),
) -> MetricsDocument {
    let mut sum = StatisticsDelta::new(subscription, since);
    for row in rows {
        sum.add(row);
    }
    let mut delays = Delays::default();
    for sum in &types.types {
        delays.add(&sum.delays);
    }
    let ended = sum.delivered + sum.failed;
    let of_all = rows.iter().map(|row| (row.hour, Counts::of(row), None));
    let delayed = types
        .delays
        .iter()
        .map(|(began, delays)| (*began, Counts::default(), Some(delays)));
    let blaming = sum
        .statuses
        .iter()
        .filter(|(status, _)| (400..500).contains(*status));
    MetricsDocument {
        since,
        counts: Counts::of(&sum),
        success_rate: ratio(sum.delivered, ended),
        failure_rate: ratio(sum.failed, ended),
        retry_rate: ratio(sum.retried, sum.attempts),
        latency_millis: LatencyDocument::of(&sum.latencies),
        delivery_delay_millis: LatencyDocument::of(&delays),
        payload_bytes: PayloadDocument {
            total: sum.payload_bytes,
            average: ratio(sum.payload_bytes, sum.attempts).map(tenths),
        },
        client_errors: blaming.map(|(status, count)| (*status, *count)).collect(),
        unanswered: sum.attempts.saturating_sub(sum.statuses.values().sum()),
        answers: sum.statuses,
        hours: steps((since, step), of_all.chain(delayed)),
        by_event_type: by_event_type((since, step), &types.types, of_one),
    }
}

/// What was counted in each step, the first one first.
fn steps<'a>(
    (since, step): (DateTime<Utc>, u32),
    counted: impl Iterator<Item = (DateTime<Utc>, Counts, Option<&'a Delays>)>,
) -> Vec<HourDocument> {
    let step = i64::from(step);
    let mut steps: BTreeMap<DateTime<Utc>, (Counts, Delays)> = BTreeMap::new();
    for (hour, counts, delays) in counted {
        let began = since + TimeDelta::hours((hour - since).num_hours() / step * step);
        let sum = steps.entry(began).or_default();
        sum.0.add(&counts);
        if let Some(delays) = delays {
            sum.1.add(delays);
        }
    }
    let steps = steps.into_iter();
    steps
        .map(|(hour, (counts, delays))| HourDocument {
            hour,
            counts,
            delivery_delay_millis: LatencyDocument::of(&delays),
            delays,
        })
        .collect()
}

/// The steps of the one type that `hours` are of are told one by one.
fn by_event_type(
    time: (DateTime<Utc>, u32),
    sums: &[TypeStatistics],
    hours: &[TypeStatistics],
) -> Vec<TypeDocument> {
    let asked = hours.first().map(|row| row.event_type.as_str());
    let sums = sums.iter();
    sums.map(|sum| {
        let counted = hours
            .iter()
            .map(|row| (row.hour, Counts::of_type(row), Some(&row.delays)));
        TypeDocument {
            hours: (asked == Some(&*sum.event_type)).then(|| steps(time, counted)),
            counts: Counts::of_type(sum),
            delivery_delay_millis: LatencyDocument::of(&sum.delays),
            event_type: sum.event_type.clone(),
        }
    })
    .collect()
}

impl LatencyDocument {
    fn of<const PER_DOUBLING: u32>(counted: &Histogram<PER_DOUBLING>) -> Self {
        let percentile = |part| counted.percentile(part).map(tenths);
        Self {
            p50: percentile(0.5),
            p95: percentile(0.95),
            p99: percentile(0.99),
        }
    }
}

impl Counts {
    fn of(delta: &StatisticsDelta) -> Self {
        Self {
            attempts: delta.attempts,
            delivered: delta.delivered,
            failed: delta.failed,
            retried: delta.retried,
        }
    }

    fn of_type(counted: &TypeStatistics) -> Self {
        Self {
            attempts: counted.attempts,
            delivered: counted.delivered,
            failed: counted.failed,
            retried: counted.retried,
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.attempts += other.attempts;
        self.delivered += other.delivered;
        self.failed += other.failed;
        self.retried += other.retried;
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

pub(crate) fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
