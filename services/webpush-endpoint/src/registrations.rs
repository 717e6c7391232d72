//! `/v1/{type}/{app_id}/registration…`: clients that register over HTTP. Of the types there is `webpush` alone; what such a client
//! registers is delivered when it connects.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Request, State};
use chrono::{DateTime, Utc};
use domain::month::Month;
use http::request::Parts;
use http::{HeaderMap, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use store::webpush::{Client, Registered};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;
use webpush::{Refusal, Subscription, VapidKey};

use crate::answer::Refused;
use crate::app::App;
use crate::send;

/// Longest body of a registration.
const BODY_MAX: usize = 16 * 1024;

/// A new registration, or another token of one.
#[derive(Deserialize)]
struct Registration {
    /// Of the bridge; this type has none, and takes any.
    #[serde(rename = "token")]
    _token: String,
    #[serde(rename = "channelID", default)]
    channel: Option<Uuid>,
    #[serde(default)]
    key: Option<String>,
}

/// A new channel.
#[derive(Deserialize, Default)]
struct NewChannel {
    #[serde(rename = "channelID", default)]
    channel: Option<Uuid>,
    #[serde(default)]
    key: Option<String>,
}

/// The parameters of a path. One that is no UTF-8 is none of this service.
pub(crate) struct Parameters<T>(T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Parameters<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(parameters)) => Ok(Self(parameters)),
            Err(_) => Err(Refusal::NotFound.into()),
        }
    }
}

/// `POST /v1/{type}/{app_id}/registration`.
pub(crate) async fn register(
    State(app): State<Arc<App>>,
    Parameters((kind, _)): Parameters<(String, String)>,
    request: Request,
) -> Result<Json<Value>, Refused> {
    require_webpush(&kind)?;
    let auth_keys = app.auth_keys.as_ref().ok_or(Refusal::NotFound)?;
    app.limits.count_registration(http_api::caller_address())?;
    let deadline = app.deadline();
    let body: Registration = read(request, deadline)
        .await?
        .ok_or(Refusal::Body("there is none"))?;
    let (uaid, now) = (Uuid::new_v4(), app.now());
    let channel = body.channel.unwrap_or_else(Uuid::new_v4);
    let endpoint = endpoint(&app, uaid, channel, body.key.as_deref(), now)?;
    add(&app, uaid, channel, now, deadline).await?;
    Ok(Json(json!({
        "uaid": uaid,
        "channelID": channel,
        "endpoint": endpoint,
        "secret": auth_keys.secret(uaid),
    })))
}

/// `PUT /v1/{type}/{app_id}/registration/{uaid}`: another token of the bridge, of which this type has none.
pub(crate) async fn update(
    State(app): State<Arc<App>>,
    Parameters((kind, _, uaid)): Parameters<(String, String, String)>,
    request: Request,
) -> Result<(), Refused> {
    let deadline = app.deadline();
    own_client(&app, &kind, &uaid, request.headers(), deadline).await?;
    let body: Option<Registration> = read(request, deadline).await?;
    body.map(|_| ())
        .ok_or_else(|| Refusal::Body("there is none").into())
}

/// `GET /v1/{type}/{app_id}/registration/{uaid}`.
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Parameters((kind, _, uaid)): Parameters<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Json<Value>, Refused> {
    let client = own_client(&app, &kind, &uaid, &headers, app.deadline()).await?;
    Ok(Json(
        json!({ "uaid": client.uaid, "channelIDs": client.channels }),
    ))
}

/// `DELETE /v1/{type}/{app_id}/registration/{uaid}`.
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Parameters((kind, _, uaid)): Parameters<(String, String, String)>,
    headers: HeaderMap,
) -> Result<(), Refused> {
    let deadline = app.deadline();
    let client = own_client(&app, &kind, &uaid, &headers, deadline).await?;
    by(deadline, app.store.webpush_reset(client.uaid)).await?;
    Ok(())
}

/// `POST /v1/{type}/{app_id}/registration/{uaid}/subscription`.
pub(crate) async fn subscribe(
    State(app): State<Arc<App>>,
    Parameters((kind, _, uaid)): Parameters<(String, String, String)>,
    request: Request,
) -> Result<Json<Value>, Refused> {
    let deadline = app.deadline();
    let client = own_client(&app, &kind, &uaid, request.headers(), deadline).await?;
    let body: NewChannel = read(request, deadline).await?.unwrap_or_default();
    let now = app.now();
    let channel = body.channel.unwrap_or_else(Uuid::new_v4);
    let endpoint = endpoint(&app, client.uaid, channel, body.key.as_deref(), now)?;
    add(&app, client.uaid, channel, now, deadline).await?;
    Ok(Json(json!({ "channelID": channel, "endpoint": endpoint })))
}

/// `DELETE /v1/{type}/{app_id}/registration/{uaid}/subscription/{chid}`.
pub(crate) async fn unsubscribe(
    State(app): State<Arc<App>>,
    Parameters((kind, _, uaid, channel)): Parameters<(String, String, String, String)>,
    headers: HeaderMap,
) -> Result<(), Refused> {
    let deadline = app.deadline();
    let client = own_client(&app, &kind, &uaid, &headers, deadline).await?;
    let channel: Uuid = channel.parse().map_err(|_| Refusal::NoSubscription)?;
    let had = by(deadline, app.store.webpush_unregister(client.uaid, channel)).await?;
    had.then_some(()).ok_or_else(|| Refusal::NoSubscription.into())
}

fn require_webpush(kind: &str) -> Result<(), Refusal> {
    (kind == "webpush").then_some(()).ok_or(Refusal::RouterType)
}

/// The client in the path, whose secret the caller has.
async fn own_client(
    app: &App,
    kind: &str,
    uaid: &str,
    headers: &HeaderMap,
    deadline: Instant,
) -> Result<Client, Refusal> {
    require_webpush(kind)?;
    let auth_keys = app.auth_keys.as_ref().ok_or(Refusal::NotFound)?;
    let uaid: Uuid = uaid.parse().map_err(|_| Refusal::NoUser)?;
    let secret = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    if !secret.is_some_and(|secret| auth_keys.allow(secret, uaid)) {
        return Err(Refusal::Secret);
    }
    let client = by(deadline, app.store.webpush_client(uaid)).await?;
    client.ok_or(Refusal::NoUser)
}

fn endpoint(
    app: &App,
    uaid: Uuid,
    channel: Uuid,
    key: Option<&str>,
    now: DateTime<Utc>,
) -> Result<String, Refusal> {
    let wrong = Refusal::Body("key must be a P-256 public key of 65 bytes in base64url");
    let key = key.map(VapidKey::parse).transpose().map_err(|_| wrong)?;
    let subscription = Subscription::new(uaid, channel, key.as_ref());
    Ok(webpush::endpoint_url(
        &app.endpoint_url,
        &subscription,
        &app.keys,
        now,
    ))
}

async fn add(
    app: &App,
    uaid: Uuid,
    channel: Uuid,
    now: DateTime<Utc>,
    deadline: Instant,
) -> Result<(), Refusal> {
    let month = Month::containing(now);
    let adding = app
        .store
        .webpush_register(uaid, None, now, month, channel, app.max_channels);
    match by(deadline, adding).await? {
        Registered::Yes { .. } => Ok(()),
        Registered::Full => Err(Refusal::Full),
    }
}

/// The body, if there is one.
async fn read<T: DeserializeOwned>(request: Request<Body>, deadline: Instant) -> Result<Option<T>, Refusal> {
    let (parts, body) = request.into_parts();
    let body = send::read_body(&parts.headers, body, BODY_MAX, deadline).await?;
    if body.is_empty() {
        return Ok(None);
    }
    let wrong = "it takes token (a text), channelID (a UUID) and key (a text), the latter two optional";
    serde_json::from_slice(&body)
        .map(Some)
        .map_err(|_| Refusal::Body(wrong))
}

async fn by<T>(
    deadline: Instant,
    asking: impl Future<Output = Result<T, store::Error>>,
) -> Result<T, Refusal> {
    match timeout_at(deadline, asking).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => {
            tracing::warn!(%error, "failed to keep a registration");
            Err(Refusal::Storage)
        }
        Err(_) => Err(Refusal::Storage),
    }
}
