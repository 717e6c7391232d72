//! `POST /endpoint-checks`: how far a request gets to a URL that there is no subscription for yet.
//!
//! The request is a challenge, sent by the client of deliveries, under the address rules of deliveries and within the budgets of challenges:
//! a host that never asked for it gets no more of these than of those.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use engine::webhook::{Checked, EndpointChecker, Step, Stranger};
use http_api::{Draft, FieldCode, FieldProblem, Problem, ProblemKind};
use http_client::{Endpoint, check_endpoint};
use lifecycle::error_chain;
use serde::{Deserialize, Serialize};
use signing::Secret;
use store::webhook::{Budgets, Charged};
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::app::App;
use crate::problems::TOO_MANY_REQUESTS;
use crate::request::{Manager, Reseller};
use crate::secrets::malformed;
use crate::subscriptions::create;

/// How long the endpoint may take, whatever is left for the request: as long as for a challenge, or a slow one fails here and is verified all the same.
const LIMIT_OF_ENDPOINT: Duration = Duration::from_secs(10);
/// How long the database may take after that.
const LIMIT_OF_RECORD: Duration = Duration::from_secs(5);
/// When to try again what could not be tried here, in seconds.
const NOT_ASKED_RETRY: u32 = 10;

/// An endpoint to be checked.
// Has no `Debug`: it may hold a secret.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object", default)]
#[schema(as = EndpointCheckRequest)]
pub(crate) struct CheckPayload {
    /// What a subscription would have as its url.
    #[schema(value_type = String, required = true, max_length = 2048, example = "https://reseller.example/hooks/domains")]
    pub(crate) url: Option<String>,
    /// What the request is signed with, for an endpoint that checks signatures already: whsec_ and the base64 of 24 to 64 bytes. It is not kept. When
    /// it is missing, the request is signed with a secret made for it alone.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    pub(crate) secret: Option<String>,
}

/// How far a request got.
#[derive(Serialize, ToSchema)]
#[schema(as = EndpointCheck)]
pub(crate) struct CheckDocument {
    /// The URL as it was dialled.
    #[schema(example = "https://reseller.example/hooks/domains")]
    pub(crate) url: String,
    /// Whether every step worked, so that a subscription would be verified with its first challenge.
    pub(crate) passed: bool,
    /// From the beginning until the status was there, or the failure was known.
    pub(crate) millis: u64,
    /// The steps in their order; TLS is missing where plain http is spoken.
    pub(crate) steps: Vec<StepDocument>,
}

/// A step.
#[derive(Serialize, ToSchema)]
#[schema(as = EndpointCheckStep)]
pub(crate) struct StepDocument {
    /// NAME: the host has addresses that are delivered to. CONNECTION: it takes the connection. TLS: its certificate is trusted. ANSWER: it
    /// answers with a status from 200 to 299. CHALLENGE: the answer holds the challenge.
    #[schema(value_type = String, example = "TLS")]
    pub(crate) step: &'static str,
    /// PASSED, FAILED, or NOT_TRIED after one that failed.
    #[schema(value_type = String, example = "FAILED")]
    pub(crate) result: &'static str,
    /// What was found.
    #[schema(example = "invalid peer certificate: Expired")]
    pub(crate) text: String,
    /// What mends it; null unless it failed.
    pub(crate) mend: Option<String>,
}

/// Sends a challenge to a URL, and tells step by step how far it got and what mends what failed.
///
/// Nothing is made and nothing is kept of it but a line of the activity. The request is the challenge of a new subscription: an endpoint that
/// answers it here answers that as well. Requests to hosts that do not answer as they have to are counted with the challenges of subscriptions.
#[utoipa::path(
    post, path = "/endpoint-checks", tag = "subscriptions", operation_id = "checkEndpoint",
    security(("apiKey" = [])),
    request_body = CheckPayload,
    responses((status = 200, description = "How far it got.", body = CheckDocument))
)]
pub(crate) async fn check(
    State(app): State<Arc<App>>,
    reseller: Manager,
    Draft(payload, unread): Draft<CheckPayload>,
) -> Result<Json<CheckDocument>, Problem> {
    let (endpoint, secret) = unread.merge(read(&app, &payload))?;
    app.limits.count_check(&reseller.id)?;
    let checker = app.checker()?;
    let stranger = checker.stranger(&endpoint);
    if let Some(stranger) = &stranger {
        charge(&app, &reseller, stranger).await?;
    }
    let checker = checker.clone();
    // A task of its own, with the turn of the reseller: a caller who hangs up leaves a line of the activity all the same.
    let asking = async move { ask_and_record(&app, &checker, &reseller, (endpoint, secret)).await };
    tokio::spawn(asking).await.unwrap_or_else(|error| {
        tracing::error!(error = error_chain(&error), "a check ended early");
        Err(Problem::new(
            ProblemKind::INTERNAL,
            "the endpoint could not be checked",
        ))
    })
}

async fn ask_and_record(
    app: &App,
    checker: &EndpointChecker,
    reseller: &Reseller,
    (endpoint, secret): (Endpoint, Secret),
) -> Result<Json<CheckDocument>, Problem> {
    let (checked, document) = ask(app, checker, (endpoint.clone(), secret)).await?;
    let passed = checked == Checked::Passed;
    let (target, act) = ((reseller.id.as_str(), endpoint.host()), reseller.act(app.now()));
    let record = app.store.record_endpoint_check(target, passed, act);
    http_api::by(
        Instant::now() + LIMIT_OF_RECORD,
        ("the check", "recorded"),
        record,
    )
    .await?;
    Ok(Json(document))
}

/// The endpoint and the secret, or everything that is wrong with them.
fn read(app: &App, payload: &CheckPayload) -> Result<(Endpoint, Secret), Problem> {
    let mut errors = Vec::new();
    let url = create::check_url(&app.egress, payload.url.as_deref()).unwrap_or_else(|error| {
        errors.push(error);
        None
    });
    // What has just been checked is an endpoint.
    let endpoint = url.and_then(|url| check_endpoint(&url, &app.egress).ok());
    if endpoint.is_none() && errors.is_empty() {
        errors.push(
            FieldProblem::new("url", "is missing: give the URL that is to be checked")
                .coded(FieldCode::Missing),
        );
    }
    let secret = payload.secret.as_deref().filter(|text| !text.is_empty());
    let secret = secret
        .map_or_else(|| Ok(Secret::generate()), Secret::parse)
        .map_err(|error| {
            errors.push(FieldProblem::new("secret", malformed(error)).coded(FieldCode::WrongFormat))
        });
    match (endpoint, secret) {
        (Some(endpoint), Ok(secret)) => Ok((endpoint, secret)),
        _ => Err(Problem::fields(errors)),
    }
}

/// Counts the request with the challenges to hosts that need not be the reseller's.
async fn charge(app: &App, reseller: &Reseller, stranger: &Stranger) -> Result<(), Problem> {
    let target = (
        reseller.id.as_str(),
        stranger.host.as_str(),
        stranger.site.as_str(),
    );
    let now = app.now();
    let charge = app.store.charge_challenge(target, Budgets::OF_CHECKS, now);
    match http_api::by(reseller.deadline, ("the endpoint", "checked"), charge).await? {
        Charged::Done => Ok(()),
        Charged::NotBefore(then) => {
            let wait = (then - now).num_seconds().clamp(1, u32::MAX.into());
            let detail = "too many challenges went to this domain, or to hosts of yours that did not answer them; a subscription can be made all \
                          the same";
            Err(Problem::new(TOO_MANY_REQUESTS, detail).retry_after(u32::try_from(wait).unwrap_or(u32::MAX)))
        }
    }
}

async fn ask(
    app: &App,
    checker: &EndpointChecker,
    (endpoint, secret): (Endpoint, Secret),
) -> Result<(Checked, CheckDocument), Problem> {
    let asking = checker.check(endpoint.clone(), &secret, LIMIT_OF_ENDPOINT, app.now());
    let (checked, took) = asking.await;
    if let Checked::NotAsked(error) = &checked {
        tracing::error!(error, "an endpoint could not be checked");
        let detail = "the endpoint could not be asked from here, which is no fault of its own";
        return Err(Problem::unavailable(detail, NOT_ASKED_RETRY));
    }
    let document = CheckDocument {
        passed: checked == Checked::Passed,
        millis: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        steps: steps(&endpoint, &checked),
        url: endpoint.as_str().to_owned(),
    };
    Ok((checked, document))
}

fn steps(endpoint: &Endpoint, checked: &Checked) -> Vec<StepDocument> {
    let is_plain = endpoint.as_str().starts_with("http://");
    let all = [
        Step::Name,
        Step::Connection,
        Step::Tls,
        Step::Answer,
        Step::Challenge,
    ];
    let made = all.into_iter().filter(|step| !(is_plain && *step == Step::Tls));
    let told = |step| match checked {
        Checked::Failed(at, told) if *at == step => ("FAILED", told.clone(), Some(mend(step, endpoint))),
        Checked::Failed(at, _) if *at < step => ("NOT_TRIED", "not tried".to_owned(), None),
        _ => ("PASSED", found(step, endpoint), None),
    };
    let document = |step| {
        let (result, text, mend) = told(step);
        StepDocument {
            step: name(step),
            result,
            text,
            mend,
        }
    };
    made.map(document).collect()
}

fn name(step: Step) -> &'static str {
    match step {
        Step::Name => "NAME",
        Step::Connection => "CONNECTION",
        Step::Tls => "TLS",
        Step::Answer => "ANSWER",
        Step::Challenge => "CHALLENGE",
    }
}

/// What is true of an endpoint that has passed a step.
fn found(step: Step, endpoint: &Endpoint) -> String {
    match step {
        Step::Name => "the host leads to addresses that are delivered to".to_owned(),
        Step::Connection => format!("the server takes connections on port {}", endpoint.port()),
        Step::Tls => "the certificate is for this host, in force, and from a known authority".to_owned(),
        Step::Answer => "the endpoint answers with a status from 200 to 299".to_owned(),
        Step::Challenge => "the answer holds the challenge".to_owned(),
    }
}

/// What mends a step that failed.
fn mend(step: Step, endpoint: &Endpoint) -> String {
    let (host, port) = (endpoint.host(), endpoint.port());
    match step {
        Step::Name => format!(
            "check the spelling of the host, and that public DNS has addresses for it, all of them public: dig +short {host}"
        ),
        Step::Connection => format!(
            "see that the server runs, listens on port {port}, and that its firewall lets our sending addresses through"
        ),
        Step::Tls => format!(
            "see that the certificate is for this host, has not expired, and is sent with its intermediate certificates: openssl s_client \
             -connect {host}:{port} -servername {host}"
        ),
        Step::Answer => "look for a request of the type postrider.verification in the log of the endpoint; often the path is another one, the server \
                         redirects, which is not followed, takes too long, or checks the signature with a secret that this check was not given"
            .to_owned(),
        Step::Challenge => "answer requests of the type postrider.verification with data.challenge, as the body or as {\"challenge\": …}; the \
                            libraries for Python, Go and C# do that"
            .to_owned(),
    }
}
