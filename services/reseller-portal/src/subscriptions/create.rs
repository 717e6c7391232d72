//! `POST /subscriptions`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::notification::RetryPlan;
use domain::subscription::{Bounds, FieldError, SubscriptionDraft, SubscriptionRequest};
use http::{HeaderName, StatusCode, header};
use http_api::{Draft, FieldCode, FieldProblem, Problem, ProblemKind};
use http_client::{EgressPolicy, Endpoint, EndpointError, check_endpoint};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::webhook::{NewSubscription, Subscribed};
use utoipa::ToSchema;

use super::SubscriptionDocument;
use crate::app::{App, new_id};
use crate::problems::{self, TOO_MANY_SUBSCRIPTIONS};
use crate::request::{Manager, Reseller};
use crate::secrets::{self, NewSecretDocument};

/// A subscription to be made.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[schema(as = SubscriptionRequest)]
pub(crate) struct CreatePayload {
    /// Where notifications are to be sent: an https URL whose host has public addresses only.
    #[schema(value_type = String, required = true, max_length = 2048, example = "https://reseller.example/hooks/domains")]
    pub(crate) url: Option<String>,
    /// Which events it is to get: event types of the catalogue, prefixes such as domain.*, or * for all.
    #[schema(value_type = Vec<String>, required = true, min_items = 1, max_items = 200, example = json!(["domain.*", "contact.updated"]))]
    pub(crate) event_types: Option<Vec<String>>,
    /// Who is told about trouble and changes of state.
    #[schema(value_type = String, required = true, max_length = 254, example = "ops@reseller.example")]
    pub(crate) email: Option<String>,
    /// The reseller's own words. Bytes of UTF-8 are counted.
    #[schema(max_length = 500)]
    pub(crate) description: Option<String>,
    /// How long the endpoint may take to answer, in milliseconds, at most reseller.delivery.maxTimeoutMillis.
    #[schema(minimum = 1)]
    pub(crate) timeout_millis: Option<i64>,
    /// A signing secret of the reseller's own: whsec_ and the base64 of 24 to 64 random bytes. One is made when it is left out.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    pub(crate) secret: Option<String>,
    /// Whether what an outage of the endpoint gives up is sent again by itself once it answers; reseller.replay.afterOutage when
    /// missing.
    pub(crate) resend_after_outage: Option<bool>,
    /// For how long what failed is tried again: SHORT, which is reseller.retry and the default, or DAY, 8 retries within 24 hours.
    pub(crate) retry_plan: Option<RetryPlan>,
    /// Whether what the endpoint answers with 400 to 499 is tried again as well, save 410; false when missing.
    pub(crate) retry_client_errors: Option<bool>,
    /// Whether the endpoint is challenged only when POST /subscriptions/{id}/verify asks for it; false when missing.
    pub(crate) verify_later: Option<bool>,
    #[schema(ignore)]
    pub(crate) daily_quota: Option<Value>,
    #[schema(ignore)]
    pub(crate) requests_per_second: Option<Value>,
}

/// A subscription that was just made.
#[derive(Serialize, ToSchema)]
#[schema(as = CreatedSubscription)]
pub(crate) struct CreatedDocument {
    #[serde(flatten)]
    pub(crate) subscription: SubscriptionDocument,
    /// What its notifications are signed with.
    pub(crate) secret: NewSecretDocument,
}

/// Makes a subscription.
///
/// Its endpoint gets a challenge first: a signed POST of the type postrider.verification whose data.challenge has to be
/// answered, as the body or as {"challenge": …}. Until then nothing else is sent there. Its email gets a code, and nothing else
/// until POST /subscriptions/{id}/email/confirm has brought that back, once for each address of the reseller.
#[utoipa::path(
    post, path = "/subscriptions", tag = "subscriptions", operation_id = "createSubscription",
    security(("apiKey" = [])),
    request_body = CreatePayload,
    responses((status = 201, description = "The subscription, with its first signing secret.", body = CreatedDocument,
        headers(("Location" = String, description = "Where the subscription is: /subscriptions/{id}"))))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    reseller: Manager,
    Draft(mut payload, unread): Draft<CreatePayload>,
) -> Result<(StatusCode, [(HeaderName, String); 2], Json<CreatedDocument>), Problem> {
    app.sealer()?;
    let (now, chosen) = (app.now(), payload.secret.take());
    let id = new_id(now);
    let request = unread.merge(check(&app, &reseller, payload).await);
    let (request, (sealed, shown)) = match (request, secrets::make(&app, id, chosen.as_deref(), now)) {
        (Ok(request), Ok(secret)) => (request, secret),
        (Err(fields), Err(secret)) => return Err(fields.and(secret)),
        (Err(problem), Ok(_)) | (Ok(_), Err(problem)) => return Err(problem),
    };
    let new = NewSubscription {
        id,
        reseller: reseller.id.clone(),
        request,
        secret: sealed,
        created_at: now,
        addresses: app.addresses(),
    };
    let maximum = app.config.reseller.subscription.maximum;
    let insert = app.store.insert_subscription(&new, maximum, reseller.act(now));
    match http_api::by(reseller.deadline, ("the subscription", "stored"), insert).await? {
        Subscribed::Done => {}
        Subscribed::Full => {
            let detail = format!(
                "the reseller has {maximum} subscriptions, which is as many as there may be; delete one first"
            );
            return Err(Problem::new(TOO_MANY_SUBSCRIPTIONS, detail));
        }
        Subscribed::NotBefore(then) => {
            let detail = "the reseller has made as many subscriptions as may be made in a day";
            return Err(problems::not_before(detail, then, now));
        }
    }
    let stored = app.subscription(&reseller, id).await?;
    let created = CreatedDocument {
        subscription: SubscriptionDocument::of(stored, &app.config),
        secret: shown,
    };
    let headers = [
        (header::LOCATION, format!("/subscriptions/{id}")),
        secrets::not_to_be_kept(),
    ];
    Ok((StatusCode::CREATED, headers, Json(created)))
}

async fn check(
    app: &App,
    reseller: &Reseller,
    payload: CreatePayload,
) -> Result<SubscriptionRequest, Problem> {
    let catalogue = app.event_types(reseller).await?;
    let bounds = Bounds {
        catalogue: &catalogue,
        max_timeout: app.config.reseller.delivery.max_timeout,
    };
    validate(payload, bounds, &app.egress)
}

/// What the payload asks for, or everything that is wrong with it.
pub(crate) fn validate(
    payload: CreatePayload,
    bounds: Bounds<'_>,
    egress: &EgressPolicy,
) -> Result<SubscriptionRequest, Problem> {
    let endpoint = check_url(egress, payload.url.as_deref());
    let draft = SubscriptionDraft {
        url: payload.url,
        event_types: payload.event_types,
        email: payload.email,
        description: payload.description,
        timeout_millis: payload.timeout_millis,
        resend_after_outage: payload.resend_after_outage,
        retry_plan: payload.retry_plan,
        retry_client_errors: payload.retry_client_errors,
        verify_later: payload.verify_later,
        daily_quota: payload.daily_quota.is_some(),
        requests_per_second: payload.requests_per_second.is_some(),
    };
    let checked = SubscriptionRequest::check(draft, bounds);
    let (request, url) = all_or_errors(checked, endpoint)?;
    Ok(SubscriptionRequest {
        url: url.unwrap_or(request.url),
        ..request
    })
}

/// The URL as it will be dialled, or why it will not be. Whether there is one at all is found out elsewhere.
pub(crate) fn check_url(egress: &EgressPolicy, url: Option<&str>) -> Result<Option<String>, FieldProblem> {
    let Some(url) = url.filter(|url| !url.trim().is_empty()) else {
        return Ok(None);
    };
    match check_endpoint(url, egress) {
        Ok(endpoint) => Ok(Some(endpoint.as_str().to_owned())),
        Err(error) => Err(refused_url(error)),
    }
}

fn refused_url(error: EndpointError) -> FieldProblem {
    let text = error.to_string();
    // It follows the name of the field.
    let detail = ["the URL ", "this "]
        .iter()
        .find_map(|begin| text.strip_prefix(begin));
    let wrong = FieldProblem::new("url", detail.unwrap_or(&text));
    let of_port = |wrong: FieldProblem, port: u16| wrong.coded(FieldCode::UrlPort).naming("port", port);
    match error {
        EndpointError::TooLong => wrong.at_most(Endpoint::MAX_LENGTH),
        EndpointError::Whitespace
        | EndpointError::Syntax(_)
        | EndpointError::Characters
        | EndpointError::Name => wrong.coded(FieldCode::WrongFormat),
        EndpointError::Scheme | EndpointError::PlainHttp => {
            wrong.coded(FieldCode::UrlScheme).naming("scheme", "https")
        }
        EndpointError::Credentials => wrong.coded(FieldCode::UrlCredentials),
        EndpointError::Fragment => wrong.coded(FieldCode::UrlFragment),
        EndpointError::Port => of_port(wrong, 0),
        EndpointError::HttpPort => of_port(wrong, 80),
        EndpointError::PortNotAllowed(port) => of_port(wrong, port),
        EndpointError::Denied => wrong.coded(FieldCode::UrlAddress),
        EndpointError::Address(kind) => {
            let kind: &str = kind.into();
            wrong.coded(FieldCode::UrlAddress).naming("kind", kind)
        }
    }
}

fn field(error: &FieldError) -> FieldProblem {
    let wrong = FieldProblem::new(error.field(), error.to_string());
    match error {
        FieldError::Missing { .. } | FieldError::NothingSelected => wrong.coded(FieldCode::Missing),
        FieldError::TooLong { limit, .. } | FieldError::TooManyEntries { limit, .. } => wrong.at_most(*limit),
        FieldError::NulCharacter { .. } | FieldError::Email | FieldError::NoFilter { .. } => {
            wrong.coded(FieldCode::WrongFormat)
        }
        FieldError::UnknownEventType { .. } => wrong.coded(FieldCode::UnknownValue),
        FieldError::Timeout { limit, .. } => wrong.between(1, *limit),
        FieldError::NotYours { .. } | FieldError::Elsewhere { .. } => wrong,
    }
}

/// Both results, or every error of both.
pub(super) fn all_or_errors<T>(
    checked: Result<T, Vec<FieldError>>,
    endpoint: Result<Option<String>, FieldProblem>,
) -> Result<(T, Option<String>), Problem> {
    let mut errors = Vec::new();
    let checked = checked.map_err(|found| {
        errors.extend(found.iter().map(field));
    });
    let endpoint = endpoint.map_err(|error| {
        // A URL that is too long, say, is wrong for both of them.
        if errors.iter().all(|other| other.field != error.field) {
            errors.insert(0, error);
        }
    });
    match (checked, endpoint) {
        (Ok(value), Ok(url)) => Ok((value, url)),
        _ if errors.is_empty() => Err(Problem::new(
            ProblemKind::VALIDATION,
            "the request cannot be accepted",
        )),
        _ => Err(Problem::fields(errors)),
    }
}
