//! Takes requests, judges them, answers them, and shows them before they are answered: a sender that has the answer can already
//! see what was thought of the request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use domain::clock::{Clock as _, SystemClock};
use domain::counted::of as counted;
use lifecycle::Shutdown;
use serde_json::{Value, json};
use signing::{BodyError, Notification, ReceiveError, Secret, SignedHeaders, receive};
use tokio::net::TcpListener;
use tokio::sync::watch;
use zeroize::Zeroizing;

use crate::output;
use signature_diagnosis::{Diagnosis, Evidence, diagnose};

use super::arrival::{Arrival, Reaction};
use super::forward::Forward;
use super::statuses::Statuses;

/// Larger bodies are refused: no notification is nearly so large.
const BODY_MAX_BYTES: usize = 16 << 20;
/// How long a last answer may take to get out, when requests that never came to their end are still open.
const LAST_ANSWER: Duration = Duration::from_secs(2);
const CHALLENGE: &str = "postrider.verification";

/// What listens.
pub(super) struct Endpoint {
    secrets: Vec<Secret>,
    texts: Vec<Zeroizing<String>>,
    tolerance: Duration,
    delay: Option<Duration>,
    statuses: Statuses,
    forward: Option<Forward>,
    json: bool,
    /// After how many requests it ends.
    until: Option<u64>,
    shutdown: Shutdown,
    /// Has a receiver for each request that is being answered.
    answering: watch::Sender<()>,
    arrived: AtomicU64,
    shown: AtomicU64,
    refused: AtomicU64,
}

impl Endpoint {
    pub(super) fn new(
        secrets: Vec<Secret>,
        tolerance: Duration,
        delay: Option<Duration>,
        statuses: Statuses,
        forward: Option<Forward>,
        (json, until): (bool, Option<u64>),
        shutdown: Shutdown,
    ) -> Self {
        Self {
            texts: secrets.iter().map(Secret::reveal).collect(),
            secrets,
            tolerance,
            delay,
            statuses,
            forward,
            json,
            until,
            shutdown,
            answering: watch::Sender::new(()),
            arrived: AtomicU64::new(0),
            shown: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// How many requests were not verified.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    pub(super) fn summary(&self) -> String {
        let (shown, refused) = (self.shown.load(Ordering::SeqCst), self.refused());
        let requests = counted(shown, "request", "requests");
        format!("{requests}, {} verified, {refused} not", shown - refused)
    }

    /// What is to be thought of a request.
    fn check(&self, path: String, headers: HeaderMap, body: Bytes) -> (Arrival, Option<Notification>) {
        let at = SystemClock.now();
        let signed = SignedHeaders::read(|name| text(&headers, name));
        let texts: Vec<&str> = self.texts.iter().map(|text| text.as_str()).collect();
        let diagnosis = diagnose(&Evidence {
            secrets: &texts,
            headers: signed,
            idempotency_key: text(&headers, "idempotency-key"),
            content_length: text(&headers, "content-length").and_then(|length| length.parse().ok()),
            body: &body,
            now: at.timestamp(),
            tolerance: self.tolerance,
        });
        let read = self.read(&diagnosis, signed, &body, at.timestamp());
        let (notification, bad_body) = match read {
            Some(Ok(notification)) => (Some(notification), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        let arrival = Arrival {
            number: self.arrived.fetch_add(1, Ordering::SeqCst) + 1,
            at,
            path,
            id: signed.id.unwrap_or_default().to_owned(),
            event_type: event_type(&body),
            headers,
            body,
            diagnosis,
            bad_body,
        };
        (arrival, notification)
    }

    /// The notification of a message whose signature is right.
    fn read(
        &self,
        diagnosis: &Diagnosis,
        signed: SignedHeaders<'_>,
        body: &[u8],
        now: i64,
    ) -> Option<Result<Notification, BodyError>> {
        let secret = &self.secrets[diagnosis.verdict.ok()?.secret];
        match receive(&[secret], signed, body, now, self.tolerance) {
            Ok(notification) => Some(Ok(notification)),
            Err(ReceiveError::Body(error)) => Some(Err(error)),
            Err(ReceiveError::Signature(_)) => None,
        }
    }

    /// What is answered, and what is said of it.
    async fn react(&self, arrival: &Arrival, notification: Option<&Notification>) -> (Response, Reaction) {
        let Some(notification) = notification else {
            let status = match arrival.bad_body {
                Some(_) => StatusCode::BAD_REQUEST,
                None => StatusCode::UNAUTHORIZED,
            };
            return plain(status, &json!({"error": arrival.verdict()}), false);
        };
        let challenge = notification.data.get("challenge").and_then(Value::as_str);
        if let Some(challenge) = challenge.filter(|_| notification.event_type == CHALLENGE) {
            return plain(StatusCode::OK, &json!({"challenge": challenge}), true);
        }
        if let Some(delay) = self.delay {
            tokio::time::sleep(delay).await;
        }
        match &self.forward {
            Some(forward) => hand_on(forward, arrival).await,
            None => {
                let status = self.statuses.next(&notification.event_type);
                let status = status.and_then(|status| StatusCode::from_u16(status).ok());
                let status = status.unwrap_or(StatusCode::OK);
                (status.into_response(), reaction(status, false))
            }
        }
    }

    fn show(&self, arrival: &Arrival, reaction: &Reaction) {
        let shown = if self.json {
            output::result(arrival.json(reaction))
        } else {
            output::result(format_args!("{}\n", arrival.text(reaction)))
        };
        if let Err(error) = shown {
            output::note(format_args!("standard output cannot be written: {error}"));
            self.shutdown.trigger();
        }
        if !arrival.is_accepted() {
            self.refused.fetch_add(1, Ordering::SeqCst);
        }
        let shown = self.shown.fetch_add(1, Ordering::SeqCst) + 1;
        if self.until.is_some_and(|until| shown >= until) {
            // What is being answered still is: only new connections are not taken any more.
            self.shutdown.trigger();
        }
    }
}

/// Serves until the shutdown, and then until the last answer is out. Requests that have not come to their end are left.
pub(super) async fn serve(
    listener: TcpListener,
    endpoint: Arc<Endpoint>,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let router = Router::new()
        .fallback(take)
        .layer(DefaultBodyLimit::max(BODY_MAX_BYTES))
        .with_state(endpoint.clone());
    let stop = shutdown.clone();
    let serve = axum::serve(listener, router).with_graceful_shutdown(async move { stop.cancelled().await });
    tokio::select! {
        served = serve.into_future() => served?,
        () = async {
            shutdown.cancelled().await;
            endpoint.answering.closed().await;
            tokio::time::sleep(LAST_ANSWER).await;
        } => {}
        // A second signal waits for no delay and no slow answer.
        () = shutdown.hurried() => {}
    }
    Ok(())
}

async fn take(
    State(endpoint): State<Arc<Endpoint>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    if method != Method::POST {
        let uri = output::harmless(&uri.to_string());
        output::note(format_args!(
            "{method} {uri}: answered 405, since notifications are POSTs"
        ));
        return (StatusCode::METHOD_NOT_ALLOWED, "send a POST\n").into_response();
    }
    let body = match body {
        Ok(body) => body,
        Err(rejection) => {
            let uri = output::harmless(&uri.to_string());
            output::note(format_args!(
                "POST {uri}: the body could not be read: {rejection}"
            ));
            return rejection.into_response();
        }
    };
    let path = uri.path_and_query().map_or_else(String::new, ToString::to_string);
    // A task of its own: the sender may hang up before a slow answer, and its request is shown all the same.
    let is_answered = endpoint.answering.subscribe();
    let answering = tokio::spawn(async move {
        let _is_answered = is_answered;
        let (arrival, notification) = endpoint.check(path, headers, body);
        let (response, reaction) = endpoint.react(&arrival, notification.as_ref()).await;
        endpoint.show(&arrival, &reaction);
        response
    });
    answering
        .await
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

async fn hand_on(forward: &Forward, arrival: &Arrival) -> (Response, Reaction) {
    let url = forward.url.to_string();
    match forward.send(&arrival.headers, arrival.body.clone()).await {
        Ok(forwarded) => {
            let status = forwarded.status;
            let reaction = Reaction {
                forwarded: Some((url, None)),
                ..reaction(status, false)
            };
            (forwarded.into_response(), reaction)
        }
        Err(error) => {
            let status = StatusCode::BAD_GATEWAY;
            let reaction = Reaction {
                forwarded: Some((url, Some(format!("{error:#}")))),
                ..reaction(status, false)
            };
            (status.into_response(), reaction)
        }
    }
}

fn plain(status: StatusCode, body: &Value, challenge: bool) -> (Response, Reaction) {
    let mut response = (status, body.to_string()).into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    (response, reaction(status, challenge))
}

fn reaction(status: StatusCode, challenge: bool) -> Reaction {
    Reaction {
        status: status.as_u16(),
        challenge,
        forwarded: None,
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Also of a body that is not to be believed: it says what the sender meant to send.
fn event_type(body: &[u8]) -> String {
    let value: Option<Value> = serde_json::from_slice(body).ok();
    let named = value.as_ref().and_then(|value| value["type"].as_str());
    named.unwrap_or_default().to_owned()
}
