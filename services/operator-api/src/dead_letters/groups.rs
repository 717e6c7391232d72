//! `GET /dead-letters/groups`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::dead_letter::FailureClass;
use http_api::{Params, Problem};
use serde::Serialize;
use store::{DeadLetterGroup, DeadLetterGroups};
use utoipa::ToSchema;
use uuid::Uuid;

use super::filter::query_with_filter;
use crate::app::App;
use crate::request::Viewer;

/// How many groups are shown when the caller does not say, and at most.
const DEFAULT_LIMIT: u32 = 200;
const LIMIT_MAX: u32 = 1_000;

query_with_filter! {
    /// Which dead letters, and how many groups of them.
    GroupParams {
        /// How many groups.
        #[param(minimum = 1, maximum = 1000, default = 200)]
        limit: Option<u32>,
    }
}

/// Dead letters that have lane, fingerprint and target in common.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterGroup)]
pub(crate) struct GroupDocument {
    /// `push` or `reseller`.
    #[schema(example = "reseller")]
    lane: &'static str,
    /// What the failures have in common.
    #[schema(example = "delivery/http/503/html")]
    fingerprint: String,
    /// The class of the failure: dns, tls, connect, timeout, protocol, egress, http-3xx, http-4xx, http-5xx, http-other,
    /// swrve-4xx, swrve-5xx, swrve-other, swrve-unreachable, prototype-key, lease-lost, broker, malformed, internal or
    /// unknown.
    #[schema(example = "http-5xx")]
    kind: &'static str,
    /// Where the failures were.
    #[schema(example = "https://hooks.acme.example")]
    target: String,
    /// How many dead letters.
    count: u64,
    /// When the first of them was written.
    first_seen: DateTime<Utc>,
    /// When the last of them was written.
    last_seen: DateTime<Utc>,
    /// The last of them.
    sample: SampleDocument,
}

/// An example of a group.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadLetterSample)]
pub(crate) struct SampleDocument {
    /// Identifies the dead letter.
    id: Uuid,
    /// Its failure in words.
    #[schema(example = "the endpoint failed (503)")]
    detail: String,
}

/// Dead letters in groups.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterGroups)]
pub(crate) struct GroupsDocument {
    /// The largest groups, the largest one first.
    items: Vec<GroupDocument>,
    /// How many dead letters match, those of groups that are not shown included.
    total: u64,
    /// Whether counting was given up, which happens only with the filters `subscription`, `reseller`, `eventType` and
    /// `prototype`, or when `since` or `until` cuts through an hour, for more than 100,000 dead letters: then all counts say
    /// how many there are at least.
    at_least: bool,
}

impl From<DeadLetterGroup> for GroupDocument {
    fn from(group: DeadLetterGroup) -> Self {
        Self {
            lane: group.lane.as_str(),
            kind: FailureClass::of(&group.fingerprint).as_str(),
            fingerprint: group.fingerprint,
            target: group.target,
            count: group.dead_letters,
            first_seen: group.first_seen,
            last_seen: group.last_seen,
            sample: SampleDocument {
                id: group.sample,
                detail: group.detail,
            },
        }
    }
}

impl From<DeadLetterGroups> for GroupsDocument {
    fn from(groups: DeadLetterGroups) -> Self {
        Self {
            items: groups.groups.into_iter().map(GroupDocument::from).collect(),
            total: groups.total,
            at_least: groups.at_least,
        }
    }
}

/// Counts dead letters by kind of failure and by where it was.
#[utoipa::path(
    get, path = "/dead-letters/groups", tag = "dead letters", operation_id = "groupDeadLetters",
    security(("apiKey" = [])), params(GroupParams),
    responses((status = 200, description = "The largest groups.", body = GroupsDocument))
)]
pub(crate) async fn groups(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Params(params): Params<GroupParams>,
) -> Result<Json<GroupsDocument>, Problem> {
    let filter = params.filter()?;
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::query(
            "limit",
            format!("must be between 1 and {LIMIT_MAX}"),
        ));
    }
    let groups = app.store.group_dead_letters(&filter, limit);
    let groups = http_api::by(viewer.deadline, ("the dead letters", "counted"), groups).await?;
    Ok(Json(groups.into()))
}
