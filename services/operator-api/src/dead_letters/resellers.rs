//! `GET /dead-letters/resellers`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::dead_letter::FailureClass;
use http_api::{Params, Problem, WrongQuery};
use serde::Serialize;
use store::ResellerDeadLetters;
use utoipa::ToSchema;

use super::filter::query_with_filter;
use super::groups::SampleDocument;
use super::timeline::{last_hours, within};
use crate::app::App;
use crate::request::Viewer;

/// How many resellers are shown when the caller does not say, and at most.
const DEFAULT_LIMIT: u32 = 200;
const LIMIT_MAX: u32 = 1_000;
/// How many hours are told of.
const HOURS: u32 = 24;

query_with_filter! {
    /// Which dead letters, and of how many resellers.
    ResellerParams {
        /// How many resellers.
        #[param(minimum = 1, maximum = 1000, default = 200)]
        limit: Option<u32>,
    }
}

/// The dead letters of one reseller.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLettersOfReseller)]
pub(crate) struct ResellerDocument {
    /// Whose they are.
    #[schema(example = "acme")]
    pub(crate) reseller_id: String,
    /// How many dead letters.
    pub(crate) count: u64,
    /// Whether counting was given up: then there are so many at least.
    pub(crate) at_least: bool,
    /// What most of the failures have in common.
    #[schema(example = "delivery/http/503/html")]
    pub(crate) fingerprint: String,
    /// The class of these failures, as in the list of groups.
    #[schema(example = "http-5xx")]
    pub(crate) kind: &'static str,
    /// When the first of the dead letters was written; with a filter by more than state, reseller and time the first of those that were counted.
    pub(crate) first_seen: DateTime<Utc>,
    /// When the last of the dead letters was written.
    pub(crate) last_seen: DateTime<Utc>,
    /// The last of them.
    pub(crate) sample: SampleDocument,
    /// How many of those that were counted were written in each of the last 24 hours, the present one included, the first hour first.
    #[schema(example = json!([0, 0, 12, 40]))]
    pub(crate) hours: Vec<u64>,
}

/// Dead letters by whose they are.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLettersByReseller)]
pub(crate) struct ResellersDocument {
    /// The resellers with the most dead letters, the one with most of them first.
    pub(crate) items: Vec<ResellerDocument>,
    /// How many resellers have dead letters that match, those that are not shown included.
    pub(crate) total: u64,
}

impl From<ResellerDeadLetters> for ResellerDocument {
    fn from(found: ResellerDeadLetters) -> Self {
        Self {
            kind: FailureClass::of(&found.fingerprint).as_str(),
            reseller_id: found.reseller,
            count: found.dead_letters,
            at_least: found.at_least,
            fingerprint: found.fingerprint,
            first_seen: found.first_seen,
            last_seen: found.last_seen,
            hours: found.hours,
            sample: SampleDocument {
                id: found.sample,
                detail: found.detail,
            },
        }
    }
}

/// Counts dead letters by reseller. Those of pushes have none.
///
/// The newest dead letters of each reseller are counted one by one, in all about 10,000, so that of many resellers few of each are: `atLeast`
/// says so. A reseller of whose newest ones none matches the filter may then be left out.
#[utoipa::path(
    get, path = "/dead-letters/resellers", tag = "dead letters", operation_id = "groupDeadLettersByReseller",
    security(("apiKey" = [])), params(ResellerParams),
    responses((status = 200, description = "The resellers with the most.", body = ResellersDocument))
)]
pub(crate) async fn resellers(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Params(params): Params<ResellerParams>,
) -> Result<Json<ResellersDocument>, Problem> {
    let mut wrong = WrongQuery::default();
    let filter = wrong.take(params.filter());
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    let limit = wrong.with(within("limit", limit, (1, LIMIT_MAX)))?;
    let hours = last_hours(app.now(), HOURS);
    let counting = app.store.dead_letters_by_reseller(&filter, hours, limit);
    let found = http_api::by(viewer.deadline, ("the dead letters", "counted"), counting).await?;
    Ok(Json(ResellersDocument {
        items: found.resellers.into_iter().map(ResellerDocument::from).collect(),
        total: found.total,
    }))
}
