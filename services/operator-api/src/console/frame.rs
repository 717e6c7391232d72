//! What stands around a page of the console: who looks at it and with which role, beside what stands around every page.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use chrono::{DateTime, Utc};
use domain::key::Role;
use http::HeaderMap;
use http::request::Parts;
use http_api::{Caller, Problem, ProblemKind};
pub(crate) use pages::{
    FLASH, Markup, PREFERENCES, Page, Preferences, append_cookie, cookie, done, escape, see_other, segment,
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

/// What stands around a page, and what its template asks for.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    around: pages::Frame,
    pub(crate) role: &'static str,
    pub(crate) may_operate: bool,
    pub(crate) may_administer: bool,
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
    pub(super) fn new(caller: &Caller, headers: &HeaderMap, address: String, now: DateTime<Utc>) -> Self {
        let may_administer = caller.may(|role| role == Role::Admin);
        let may_operate = caller.may(Role::may_operate);
        let role = match (may_administer, may_operate) {
            (true, _) => "admin",
            (false, true) => "operator",
            (false, false) => "viewer",
        };
        let place = (super::HOME, &*super::ASSETS);
        Self {
            around: pages::Frame::new(place, caller.name.clone(), headers, address, now),
            role,
            may_operate,
            may_administer,
        }
    }

    /// The places of the navigation: address, name, key and icon. One without an address is a line.
    pub(crate) fn places(&self) -> &'static [(&'static str, &'static str, &'static str, &'static str)] {
        &PLACES
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
