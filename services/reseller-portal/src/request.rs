//! Who asks. A handler names it before everything else that it takes from a request, so that strangers learn nothing from
//! the rest.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use chrono::{DateTime, Utc};
use domain::key::Role;
use http::request::Parts;
use http_api::Problem;
use serde::Deserialize;
use store::Act;
use tokio::time::Instant;

use crate::app::App;
use crate::limits::Turn;

/// Which part of a list.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PartParams {
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// A reseller that showed its key.
pub(crate) struct Reseller {
    /// Its identifier: the only place that it ever comes from.
    pub(crate) id: String,
    /// When the request has to be answered.
    pub(crate) deadline: Instant,
    /// Held for as long as the request is worked on.
    _turn: Turn,
    signature: String,
}

impl Reseller {
    /// What changes of this request are signed with in the audit log.
    pub(crate) fn act(&self, at: DateTime<Utc>) -> Act<'_> {
        Act {
            by: &self.signature,
            note: None,
            at,
        }
    }
}

impl FromRequestParts<Arc<App>> for Reseller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let deadline = app.deadline();
        let caller = app.keys.caller(&parts.headers, deadline).await?;
        caller.require(|role| role == Role::Reseller)?;
        http_api::refuse_in_vain(parts)?;
        let id = caller.reseller()?.to_owned();
        app.limits.count(&id, &parts.method)?;
        let turn = app.limits.turn(&id, app.latest_turn()).await?;
        let signature = caller.signature();
        Ok(Self {
            id,
            deadline,
            signature,
            _turn: turn,
        })
    }
}
