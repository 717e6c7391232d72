//! Pages of any origin may send: what allows a message is its endpoint and its signature, and no cookie.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, Method, StatusCode, header};

const ANY: HeaderValue = HeaderValue::from_static("*");
const METHODS: HeaderValue = HeaderValue::from_static("DELETE, GET, POST, PUT");
const EXPOSED: HeaderValue = HeaderValue::from_static("Location, TTL, Retry-After");
/// For how long a browser keeps the answer in mind, in seconds.
const AGE: HeaderValue = HeaderValue::from_static("3600");

/// Answers what browsers ask before they send, and lets them see every other answer.
pub(crate) async fn allow(request: Request, next: Next) -> Response {
    let asks_first = request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if !asks_first {
        let mut response = next.run(request).await;
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        return response;
    }
    let wanted = request
        .headers()
        .get(header::ACCESS_CONTROL_REQUEST_HEADERS)
        .cloned();
    let mut response = StatusCode::OK.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, AGE);
    // Repeated, since `*` would leave out `Authorization`.
    if let Some(wanted) = wanted {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted);
    }
    response
}
