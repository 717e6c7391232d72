//! The questions and orders to the receiver itself, at paths that begin with an underscore.

use std::sync::Arc;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;
use serde_json::json;

use crate::receiver::answer::{self, Answer};
use crate::receiver::keyring::SecretFor;
use crate::receiver::script::Rule;
use crate::receiver::server::Shared;
use crate::script::check;

/// Every path of these.
pub(crate) const PREFIX: &str = "/_";

const MAX_ORDER_BYTES: usize = 1 << 20;
const DEFAULT_LAST: usize = 20;
const DEFAULT_PAGE: usize = 1_000;
const LARGEST_PAGE: usize = 10_000;

/// What `PUT /_control` can change; what is absent stays.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    rules: Option<Vec<Rule>>,
    secrets: Option<Vec<SecretFor>>,
}

/// Answers one of them.
pub(crate) async fn respond(shared: &Arc<Shared>, request: Request<Incoming>) -> Answer {
    let path = request.uri().path().to_owned();
    match (request.method(), path.as_str()) {
        (&Method::GET, "/_report") => {
            let last = number(&request, "last").unwrap_or(DEFAULT_LAST).min(LARGEST_PAGE);
            answer::json(StatusCode::OK, &shared.recorder().report(last))
        }
        (&Method::DELETE, "/_report") => {
            shared.recorder().reset();
            answer::empty(StatusCode::NO_CONTENT)
        }
        (&Method::GET, "/_received") => {
            let limit = number(&request, "limit")
                .unwrap_or(DEFAULT_PAGE)
                .min(LARGEST_PAGE);
            let after = number(&request, "after").unwrap_or(0) as u64;
            answer::json(StatusCode::OK, &shared.recorder().page(after, limit))
        }
        (&Method::GET, "/_control") => {
            let (rules, secrets) = (shared.script().in_force(), shared.keyring().len());
            answer::json(StatusCode::OK, &json!({ "rules": rules, "secrets": secrets }))
        }
        (&Method::PUT, "/_control") => obey(shared, request).await,
        (&Method::GET, "/_healthz") => answer::empty(StatusCode::OK),
        _ => answer::refusal(StatusCode::NOT_FOUND, "no such question"),
    }
}

async fn obey(shared: &Arc<Shared>, request: Request<Incoming>) -> Answer {
    let body = match Limited::new(request.into_body(), MAX_ORDER_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return answer::refusal(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let order: Order = match serde_json::from_slice(&body) {
        Ok(order) => order,
        Err(error) => return answer::refusal(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    // All or nothing: the only part that can still be refused comes first.
    if let Some(rules) = order.rules {
        if let Err(error) = check(&rules) {
            return answer::refusal(StatusCode::BAD_REQUEST, &error.with_cause());
        }
        shared.take_rules(rules);
    }
    if let Some(secrets) = order.secrets {
        shared.take_secrets(secrets);
    }
    answer::empty(StatusCode::NO_CONTENT)
}

fn number(request: &Request<Incoming>, name: &str) -> Option<usize> {
    let mut pairs = request
        .uri()
        .query()?
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    pairs.find(|(known, _)| *known == name)?.1.parse().ok()
}
