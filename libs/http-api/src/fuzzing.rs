//! Doors to the readers that are private here, for the properties of `testing/fuzz/properties`. They add nothing of their own.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use axum::extract::FromRequestParts as _;
use http::{HeaderMap, Request};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::json::{self, Handling};
use crate::problem::Problem;
use crate::request::Params;

/// The key in `Authorization`.
pub fn api_key(headers: &HeaderMap) -> Result<&str, Problem> {
    crate::auth::presented(headers)
}

/// A body as a handler gets it.
pub fn payload<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    let (payload, wrong) = json::read(body, Handling::Strict)?;
    wrong.merge(Ok(payload))
}

/// A query string as a handler gets it; `None` when it cannot be part of a request.
///
/// # Panics
///
/// When taking a query string from a request waits for anything.
pub fn query<T: DeserializeOwned>(query: &str) -> Option<Result<T, Problem>> {
    let request = Request::builder().uri(format!("/?{query}")).body(()).ok()?;
    let (mut parts, ()) = request.into_parts();
    let reading = pin!(Params::from_request_parts(&mut parts, &()));
    match reading.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(read) => Some(read.map(|Params(params)| params)),
        Poll::Pending => panic!("invariant: a query string is there with its request"),
    }
}
