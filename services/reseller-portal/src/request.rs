//! What handlers take from a request: who asks, for what, with which body. Each of these answers with a problem by itself,
//! in the order in which a handler names them: who asks comes first, so that strangers learn nothing from the rest.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, FromRequestParts, Query, RawPathParams, Request};
use domain::key::Role;
use http::request::Parts;
use http_api::{Caller, Problem, ProblemKind};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use uuid::Uuid;

use crate::app::App;

/// A reseller that showed its key.
pub(crate) struct Reseller {
    /// Its identifier: the only place that it ever comes from.
    pub(crate) id: String,
    /// When the request has to be answered.
    pub(crate) deadline: Instant,
}

impl FromRequestParts<Arc<App>> for Reseller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let deadline = app.deadline();
        let caller = app.keys.caller(&parts.headers, deadline).await?;
        caller.require(|role| role == Role::Reseller)?;
        let id = caller.reseller()?.to_owned();
        app.limits.count(&id, &parts.method)?;
        Ok(Self { id, deadline })
    }
}

/// An administrator of the house.
pub(crate) struct Admin {
    caller: Arc<Caller>,
    /// When the request has to be answered.
    pub(crate) deadline: Instant,
}

impl Admin {
    /// Who it is, for the records.
    pub(crate) fn signature(&self) -> String {
        format!("{} ({})", self.caller.name, self.caller.key)
    }
}

impl FromRequestParts<Arc<App>> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let deadline = app.deadline();
        let caller = app.keys.caller(&parts.headers, deadline).await?;
        caller.require(|role| role == Role::Admin)?;
        Ok(Self { caller, deadline })
    }
}

/// The last identifier in the path. What is no identifier is not found.
pub(crate) struct Id(pub(crate) Uuid);

impl FromRequestParts<Arc<App>> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let [id] = identifiers(parts, app).await?;
        Ok(Self(id))
    }
}

/// Both identifiers in the path: of a subscription, and of something of it.
pub(crate) struct Ids(pub(crate) Uuid, pub(crate) Uuid);

impl FromRequestParts<Arc<App>> for Ids {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let [outer, inner] = identifiers(parts, app).await?;
        Ok(Self(outer, inner))
    }
}

async fn identifiers<const N: usize>(parts: &mut Parts, app: &Arc<App>) -> Result<[Uuid; N], Problem> {
    let not_found = || Problem::new(ProblemKind::NOT_FOUND, "nothing has this identifier");
    let params = RawPathParams::from_request_parts(parts, app)
        .await
        .map_err(|_| not_found())?;
    let ids: Option<Vec<Uuid>> = params.iter().map(|(_, value)| value.parse().ok()).collect();
    ids.and_then(|ids| ids.try_into().ok()).ok_or_else(not_found)
}

/// The query string.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<App>> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match Query::from_request_parts(parts, app).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(QueryRejection::FailedToDeserializeQueryString(error)) => {
                Err(Problem::new(ProblemKind::INVALID_QUERY, error.body_text()))
            }
            Err(_) => Err(Problem::new(
                ProblemKind::INVALID_QUERY,
                "the query string cannot be read",
            )),
        }
    }
}

/// The body, which is a JSON object.
pub(crate) struct Payload<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Payload<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        http_api::require_json(&parts.headers)?;
        let limit = app.config.portal.max_body_bytes;
        let body = http_api::read_body(&parts.headers, body, limit, app.deadline()).await?;
        Ok(Self(http_api::read_json(&body)?))
    }
}
