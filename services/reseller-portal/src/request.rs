//! Who asks. A handler names it before everything else that it takes from a request, so that strangers learn nothing from
//! the rest.
//!
//! What only looks takes a [`Reseller`], what does more one that has the capability for it: a [`Manager`], [`Resender`], [`Revealer`],
//! [`Rotator`] or [`QuotaKeeper`]. A key of the role `reseller` has all of them, one of the role `reseller-viewer` sees bodies and nothing more; a
//! visit to the dashboard has those of the link that it began with. Whether a key or a visit shows who asks makes no other difference to handlers,
//! so that a page can never do what its visit may not.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use chrono::{DateTime, TimeDelta, Utc};
use domain::capability::Capability;
use domain::key::Role;
use http::request::Parts;
use http_api::{Problem, ProblemKind};
use serde::Deserialize;
use store::{Act, PortalVisit};
use tokio::time::Instant;
use uuid::Uuid;

use crate::app::App;
use crate::limits::Turn;
use crate::problems::AUTHENTICATION_TOO_OLD;

/// Within which time a person has to have shown who it is, to look at a secret.
const AUTHENTICATED_WITHIN: TimeDelta = TimeDelta::minutes(15);

/// Which part of a list.
#[derive(Default, Deserialize, utoipa::IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PartParams {
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// Whether the person of a visit has shown lately enough who it is to look at a secret.
pub(crate) fn is_authenticated(visit: &PortalVisit, now: DateTime<Utc>) -> bool {
    visit
        .authenticated_at
        .is_some_and(|at| at > now - AUTHENTICATED_WITHIN)
}

/// A visit that a request for a page belongs to. Only the guard of the pages puts it there.
#[derive(Clone)]
pub(crate) struct Visiting(pub(crate) Arc<PortalVisit>);

/// A reseller that showed its key, or a person who visits its dashboard.
#[derive(Clone)]
pub(crate) struct Reseller {
    /// Its identifier: the only place that it ever comes from.
    pub(crate) id: String,
    /// When the request has to be answered.
    pub(crate) deadline: Instant,
    /// Held for as long as the request is worked on; none between the parts of a file.
    _turn: Option<Arc<Turn>>,
    signature: String,
    shown: Shown,
}

/// What shows who asks.
#[derive(Clone)]
enum Shown {
    /// A key of the role `reseller`.
    Key,
    /// A key of the role `reseller-viewer`.
    ViewerKey,
    /// A visit to the dashboard.
    Visit(Arc<PortalVisit>),
}

impl Reseller {
    /// The same without a turn, for an answer that takes as long as its reader does.
    pub(crate) fn between_turns(&self) -> Self {
        Self {
            _turn: None,
            ..self.clone()
        }
    }

    /// The same with a turn and a deadline of its own, for another part of such an answer.
    ///
    /// # Errors
    ///
    /// A [`Problem`] when there is no turn in time.
    pub(crate) async fn in_turn(&self, app: &App) -> Result<Self, Problem> {
        let deadline = app.deadline();
        let turn = app.limits.turn(&self.id, app.latest_turn()).await?;
        Ok(Self {
            deadline,
            _turn: Some(Arc::new(turn)),
            ..self.clone()
        })
    }

    /// What changes of this request are signed with in the audit log.
    pub(crate) fn act(&self, at: DateTime<Utc>) -> Act<'_> {
        Act {
            by: &self.signature,
            note: None,
            at,
        }
    }

    /// Whether it may do this: everything with its key, to see bodies and no more with one that only looks, and in a visit what that may.
    pub(crate) fn may(&self, capability: Capability) -> bool {
        match &self.shown {
            Shown::Key => true,
            Shown::ViewerKey => capability == Capability::Bodies,
            Shown::Visit(visit) => visit.capabilities.contains(&capability),
        }
    }

    /// Refuses what the key or the visit may not.
    pub(crate) fn require(&self, capability: Capability, now: DateTime<Utc>) -> Result<(), Problem> {
        if !self.may(capability) {
            let detail = match &self.shown {
                Shown::Visit(_) => format!(
                    "this visit does not allow it: its link was made without the capability {capability}"
                ),
                Shown::Key | Shown::ViewerKey => {
                    "the API key's role reseller-viewer only looks; this request needs reseller".to_owned()
                }
            };
            return Err(Problem::new(ProblemKind::FORBIDDEN, detail));
        }
        let Shown::Visit(visit) = &self.shown else {
            return Ok(());
        };
        if capability == Capability::SecretsReveal && !is_authenticated(visit, now) {
            let detail =
                "to see a secret, sign in once more and open this dashboard again from where you came";
            return Err(Problem::new(AUTHENTICATION_TOO_OLD, detail));
        }
        Ok(())
    }
}

impl FromRequestParts<Arc<App>> for Reseller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        // Of one request, which has one turn.
        if let Some(known) = parts.extensions.get::<Self>() {
            return Ok(known.clone());
        }
        let deadline = app.deadline();
        let visit = parts
            .extensions
            .get::<Visiting>()
            .map(|Visiting(visit)| Arc::clone(visit));
        let (id, signature, shown) = match visit {
            Some(visit) => (visit.reseller_id.clone(), visit.signature(), Shown::Visit(visit)),
            None => {
                let caller = app.keys.caller(&parts.headers, deadline).await?;
                caller.require(Role::is_of_reseller)?;
                http_api::refuse_in_vain(parts)?;
                let shown = match caller.may(|role| role == Role::Reseller) {
                    true => Shown::Key,
                    false => Shown::ViewerKey,
                };
                (caller.reseller()?.to_owned(), caller.signature(), shown)
            }
        };
        app.limits.count(&id, &parts.method)?;
        let turn = app.limits.turn(&id, app.latest_turn()).await?;
        let reseller = Self {
            id,
            deadline,
            signature,
            shown,
            _turn: Some(Arc::new(turn)),
        };
        parts.extensions.insert(reseller.clone());
        Ok(reseller)
    }
}

/// A reseller that has a capability besides looking.
macro_rules! capable {
    ($(#[$said:meta] $name:ident: $capability:ident,)*) => {$(
        #[$said]
        #[derive(Clone)]
        pub(crate) struct $name(Reseller);

        impl Deref for $name {
            type Target = Reseller;

            fn deref(&self) -> &Reseller {
                &self.0
            }
        }

        impl FromRequestParts<Arc<App>> for $name {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
                let reseller = Reseller::from_request_parts(parts, app).await?;
                reseller.require(Capability::$capability, app.now())?;
                Ok(Self(reseller))
            }
        }
    )*};
}

capable! {
    /// One that may make, change, pause, verify, test and delete subscriptions, and cancel what waits.
    Manager: Manage,
    /// One that may send again and replay.
    Resender: Resend,
    /// One that may look at secrets.
    Revealer: SecretsReveal,
    /// One that may make and revoke secrets.
    Rotator: SecretsRotate,
    /// One that may ask for quotas.
    QuotaKeeper: Quota,
}

/// A caller that makes links to dashboards and ends visits: a reseller with its key for itself, an embedder for any. Never a visit, nor a key that
/// only looks.
pub(crate) struct Embedder {
    /// The only reseller that it may do it for; none of an embedder.
    pub(crate) reseller: Option<String>,
    /// Its key.
    pub(crate) key: Uuid,
    /// When the request has to be answered.
    pub(crate) deadline: Instant,
    _turn: Turn,
    signature: String,
}

impl Embedder {
    /// What changes of this request are signed with in the audit log.
    pub(crate) fn act(&self, at: DateTime<Utc>) -> Act<'_> {
        Act {
            by: &self.signature,
            note: None,
            at,
        }
    }
}

impl FromRequestParts<Arc<App>> for Embedder {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let deadline = app.deadline();
        let caller = app.keys.caller(&parts.headers, deadline).await?;
        caller.require(|role| matches!(role, Role::Reseller | Role::Embedder))?;
        http_api::refuse_in_vain(parts)?;
        let key = caller.key()?;
        let (limits, counted) = match &caller.reseller_id {
            Some(reseller) => (&app.limits, reseller.clone()),
            // Rotated keys are one caller.
            None => (&app.embedders, caller.first_key()?.to_string()),
        };
        limits.count(&counted, &parts.method)?;
        let turn = limits.turn(&counted, app.latest_turn()).await?;
        Ok(Self {
            reseller: caller.reseller_id.clone(),
            key,
            deadline,
            signature: caller.signature(),
            _turn: turn,
        })
    }
}
