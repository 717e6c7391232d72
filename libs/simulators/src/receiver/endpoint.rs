//! Takes notifications: every path that does not begin with an underscore is an endpoint.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, StatusCode};
use serde_json::json;
use signing::{HEADER_ID, SignedHeaders};

use crate::receiver::answer::{self, Answer};
use crate::receiver::arrival::Arrival;
use crate::receiver::keyring::Verdict;
use crate::receiver::notification::{Notification, challenge};
use crate::receiver::recorder::Content;
use crate::receiver::script::{Rule, Subject};
use crate::receiver::server::Shared;

/// Makes hyper close the connection.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed")]
pub(crate) struct Closed;

/// Why a body could not be read.
enum Unread {
    TooLarge,
    Gone,
}

/// One request to its end.
pub(crate) async fn receive(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Closed> {
    let (parts, body) = request.into_parts();
    let arrival = Arrival::now(shared.clone(), &parts);
    let body = match read(body, shared.max_body_bytes).await {
        Ok(body) => body,
        Err(Unread::Gone) => return Err(Closed),
        Err(Unread::TooLarge) => {
            arrival.answered(StatusCode::PAYLOAD_TOO_LARGE.as_u16(), false);
            return Ok(answer::refusal(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the body is too large",
            ));
        }
    };
    let visit = Visit::new(&shared, arrival, &parts, &body);
    match visit.reaction() {
        Reaction::Answer(answer) => visit.end(answer, false),
        Reaction::Challenge(answer) => visit.end(answer, true),
        Reaction::Rule(rule) => obey(visit, *rule).await,
    }
}

async fn read(body: Incoming, limit: usize) -> Result<Bytes, Unread> {
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Unread::TooLarge),
        Err(_) => Err(Unread::Gone),
    }
}

async fn obey(visit: Visit<'_>, rule: Rule) -> Result<Answer, Closed> {
    // Tokio would round a sleep of nothing up to its next millisecond.
    if let Some(delay) = rule.delay_millis.filter(|delay| *delay > 0) {
        tokio::time::sleep(Duration::from_millis(delay)).await;
    }
    if rule.hang {
        std::future::pending::<()>().await;
    }
    if rule.drop {
        visit.arrival.dropped();
        return Err(Closed);
    }
    visit.end(answer::of_rule(rule), false)
}

/// A request whose body has been read.
struct Visit<'a> {
    shared: &'a Shared,
    arrival: Arrival,
    notification: Notification<'a>,
    id: String,
    path: &'a str,
    method: &'a Method,
    body: &'a [u8],
    verdict: Verdict,
    arrivals: u32,
}

/// What is done about a request.
enum Reaction {
    Answer(Answer),
    Challenge(Answer),
    Rule(Box<Rule>),
}

impl<'a> Visit<'a> {
    fn new(shared: &'a Shared, arrival: Arrival, parts: &'a Parts, body: &'a [u8]) -> Self {
        let (now, path) = (shared.now(), parts.uri.path());
        let notification = Notification::read(body);
        let header = text(&parts.headers, HEADER_ID).or(notification.id.as_deref());
        let id = header.unwrap_or_default().to_owned();
        let signed = SignedHeaders::read(|name| text(&parts.headers, name));
        let verdict = shared.keyring().check(path, signed, body, now, shared.tolerance);
        let content = Content {
            id: &id,
            event_type: notification.event_type.as_deref().unwrap_or_default(),
            body: String::from_utf8_lossy(body).into_owned(),
            delay_millis: notification.timestamp.map(|at| (now - at).num_milliseconds()),
        };
        let arrivals = shared.recorder().identify(arrival.number, content, verdict);
        Self {
            shared,
            arrival,
            notification,
            id,
            path,
            method: &parts.method,
            body,
            verdict,
            arrivals,
        }
    }

    fn reaction(&self) -> Reaction {
        if self.method != Method::POST {
            return Reaction::Answer(answer::refusal(StatusCode::METHOD_NOT_ALLOWED, "send a POST"));
        }
        if !self.verdict.is_believed() {
            let error = format!("the signature is not accepted: {}", self.verdict);
            return Reaction::Answer(answer::refusal(StatusCode::UNAUTHORIZED, &error));
        }
        let subject = Subject {
            event_type: self.notification.event_type.as_deref().unwrap_or_default(),
            id: &self.id,
            path: self.path,
            arrivals: self.arrivals,
        };
        if let Some(rule) = self.shared.script().apply(|rule| rule.matching.matches(subject)) {
            return Reaction::Rule(Box::new(rule));
        }
        let challenge = self.notification.is_challenge().then(|| challenge(self.body));
        match challenge.flatten() {
            Some(challenge) => {
                Reaction::Challenge(answer::json(StatusCode::OK, &json!({ "challenge": challenge })))
            }
            None => Reaction::Answer(answer::empty(StatusCode::OK)),
        }
    }

    fn end(self, answer: Answer, challenge: bool) -> Result<Answer, Closed> {
        if answer.status().is_success() {
            self.shared.recorder().accept(self.arrival.number, &self.id);
        }
        self.arrival.answered(answer.status().as_u16(), challenge);
        Ok(answer)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
