//! `GET /notifications/answers`: what endpoints answered, by status code, over all resellers, of one, or of a subscription.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use http_api::{FieldCode, Problem, ReadParams};
use serde::{Deserialize, Serialize};
use store::webhook::{AnswerSum, NotificationsOf};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::examined::text;
use crate::request::Viewer;

/// How many hours back are counted at most: each has a row of each subscription.
const HOURS_MAX: i64 = 168;
/// How many subscriptions are named of each code.
const NAMED: u32 = 3;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(answers))
}

/// Whose answers, and since when.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AnswersParams {
    /// From the hour on that has this time, at most 168 hours back; an hour ago when missing.
    pub(crate) since: Option<DateTime<Utc>>,
    /// Of this reseller.
    #[param(example = "acme")]
    pub(crate) reseller: Option<String>,
    /// Of this subscription.
    pub(crate) subscription: Option<Uuid>,
}

/// What endpoints answered.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EndpointAnswers)]
pub(crate) struct AnswersDocument {
    /// Attempts are counted that were started at this time or later: when an hour began.
    pub(crate) since: DateTime<Utc>,
    /// Code by code, attempts without an answer last.
    pub(crate) items: Vec<AnswerDocument>,
}

/// Attempts that were answered alike.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EndpointAnswer)]
pub(crate) struct AnswerDocument {
    /// The status code; null of attempts without an answer: it did not come in time, there was no connection, or the attempt failed on our side.
    #[schema(example = 503)]
    pub(crate) code: Option<u16>,
    /// How many.
    #[schema(example = 42)]
    pub(crate) count: u64,
    /// Of how many subscriptions.
    #[schema(example = 2)]
    pub(crate) subscriptions: u64,
    /// The three subscriptions with most of them, the first one first.
    pub(crate) most: Vec<AnsweringDocument>,
}

/// A subscription whose endpoint gave an answer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AnsweringSubscription)]
pub(crate) struct AnsweringDocument {
    /// Whose it is.
    #[schema(example = "acme")]
    pub(crate) reseller_id: String,
    /// Which one.
    pub(crate) subscription_id: Uuid,
    /// Where its endpoint is, as it has it now.
    #[schema(example = "https://acme.example/hooks/domains")]
    pub(crate) url: String,
    /// How often.
    #[schema(example = 40)]
    pub(crate) count: u64,
}

/// Counts attempts to deliver notifications by what was answered, with the subscriptions that most of each code came from.
///
/// Every attempt counts, also one that was followed by another. They are counted by subscription and hour, so that the count begins with the
/// hour that `since` is in: `since` of the answer says when. What a crash took between an attempt and its counting is missing.
#[utoipa::path(
    get, path = "/notifications/answers", tag = "search", operation_id = "countAnswers", security(("apiKey" = [])),
    params(AnswersParams),
    responses((status = 200, description = "The counts.", body = AnswersDocument))
)]
pub(crate) async fn answers(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    ReadParams(params, mut wrong): ReadParams<AnswersParams>,
) -> Result<Json<AnswersDocument>, Problem> {
    let since = wrong.take(began(params.since, app.now()));
    let reseller = wrong.take(text("reseller", params.reseller.as_deref()));
    if reseller.is_some() && params.subscription.is_some() {
        let detail = "does not go with subscription, which is of one reseller: leave one of the two out";
        wrong.add(Problem::query("reseller", detail).coded(FieldCode::Conflict));
    }
    wrong.end()?;
    let of = match (params.subscription, reseller) {
        (Some(id), _) => NotificationsOf::Subscription(id),
        (None, Some(reseller)) => NotificationsOf::Reseller(reseller),
        (None, None) => NotificationsOf::All,
    };
    let counting = app.store.answer_sums(&of, since, NAMED);
    let sums = http_api::by(viewer.deadline, ("the answers", "counted"), counting).await?;
    Ok(Json(AnswersDocument {
        since,
        items: by_code(sums),
    }))
}

/// When the hour of `since` began, or that of an hour ago.
fn began(since: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Result<DateTime<Utc>, Problem> {
    let since = since.unwrap_or(now - TimeDelta::hours(1));
    if since > now || since < now - TimeDelta::hours(HOURS_MAX) {
        let detail = format!("must be within the last {HOURS_MAX} hours");
        return Err(Problem::query("since", detail).coded(FieldCode::OutOfRange));
    }
    Ok(since.duration_trunc(TimeDelta::hours(1)).unwrap_or(since))
}

/// Those of one code stand together.
fn by_code(sums: Vec<AnswerSum>) -> Vec<AnswerDocument> {
    let mut items: Vec<AnswerDocument> = Vec::new();
    for sum in sums {
        let named = AnsweringDocument {
            reseller_id: sum.reseller,
            subscription_id: sum.subscription,
            url: sum.url,
            count: sum.count,
        };
        match items.last_mut().filter(|item| item.code == sum.code) {
            Some(item) => item.most.push(named),
            None => items.push(AnswerDocument {
                code: sum.code,
                count: sum.total,
                subscriptions: sum.subscriptions,
                most: vec![named],
            }),
        }
    }
    items
}
