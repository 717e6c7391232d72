//! `GET /dead-letters/groups`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::dead_letter::FailureClass;
use http_api::{Params, Problem, WrongQuery};
use serde::Serialize;
use store::{DeadLetterGroup, DeadLetterGroupNote, DeadLetterGroups};
use utoipa::ToSchema;
use uuid::Uuid;

use super::filter::query_with_filter;
use super::timeline::within;
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
    pub(crate) lane: &'static str,
    /// What the failures have in common.
    #[schema(example = "delivery/http/503/html")]
    pub(crate) fingerprint: String,
    /// The class of the failure: dns, tls, connect, timeout, protocol, egress, http-3xx, http-4xx, http-5xx, http-other,
    /// swrve-4xx, swrve-5xx, swrve-other, swrve-unreachable, prototype-key, lease-lost, possibly-sent, broker, malformed,
    /// internal or unknown.
    #[schema(example = "http-5xx")]
    pub(crate) kind: &'static str,
    /// Where the failures were.
    #[schema(example = "https://hooks.acme.example")]
    pub(crate) target: String,
    /// How many dead letters.
    pub(crate) count: u64,
    /// When the first of them was written.
    pub(crate) first_seen: DateTime<Utc>,
    /// When the last of them was written.
    pub(crate) last_seen: DateTime<Utc>,
    /// The last of them.
    pub(crate) sample: SampleDocument,
    /// What operators have noted of it, as long as that holds.
    pub(crate) note: Option<NoteDocument>,
}

/// What operators have noted of a group.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterGroupNote)]
pub(crate) struct NoteDocument {
    /// What is known of it.
    #[schema(example = "acme moves its endpoint until Friday.")]
    pub(crate) note: Option<String>,
    /// Who looks after it.
    #[schema(example = "ada")]
    pub(crate) owner: Option<String>,
    /// The time until which this holds.
    pub(crate) until: Option<DateTime<Utc>>,
    /// Who noted it.
    pub(crate) by: String,
    /// When.
    pub(crate) at: DateTime<Utc>,
}

impl From<DeadLetterGroupNote> for NoteDocument {
    fn from(note: DeadLetterGroupNote) -> Self {
        Self {
            note: note.note,
            owner: note.owner,
            until: note.until,
            by: note.by,
            at: note.at,
        }
    }
}

/// An example of a group.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadLetterSample)]
pub(crate) struct SampleDocument {
    /// Identifies the dead letter.
    pub(crate) id: Uuid,
    /// Its failure in words.
    #[schema(example = "the endpoint failed (503)")]
    pub(crate) detail: String,
}

/// Dead letters in groups.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterGroups)]
pub(crate) struct GroupsDocument {
    /// The largest groups, the largest one first.
    pub(crate) items: Vec<GroupDocument>,
    /// How many dead letters match, those of groups that are not shown included.
    pub(crate) total: u64,
    /// Whether counting was given up, which happens only with the filters `subscription`, `reseller`, `eventType` and
    /// `prototype`, or when `since` or `until` cuts through an hour, for more than 100,000 dead letters: then all counts say
    /// how many there are at least.
    pub(crate) at_least: bool,
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
            note: group.note.map(NoteDocument::from),
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
    let mut wrong = WrongQuery::default();
    let filter = wrong.take(params.filter());
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    let limit = wrong.with(within("limit", limit, (1, LIMIT_MAX)))?;
    let groups = app.store.group_dead_letters(&filter, limit);
    let groups = http_api::by(viewer.deadline, ("the dead letters", "counted"), groups).await?;
    Ok(Json(groups.into()))
}
