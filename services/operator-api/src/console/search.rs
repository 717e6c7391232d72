//! `/console/search` and `/console/explain/{id}`: from any identifier to what has it, and its story.

mod story;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use explain::words::of;
use http::StatusCode;
use http_api::{Params, Problem, ReadParams};
use serde::Deserialize;
use url::form_urlencoded;
use uuid::Uuid;

pub(super) use story::{linked, tone};

use super::frame::{Frame, Page, see_other, segment};
use crate::app::App;
use crate::pushes::{self, PushParams};
use crate::request::Viewer;
use crate::subscriptions::{self, SubscriptionParams};

/// How many of what is only similar are shown.
const SIMILAR: u32 = 10;

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/console/search", get(page))
        .route("/console/explain/{id}", get(story::page))
}

/// What is looked for. Has no `Debug`: it may be a device.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchParams {
    q: Option<String>,
    /// Whose event it is, when it is what its caller called one.
    reseller: Option<String>,
}

/// Something that was found.
struct Hit {
    kind: &'static str,
    name: String,
    state: Option<String>,
    said: String,
    href: String,
}

/// What was found, and what was looked for.
#[derive(Default)]
struct Found {
    /// What has exactly this identifier or name.
    exact: Vec<Hit>,
    /// What this is a part of, or belongs to.
    similar: Vec<Hit>,
    /// What was looked for.
    tried: Vec<&'static str>,
}

#[derive(Template)]
#[template(path = "search.html")]
struct Search {
    frame: Frame,
    text: String,
    reseller: String,
    found: Found,
}

impl Search {
    /// How it is, in a sentence.
    fn sentence(&self) -> String {
        match (
            self.text.as_str(),
            self.found.exact.len(),
            self.found.similar.len(),
        ) {
            ("", ..) => {
                "Any identifier, the name of a reseller, a part of an endpoint, a device or a prototype."
                    .to_owned()
            }
            (text, 0, 0) => format!("Nothing has “{text}”."),
            (text, 0, similar) => format!("Nothing has exactly “{text}”; {similar} found by it."),
            (text, exact, _) => format!("{exact} found with exactly “{text}”."),
        }
    }

    fn lists(&self) -> [(&'static str, &[Hit]); 2] {
        [
            ("With exactly this", &self.found.exact),
            ("Found by it", &self.found.similar),
        ]
    }

    fn is_identifier(&self) -> bool {
        identifier(&self.text).is_some()
    }

    /// The notifications of events that hold the text.
    fn by_value(&self) -> String {
        query(
            "/console/waiting",
            &[("lane", "reseller"), ("status", "ANY"), ("value", &self.text)],
        )
    }
}

/// The address of a page with these parameters.
fn query(path: &str, parameters: &[(&str, &str)]) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish();
    format!("{path}?{query}")
}

/// The identifier that a text is, or holds as a part: people paste lines of logs and addresses.
fn identifier(text: &str) -> Option<Uuid> {
    let parts = text.split(|it: char| !it.is_ascii_hexdigit() && it != '-');
    let mut whole = parts.filter(|part| part.len() == 36 || part.len() == 32);
    whole.find_map(|part| part.parse().ok())
}

async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Params(params): Params<SearchParams>,
) -> Result<Response, Problem> {
    let text = params.q.as_deref().unwrap_or_default().trim();
    let reseller = params.reseller.as_deref().map(str::trim);
    let found = look(&app, viewer, text, reseller).await?;
    Ok(answer(frame, text, reseller, found, StatusCode::OK))
}

/// Leads to what alone has an identifier or name; else shows what was found.
fn answer(frame: Frame, text: &str, reseller: Option<&str>, found: Found, status: StatusCode) -> Response {
    if let [only] = &*found.exact {
        return see_other(&only.href);
    }
    let page = Page(Search {
        frame,
        text: text.to_owned(),
        reseller: reseller.unwrap_or_default().to_owned(),
        found,
    });
    (status, page).into_response()
}

/// Looks for everything that a text may be.
async fn look(app: &Arc<App>, viewer: Viewer, text: &str, reseller: Option<&str>) -> Result<Found, Problem> {
    let mut found = Found::default();
    if text.is_empty() {
        return Ok(found);
    }
    exactly(app, viewer, (text, reseller), &mut found).await?;
    if let Some(id) = identifier(text).filter(|_| found.exact.is_empty()) {
        let id = id.to_string();
        if id != text.to_ascii_lowercase() {
            exactly(app, viewer, (&id, None), &mut found).await?;
        }
    }
    if identifier(text).is_none() && reseller.is_none() {
        resellers(app, viewer, text, &mut found).await?;
        endpoints(app, viewer, text, &mut found).await?;
        of_prototype(app, viewer, text, &mut found).await?;
    }
    Ok(found)
}

/// What has this identifier or name, as the operation finds it.
async fn exactly(
    app: &Arc<App>,
    viewer: Viewer,
    (text, reseller): (&str, Option<&str>),
    found: &mut Found,
) -> Result<(), Problem> {
    let params = crate::search::SearchParams {
        q: Some(text.to_owned()),
        reseller: reseller.map(str::to_owned),
    };
    let answer = Box::pin(crate::search::search(
        State(Arc::clone(app)),
        viewer,
        Params(params),
    ));
    let answer = answer.await?.0;
    for tried in answer.tried.into_iter().map(kind) {
        if !found.tried.contains(&tried) {
            found.tried.push(tried);
        }
    }
    // A subscription that was found by a part of its URL is listed among those that are similar.
    let is_exact = |kind: &str| kind != "subscription" || identifier(text).is_some();
    let exact = answer.items.into_iter().filter(|it| is_exact(it.kind));
    found.exact.extend(exact.map(|it| {
        let place = match it.kind {
            "deadLetter" => "dead-letters",
            "subscription" => "subscriptions",
            "job" => "jobs",
            "reseller" => "resellers",
            _ => "explain",
        };
        let href = match it.kind {
            "key" => format!("/console/access?revoked=true#key-{}", segment(&it.id)),
            "quotaRequest" => format!(
                "/console/quota-requests?status={}#request-{}",
                it.state.as_deref().unwrap_or_default(),
                segment(&it.id)
            ),
            // No page is of it: what it became is told by the list of its notifications.
            "eventType" => query(
                "/console/waiting",
                &[("lane", "reseller"), ("status", "ANY"), ("eventType", &it.id)],
            ),
            _ => format!("/console/{place}/{}", segment(&it.id)),
        };
        Hit {
            kind: kind(it.kind),
            href,
            name: it.id,
            state: it.state,
            said: it.headline,
        }
    }));
    // Of a device the last ones are found, and there is a list of all.
    if identifier(text).is_none() && found.exact.iter().any(|hit| hit.kind == "push") {
        found.similar.push(Hit {
            kind: "device",
            name: "Pushes for the device".to_owned(),
            state: None,
            said: "All of them, the newest first.".to_owned(),
            href: query("/console/waiting", &[("device", text)]),
        });
    }
    Ok(())
}

/// A kind as people say it.
fn kind(name: &'static str) -> &'static str {
    match name {
        "deadLetter" => "dead letter",
        "userAgent" => "user agent",
        "key" => "API key",
        "keyName" => "name of an API key",
        "quotaRequest" => "quota request",
        "eventType" => "event type",
        name => name,
    }
}

/// Resellers whose names begin so.
async fn resellers(app: &Arc<App>, viewer: Viewer, text: &str, found: &mut Found) -> Result<(), Problem> {
    found.tried.push("resellers whose names begin so");
    let part = subscriptions::named_like(app, viewer, text, SIMILAR).await?;
    let similar = part.items.into_iter().filter(|it| it.id != text);
    found.similar.extend(similar.map(|it| Hit {
        kind: "reseller",
        said: format!("Has {}.", of(it.subscriptions, "subscription", "subscriptions")),
        href: format!("/console/resellers/{}", segment(&it.id)),
        state: None,
        name: it.id,
    }));
    Ok(())
}

/// Subscriptions with this in their endpoint.
async fn endpoints(app: &Arc<App>, viewer: Viewer, text: &str, found: &mut Found) -> Result<(), Problem> {
    if !found.tried.contains(&"endpoint") {
        found.tried.push("endpoint");
    }
    let params = SubscriptionParams {
        reseller: None,
        state: None,
        failing: None,
        paused: None,
        url: Some(text.to_owned()),
        limit: Some(SIMILAR),
        cursor: None,
    };
    let part = subscriptions::list(State(Arc::clone(app)), viewer, ReadParams::of(params))
        .await?
        .0;
    found.similar.extend(part.items.into_iter().map(|it| Hit {
        kind: "subscription",
        name: it.id.to_string(),
        state: Some(it.state.to_owned()),
        said: format!("Of {} at {}.", it.reseller_id, it.url),
        href: format!("/console/subscriptions/{}", it.id),
    }));
    Ok(())
}

/// Pushes of this prototype, as one hit: there is a list of them.
async fn of_prototype(app: &Arc<App>, viewer: Viewer, text: &str, found: &mut Found) -> Result<(), Problem> {
    found.tried.push("prototype among the newest pushes");
    let params = PushParams {
        device: None,
        prototype: Some(text.to_owned()),
        platform: None,
        status: None,
        reason: None,
        since: None,
        until: None,
        ended_since: None,
        ended_until: None,
        late_by_seconds: None,
        limit: Some(1),
        cursor: None,
    };
    let part = pushes::list(State(Arc::clone(app)), viewer, ReadParams::of(params))
        .await?
        .0;
    found.similar.extend(part.items.first().map(|newest| Hit {
        kind: "prototype",
        name: "Pushes of the prototype".to_owned(),
        state: None,
        said: format!("The newest is {}.", newest.id),
        href: query("/console/waiting", &[("status", "ANY"), ("prototype", text)]),
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_found_in_what_people_paste() {
        let id: Uuid = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d".parse().unwrap();
        for text in [
            "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d",
            "push/019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d",
            "https://console.example/console/explain/019AA2F0-5B1C-7C3E-9D41-6F1F2A3B4C5D?x=1",
            "019aa2f05b1c7c3e9d416f1f2a3b4c5d",
            "push=\"019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d\" failed",
        ] {
            assert_eq!(identifier(text), Some(id), "{text}");
        }
        for text in ["", "acme", "order-4711", "019aa2f0-5b1c-7c3e-9d41", "é"] {
            assert_eq!(identifier(text), None, "{text}");
        }
    }
}
