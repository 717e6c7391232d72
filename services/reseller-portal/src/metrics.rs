//! `GET /subscriptions/{id}/metrics`: deliveries in numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use http_api::{Id, Params, Problem};
use serde::{Deserialize, Serialize};
use store::webhook::StatisticsDelta;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::request::Reseller;

const DEFAULT_HOURS: u32 = 24;
/// Four weeks.
const HOURS_MAX: u32 = 672;

/// Of which time.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MetricsParams {
    /// How many hours back, the present one included.
    #[param(minimum = 1, maximum = 672, default = 24)]
    pub(crate) hours: Option<u32>,
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
    /// The size of request bodies.
    pub(crate) payload_bytes: PayloadDocument,
    /// Answers by status code.
    pub(crate) answers: BTreeMap<u16, u64>,
    /// Attempts without an answer: it did not come in time, or there was no connection.
    pub(crate) unanswered: u64,
    /// Those answers that blame the request.
    pub(crate) client_errors: BTreeMap<u16, u64>,
    /// The same counts hour by hour; hours without attempts are left out.
    pub(crate) hours: Vec<HourDocument>,
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

/// Estimates from counts by duration; null when there were no attempts.
#[derive(Serialize, ToSchema)]
#[schema(as = Latency)]
pub(crate) struct LatencyDocument {
    /// Half of the attempts took no longer.
    pub(crate) p50: Option<f64>,
    /// 95 of 100 attempts took no longer.
    pub(crate) p95: Option<f64>,
    /// 99 of 100 attempts took no longer.
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

/// An hour.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Hour)]
pub(crate) struct HourDocument {
    /// When it began.
    pub(crate) hour: DateTime<Utc>,
    #[serde(flatten)]
    pub(crate) counts: Counts,
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
    Params(params): Params<MetricsParams>,
) -> Result<Json<MetricsDocument>, Problem> {
    let hours = params.hours.unwrap_or(DEFAULT_HOURS);
    if !(1..=HOURS_MAX).contains(&hours) {
        return Err(Problem::query(
            "hours",
            format!("must be between 1 and {HOURS_MAX}"),
        ));
    }
    let subscription = app.subscription(&reseller, id).await?;
    let now = app.now();
    let present = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
    let since = present - TimeDelta::hours(i64::from(hours) - 1);
    let read = app.store.delivery_statistics(subscription.id, since);
    let rows = http_api::by(reseller.deadline, ("the metrics", "read"), read).await?;
    Ok(Json(document(id, since, &rows)))
}

fn document(subscription: Uuid, since: DateTime<Utc>, rows: &[StatisticsDelta]) -> MetricsDocument {
    let mut sum = StatisticsDelta::new(subscription, since);
    for row in rows {
        sum.add(row);
    }
    let percentile = |part| sum.latencies.percentile(part).map(tenths);
    let ended = sum.delivered + sum.failed;
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
        latency_millis: LatencyDocument {
            p50: percentile(0.5),
            p95: percentile(0.95),
            p99: percentile(0.99),
        },
        payload_bytes: PayloadDocument {
            total: sum.payload_bytes,
            average: ratio(sum.payload_bytes, sum.attempts).map(tenths),
        },
        client_errors: blaming.map(|(status, count)| (*status, *count)).collect(),
        unanswered: sum.attempts.saturating_sub(sum.statuses.values().sum()),
        answers: sum.statuses,
        hours: rows
            .iter()
            .map(|row| HourDocument {
                hour: row.hour,
                counts: Counts::of(row),
            })
            .collect(),
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
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

pub(crate) fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
