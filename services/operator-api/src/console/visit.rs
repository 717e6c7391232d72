//! Signing in and out.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use domain::key::{KeyDigest, Role, format_token};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_api::{Caller, Problem, ProblemKind, Remembered, TakesBodies as _, by};
use moka::future::Cache;
use oidc::Provider;
pub(crate) use pages::Fields;
use pages::{Preferences, TICK, is_safe};
use serde::Deserialize;
use store::{Act, VisitBy};
use telemetry::Metric;
use tokio::time::{Instant, timeout_at};
use url::form_urlencoded;

use super::HOME;
use super::frame::{Page, append_cookie, cookie, not_done, see_other};
use super::provider::{self, KeyForm};
use crate::app::App;

/// The cookie that shows a visit.
const COOKIE: &str = "__Host-pr_console";
/// How long a visit is still known that cannot be looked up.
const KEPT: Duration = Duration::from_mins(15);
/// Most visits that are kept.
const VISITS: u64 = 1_000;
/// What is served to those whose visit cannot be looked up: what is known without the database.
const WITHOUT_DATABASE: [&str; 2] = [HOME, "/console/system"];

/// Visits that were looked up of late.
pub(crate) struct Visits {
    remembered: Remembered<KeyDigest, Arc<Caller>>,
    /// For the ticks of live pages. They do not renew a visit, so that what they find must not stand for a look-up that does.
    ticking: Remembered<KeyDigest, Arc<Caller>>,
    /// For as long as the database is away.
    late: Cache<KeyDigest, Arc<Caller>>,
}

impl Default for Visits {
    fn default() -> Self {
        Self {
            remembered: Remembered::default(),
            ticking: Remembered::default(),
            late: Cache::builder().max_capacity(VISITS).time_to_live(KEPT).build(),
        }
    }
}

impl Visits {
    /// Looks every visit up again before it counts: some were ended.
    pub(crate) fn forget_all(&self) {
        self.remembered.forget_all();
        self.ticking.forget_all();
        self.late.invalidate_all();
    }
}

/// Whose visit a request belongs to; none when it shows none that goes on.
pub(super) async fn find(
    app: &App,
    headers: &HeaderMap,
    (method, path): (&Method, &str),
    deadline: Instant,
) -> Result<Option<Arc<Caller>>, Problem> {
    let Some(digest) = digest_of(headers) else {
        return Ok(None);
    };
    let is_tick = headers.contains_key(TICK);
    let reading = async {
        let found = app.store.find_visit(&digest, app.now(), !is_tick);
        let key = by(deadline, ("your visit", "looked up"), found).await?;
        let allowed = key.filter(|visitor| provider::still_lets(&app.config, visitor));
        Ok::<_, Problem>(
            allowed
                .map(Caller::from)
                .filter(|caller| caller.may(Role::may_view))
                .map(Arc::new),
        )
    };
    let remembered = if is_tick {
        &app.visits.ticking
    } else {
        &app.visits.remembered
    };
    match remembered.find(&digest, reading).await {
        Ok(Some(caller)) => {
            app.visits.late.insert(digest, Arc::clone(&caller)).await;
            Ok(Some(caller))
        }
        Ok(None) => {
            app.visits.late.invalidate(&digest).await;
            Ok(None)
        }
        Err(problem) => {
            let may = *method == Method::GET && WITHOUT_DATABASE.contains(&path);
            match app.visits.late.get(&digest).await.filter(|_| may) {
                Some(caller) => Ok(Some(caller)),
                None => Err(problem),
            }
        }
    }
}

fn digest_of(headers: &HeaderMap) -> Option<KeyDigest> {
    cookie(headers, COOKIE)
        .filter(|value| !value.is_empty())
        .map(KeyDigest::of)
}

/// Sends a request without a visit to the page that begins one, and from there to where it wanted to go. Where a form is sent to, its page
/// stands.
pub(super) fn ask_to_sign_in(method: &Method, address: &str) -> Response {
    let to = sign_in_at(address);
    match is_safe(method) {
        true => see_other(&to),
        false => not_done(
            &to,
            "Nothing was done: your visit had ended before the form was sent. Fill it in again.",
        ),
    }
}

/// The page to sign in that leads on to there.
pub(super) fn sign_in_at(next: &str) -> String {
    with_next("/console/sign-in", next)
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    theme: &'static str,
    next: String,
    problem: Option<String>,
    /// The provider's, if there is one to sign in with.
    host: Option<String>,
    key_form: KeyForm,
}

impl SignInPage {
    fn has_form(&self) -> bool {
        matches!(self.key_form, KeyForm::Ordinary | KeyForm::BreakGlass)
    }

    fn breaks_glass(&self) -> bool {
        self.key_form == KeyForm::BreakGlass
    }

    fn opens_in(&self) -> Option<i64> {
        match self.key_form {
            KeyForm::OpensIn(seconds) => Some(seconds),
            KeyForm::Ordinary | KeyForm::BreakGlass | KeyForm::Closed => None,
        }
    }

    /// Where signing in with the provider begins.
    fn start(&self) -> String {
        with_next("/console/sign-in/start", &self.next)
    }

    fn address(&self) -> String {
        with_next("/console/sign-in", &self.next)
    }
}

fn with_next(path: &str, next: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("next", next)
        .finish();
    format!("{path}?{query}")
}

/// Where to go after signing in.
#[derive(Debug, Deserialize)]
pub(super) struct Onward {
    next: Option<String>,
}

/// An address of the console, and no other.
pub(super) fn onward(next: Option<&str>) -> String {
    let ours = next.filter(|next| {
        let rest = next.strip_prefix(HOME);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
            && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    });
    ours.unwrap_or(HOME).to_owned()
}

/// The page to sign in.
pub(super) async fn page(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Query(onward_to): Query<Onward>,
) -> Response {
    let next = onward(onward_to.next.as_deref());
    sign_in_page(&app, (&headers, &next), None, provider::patience(&app)).await
}

/// The page to sign in for a browser with these headers, after a sign-in that was refused with this status for this reason. The provider is
/// waited for until `deadline`.
pub(super) async fn sign_in_page(
    app: &App,
    (headers, next): (&HeaderMap, &str),
    refused: Option<(StatusCode, &str)>,
    deadline: Instant,
) -> Response {
    let page = SignInPage {
        theme: Preferences::of(headers).theme,
        next: next.to_owned(),
        problem: refused.map(|(_, detail)| detail.to_owned()),
        host: app.provider.as_ref().map(Provider::host),
        key_form: provider::key_form(app, deadline).await,
    };
    let status = refused.map_or(StatusCode::OK, |(status, _)| status);
    (status, Page(page)).into_response()
}

/// Begins a visit with an API key.
pub(super) async fn sign_in(State(app): State<Arc<App>>, headers: HeaderMap, fields: Fields) -> Response {
    let next = onward(fields.get("next"));
    match begin_with_key(&app, fields.get("key").unwrap_or_default()).await {
        Ok(token) => {
            let mut response = see_other(&next);
            show(&mut response, &token);
            response
        }
        Err(problem) => {
            let refused = (problem.kind().status(), problem.detail());
            let patience = provider::patience(&app);
            sign_in_page(&app, (&headers, &next), Some(refused), patience).await
        }
    }
}

async fn begin_with_key(app: &App, key: &str) -> Result<String, Problem> {
    let key_form = provider::key_form(app, provider::patience(app)).await;
    if !matches!(key_form, KeyForm::Ordinary | KeyForm::BreakGlass) {
        let detail = "keys do not open the console now: sign in with the provider";
        return Err(Problem::new(ProblemKind::FORBIDDEN, detail));
    }
    let deadline = app.deadline();
    let mut headers = HeaderMap::new();
    let Ok(mut shown) = HeaderValue::from_str(&format!("Bearer {key}")) else {
        return Err(Problem::new(
            ProblemKind::UNAUTHORIZED,
            "this is no API key: a key starts with pr_",
        ));
    };
    shown.set_sensitive(true);
    headers.insert(header::AUTHORIZATION, shown);
    let caller = app.keys.caller(&headers, deadline).await.map_err(|problem| {
        if problem.kind().status() == StatusCode::UNAUTHORIZED {
            let detail =
                "this is no API key that is valid: a key starts with pr_, followed by 64 hexadecimal digits";
            return Problem::new(ProblemKind::UNAUTHORIZED, detail);
        }
        problem
    })?;
    caller.require(Role::may_view)?;
    let id = caller.key()?;
    let with = match key_form {
        KeyForm::BreakGlass => VisitBy::BreakGlass(id),
        _ => VisitBy::Key(id),
    };
    let token = begin(app, with, &caller.signature()).await?;
    if key_form == KeyForm::BreakGlass {
        Metric::BreakGlassVisits.increment(1);
        tracing::warn!(
            by = caller.signature(),
            "a key was used to sign in although there is a provider"
        );
    }
    Ok(token)
}

/// Begins a visit. Returns the value of its cookie.
pub(super) async fn begin(app: &App, with: VisitBy<'_>, signature: &str) -> Result<String, Problem> {
    let token = format_token("", &rand::random());
    let act = Act {
        by: signature,
        note: None,
        at: app.now(),
    };
    let digest = KeyDigest::of(&token);
    let beginning = app.store.begin_visit(&digest, with, act);
    by(app.deadline(), ("your visit", "begun"), beginning).await?;
    Ok(token)
}

/// Gives the browser the cookie that shows its visit.
pub(super) fn show(response: &mut Response, token: &str) {
    let cookie = format!("{COOKIE}={token}; Path=/; Secure; HttpOnly; SameSite=Lax");
    append_cookie(response, &cookie);
}

/// Ends the visit that a browser has, if it has one.
pub(super) async fn end_of(app: &App, headers: &HeaderMap) {
    let Some(digest) = digest_of(headers) else { return };
    if timeout_at(app.deadline(), end(app, &digest)).await.is_err() {
        tracing::warn!("the end of a visit could not be written down in time");
    }
    app.visits.remembered.forget(&digest).await;
    app.visits.ticking.forget(&digest).await;
    app.visits.late.invalidate(&digest).await;
}

/// Ends a visit. When that cannot be written down now, the browser forgets it all the same.
pub(super) async fn sign_out(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    end_of(&app, &headers).await;
    let mut response = see_other("/console/sign-in");
    append_cookie(
        &mut response,
        &format!("{COOKIE}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax"),
    );
    response
}

async fn end(app: &App, digest: &KeyDigest) {
    let now = app.now();
    let ended = async {
        let Some(visitor) = app.store.find_visit(digest, now, false).await? else {
            return Ok(false);
        };
        let act = Act {
            by: &Caller::from(visitor).signature(),
            note: None,
            at: now,
        };
        app.store.end_visit(digest, act).await
    };
    if let Err(error) = ended.await {
        tracing::warn!(
            error = lifecycle::error_chain(&error),
            "the end of a visit could not be written down"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_leads_to_the_console_alone() {
        for ours in ["/console", "/console/audit?actor=a", "/console?x=1"] {
            assert_eq!(onward(Some(ours)), ours);
        }
        for other in [
            "//evil.example",
            "https://evil.example",
            "/consoles",
            "/console\\@evil",
            "/console\r\nx",
            "",
        ] {
            assert_eq!(onward(Some(other)), HOME, "{other}");
        }
    }
}
