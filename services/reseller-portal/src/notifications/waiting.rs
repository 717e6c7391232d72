//! `GET /subscriptions/{id}/scheduled/summary`: what waits, added up.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, NaiveDate, Utc};
use domain::notification::NotificationStatus;
use domain::reason::NotificationReason;
use domain::subscription::{PausedBy, SubscriptionState};
use http_api::{Id, Problem};
use serde::Serialize;
use store::webhook::LINE_COUNTED_MAX;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::request::Reseller;

/// What a notification waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum WaitsFor {
    /// For a day whose quota has room.
    Quota,
    /// For its second.
    Rate,
    /// It could not be tried on our side.
    Postponed,
    /// For its next attempt.
    Retry,
    /// For the end of a pause.
    Paused,
    /// For the verification of the endpoint.
    Unverified,
    /// For its turn among the notifications of the subscription.
    Turn,
}

impl WaitsFor {
    /// What one waits for in this status, for which this reason is stored.
    pub(crate) fn of(
        status: NotificationStatus,
        reason: Option<&NotificationReason>,
        is_paused: bool,
        is_verified: bool,
    ) -> Self {
        match (status, reason) {
            // Also in a pause, as in lists: that it failed is what its reseller has to know.
            (NotificationStatus::Retry, _) => Self::Retry,
            _ if is_paused => Self::Paused,
            (NotificationStatus::Scheduled, Some(NotificationReason::Quota)) => Self::Quota,
            (NotificationStatus::Scheduled, Some(NotificationReason::Postponed)) => Self::Postponed,
            (NotificationStatus::Scheduled, _) => Self::Rate,
            // The reason stays stored until its turn has come, also when the endpoint has answered.
            (_, Some(NotificationReason::Unverified)) if !is_verified => Self::Unverified,
            _ => Self::Turn,
        }
    }
}

/// What waits, by what it waits for and by day.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ScheduledSummary)]
pub(crate) struct SummaryDocument {
    /// In which time zone days begin.
    #[schema(example = "UTC")]
    pub(crate) time_zone: &'static str,
    /// Whose pause holds everything back: RESELLER or OPERATOR; null when none does.
    #[schema(value_type = Option<String>, example = "RESELLER")]
    pub(crate) paused_by: Option<&'static str>,
    /// Up to how many are counted in each status: with more waiting, the numbers are of the first ones.
    #[schema(example = 100_000)]
    pub(crate) counted_up_to: u32,
    /// How many wait.
    pub(crate) total: u64,
    /// What waits for the same until the same day, the first day first.
    pub(crate) waiting: Vec<SumDocument>,
}

/// What waits for the same until the same day.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ScheduledSum)]
pub(crate) struct SumDocument {
    /// What for.
    pub(crate) reason: WaitsFor,
    /// The day on which they are sent, by the limits of this moment; null when that depends on something else than time. The 31st day stands
    /// for all that follow.
    pub(crate) day: Option<NaiveDate>,
    /// When the first turn of that day comes.
    pub(crate) first_at: Option<DateTime<Utc>>,
    /// When the last one does.
    pub(crate) last_at: Option<DateTime<Utc>>,
    /// How many.
    pub(crate) count: u64,
}

/// Adds up what waits, by what it waits for and by the day on which its turn comes.
#[utoipa::path(
    get, path = "/subscriptions/{id}/scheduled/summary", tag = "notifications", operation_id = "scheduledSummary",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier.")),
    responses((status = 200, description = "The sums.", body = SummaryDocument))
)]
pub(crate) async fn scheduled_summary(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
) -> Result<Json<SummaryDocument>, Problem> {
    sums(&app, &reseller, id, LINE_COUNTED_MAX).await.map(Json)
}

/// The same, counted up to `most` in each status.
pub(crate) async fn sums(
    app: &App,
    reseller: &Reseller,
    id: Uuid,
    most: u32,
) -> Result<SummaryDocument, Problem> {
    let subscription = app.subscription(reseller, id).await?;
    let is_verified = subscription.state != SubscriptionState::PendingVerification;
    let most = most.min(LINE_COUNTED_MAX);
    let read = app.store.waiting_sums(id, most);
    let sums = http_api::by(reseller.deadline, ("what waits", "read"), read).await?;
    let paused_by = app.held_back(reseller, id).await?.paused_by;
    let mut waiting: Vec<SumDocument> = Vec::new();
    for sum in sums {
        let reason = WaitsFor::of(sum.status, sum.reason.as_ref(), paused_by.is_some(), is_verified);
        // By what time a pause ends or an endpoint answers its challenge is not known.
        let timeless = paused_by.is_some() || !is_verified;
        let (day, first_at, last_at) = if timeless {
            (None, None, None)
        } else {
            (sum.day, sum.first_at, sum.last_at)
        };
        match waiting
            .iter_mut()
            .find(|known| (known.reason, known.day) == (reason, day))
        {
            Some(known) => {
                known.count += sum.count;
                known.first_at = known.first_at.min(first_at);
                known.last_at = known.last_at.max(last_at);
            }
            None => waiting.push(SumDocument {
                reason,
                day,
                first_at,
                last_at,
                count: sum.count,
            }),
        }
    }
    waiting.sort_by_key(|sum| (sum.day.is_none(), sum.day, sum.reason));
    Ok(SummaryDocument {
        time_zone: app.config.reseller.quota.time_zone.name(),
        paused_by: paused_by.map(PausedBy::for_reseller),
        counted_up_to: most,
        total: waiting.iter().map(|sum| sum.count).sum(),
        waiting,
    })
}
