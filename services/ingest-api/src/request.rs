//! What handing something in has in common, whatever it is: who may, the key by which a repetition is known, the body, and
//! the answers.

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::key::Role;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use http_api::{Handling, Problem, ProblemKind, REPLAYED};
use sha2::{Digest as _, Sha256};
use store::push::IdempotencyKey;
use tokio::time::Instant;
use uuid::Uuid;

use crate::app::App;
use crate::lane::submission::NotStored;

/// What is known of a request besides what it hands in.
pub(crate) struct RequestContext {
    pub(crate) now: DateTime<Utc>,
    pub(crate) deadline: Instant,
    pub(crate) traceparent: Option<String>,
    /// Its `Idempotency-Key`.
    pub(crate) key: Option<IdempotencyKey>,
    /// What becomes of fields that are not known.
    pub(crate) handling: Handling,
}

/// A request of a caller that may hand things in. Its body is not read yet.
pub(crate) struct Admitted<'a> {
    pub(crate) deadline: Instant,
    app: &'a App,
    head: Parts,
    body: Body,
    owner: Uuid,
    key: Option<String>,
}

impl<'a> Admitted<'a> {
    /// Looks at everything but the body.
    pub(crate) async fn check(app: &'a App, request: Request) -> Result<Self, Problem> {
        let deadline = app.deadline();
        let (head, body) = request.into_parts();
        let caller = app.caller(&head.headers, deadline).await?;
        caller.require(Role::may_ingest)?;
        http_api::refuse_in_vain(&head)?;
        http_api::require_json(&head.headers)?;
        let key = http_api::idempotency_key(&head.headers)?.map(str::to_owned);
        Ok(Self {
            deadline,
            app,
            head,
            body,
            owner: caller.key()?,
            key,
        })
    }

    /// Reads the body, which has at most `limit` bytes.
    pub(crate) async fn read(self, limit: usize) -> Result<(Bytes, RequestContext), Problem> {
        let headers = &self.head.headers;
        let body = http_api::read_body(headers, self.body, limit, self.deadline).await?;
        let key = self.key.map(|key| IdempotencyKey {
            owner: self.owner,
            key,
            request: Sha256::digest(&body).into(),
        });
        let context = RequestContext {
            now: self.app.clock.now(),
            deadline: self.deadline,
            traceparent: http_api::traceparent(headers, self.app.traced),
            key,
            handling: Handling::preferred(headers),
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
        NotStored::Busy => Problem::unavailable(format!("more {many} arrive than can be stored"), 1),
        NotStored::Stopping => Problem::unavailable("the service is about to stop", 1),
        NotStored::Unavailable => Problem::unavailable(format!("the {one} cannot be stored now"), 5),
        NotStored::Late => Problem::unavailable(format!("the {one} was not stored in time"), 5),
        NotStored::Refused => Problem::new(ProblemKind::INTERNAL, format!("the {one} could not be stored")),
    }
}
