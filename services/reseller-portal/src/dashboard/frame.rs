//! What stands around a page of the dashboard: whose it is, what the visit may do and how it looks, beside what stands around every page.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use config::{Brand, Config};
use domain::capability::Capability;
use explain::reseller::Sentence;
use explain::words;
use http::request::Parts;
use http::{HeaderMap, header};
use http_api::{Problem, ProblemKind};
use pages::{Markup, PREFERENCES, cookie, escape};
use store::PortalVisit;
use uuid::Uuid;

use super::{ASSETS, HOME};
use crate::app::App;
use crate::request;

/// The places of the navigation: address, name, key and icon. One without an address is a line.
const PLACES: [(&str, &str, &str, &str); 6] = [
    (HOME, "Overview", "o", "now"),
    ("/app/deliveries", "Deliveries", "d", "mails"),
    ("/app/live", "Live", "l", "lanes"),
    ("/app/event-types", "Event types", "e", "jobs"),
    ("/app/tools/signature", "Signature check", "s", "access"),
    ("/app/activity", "Activity", "a", "audit"),
];

/// The pages of a subscription: the last part of their address, and their name.
const TABS: [(&str, &str); 7] = [
    ("deliveries", "Deliveries"),
    ("scheduled", "Waiting"),
    ("metrics", "Metrics"),
    ("quota", "Quota"),
    ("secrets", "Secrets"),
    ("replays", "Replays"),
    ("settings", "Settings"),
];

/// What stands around a page, and what its template asks for.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    around: pages::Frame,
    pub(crate) visit: Arc<PortalVisit>,
    config: Arc<Config>,
}

impl Deref for Frame {
    type Target = pages::Frame;

    fn deref(&self) -> &pages::Frame {
        &self.around
    }
}

impl DerefMut for Frame {
    fn deref_mut(&mut self) -> &mut pages::Frame {
        &mut self.around
    }
}

impl Frame {
    pub(super) fn new(app: &App, visit: Arc<PortalVisit>, headers: &HeaderMap, address: String) -> Self {
        let who = visit.person_name.clone();
        let mut around = pages::Frame::new((HOME, &*ASSETS), who, headers, address, app.now());
        let said = cookie(headers, PREFERENCES).unwrap_or_default();
        let brand = &app.config.portal.brand;
        // What the viewer has chosen comes first, then what the link says, then what the installation does.
        if !said.contains("theme=")
            && let Some(theme) = visit.theme.as_ref().or(brand.theme.as_ref())
        {
            around.preferences.set("theme", theme);
        }
        if !said.contains("tz=")
            && let Some(zone) = &visit.time_zone
        {
            around.preferences.set("tz", zone);
        }
        if !said.contains("density=") {
            around.preferences.set("density", "comfortable");
        }
        Self {
            around,
            visit,
            config: Arc::clone(&app.config),
        }
    }

    pub(crate) fn brand(&self) -> &Brand {
        &self.config.portal.brand
    }

    /// The zone in which the days of quotas begin.
    pub(crate) fn quota_zone(&self) -> &'static str {
        self.config.reseller.quota.time_zone.name()
    }

    /// Whether there is a guide at `/docs`, which is else the reference of the API alone.
    pub(crate) fn has_guide(&self) -> bool {
        let folder = self.config.portal.docs_directory.as_ref();
        folder.is_some_and(|folder| folder.join("index.html").is_file())
    }

    /// What may be an endpoint in the networks that the operators have opened, where there are any.
    pub(crate) fn also_delivered_to(&self) -> Option<&'static str> {
        let egress = &self.config.reseller.egress;
        let what = if egress.allow_http {
            "an http or https one"
        } else {
            "one"
        };
        (!egress.allow_networks.is_empty()).then_some(what)
    }

    /// The origin of the page that frames this one.
    pub(crate) fn parent(&self) -> Option<&str> {
        self.visit.parent_origin.as_deref()
    }

    /// The places of the navigation: address, name, key and icon. One without an address is a line.
    pub(crate) fn places(&self) -> &'static [(&'static str, &'static str, &'static str, &'static str)] {
        &PLACES
    }

    /// The same filter at another address in the same place, from the beginning of the list on.
    pub(crate) fn beside(&self, last: &str) -> String {
        let address = self.with("cursor", "");
        let (path, query) = address.split_once('?').unwrap_or((address.as_str(), ""));
        let place = path.rsplit_once('/').map_or("", |(place, _)| place);
        if query.is_empty() {
            format!("{place}/{last}")
        } else {
            format!("{place}/{last}?{query}")
        }
    }

    /// The same filter on a page of one subscription, from the beginning of the list on.
    pub(crate) fn of_one(&self, subscription: Uuid, part: &str) -> String {
        let address = self.without(&["subscription"]);
        let query = address.split_once('?').map(|(_, query)| format!("?{query}"));
        format!("/app/s/{subscription}/{part}{}", query.unwrap_or_default())
    }

    /// The pages of a subscription: their address, their name, and whether this is the one.
    pub(crate) fn tabs(&self, subscription: &Uuid) -> Vec<(String, &'static str, bool)> {
        let tabs = TABS.iter().map(|(part, name)| {
            let address = format!("/app/s/{subscription}/{part}");
            let is_here = self.is_at(&address);
            (address, *name, is_here)
        });
        tabs.collect()
    }

    pub(super) fn may(&self, capability: Capability) -> bool {
        self.visit.capabilities.contains(&capability)
    }

    pub(crate) fn may_see_bodies(&self) -> bool {
        self.may(Capability::Bodies)
    }

    pub(crate) fn may_manage(&self) -> bool {
        self.may(Capability::Manage)
    }

    pub(crate) fn may_resend(&self) -> bool {
        self.may(Capability::Resend)
    }

    pub(crate) fn may_keep_quota(&self) -> bool {
        self.may(Capability::Quota)
    }

    pub(crate) fn may_rotate_secrets(&self) -> bool {
        self.may(Capability::SecretsRotate)
    }

    pub(crate) fn may_reveal_secrets(&self) -> bool {
        self.may(Capability::SecretsReveal)
    }

    /// Whether the person has signed in lately enough to look at a secret.
    pub(crate) fn is_authenticated(&self) -> bool {
        request::is_authenticated(&self.visit, self.now)
    }

    /// A sentence with its times in the viewer's zone. How far away they are, which stands behind them, is left out: it changes with every second.
    pub(crate) fn told(&self, sentence: &Sentence) -> Markup {
        let mut html = escape(&self.visible(&sentence.text));
        let values = sentence.params.values();
        for at in values.filter_map(|value| value.as_str()?.parse::<DateTime<Utc>>().ok()) {
            if let Some((before, after)) = html.split_once(&words::time(at)) {
                let distance = after.strip_prefix(" (").and_then(|rest| rest.split_once(')'));
                let rest = distance.map_or(after, |(_, rest)| rest);
                html = format!("{before}{}{rest}", self.at(at));
            }
        }
        Markup(html)
    }

    /// What a link that leaves the dashboard has besides: in a frame it opens a tab, since what it leads to is shown in no frame.
    pub(crate) fn elsewhere(&self) -> Markup {
        let opens_tab = self.parent().is_some();
        Markup(String::from(if opens_tab {
            r#" target="_blank" rel="noopener""#
        } else {
            ""
        }))
    }

    /// What an act needs that this visit does not have, for the control that stays disabled; nothing when it has it. `capability` is one of
    /// `bodies`, `manage`, `resend`, `secrets.reveal`, `secrets.rotate` and `quota`.
    pub(crate) fn lacks(&self, capability: &str) -> Markup {
        let has = capability.parse().is_ok_and(|capability| self.may(capability));
        Markup(if has {
            String::new()
        } else {
            format!(
                r#" disabled title="your visit does not allow it: its link was made without {capability}""#
            )
        })
    }
}

impl FromRequestParts<Arc<App>> for Frame {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Problem> {
        let frame = parts.extensions.get::<Self>().cloned();
        // Only routes behind the guard ask for it, and the guard puts it there.
        frame.ok_or_else(|| Problem::new(ProblemKind::INTERNAL, "the page has no frame"))
    }
}

/// The colours of the installation, above those of the style sheet.
pub(super) async fn brand_style(State(app): State<Arc<App>>) -> Response {
    let brand = &app.config.portal.brand;
    let light = brand.accent.as_deref().unwrap_or("#0b57a4");
    let dark = brand.accent_dark.as_deref().unwrap_or("#8ab8ff");
    // Values of the configuration: a colour is a hash and six digits.
    let style = format!(
        ":root {{ --accent: light-dark({light}, {dark}) }}\n.brand img {{ height: 22px; width: auto }}\n"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/css; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=300"),
    ];
    (headers, style).into_response()
}

/// The logo of the installation.
pub(super) async fn logo(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let missing = || Problem::new(ProblemKind::NOT_FOUND, "there is no logo");
    let file = app.config.portal.brand.logo.as_ref().ok_or_else(missing)?;
    let content = tokio::fs::read(file).await.map_err(|error| {
        tracing::warn!(%error, "portal.brand.logo cannot be read");
        missing()
    })?;
    let is_drawing = file.extension().is_some_and(|extension| extension == "svg");
    let kind = if is_drawing { "image/svg+xml" } else { "image/png" };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "public, max-age=300"),
    ];
    Ok((headers, content).into_response())
}
