//! Signing in with a provider of OpenID Connect, and again for what is dangerous.
//!
//! It begins by a link and never by a form: a browser applies the policy for forms to what they are redirected to as well, and the provider
//! is of another origin. What the answer is held against is in a cookie of the browser that began, and in nothing else.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Query, RawQuery, State};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use config::{Config, KeyLogin};
use domain::key::Role;
use http::{HeaderMap, StatusCode};
use http_api::{AddressLimit, Caller, Identity, Problem, TakesBodies as _};
use lifecycle::error_chain;
use oidc::{Attempt, Claims, Client, Provider, ProviderError, Seal, Standing, TokenError};
use pages::{Preferences, Violations};
use serde::Deserialize;
use store::{Person, VisitBy, Visitor};
use tokio::time::Instant;
use url::form_urlencoded;

use super::frame::{Page, append_cookie, cookie, not_done, see_other};
use super::visit::{self, onward};
use crate::app::App;
use crate::request::AUTHENTICATED_WITHIN;

/// The cookie with what an answer is held against.
const ATTEMPT: &str = "__Host-pr_oidc";
/// How long a sign-in may take, in seconds.
const ATTEMPT_SECONDS: u32 = 600;
/// Longest address that a sign-in leads to; a browser keeps cookies of 4,096 bytes.
const NEXT_MAX_BYTES: usize = 2_000;
/// How long the page to sign in waits to hear whether the provider answers.
const PATIENCE: Duration = Duration::from_secs(2);
/// Steps of signing in with the provider, a second and at once after a pause, of one address: each asks the provider, or holds a place here.
const STEPS: (NonZeroU32, NonZeroU32) = (per(5), per(20));
/// Most values of the claim that are shown, and the longest of them in characters.
const VALUES_SHOWN: usize = 50;
const VALUE_MAX_CHARS: usize = 200;

/// What they are called where there were too many.
const STEPS_NAME: &str = "attempts to sign in";

const fn per(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("invariant: no limit here is zero")
}

/// How often one address may have what strangers can ask of the console.
pub(crate) struct SignInLimit {
    steps: AddressLimit,
    pub(super) violations: Violations,
}

impl Default for SignInLimit {
    fn default() -> Self {
        let (rate, burst) = STEPS;
        Self {
            steps: AddressLimit::per_second(rate, burst),
            violations: Violations::default(),
        }
    }
}

/// Whether a person may sign in with a key now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyForm {
    /// It is the way in.
    Ordinary,
    /// It is, although people sign in with a provider.
    BreakGlass,
    /// It is not.
    Closed,
    /// It will be, in so many seconds, unless the provider answers.
    OpensIn(i64),
}

/// The provider of the configuration; none without one, and when the client for requests to it cannot be made.
pub(crate) fn of(config: &Config) -> Option<Provider> {
    let operator = &config.operator;
    let (issuer, id, url) = (
        operator.oidc.issuer.as_ref()?,
        operator.oidc.client_id.as_ref()?,
        operator.public_url.as_ref()?,
    );
    let client = Client {
        id: id.clone(),
        secret: operator
            .oidc
            .client_secret
            .as_ref()
            .map(|secret| secret.expose().to_owned()),
        redirect_uri: format!("{url}/console/sign-in/return"),
    };
    // Shared by all processes of an installation, since one may begin what another ends.
    let shared = operator.oidc.client_secret.as_ref();
    let seal = match shared.or(config.reseller.secrets.key.as_ref()) {
        Some(secret) => Seal::of(secret.expose().as_bytes()),
        None => Seal::of(&rand::random::<[u8; 32]>()),
    };
    Provider::new(issuer, client, seal)
        .inspect_err(|error| {
            tracing::error!(
                error = error_chain(error),
                "no person can sign in with the provider: its client cannot be set up"
            );
        })
        .ok()
}

/// Until when the page to sign in waits to hear whether the provider answers.
pub(super) fn patience(app: &App) -> Instant {
    app.deadline().min(Instant::now() + PATIENCE)
}

/// Whether the form for keys is there. In an emergency alone the provider is asked first, and waited for until `deadline`.
pub(super) async fn key_form(app: &App, deadline: Instant) -> KeyForm {
    let operator = &app.config.operator;
    match (operator.oidc.issuer.is_some(), operator.key_login()) {
        (false, _) => KeyForm::Ordinary,
        (true, KeyLogin::Always) => KeyForm::BreakGlass,
        (true, KeyLogin::Never) => KeyForm::Closed,
        (true, KeyLogin::Emergency) => match &app.provider {
            None => KeyForm::BreakGlass,
            Some(provider) => match provider.standing(app.now(), deadline).await {
                Standing::Answers => KeyForm::Closed,
                Standing::Away => KeyForm::BreakGlass,
                Standing::Fails(left) => KeyForm::OpensIn(left.num_seconds().max(1)),
            },
        },
    }
}

/// Whether the configuration still lets in who began a visit: it may have changed since.
pub(super) fn still_lets(config: &Config, visitor: &Visitor) -> bool {
    let operator = &config.operator;
    let has_provider = operator.oidc.issuer.is_some();
    match visitor {
        Visitor::Key(_) => !has_provider,
        Visitor::BreakGlass(_) => !has_provider || operator.key_login() != KeyLogin::Never,
        Visitor::Person(person) => {
            let values = values_of(config, person.role);
            operator.oidc.issuer.as_deref() == Some(&*person.issuer)
                && person.granted_by.iter().any(|value| values.contains(value))
        }
    }
}

/// How a sign-in is to begin.
#[derive(Debug, Deserialize)]
pub(super) struct Start {
    next: Option<String>,
    /// Whether the person has to show who it is although the provider knows.
    again: Option<String>,
}

/// The link that begins a sign-in, where the person is asked by the provider whatever it remembers.
pub(super) fn again_at(next: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("again", "1")
        .append_pair("next", next)
        .finish();
    format!("/console/sign-in/start?{query}")
}

/// Begins a sign-in. Another site must not be able to: it would sign a person in as who it likes, or out of what that person does.
pub(super) async fn start(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Query(start): Query<Start>,
) -> Response {
    let deadline = app.deadline();
    let next = onward(start.next.as_deref().filter(|next| next.len() <= NEXT_MAX_BYTES));
    let Some(provider) = &app.provider else {
        return see_other("/console/sign-in");
    };
    if !pages::is_followed_here(&headers, app.config.operator.public_url.as_deref()) {
        return see_other(&visit::sign_in_at(&next));
    }
    if let Err(problem) = app.sign_ins.steps.take(STEPS_NAME) {
        return refused_by_us(&app, (&headers, &next), &problem).await;
    }
    let max_age = start
        .again
        .and_then(|_| u32::try_from(AUTHENTICATED_WITHIN.num_seconds()).ok());
    match provider.begin(max_age, &next, (app.now(), deadline)).await {
        Ok(begun) => {
            let mut response = see_other(begun.address.as_str());
            let written = begun.cookie;
            let cookie = format!(
                "{ATTEMPT}={written}; Path=/; Max-Age={ATTEMPT_SECONDS}; Secure; HttpOnly; SameSite=Lax"
            );
            append_cookie(&mut response, &cookie);
            response
        }
        Err(error) => failed(&app, (&headers, &next), &error, deadline).await,
    }
}

/// Handles the answer of the provider.
pub(super) async fn answered(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let deadline = app.deadline();
    if let Err(problem) = app.sign_ins.steps.take(STEPS_NAME) {
        return refused_by_us(&app, (&headers, &onward(None)), &problem).await;
    }
    let begun = app.provider.as_ref().and_then(|provider| {
        let attempt = provider.attempt(cookie(&headers, ATTEMPT)?, app.now())?;
        Some((provider, attempt))
    });
    let Some((provider, attempt)) = begun else {
        let detail = "this browser has not begun a sign-in of the last ten minutes; begin again";
        let refused = Some((StatusCode::BAD_REQUEST, detail));
        return visit::sign_in_page(&app, (&headers, &onward(None)), refused, patience(&app)).await;
    };
    let next = onward(Some(&attempt.next));
    let mut response = match provider
        .finish(&attempt, &query.unwrap_or_default(), (app.now(), deadline))
        .await
    {
        Ok(claims) => match role_of(&app.config, &claims) {
            Some(granted) => {
                let person = person(&claims, granted, app.now());
                admitted(&app, &headers, &attempt, (person, &next)).await
            }
            None => without_role(&app, &headers, &claims),
        },
        Err(error) => failed(&app, (&headers, &next), &error, deadline).await,
    };
    // An answer is for one use: what it was held against goes.
    let gone = format!("{ATTEMPT}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax");
    append_cookie(&mut response, &gone);
    response
}

fn person(claims: &Claims, (role, granted_by): (Role, Vec<String>), now: DateTime<Utc>) -> Person {
    Person {
        issuer: claims.issuer.clone(),
        subject: claims.subject.clone(),
        name: claims.name(),
        role,
        // By the provider's own clock, counted back from now: ours may lie some way apart from it, and is what this is compared with later.
        authenticated_at: claims.authenticated_before().map(|ago| now - ago),
        granted_by,
    }
}

/// The values of the claim that a role comes of.
fn values_of(config: &Config, role: Role) -> &[String] {
    let roles = &config.operator.oidc.roles;
    match role {
        Role::Admin => &roles.admin,
        Role::Operator => &roles.operator,
        Role::Viewer => &roles.viewer,
        Role::Ingest | Role::Embedder | Role::Reseller | Role::ResellerViewer => &[],
    }
}

/// The highest role that one of the values of the claim stands for, with those that do.
fn role_of(config: &Config, claims: &Claims) -> Option<(Role, Vec<String>)> {
    let said = claims.texts(&config.operator.oidc.roles_claim);
    let roles = [Role::Admin, Role::Operator, Role::Viewer].into_iter();
    roles
        .map(|role| {
            let values = values_of(config, role).iter();
            (
                role,
                values.filter(|value| said.contains(value)).cloned().collect(),
            )
        })
        .find(|(_, values): &(Role, Vec<String>)| !values.is_empty())
}

async fn admitted(
    app: &App,
    headers: &HeaderMap,
    attempt: &Attempt,
    (person, next): (Person, &str),
) -> Response {
    let caller = Caller::from(Visitor::Person(person.clone()));
    // Asking once more would come to the same, again and again.
    if attempt.max_age.is_some() && is_stale(&caller.identity, app.now()) {
        let host = app.provider.as_ref().map(Provider::host).unwrap_or_default();
        let detail = format!(
            "{host} was to let you show who you are, and says that you did so more than {} minutes ago; what is dangerous cannot be \
             done until those who look after it have mended that (its clock, or how it handles max_age)",
            AUTHENTICATED_WITHIN.num_minutes()
        );
        let refused = Some((StatusCode::FORBIDDEN, &*detail));
        return visit::sign_in_page(app, (headers, next), refused, Instant::now()).await;
    }
    let token = match visit::begin(app, VisitBy::Person(&person), &caller.signature()).await {
        Ok(token) => token,
        Err(problem) => return refused_by_us(app, (headers, next), &problem).await,
    };
    // The new visit takes the place of the one that this browser had.
    visit::end_of(app, headers).await;
    let mut response = if attempt.max_age.is_some() {
        not_done(
            next,
            "You have shown who you are. Nothing was done yet: send the form again from the tab that has kept it.",
        )
    } else {
        see_other(next)
    };
    visit::show(&mut response, &token);
    response
}

async fn refused_by_us(app: &App, of: (&HeaderMap, &str), problem: &Problem) -> Response {
    let refusal = (problem.kind().status(), problem.detail());
    visit::sign_in_page(app, of, Some(refusal), Instant::now()).await
}

/// Says why a sign-in came to nothing, as far as that is for strangers to know.
async fn failed(app: &App, of: (&HeaderMap, &str), error: &ProviderError, deadline: Instant) -> Response {
    let host = || app.provider.as_ref().map(Provider::host).unwrap_or_default();
    let (status, detail) = match error {
        ProviderError::Answer(error) => (StatusCode::BAD_REQUEST, format!("{error}; begin again")),
        ProviderError::CodeRefused(_) => (
            StatusCode::BAD_REQUEST,
            "the provider does not take the code of its answer any more, because it was used or is too old; begin again".to_owned(),
        ),
        ProviderError::Token(error) if error.is_of_time() => (StatusCode::FORBIDDEN, of_time(error, &host(), app.now())),
        ProviderError::Token(error) => (StatusCode::FORBIDDEN, format!("{error}; begin again")),
        ProviderError::Late(_) => {
            let detail = format!("{} does not answer in time; try again, or tell those who look after it", host());
            (StatusCode::SERVICE_UNAVAILABLE, detail)
        }
        _ => {
            let detail = format!(
                "{} does not answer as it should; try again, or tell those who look after it",
                host()
            );
            (StatusCode::SERVICE_UNAVAILABLE, detail)
        }
    };
    if error.is_outage() {
        tracing::warn!(
            error = error_chain(error),
            "the provider is of no use for signing in"
        );
    } else {
        tracing::info!(
            error = error_chain(error),
            "a sign-in with the provider was refused"
        );
    }
    visit::sign_in_page(app, of, Some((status, &detail)), deadline).await
}

/// A time that is wrong is mostly a clock that is: beginning again would come to the same until that is set.
fn of_time(error: &TokenError, host: &str, now: DateTime<Utc>) -> String {
    format!(
        "{error}: the clocks of {host} and of this server seem to lie more than a minute apart (here it is {} UTC); tell those who look \
         after them, since beginning again changes nothing before one of them is set",
        now.format("%H:%M:%S")
    )
}

#[derive(Template)]
#[template(path = "sign_in_without_role.html")]
struct WithoutRole {
    theme: &'static str,
    name: String,
    host: String,
    claim: String,
    values: Vec<String>,
    more: usize,
}

fn without_role(app: &App, headers: &HeaderMap, claims: &Claims) -> Response {
    let claim = app.config.operator.oidc.roles_claim.clone();
    let all = claims.texts(&claim);
    tracing::info!(
        subject = claims.subject,
        claim,
        values = all.len(),
        "a person without a role was not let in"
    );
    let shown = all.iter().take(VALUES_SHOWN);
    let page = WithoutRole {
        theme: Preferences::of(headers).theme,
        name: claims.name(),
        host: app.provider.as_ref().map(Provider::host).unwrap_or_default(),
        values: shown
            .map(|value| value.chars().take(VALUE_MAX_CHARS).collect())
            .collect(),
        more: all.len().saturating_sub(VALUES_SHOWN),
        claim,
    };
    (StatusCode::FORBIDDEN, Page(page)).into_response()
}

/// Whether an act that is dangerous needs its person to show once more who it is. Of a key there is nothing more to show.
pub(crate) fn is_stale(identity: &Identity, now: DateTime<Utc>) -> bool {
    match identity {
        Identity::Key(_) => false,
        Identity::Person { authenticated_at, .. } => {
            authenticated_at.is_none_or(|at| now - at > AUTHENTICATED_WITHIN)
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_person_shows_who_it_is_every_five_minutes_and_a_key_never() {
        let now = DateTime::<Utc>::UNIX_EPOCH;
        let person = |authenticated_at| Identity::Person {
            issuer: "https://id.example".to_owned(),
            subject: "7f3".to_owned(),
            authenticated_at,
        };
        assert!(!is_stale(&Identity::Key(uuid::Uuid::nil()), now));
        assert!(!is_stale(&person(Some(now - AUTHENTICATED_WITHIN)), now));
        let before = now - AUTHENTICATED_WITHIN - TimeDelta::seconds(1);
        assert!(is_stale(&person(Some(before)), now));
        assert!(is_stale(&person(None), now), "the provider does not say when");
    }

    #[test]
    fn showing_it_leads_back() {
        assert_eq!(
            again_at("/console/lanes/push/pause"),
            "/console/sign-in/start?again=1&next=%2Fconsole%2Flanes%2Fpush%2Fpause"
        );
    }
}
