//! `PATCH /subscriptions/{id}`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::SecondsFormat;
use domain::notification::RetryPlan;
use domain::subscription::{Bounds, ChangeDraft, SubscriptionChange};
use http::{HeaderMap, HeaderName, header};
use http_api::{Draft, Id, Problem};
use http_client::EgressPolicy;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use store::webhook::Changed;
use utoipa::ToSchema;

use super::SubscriptionDocument;
use super::create::{all_or_errors, check_url};
use super::version::version;
use crate::app::App;
use crate::problems::{self, CHANGED_MEANWHILE};
use crate::request::{Manager, Reseller};

/// Changes of a subscription; a field that is missing stays as it is.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object", default)]
#[schema(as = SubscriptionChange)]
pub(crate) struct ChangePayload {
    /// Another endpoint, which has to be verified before anything is sent there.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = String, required = false, max_length = 2048, example = "https://reseller.example/hooks/domains")]
    pub(crate) url: Option<Option<String>>,
    /// The new filter, as a whole. It is asked when an event comes in: what waits already is still sent.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Vec<String>, required = false, min_items = 1, max_items = 200, example = json!(["domain.*"]))]
    pub(crate) event_types: Option<Option<Vec<String>>>,
    /// Who is told about trouble and changes of state.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = String, required = false, max_length = 254, example = "ops@reseller.example")]
    pub(crate) email: Option<Option<String>>,
    /// The reseller's own words. Bytes of UTF-8 are counted.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<String>, max_length = 500)]
    pub(crate) description: Option<Option<String>>,
    /// How long the endpoint may take to answer, in milliseconds, at most reseller.delivery.maxTimeoutMillis; null for the default.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub(crate) timeout_millis: Option<Option<i64>>,
    /// Whether what an outage of the endpoint gives up is sent again by itself once it answers; null for the default.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<bool>)]
    pub(crate) resend_after_outage: Option<Option<bool>>,
    /// For how long what failed is tried again: SHORT, or DAY, 8 retries within 24 hours; null for SHORT. It holds from the next attempt on.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<RetryPlan>)]
    pub(crate) retry_plan: Option<Option<RetryPlan>>,
    /// Whether what the endpoint answers with 400 to 499 is tried again as well, save 410; null for false.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<bool>)]
    pub(crate) retry_client_errors: Option<Option<bool>>,
    #[serde(deserialize_with = "present")]
    #[schema(ignore)]
    pub(crate) daily_quota: Option<Value>,
    #[serde(deserialize_with = "present")]
    #[schema(ignore)]
    pub(crate) requests_per_second: Option<Value>,
    #[serde(deserialize_with = "present")]
    #[schema(ignore)]
    pub(crate) secret: Option<Value>,
    #[serde(deserialize_with = "present")]
    #[schema(ignore)]
    pub(crate) state: Option<Value>,
}

/// Which request changes the secret.
const NEW_SECRET: &str =
    "make a new one, beside which the old one signs on for a while, with POST /subscriptions/{id}/secrets";
/// Which requests change the state.
const COMMANDS: &str = "use POST /subscriptions/{id}/activate, /deactivate, /pause, /resume or /verify";

/// Tells a field that is null from one that is missing.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Changes a subscription.
///
/// Another url is challenged before anything else is sent to it, another email gets nothing but a code until it is confirmed. Of
/// both the address of before is told. With `If-Match` it is changed only if it still has the version that was read. Quotas are not the reseller's to change: see quota requests.
#[utoipa::path(
    patch, path = "/subscriptions/{id}", tag = "subscriptions", operation_id = "changeSubscription",
    security(("apiKey" = [])),
    params(
        ("id" = uuid::Uuid, Path, description = "The subscription's identifier."),
        ("If-Match" = Option<String>, Header, description = "The ETag, quotes included, that GET /subscriptions/{id} or the last PATCH answered with: of the subscription that the change was made of. Without it, or with *, whatever it is now is changed."),
    ),
    request_body = ChangePayload,
    responses((status = 200, description = "The subscription as it is now.", body = SubscriptionDocument,
        headers(("ETag" = String, description = "The version of what can be changed, for the If-Match of the next change."))))
)]
pub(crate) async fn change(
    State(app): State<Arc<App>>,
    reseller: Manager,
    Id(id): Id,
    headers: HeaderMap,
    Draft(payload, unread): Draft<ChangePayload>,
) -> Result<([(HeaderName, String); 1], Json<SubscriptionDocument>), Problem> {
    let change = unread.merge(check(&app, &reseller, payload).await)?;
    let expected = headers
        .get(header::IF_MATCH)
        .map(|value| value.to_str().unwrap_or_default().to_owned())
        .filter(|expected| expected != "*");
    let is_expected = |view: &_| {
        expected
            .as_ref()
            .is_none_or(|expected| *expected == version(view))
    };
    let change = app.store.change_subscription_if(
        is_expected,
        (&reseller.id, id),
        &change,
        app.addresses(),
        reseller.act(app.now()),
    );
    match http_api::by(reseller.deadline, ("the subscription", "changed"), change).await? {
        Changed::Done(view) => {
            let etag = [(header::ETAG, version(&view))];
            Ok((etag, Json(SubscriptionDocument::of(*view, &app.config))))
        }
        Changed::Stale(view) => {
            let detail = format!(
                "the subscription has the version {} since {}, and not {}",
                version(&view),
                view.updated_at.to_rfc3339_opts(SecondsFormat::Secs, true),
                expected.unwrap_or_default()
            );
            Err(Problem::new(CHANGED_MEANWHILE, detail))
        }
        Changed::Unknown => Err(problems::no_subscription()),
    }
}

async fn check(
    app: &App,
    reseller: &Reseller,
    payload: ChangePayload,
) -> Result<SubscriptionChange, Problem> {
    let catalogue = match payload.event_types {
        Some(_) => app.event_types(reseller).await?,
        None => Arc::default(),
    };
    let bounds = Bounds {
        catalogue: &catalogue,
        max_timeout: app.config.reseller.delivery.max_timeout,
    };
    validate(payload, bounds, &app.egress)
}

/// What the payload changes, or everything that is wrong with it.
pub(crate) fn validate(
    payload: ChangePayload,
    bounds: Bounds<'_>,
    egress: &EgressPolicy,
) -> Result<SubscriptionChange, Problem> {
    let endpoint = check_url(egress, payload.url.as_ref().and_then(|url| url.as_deref()));
    let draft = ChangeDraft {
        url: payload.url,
        event_types: payload.event_types,
        email: payload.email,
        description: payload.description,
        timeout_millis: payload.timeout_millis,
        resend_after_outage: payload.resend_after_outage,
        retry_plan: payload.retry_plan,
        retry_client_errors: payload.retry_client_errors,
        daily_quota: payload.daily_quota.is_some(),
        requests_per_second: payload.requests_per_second.is_some(),
        elsewhere: [
            ("secret", NEW_SECRET, payload.secret.is_some()),
            ("state", COMMANDS, payload.state.is_some()),
        ]
        .into_iter()
        .filter_map(|(field, how, is_named)| is_named.then_some((field, how)))
        .collect(),
    };
    let (change, url) = all_or_errors(SubscriptionChange::check(draft, bounds), endpoint)?;
    Ok(SubscriptionChange {
        url: url.or(change.url),
        ..change
    })
}
