//! What stands around a page of the console: who looks at it and with which role, beside what stands around every page.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use domain::key::Role;
use http::HeaderMap;
use http::request::Parts;
use http_api::{Caller, Problem, ProblemKind};
pub(crate) use pages::{
    FLASH, Markup, Page, append_cookie, cookie, done, done_if, escape, name_of, not_done, see_other, segment,
};

use crate::app::App;

const PLACES: [(&str, &str, &str, &str); 15] = [
    ("/console", "Now", "n", "now"),
    ("/console/dead-letters", "Dead letters", "d", "dead-letters"),
    ("/console/jobs", "Jobs", "j", "jobs"),
    ("/console/waiting", "Waiting", "w", "waiting"),
    ("/console/lanes", "Lanes", "l", "lanes"),
    ("/console/webpush", "Web Push", "u", "webpush"),
    ("", "", "", ""),
    ("/console/resellers", "Resellers", "r", "resellers"),
    ("/console/quota-requests", "Quota requests", "q", "quota-requests"),
    ("", "", "", ""),
    ("/console/system", "System", "s", "system"),
    ("/console/mails", "Mails", "m", "mails"),
    ("/console/pauses", "Pauses", "p", "pauses"),
    ("/console/audit", "Audit", "a", "audit"),
    ("/console/access", "Access", "k", "access"),
];

/// Of how many rows on a page the reader of a list chooses.
const ROWS: [usize; 4] = [25, 50, 100, 200];
/// How many a list has when its address does not say: as many as the API gives.
pub(super) const SHOWN: usize = 50;

/// What stands around a page, and what its template asks for.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    around: pages::Frame,
    pub(crate) role: &'static str,
    pub(crate) may_operate: bool,
    pub(crate) may_administer: bool,
    /// Where the runbook is read, if that is said.
    runbook_url: Option<String>,
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
    pub(super) fn new(app: &App, caller: &Caller, headers: &HeaderMap, address: String) -> Self {
        let may_administer = caller.may(|role| role == Role::Admin);
        let may_operate = caller.may(Role::may_operate);
        let role = match (may_administer, may_operate) {
            (true, _) => "admin",
            (false, true) => "operator",
            (false, false) => "viewer",
        };
        let place = (super::HOME, &*super::ASSETS);
        Self {
            around: pages::Frame::new(place, caller.name.clone(), headers, address, app.now()),
            role,
            may_operate,
            may_administer,
            runbook_url: app.config.operator.runbook_url.clone(),
        }
    }

    /// The places of the navigation: address, name, key and icon. One without an address is a line.
    pub(crate) fn places(&self) -> &'static [(&'static str, &'static str, &'static str, &'static str)] {
        &PLACES
    }

    /// How many rows this page of a list has at most. What is no number the operation behind it refuses.
    pub(crate) fn rows(&self) -> usize {
        self.asked("limit").parse().unwrap_or(SHOWN)
    }

    /// Whether the address says which part of a list this page shows, so that the way to the others stays.
    pub(crate) fn is_part(&self) -> bool {
        ["cursor", "limit"]
            .iter()
            .any(|name| !self.asked(name).is_empty())
    }

    /// How many rows this page of a list has at most, and the same list with others.
    pub(crate) fn sizes(&self) -> Markup {
        let shown = self.rows();
        let others = ROWS.iter().filter(|rows| **rows != shown).map(|rows| {
            let address = escape(&self.with("limit", rows));
            format!(r#" <a class="btn small quiet" href="{address}" aria-label="{rows} a page">{rows}</a>"#)
        });
        let others: String = others.collect();
        Markup(format!(r#"<span class="muted">{shown} a page</span>{others}"#))
    }

    /// The field of a form of filters that keeps how many rows the reader has chosen.
    pub(crate) fn kept_rows(&self) -> Markup {
        let asked = self.asked("limit");
        if asked.is_empty() {
            return Markup(String::new());
        }
        let value = escape(&asked);
        Markup(format!(r#"<input type="hidden" name="limit" value="{value}">"#))
    }

    /// A section of the runbook, as a link where it is known where that is read.
    pub(crate) fn runbook(&self, section: &str) -> Markup {
        let section = escape(section);
        Markup(match &self.runbook_url {
            Some(url) => format!(
                r#"<a class="link" href="{}#{section}">{section}</a>"#,
                escape(url)
            ),
            None => section,
        })
    }

    /// What an act needs that this viewer does not have, for the control that stays disabled.
    pub(crate) fn operators_only(&self) -> Markup {
        lacks(self.may_operate, "operator")
    }

    /// As [`Self::operators_only`], for what administrators do.
    pub(crate) fn administrators_only(&self) -> Markup {
        lacks(self.may_administer, "admin")
    }
}

fn lacks(may: bool, role: &str) -> Markup {
    if may {
        return Markup(String::new());
    }
    Markup(format!(r#" disabled title="needs the role {}""#, escape(role)))
}

impl FromRequestParts<Arc<App>> for Frame {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Problem> {
        let frame = parts.extensions.get::<Self>().cloned();
        // Only routes behind the guard ask for it, and the guard puts it there.
        frame.ok_or_else(|| Problem::new(ProblemKind::INTERNAL, "the page has no frame"))
    }
}
