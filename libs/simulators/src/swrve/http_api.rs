//! The HTTP surface: Swrve's `POST /push`, and the simulator's own report, list and script.

use std::sync::Arc;

use axum::extract::rejection::FormRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Form, Json, Router};
use hyper::body::Bytes;
use serde::{Deserialize, Serialize};

use crate::script::RuleInForce;
use crate::swrve::connection::NoAnswer;
use crate::swrve::received::ReceivedPage;
use crate::swrve::recorder::{PushFields, Ticket};
use crate::swrve::report::Report;
use crate::swrve::script::{Rule, parse_script};
use crate::swrve::server::Simulator;

const DEFAULT_PAGE: usize = 1_000;
const LARGEST_PAGE: usize = 10_000;

type Shared = State<Arc<Simulator>>;

#[derive(Debug, Deserialize)]
struct PushForm {
    push_key: Option<String>,
    user: Option<String>,
    message: Option<String>,
    test: Option<String>,
}

/// Every answer of Swrve's, good or bad.
#[derive(Debug, Serialize)]
struct SwrveBody<'a> {
    code: i64,
    message: &'a str,
}

#[derive(Debug, Deserialize)]
struct PageQuery {
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
}

pub(crate) fn router(simulator: Arc<Simulator>) -> Router {
    Router::new()
        .route("/push", post(push))
        .route("/report", get(report).delete(reset))
        .route("/received", get(received))
        .route("/script", get(script).put(replace_script).delete(clear_script))
        .route("/healthz", get(|| async { "ok\n" }))
        .fallback(|| async { answer(StatusCode::NOT_FOUND, "no such resource") })
        .with_state(simulator)
}

async fn push(
    State(simulator): Shared,
    Extension(ticket): Extension<Ticket>,
    form: Result<Form<PushForm>, FormRejection>,
) -> Response {
    let form = match form {
        Ok(Form(form)) => form,
        Err(rejection) => return unreadable(&simulator, ticket, &rejection),
    };
    let fields = PushFields {
        push_key: form.push_key.as_deref().unwrap_or_default(),
        user: form.user.as_deref().unwrap_or_default(),
        message: form.message.as_deref().unwrap_or_default(),
        test: form.test.as_deref() == Some("1"),
    };
    simulator.recorder().identify(ticket.number, fields);
    if simulator.is_over_limit(ticket) {
        return rate_limited();
    }
    let required = [
        ("push_key", fields.push_key),
        ("user", fields.user),
        ("message", fields.message),
    ];
    if let Some((name, _)) = required.into_iter().find(|(_, value)| value.is_empty()) {
        return answer(StatusCode::BAD_REQUEST, &format!("missing parameter: {name}"));
    }
    let rule = simulator.rule_for(fields).unwrap_or_default();
    let response_time = rule.delay().unwrap_or_else(|| simulator.draw_response_time());
    // Tokio would round a sleep of nothing up to its next millisecond.
    if !response_time.is_zero() {
        tokio::time::sleep(response_time).await;
    }
    let response = obey(rule).await;
    if response.status().is_success() && response.extensions().get::<NoAnswer>().is_none() {
        simulator.recorder().accept(ticket.number, fields);
    }
    response
}

fn unreadable(simulator: &Simulator, ticket: Ticket, rejection: &FormRejection) -> Response {
    if simulator.is_over_limit(ticket) {
        return rate_limited();
    }
    match rejection.status() {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => answer(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "expected application/x-www-form-urlencoded",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => answer(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large"),
        _ => answer(StatusCode::BAD_REQUEST, "the form cannot be read"),
    }
}

fn rate_limited() -> Response {
    answer(StatusCode::TOO_MANY_REQUESTS, "Rate Limit Exceeded")
}

/// Does what the rule says; the rule that says nothing accepts the push.
async fn obey(rule: Rule) -> Response {
    if rule.hang {
        std::future::pending::<()>().await;
    }
    if rule.drop {
        return (Extension(NoAnswer), StatusCode::OK).into_response();
    }
    let status = rule
        .status
        .and_then(|status| StatusCode::from_u16(status).ok())
        .unwrap_or(StatusCode::OK);
    let mut response = match rule.body {
        Some(body) => (status, body).into_response(),
        None => {
            let code = rule.code.unwrap_or_else(|| i64::from(status.as_u16()));
            let message = rule
                .message
                .as_deref()
                .or(status.canonical_reason())
                .unwrap_or_default();
            (status, Json(SwrveBody { code, message })).into_response()
        }
    };
    for (name, value) in rule.headers {
        // Rules are checked when they are taken, so that both are fit to be sent.
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// A response of Swrve's own.
fn answer(status: StatusCode, message: &str) -> Response {
    (
        status,
        Json(SwrveBody {
            code: i64::from(status.as_u16()),
            message,
        }),
    )
        .into_response()
}

async fn report(State(simulator): Shared) -> Json<Report> {
    Json(simulator.recorder().report())
}

async fn reset(State(simulator): Shared) -> StatusCode {
    simulator.recorder().reset();
    StatusCode::NO_CONTENT
}

async fn received(State(simulator): Shared, Query(query): Query<PageQuery>) -> Json<ReceivedPage> {
    let limit = query.limit.unwrap_or(DEFAULT_PAGE).min(LARGEST_PAGE);
    Json(simulator.recorder().page(query.after, limit))
}

async fn script(State(simulator): Shared) -> Json<Vec<RuleInForce<Rule>>> {
    Json(simulator.script().in_force())
}

async fn replace_script(State(simulator): Shared, body: Bytes) -> Response {
    match parse_script(&body) {
        Ok(rules) => {
            simulator.take_rules(rules);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => answer(StatusCode::BAD_REQUEST, &error.with_cause()),
    }
}

async fn clear_script(State(simulator): Shared) -> StatusCode {
    simulator.take_rules(Vec::new());
    StatusCode::NO_CONTENT
}
