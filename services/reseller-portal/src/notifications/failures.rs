//! `GET /notifications/failures`: how many failed, by how.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::FailureKind;
use http_api::{Params, Problem};
use serde::{Deserialize, Serialize};
use store::webhook::{FAILURES_COUNTED_MAX, FailureSum};
use utoipa::ToSchema;
use uuid::Uuid;

use super::all;
use super::document::ErrorTypeName;
use super::list::SHOWN;
use crate::app::App;
use crate::request::Reseller;

/// Which failures.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FailureParams {
    /// Of this subscription; of all when missing.
    pub(crate) subscription: Option<Uuid>,
    /// Of what failed at this time or later; never of more than 7 days ago.
    pub(crate) since: Option<DateTime<Utc>>,
    /// Of what failed before this time.
    pub(crate) until: Option<DateTime<Utc>>,
}

/// How many failed for good, by how.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Failures)]
pub(crate) struct FailuresDocument {
    /// Of what failed at this time or later.
    pub(crate) since: DateTime<Utc>,
    /// How many failed. One that failed, was sent again and failed once more counts twice.
    #[schema(example = 1_204)]
    pub(crate) total: u64,
    /// Of those, how many a resend or a replay has delivered since: they are not listed as failed any more.
    pub(crate) delivered_by_resending: u64,
    /// Whether there may be more, so that each number is of at least so many: 100,000 are looked at.
    pub(crate) at_least: bool,
    /// Those that failed in the same way, the most frequent first.
    pub(crate) items: Vec<FailureDocument>,
}

/// What failed in the same way.
#[derive(Debug, Serialize, ToSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schema(as = FailureCount)]
pub(crate) struct FailureDocument {
    /// How the last attempt failed: what `error` of `GET /notifications` is asked with. An address that may not be asked is told like a name
    /// without one.
    #[schema(value_type = ErrorTypeName)]
    pub(crate) error_type: String,
    /// The status code of the answer, where there was one: what `code` of `GET /notifications` is asked with.
    #[schema(example = 503)]
    pub(crate) code: Option<u16>,
    /// How many.
    #[schema(example = 1_200)]
    pub(crate) count: u64,
    /// Of those, how many a resend or a replay has delivered since.
    pub(crate) delivered_by_resending: u64,
    /// When the first of them failed.
    pub(crate) first_at: DateTime<Utc>,
    /// When the last one did.
    pub(crate) last_at: DateTime<Utc>,
}

/// Counts the notifications that failed for good in the last 7 days, by how their last attempt failed.
///
/// What was given up without a failure is not among them: what was cancelled, waited for too long, or lost its subscription.
#[utoipa::path(
    get, path = "/notifications/failures", tag = "notifications", operation_id = "notificationFailures",
    security(("apiKey" = [])),
    params(FailureParams),
    responses((status = 200, description = "The sums.", body = FailuresDocument))
)]
pub(crate) async fn failures(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Params(params): Params<FailureParams>,
) -> Result<Json<FailuresDocument>, Problem> {
    let subscriptions = all::subscriptions(&app, &reseller, params.subscription).await?;
    let now = app.now();
    let earliest = now - SHOWN;
    let since = params.since.map_or(earliest, |since| since.max(earliest));
    // The clock of the database may be a little ahead of ours. An end before the beginning finds nothing, and may lie before all times that the
    // database knows.
    let until = params
        .until
        .map_or(now + TimeDelta::days(1), |until| until.max(since));
    let read = app
        .store
        .failure_sums(&subscriptions, (since, until), FAILURES_COUNTED_MAX);
    let sums = http_api::by(reseller.deadline, ("the failures", "read"), read).await?;
    Ok(Json(document(since, sums, FAILURES_COUNTED_MAX)))
}

/// What is told of `sums`, for which `most` were looked at at most.
fn document(since: DateTime<Utc>, sums: Vec<FailureSum>, most: u32) -> FailuresDocument {
    let looked_at: u64 = sums.iter().map(|sum| sum.count).sum();
    let mut kinds: BTreeMap<(String, Option<u16>), FailureDocument> = BTreeMap::new();
    for sum in sums {
        let Some(kind) = sum.error_type else {
            continue;
        };
        let error_type = if kind == FailureKind::Egress.as_str() {
            FailureKind::Dns.as_str().to_owned()
        } else {
            kind
        };
        let code = code(&sum.fingerprint);
        kinds
            .entry((error_type.clone(), code))
            .and_modify(|known| {
                known.count += sum.count;
                known.delivered_by_resending += sum.delivered_by_resending;
                known.first_at = known.first_at.min(sum.first_at);
                known.last_at = known.last_at.max(sum.last_at);
            })
            .or_insert(FailureDocument {
                error_type,
                code,
                count: sum.count,
                delivered_by_resending: sum.delivered_by_resending,
                first_at: sum.first_at,
                last_at: sum.last_at,
            });
    }
    let mut items: Vec<FailureDocument> = kinds.into_values().collect();
    // Of those that are as many, the order of their names stays.
    items.sort_by_key(|item| std::cmp::Reverse(item.count));
    FailuresDocument {
        since,
        total: items.iter().map(|item| item.count).sum(),
        delivered_by_resending: items.iter().map(|item| item.delivered_by_resending).sum(),
        at_least: looked_at >= u64::from(most),
        items,
    }
}

/// The status code of the answer that a fingerprint is of.
fn code(fingerprint: &str) -> Option<u16> {
    let answer = fingerprint.strip_prefix("delivery/http/")?;
    answer.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::hours(hour)
    }

    fn sum(error_type: Option<&str>, fingerprint: &str, count: u64, hour: i64) -> FailureSum {
        FailureSum {
            error_type: error_type.map(str::to_owned),
            fingerprint: fingerprint.to_owned(),
            count,
            delivered_by_resending: count / 3,
            first_at: at(hour),
            last_at: at(hour + 2),
        }
    }

    #[test]
    fn what_failed_in_the_same_way_is_one_sum_and_what_did_not_fail_is_none() {
        let sums = vec![
            sum(None, "delivery/cancelled", 50, 0),
            sum(Some("HTTP"), "delivery/http/503/json", 3, 4),
            sum(Some("DNS"), "delivery/dns", 2, 5),
            sum(Some("HTTP"), "delivery/http/503/html", 2, 1),
            sum(Some("HTTP"), "delivery/http/404/empty", 1, 1),
            sum(Some("EGRESS"), "delivery/egress", 1, 1),
            sum(Some("OTHER"), "delivery/lease-lost", 1, 1),
        ];
        let told = document(at(0), sums.clone(), 61);
        let kinds = told.items.iter();
        let kinds: Vec<_> = kinds
            .map(|it| (it.error_type.as_str(), it.code, it.count))
            .collect();
        assert_eq!(
            kinds,
            [
                ("HTTP", Some(503), 5),
                ("DNS", None, 3),
                ("HTTP", Some(404), 1),
                ("OTHER", None, 1)
            ]
        );
        assert_eq!((told.items[0].first_at, told.items[0].last_at), (at(1), at(6)));
        assert_eq!((told.total, told.at_least), (10, false));
        let delivered = told.items.iter().map(|it| it.delivered_by_resending);
        assert_eq!(delivered.collect::<Vec<_>>(), [1, 0, 0, 0]);
        assert_eq!(told.delivered_by_resending, 1);
        assert!(
            document(at(0), sums, 60).at_least,
            "as many were looked at as are at most"
        );
    }
}
