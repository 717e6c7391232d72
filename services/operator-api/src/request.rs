//! Who asks. A handler names it before everything else that it takes from a request, so that strangers learn nothing from
//! the rest.
//!
//! What only looks takes a [`Viewer`], what changes anything an [`Operator`] or, where a reseller gets more than was agreed,
//! an [`Administrator`]; there is no other way to a caller, so that no
//! handler forgets to ask.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use chrono::{DateTime, Datelike as _, Utc};
use domain::key::Role;
use http::request::Parts;
use http_api::{Problem, TakesBodies as _};
use store::Act;
use tokio::time::Instant;

use crate::app::App;

/// A caller who may look: a viewer, an operator, an administrator.
pub(crate) struct Viewer {
    /// When the request has to be answered.
    pub(crate) deadline: Instant,
}

impl FromRequestParts<Arc<App>> for Viewer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let (deadline, _) = caller(parts, app, Role::may_view).await?;
        Ok(Self { deadline })
    }
}

/// A caller who may act: an operator, an administrator.
pub(crate) struct Operator {
    /// What there is to act on.
    pub(crate) app: Arc<App>,
    signature: String,
    /// When the request has to be answered.
    pub(crate) deadline: Instant,
}

impl Operator {
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
        let (deadline, signature) = caller(parts, app, Role::may_operate).await?;
        let app = Arc::clone(app);
        Ok(Self {
            app,
            signature,
            deadline,
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

impl FromRequestParts<Arc<App>> for Administrator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let (deadline, signature) = caller(parts, app, |role| role == Role::Admin).await?;
        Ok(Self { signature, deadline })
    }
}

async fn caller(parts: &Parts, app: &App, allows: fn(Role) -> bool) -> Result<(Instant, String), Problem> {
    let deadline = app.deadline();
    let caller = app.keys.caller(&parts.headers, deadline).await?;
    caller.require(allows)?;
    http_api::refuse_in_vain(parts)?;
    Ok((deadline, caller.signature()))
}

/// Whether something can have happened at this time. The database has no place for each one that can be written.
pub(crate) fn can_be_asked(at: DateTime<Utc>) -> bool {
    (1970..=9999).contains(&at.year())
}
