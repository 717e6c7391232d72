//! The headers of every answer that say what a browser may do with it: nothing that a document for programs does not need.
//!
//! What an answer says for itself stays as it is: the documentation may be kept, and pages have a policy of their own.

use axum::Router;
use axum::middleware::map_response;
use axum::response::Response;
use http::{HeaderName, HeaderValue, header};

const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    // Answers hold addresses, bodies and, once, secrets.
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// Puts them on every answer of `routes`.
pub(crate) fn around(routes: Router) -> Router {
    routes.layer(map_response(add))
}

async fn add(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use http::Request;
    use tower::ServiceExt as _;

    use super::*;

    async fn answer(path: &str) -> Response {
        let kept = [(header::CACHE_CONTROL, "no-cache")];
        let routes = Router::new()
            .route("/plain", get(async || "text"))
            .route("/kept", get(async move || (kept, "text")));
        let request = Request::get(path).body(Body::empty()).unwrap();
        around(routes).oneshot(request).await.unwrap()
    }

    #[tokio::test]
    async fn every_answer_has_them_also_one_of_no_route() {
        for path in ["/plain", "/nothing"] {
            let headers = answer(path).await.headers().clone();
            assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
            assert_eq!(headers["cache-control"], "no-store", "{path}");
            assert_eq!(headers["referrer-policy"], "no-referrer", "{path}");
            assert_eq!(headers["cross-origin-resource-policy"], "same-origin", "{path}");
        }
    }

    #[tokio::test]
    async fn what_an_answer_says_for_itself_stays() {
        assert_eq!(answer("/kept").await.headers()["cache-control"], "no-cache");
    }
}
