//! Who asks. A handler names it before everything else that it takes from a request, so that strangers learn nothing from
//! the rest.
//!
//! What only looks takes a [`Viewer`], what changes anything an [`Operator`] or, where a reseller gets more than was agreed and where access is
//! given, an [`Administrator`]; there is no other way to a caller, so that no handler forgets to ask. Whether a key or a visit to the console
//! shows who asks makes no difference to them.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use chrono::{DateTime, Datelike as _, TimeDelta, Utc};
use domain::key::Role;
use http::request::Parts;
use http::{Method, StatusCode};
use http_api::{Caller, Problem, ProblemKind, TakesBodies as _};
use store::Act;
use tokio::time::Instant;
use uuid::Uuid;

use crate::app::App;
use crate::console;

/// Within which time a person has to have shown the provider who it is, for an act that is dangerous.
pub(crate) const AUTHENTICATED_WITHIN: TimeDelta = TimeDelta::minutes(5);

/// How far back acts count together: what is dangerous at once is dangerous in parts too.
const TOGETHER: TimeDelta = TimeDelta::hours(1);

/// What is dangerous, by a person who has not shown for a while who it is. Only a visit to the console is ever answered with it.
pub(crate) const AUTHENTICATION_TOO_OLD: ProblemKind = ProblemKind::new(
    "authentication-too-old",
    StatusCode::FORBIDDEN,
    "Show once more who you are",
    "The act is dangerous, and the person has signed in more than five minutes ago.",
);

/// A caller who may look: a viewer, an operator, an administrator.
#[derive(Clone, Copy)]
pub(crate) struct Viewer {
    /// When the request has to be answered.
    pub(crate) deadline: Instant,
}

impl FromRequestParts<Arc<App>> for Viewer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let asks = caller(parts, app, Role::may_view).await?;
        Ok(Self {
            deadline: asks.deadline,
        })
    }
}

/// A caller who may act: an operator, an administrator.
#[derive(Clone)]
pub(crate) struct Operator {
    /// What there is to act on.
    pub(crate) app: Arc<App>,
    signature: String,
    key: Option<Uuid>,
    /// Whether a dangerous act needs its person to show once more who it is.
    is_stale: bool,
    /// When the request has to be answered.
    pub(crate) deadline: Instant,
}

impl Operator {
    /// Whether the person has to show once more who it is before an act that is dangerous.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// The caller's key; a person who has signed in with a provider has none.
    pub(crate) fn key(&self) -> Option<Uuid> {
        self.key
    }

    /// Refuses a dangerous act to a person who has not shown for a while who it is.
    pub(crate) fn require_recent(&self) -> Result<(), Problem> {
        if self.is_stale { Err(too_old()) } else { Ok(()) }
    }

    /// Who the caller is, for the records, and since when its acts count together with one of now.
    pub(crate) fn lately(&self) -> (&str, DateTime<Utc>) {
        (&self.signature, self.app.now() - TOGETHER)
    }

    /// The caller as one who looks: a page that acts also shows.
    pub(crate) fn viewer(&self) -> Viewer {
        Viewer {
            deadline: self.deadline,
        }
    }

    /// What the caller does now, for the records.
    pub(crate) fn act<'a>(&'a self, note: Option<&'a str>) -> Act<'a> {
        Act {
            by: &self.signature,
            note,
            at: self.app.now(),
        }
    }
}

impl FromRequestParts<Arc<App>> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let asks = caller(parts, app, Role::may_operate).await?;
        Ok(Self {
            app: Arc::clone(app),
            signature: asks.signature,
            key: asks.key,
            is_stale: asks.is_stale,
            deadline: asks.deadline,
        })
    }
}

/// An administrator.
pub(crate) struct Administrator {
    /// Who it is, for the records.
    pub(crate) signature: String,
    /// When the request has to be answered.
    pub(crate) deadline: Instant,
}

impl Administrator {
    /// The caller as one who looks: a page that acts also shows.
    pub(crate) fn viewer(&self) -> Viewer {
        Viewer {
            deadline: self.deadline,
        }
    }

    /// What the caller does at `at`, for the records.
    pub(crate) fn act<'a>(&'a self, note: Option<&'a str>, at: DateTime<Utc>) -> Act<'a> {
        Act {
            by: &self.signature,
            note,
            at,
        }
    }
}

impl FromRequestParts<Arc<App>> for Administrator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let asks = caller(parts, app, |role| role == Role::Admin).await?;
        // Limits and keys: whatever an administrator alone may change is dangerous.
        if asks.is_stale && parts.method != Method::GET {
            return Err(too_old());
        }
        Ok(Self {
            signature: asks.signature,
            deadline: asks.deadline,
        })
    }
}

fn too_old() -> Problem {
    let detail = "This is dangerous, and you have signed in more than five minutes ago. The provider asks you once more.";
    Problem::new(AUTHENTICATION_TOO_OLD, detail)
}

/// What is known of who asks.
struct Asks {
    signature: String,
    key: Option<Uuid>,
    is_stale: bool,
    deadline: Instant,
}

async fn caller(parts: &Parts, app: &App, allows: fn(Role) -> bool) -> Result<Asks, Problem> {
    let deadline = app.deadline();
    // Of a page it is known already who asks; nothing else puts it there.
    let caller = match parts.extensions.get::<Arc<Caller>>() {
        Some(caller) => Arc::clone(caller),
        None => app.keys.caller(&parts.headers, deadline).await?,
    };
    caller.require(allows)?;
    http_api::refuse_in_vain(parts)?;
    Ok(Asks {
        signature: caller.signature(),
        key: caller.key().ok(),
        is_stale: console::is_stale(&caller.identity, app.now()),
        deadline,
    })
}

/// Whether something can have happened at this time. The database has no place for each one that can be written.
pub(crate) fn can_be_asked(at: DateTime<Utc>) -> bool {
    (1970..=9999).contains(&at.year())
}
