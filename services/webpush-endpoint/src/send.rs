//! `POST /wpush/…`: the checks of a message, in the order of the contract.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use telemetry::traces::Context;
use tokio::time::{Instant, timeout_at};
use webpush::{
    Encryption, EncryptionHeaders, MessageId, Refusal, Subscription, TokenVersion, Topic, Vapid, VapidError,
};

use crate::answer::Refused;
use crate::app::App;
use crate::delivery::{self, Accepted};

const TTL: HeaderName = HeaderName::from_static("ttl");
const TOPIC: HeaderName = HeaderName::from_static("topic");
const URGENCY: HeaderName = HeaderName::from_static("urgency");
const ENCRYPTION: HeaderName = HeaderName::from_static("encryption");
const CRYPTO_KEY: HeaderName = HeaderName::from_static("crypto-key");
/// The type of a client that is connected to one of our nodes.
const WEBPUSH: &str = "webpush";

/// `POST /wpush/{token}`.
pub(crate) async fn to_first_version(
    State(app): State<Arc<App>>,
    token: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Refused> {
    // What is no UTF-8 is no token.
    let Path(token) = token.map_err(|_| Refusal::Token)?;
    send(app, TokenVersion::V1, token, request).await
}

/// `POST /wpush/{version}/{token}`.
pub(crate) async fn to_version(
    State(app): State<Arc<App>>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> Result<Response, Refused> {
    let Path((version, token)) = path.map_err(|_| Refusal::Token)?;
    let version = match version.as_str() {
        "v1" => TokenVersion::V1,
        "v2" => TokenVersion::V2,
        _ => return Err(Refusal::Token.into()),
    };
    send(app, version, token, request).await
}

async fn send(
    app: Arc<App>,
    version: TokenVersion,
    token: String,
    request: Request,
) -> Result<Response, Refused> {
    let (started, deadline) = (Instant::now(), app.deadline());
    let sending = Box::pin(accept(&app, version, &token, request, deadline));
    match timeout_at(deadline, sending).await {
        Ok(answer) => answer
            .inspect(|_| app.metrics.receiving.record(started.elapsed().as_secs_f64()))
            .map_err(Refused),
        Err(_) => Err(Refusal::Storage.into()),
    }
}

async fn accept(
    app: &Arc<App>,
    version: TokenVersion,
    token: &str,
    request: Request,
    deadline: Instant,
) -> Result<Response, Refusal> {
    let (Parts { headers, .. }, body) = request.into_parts();
    let now = app.now();
    let subscription = Subscription::open(&app.keys, version, token).ok_or(Refusal::Token)?;
    // Before a signature is checked: that takes longer than all else, and wrong ones cost their sender nothing.
    app.limits.count_sender(http_api::caller_address())?;
    let vapid = check_sender(app, &headers).await?;
    if !subscription.allows(vapid.as_ref().map(|vapid| &vapid.key)) {
        return Err(if vapid.is_some() {
            VapidError::KeyMismatch
        } else {
            VapidError::MissingKey
        }
        .into());
    }
    let target = (subscription.uaid, subscription.channel);
    app.limits.count_message(target)?;
    let route = app.route(target).await?;
    let route = route.ok_or(Refusal::NoUser)?;
    if route.router_type != WEBPUSH {
        return Err(Refusal::RouterType);
    }
    if !route.subscribed {
        return Err(Refusal::NoSubscription);
    }
    let body = read_body(&headers, body, app.config.max_data_bytes, deadline).await?;
    let ttl = webpush::ttl(text(&headers, &TTL), app.max_ttl)?;
    let body = if body.is_empty() {
        None
    } else {
        Some((body, check_encryption(&headers)?.into_headers()))
    };
    let topic = headers
        .get(&TOPIC)
        .map(|topic| topic.to_str().unwrap_or_default());
    let topic = topic.map(Topic::parse).transpose()?;
    check_urgency(&headers)?;
    let id = MessageId {
        uaid: subscription.uaid,
        channel: subscription.channel,
        topic,
    };
    // Where the request is recorded: the message may be sent long after it.
    let traceparent = Context::current().map(|place| place.traceparent());
    let version = id.seal(&app.keys, now, traceparent.as_deref());
    let answer = created(app, &version, ttl.num_seconds());
    let message = Accepted {
        uaid: id.uaid,
        channel: id.channel,
        version,
        topic: id.topic,
        ttl,
        received_at: now,
        body,
    };
    delivery::deliver(app, message, route).await?;
    Ok(answer)
}

/// Senders show one statement for hours. Its signature takes ten times as long as all else that is computed for a message, so that what
/// was good a moment ago is remembered.
async fn check_sender(app: &App, headers: &HeaderMap) -> Result<Option<Vapid>, VapidError> {
    let Some(authorization) = headers.get(header::AUTHORIZATION) else {
        return Ok(None);
    };
    let authorization = authorization.to_str().map_err(|_| VapidError::InvalidToken)?;
    let crypto_key = list(headers, &CRYPTO_KEY);
    let crypto_key = crypto_key.as_deref();
    let now = app.now();
    let checking = async {
        let vapid = Vapid::check(authorization, crypto_key, &app.audience, now)?;
        // It may be long, is nothing that is asked for here, and anyone can make it up.
        Ok(Some(Vapid {
            subject: None,
            ..vapid
        }))
    };
    let shown = Vapid::digest(authorization, crypto_key);
    let vapid = app.senders.find(&shown, checking).await?;
    if let Some(vapid) = &vapid {
        vapid.check_expiry(now)?;
    }
    Ok(vapid)
}

fn check_encryption(headers: &HeaderMap) -> Result<Encryption, Refusal> {
    let (encryption, crypto_key) = (list(headers, &ENCRYPTION), list(headers, &CRYPTO_KEY));
    Encryption::check(EncryptionHeaders {
        encoding: text(headers, &header::CONTENT_ENCODING),
        encryption: encryption.as_deref(),
        crypto_key: crypto_key.as_deref(),
    })
}

/// There may be one (RFC 8030, section 5.3). It changes nothing: user agents of this protocol cannot say from which urgency on they want
/// to be woken, and are not told of it.
fn check_urgency(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_several = list(headers, &URGENCY).is_some_and(|urgency| urgency.contains(','));
    if is_several { Err(Refusal::Urgency) } else { Ok(()) }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A header that is a list, whose parts may stand in several lines (RFC 9110, section 5.3).
fn list<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, str>> {
    let lines = headers.get_all(name).iter();
    let lines = lines.filter_map(|line| line.to_str().ok()).map(Cow::Borrowed);
    lines.reduce(|before, line| Cow::Owned(format!("{before}, {line}")))
}

/// The body, which is late like a database that is late: the sender tries again.
pub(crate) async fn read_body(
    headers: &HeaderMap,
    body: Body,
    max: usize,
    deadline: Instant,
) -> Result<bytes::Bytes, Refusal> {
    http_api::read_body(headers, body, max, deadline)
        .await
        .map_err(|problem| {
            if problem.kind() == http_api::ProblemKind::BODY_TOO_LARGE {
                Refusal::TooLarge { max }
            } else {
                Refusal::Storage
            }
        })
}

fn created(app: &App, version: &str, ttl: i64) -> Response {
    let mut response = StatusCode::CREATED.into_response();
    let headers = response.headers_mut();
    // A message id and a configured URL have no character that a header may not have.
    if let Ok(location) = HeaderValue::from_str(&format!("{}/m/{version}", app.endpoint_url)) {
        headers.insert(header::LOCATION, location);
    }
    headers.insert(TTL, HeaderValue::from(ttl));
    response
}
