//! Signing in with a provider of OpenID Connect, and again for what is dangerous.
//!
//! It begins by a link and never by a form: a browser applies the policy for forms to what they are redirected to as well, and the provider
//! is of another origin. What the answer is held against is in a cookie of the browser that began, and in nothing else.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, RawQuery, State};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use config::{Config, KeyLogin};
use domain::key::Role;
use http::{HeaderMap, StatusCode};
use http_api::{Caller, Identity, Problem};
use lifecycle::error_chain;
use oidc::{Attempt, Claims, Client, Provider, ProviderError};
use serde::Deserialize;
use store::{Person, VisitBy, Visitor};
use url::form_urlencoded;

use super::frame::{Page, append_cookie, cookie, done, see_other};
use super::visit::{self, onward};
use crate::app::App;
use crate::request::AUTHENTICATED_WITHIN;

/// The cookie with what an answer is held against.
const ATTEMPT: &str = "__Host-pr_oidc";
/// How long a sign-in may take, in seconds.
const ATTEMPT_SECONDS: u32 = 600;
/// Longest address that a sign-in leads to; a browser keeps cookies of 4,096 bytes.
const NEXT_MAX_BYTES: usize = 2_000;
/// After how long without an answer of the provider a key is taken in its place.
const AWAY: TimeDelta = TimeDelta::seconds(60);
/// Most values of the claim that are shown, and the longest of them in characters.
const VALUES_SHOWN: usize = 50;
const VALUE_MAX_CHARS: usize = 200;

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
    Provider::new(issuer, client)
        .inspect_err(|error| {
            tracing::error!(
                error = error_chain(error),
                "no person can sign in with the provider: its client cannot be set up"
            );
        })
        .ok()
}

/// Whether the form for keys is there. In an emergency alone the provider is asked first.
pub(super) async fn key_form(app: &App) -> KeyForm {
    let operator = &app.config.operator;
    match (operator.oidc.issuer.is_some(), operator.key_login()) {
        (false, _) => KeyForm::Ordinary,
        (true, KeyLogin::Always) => KeyForm::BreakGlass,
        (true, KeyLogin::Never) => KeyForm::Closed,
        (true, KeyLogin::Emergency) => match &app.provider {
            None => KeyForm::BreakGlass,
            Some(provider) => match provider.away_for(app.now()).await {
                None => KeyForm::Closed,
                Some(away) if away >= AWAY => KeyForm::BreakGlass,
                Some(away) => KeyForm::OpensIn((AWAY - away).num_seconds().max(1)),
            },
        },
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

/// Begins a sign-in.
pub(super) async fn start(State(app): State<Arc<App>>, Query(start): Query<Start>) -> Response {
    let next = onward(start.next.as_deref().filter(|next| next.len() <= NEXT_MAX_BYTES));
    let Some(provider) = &app.provider else {
        return see_other("/console/sign-in");
    };
    let max_age = start
        .again
        .and_then(|_| u32::try_from(AUTHENTICATED_WITHIN.num_seconds()).ok());
    match provider.begin(max_age, &next, app.now()).await {
        Ok(begun) => {
            let mut response = see_other(begun.address.as_str());
            let written = begun.attempt.written();
            let cookie = format!(
                "{ATTEMPT}={written}; Path=/; Max-Age={ATTEMPT_SECONDS}; Secure; HttpOnly; SameSite=Lax"
            );
            append_cookie(&mut response, &cookie);
            response
        }
        Err(error) => failed(&app, &next, &error).await,
    }
}

/// Handles the answer of the provider.
pub(super) async fn answered(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let (Some(provider), Some(attempt)) = (&app.provider, cookie(&headers, ATTEMPT).and_then(Attempt::read))
    else {
        let detail = "this browser has not begun a sign-in of the last ten minutes; begin again";
        return visit::sign_in_page(&app, &onward(None), Some((StatusCode::BAD_REQUEST, detail))).await;
    };
    let next = onward(Some(&attempt.next));
    let mut response = match provider
        .finish(&attempt, &query.unwrap_or_default(), app.now())
        .await
    {
        Ok(claims) => match role_of(&app.config, &claims) {
            Some(role) => admitted(&app, &headers, &attempt, (person(&claims, role), &next)).await,
            None => without_role(&app, &claims),
        },
        Err(error) => failed(&app, &next, &error).await,
    };
    // An answer is for one use: what it was held against goes.
    let gone = format!("{ATTEMPT}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax");
    append_cookie(&mut response, &gone);
    response
}

fn person(claims: &Claims, role: Role) -> Person {
    Person {
        issuer: claims.issuer.clone(),
        subject: claims.subject.clone(),
        name: claims.name(),
        role,
        authenticated_at: claims.authenticated_at,
    }
}

/// The highest role that one of the values of the claim stands for.
fn role_of(config: &Config, claims: &Claims) -> Option<Role> {
    let oidc = &config.operator.oidc;
    let said = claims.texts(&oidc.roles_claim);
    let roles = [
        (Role::Admin, &oidc.roles.admin),
        (Role::Operator, &oidc.roles.operator),
        (Role::Viewer, &oidc.roles.viewer),
    ];
    let is_said = |values: &[String]| values.iter().any(|value| said.contains(value));
    roles
        .into_iter()
        .find(|(_, values)| is_said(values))
        .map(|(role, _)| role)
}

async fn admitted(
    app: &App,
    headers: &HeaderMap,
    attempt: &Attempt,
    (person, next): (Person, &str),
) -> Response {
    let caller = Caller::from(Visitor::Person(person.clone()));
    let token = match visit::begin(app, VisitBy::Person(&person), &caller.signature()).await {
        Ok(token) => token,
        Err(problem) => return refused_by_us(app, next, &problem).await,
    };
    // The new visit takes the place of the one that this browser had.
    visit::end_of(app, headers).await;
    let mut response = if attempt.max_age.is_some() {
        done(
            next,
            "You have shown who you are. Nothing was done yet: send the form again.",
        )
    } else {
        see_other(next)
    };
    visit::show(&mut response, &token);
    response
}

async fn refused_by_us(app: &App, next: &str, problem: &Problem) -> Response {
    let refusal = (problem.kind().status(), problem.detail());
    visit::sign_in_page(app, next, Some(refusal)).await
}

/// Says why a sign-in came to nothing, as far as that is for strangers to know.
async fn failed(app: &App, next: &str, error: &ProviderError) -> Response {
    let (status, detail) = match error {
        ProviderError::Answer(error) => (StatusCode::BAD_REQUEST, format!("{error}; begin again")),
        ProviderError::CodeRefused(_) => (
            StatusCode::BAD_REQUEST,
            "the provider does not take the code of its answer any more, because it was used or is too old; begin again".to_owned(),
        ),
        ProviderError::Token(error) => (StatusCode::FORBIDDEN, format!("{error}; begin again")),
        _ => {
            let host = app.provider.as_ref().map(Provider::host).unwrap_or_default();
            let detail = format!("{host} does not answer as it should; try again, or tell those who look after it");
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
    visit::sign_in_page(app, next, Some((status, &detail))).await
}

#[derive(Template)]
#[template(path = "sign_in_without_role.html")]
struct WithoutRole {
    name: String,
    host: String,
    claim: String,
    values: Vec<String>,
    more: usize,
}

fn without_role(app: &App, claims: &Claims) -> Response {
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
