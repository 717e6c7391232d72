//! What handing something in has in common, whatever it is: who may, the key by which a repetition is known, the body, and
//! the answers.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::key::Role;
use domain::scope::{OutOfScope, Scope};
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use http_api::{Caller, FieldProblem, Handling, Problem, ProblemKind, REPLAYED};
use sha2::{Digest as _, Sha256};
use store::push::IdempotencyKey;
use tokio::time::Instant;

use crate::app::App;
use crate::lane::submission::NotStored;
use crate::share::Share;

/// What is known of a request besides what it hands in.
pub(crate) struct RequestContext {
    pub(crate) now: DateTime<Utc>,
    pub(crate) deadline: Instant,
    pub(crate) traceparent: Option<String>,
    /// Its `Idempotency-Key`.
    pub(crate) key: Option<IdempotencyKey>,
    /// What becomes of fields that are not known.
    pub(crate) handling: Handling,
    /// What its key may hand in.
    pub(crate) scope: Arc<Scope>,
}

/// A request of a caller that may hand things in. Its body is not read yet.
pub(crate) struct Admitted<'a> {
    pub(crate) deadline: Instant,
    /// What the caller may have of the service at once.
    pub(crate) share: Arc<Share>,
    app: &'a App,
    head: Parts,
    body: Body,
    caller: Arc<Caller>,
    key: Option<String>,
}

impl<'a> Admitted<'a> {
    /// Looks at everything but the body.
    pub(crate) async fn check(app: &'a App, request: Request) -> Result<Self, Problem> {
        let deadline = app.deadline();
        let (head, body) = request.into_parts();
        let caller = app.caller(&head.headers, deadline).await?;
        caller.require(Role::may_ingest)?;
        let share = app.shares.of(&caller).await?;
        http_api::refuse_in_vain(&head)?;
        http_api::require_json(&head.headers)?;
        let key = http_api::idempotency_key(&head.headers)?.map(str::to_owned);
        Ok(Self {
            deadline,
            share,
            app,
            head,
            body,
            caller,
            key,
        })
    }

    /// Reads the body, which has at most `limit` bytes.
    pub(crate) async fn read(self, limit: usize) -> Result<(Bytes, RequestContext), Problem> {
        let headers = &self.head.headers;
        let body = http_api::read_body(headers, self.body, limit, self.deadline).await?;
        let owner = self.caller.first_key()?;
        let key = self.key.map(|key| IdempotencyKey {
            owner,
            key,
            request: Sha256::digest(&body).into(),
        });
        let context = RequestContext {
            now: self.app.clock.now(),
            deadline: self.deadline,
            traceparent: http_api::traceparent(headers, self.app.traced),
            key,
            handling: Handling::preferred(headers),
            scope: Arc::clone(&self.caller.scope),
        };
        Ok((body, context))
    }
}

/// 202, with where to look it up. `replayed`: by an earlier request.
pub(crate) fn accepted(location: String, replayed: bool) -> Response {
    let location = HeaderValue::try_from(location)
        .expect("invariant: a path and a UUID are made of characters that a header may hold");
    let mut response = (StatusCode::ACCEPTED, [(header::LOCATION, location)]).into_response();
    mark_replayed(&mut response, replayed);
    response
}

/// Says in the headers when all of it had been stored by an earlier request.
pub(crate) fn mark_replayed(response: &mut Response, replayed: bool) {
    if replayed {
        response
            .headers_mut()
            .insert(REPLAYED, HeaderValue::from_static("true"));
    }
}

/// What is handed in is not among what the caller's key may.
pub(crate) fn out_of_scope(refused: &OutOfScope) -> Problem {
    let problem = Problem::new(ProblemKind::FORBIDDEN, refused.to_string());
    if refused.field.is_empty() {
        return problem;
    }
    let detail = format!("is not allowed: {refused}");
    problem.with_errors(vec![FieldProblem::new(refused.field, detail)])
}

/// The key belongs to another request.
pub(crate) fn key_reused() -> Problem {
    Problem::new(
        ProblemKind::IDEMPOTENCY_KEY_REUSED,
        "the Idempotency-Key was used before with another body",
    )
}

/// Why nothing is stored, for the caller: `one` is what was handed in, and `many` are its like.
pub(crate) fn not_stored((one, many): (&str, &str), reason: NotStored) -> Problem {
    match reason {
        NotStored::Share => {
            let detail =
                format!("more {many} of yours wait to be stored than one caller may have waiting now");
            Problem::new(ProblemKind::TOO_MANY_REQUESTS, detail).retry_after(1)
        }
        NotStored::Busy => Problem::unavailable(format!("more {many} arrive than can be stored"), 1),
        NotStored::Stopping => Problem::unavailable("the service is about to stop", 1),
        NotStored::Unavailable => Problem::unavailable(format!("the {one} cannot be stored now"), 5),
        NotStored::Late => Problem::unavailable(format!("the {one} was not stored in time"), 5),
        NotStored::Refused => Problem::new(ProblemKind::INTERNAL, format!("the {one} could not be stored")),
    }
}
