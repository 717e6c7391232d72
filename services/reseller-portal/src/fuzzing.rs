//! Doors to what is private here, for the properties of `testing/fuzz/properties`. They add nothing of their own.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::subscription::{Bounds, SubscriptionChange, SubscriptionRequest};
use http_api::Problem;
use http_api::fuzzing::payload;
use http_client::EgressPolicy;
use store::webhook::NotificationFilter;
use uuid::Uuid;

use crate::notifications::list::{NotificationParams, filter};
use crate::subscriptions::{change, create};
use crate::{quotas, replays};

/// Reads a body of `POST /subscriptions`.
pub fn subscription(
    body: &[u8],
    bounds: Bounds<'_>,
    egress: &EgressPolicy,
) -> Result<SubscriptionRequest, Problem> {
    create::validate(payload(body)?, bounds, egress)
}

/// Reads a body of `PATCH /subscriptions/{id}`.
pub fn changes(
    body: &[u8],
    bounds: Bounds<'_>,
    egress: &EgressPolicy,
) -> Result<SubscriptionChange, Problem> {
    change::validate(payload(body)?, bounds, egress)
}

/// Reads a body of `POST /subscriptions/{id}/quota-requests`: the limits that are asked for, those of a day and of a second, and the reason.
pub fn quota_request(body: &[u8]) -> Result<([Option<u32>; 2], String), Problem> {
    let asked = quotas::check(payload(body)?)?;
    Ok(([asked.daily_quota, asked.requests_per_second], asked.reason))
}

/// Reads a body of `POST /subscriptions/{id}/replays`.
pub fn replay(
    body: &[u8],
    max_age: Duration,
    now: DateTime<Utc>,
) -> Result<(DateTime<Utc>, DateTime<Utc>), Problem> {
    replays::check(&payload(body)?, max_age, now)
}

/// Reads a query string of `GET /subscriptions/{id}/notifications`; `None` when it cannot be part of a request.
pub fn notifications(query: &str, now: DateTime<Utc>) -> Option<Result<NotificationFilter, Problem>> {
    let params = http_api::fuzzing::query::<NotificationParams>(query)?;
    Some(params.and_then(|params| filter(Uuid::nil(), &params, now)))
}
