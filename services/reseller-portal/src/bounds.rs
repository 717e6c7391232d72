//! `GET /limits`: what the installation allows, so that no client has to write these numbers down.

use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::notification::RetryPolicy;
use http_api::Problem;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::request::Reseller;

/// What the installation allows.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Limits)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the installation"
)]
pub(crate) struct LimitsDocument {
    /// Most subscriptions.
    #[schema(example = 10)]
    pub(crate) subscriptions: u32,
    /// Notifications of a subscription in a day, where nothing else was granted.
    #[schema(example = 1_000_000)]
    pub(crate) daily_quota: u32,
    /// Attempts of a subscription in a second, where nothing else was granted; null: any number.
    pub(crate) requests_per_second: Option<u32>,
    /// In which time zone the days of quotas begin.
    #[schema(example = "UTC")]
    pub(crate) time_zone: &'static str,
    /// The ports that endpoints may have: single ones, and ranges of them. An https URL without a port has 443.
    #[schema(example = json!(["443", "8443", "1024-65535"]))]
    pub(crate) ports: Vec<String>,
    /// How long an endpoint may take to answer, in milliseconds, where a subscription does not say.
    #[schema(example = 10_000)]
    pub(crate) timeout_millis: u64,
    /// How long a subscription may say.
    #[schema(example = 30_000)]
    pub(crate) max_timeout_millis: u64,
    /// Most bytes of an answer that are kept.
    #[schema(example = 4_096)]
    pub(crate) response_body_bytes: usize,
    /// After how many days what waits is given up.
    #[schema(example = 30)]
    pub(crate) max_age_days: u64,
    /// Further attempts of what failed, by retry plan.
    pub(crate) retries: RetriesDocument,
    /// Most signing secrets of a subscription that are valid at once.
    #[schema(example = 5)]
    pub(crate) secrets: u32,
    /// For how many hours a replaced secret signs along, where a rotation does not say.
    #[schema(example = 24)]
    pub(crate) overlap_hours: u64,
    /// Whether secrets can be looked at.
    pub(crate) secrets_can_be_viewed: bool,
    /// Whether secrets can be brought.
    pub(crate) secrets_can_be_chosen: bool,
    /// Whether what an outage gives up is sent again by itself, where a subscription does not say.
    pub(crate) resend_after_outage: bool,
    /// Whether addresses have to be confirmed before mails are sent there.
    pub(crate) addresses_are_confirmed: bool,
    /// How many days a replay can go back.
    #[schema(example = 30)]
    pub(crate) replay_days: u64,
    /// Most notifications that a replay or a resend sends in a second.
    #[schema(example = 100)]
    pub(crate) replays_per_second: u32,
    /// How many days lists of notifications go back.
    #[schema(example = 7)]
    pub(crate) notification_days: i64,
}

/// Further attempts of what failed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(as = RetryLimits)]
pub(crate) struct RetriesDocument {
    /// With the plan SHORT.
    #[schema(example = 3)]
    pub(crate) short: u32,
    /// With the plan DAY.
    #[schema(example = 8)]
    pub(crate) day: u32,
}

/// A port, or a range of them.
fn written(ports: &RangeInclusive<u16>) -> String {
    match (ports.start(), ports.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    }
}

/// Shows what the installation allows.
#[utoipa::path(
    get, path = "/limits", tag = "quotas", operation_id = "limits",
    security(("apiKey" = [])),
    responses((status = 200, description = "The limits.", body = LimitsDocument))
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    _reseller: Reseller,
) -> Result<Json<LimitsDocument>, Problem> {
    let config = &app.config.reseller;
    let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let hours = |duration: std::time::Duration| duration.as_secs() / 3_600;
    Ok(Json(LimitsDocument {
        subscriptions: config.subscription.maximum,
        daily_quota: config.subscription.daily_quota,
        requests_per_second: config.subscription.requests_per_second,
        time_zone: config.quota.time_zone.name(),
        ports: config.egress.allow_ports.iter().map(written).collect(),
        timeout_millis: millis(config.delivery.timeout),
        max_timeout_millis: millis(config.delivery.max_timeout),
        response_body_bytes: config.delivery.response_body_bytes,
        max_age_days: hours(config.delivery.max_age) / 24,
        retries: RetriesDocument {
            short: config.retry.max_retries,
            day: RetryPolicy::DAY_RETRIES,
        },
        secrets: store::webhook::VALID_SECRETS_MAX,
        overlap_hours: hours(config.secrets.overlap),
        secrets_can_be_viewed: config.secrets.allow_viewing,
        secrets_can_be_chosen: config.secrets.allow_choosing,
        resend_after_outage: config.replay.after_outage,
        addresses_are_confirmed: app.config.mail.confirm_addresses,
        replay_days: hours(config.replay.max_age) / 24,
        replays_per_second: config.replay.per_second,
        notification_days: crate::notifications::SHOWN.num_days(),
    }))
}
