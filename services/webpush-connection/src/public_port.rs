//! The port that user agents connect to.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{
    CONNECTION, RETRY_AFTER, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, StatusCode};
use http_api::{NoUpgrade, Upgrade};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::node::Node;
use crate::session;

/// The version of RFC 6455.
const VERSION: &str = "13";

/// The routes.
pub(crate) fn routes(node: Arc<Node>) -> Router {
    Router::new().route("/", get(connect)).with_state(node)
}

/// Takes a user agent in.
async fn connect(State(node): State<Arc<Node>>, mut request: Request) -> Response {
    let Some(accept) = accept_key(request.headers()) else {
        let wanted = [(UPGRADE, "websocket"), (SEC_WEBSOCKET_VERSION, VERSION)];
        return (StatusCode::UPGRADE_REQUIRED, wanted, "this is a web socket\n").into_response();
    };
    let upgrade = match Upgrade::of(request.extensions_mut()) {
        Ok(upgrade) => upgrade,
        Err(NoUpgrade::NotAsked) => return StatusCode::BAD_REQUEST.into_response(),
        Err(NoUpgrade::TooMany) => {
            let said = "there are too many connections from your address\n";
            return (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "60")], said).into_response();
        }
    };
    let (sessions, from) = (node.sessions.clone(), http_api::caller_address());
    // In a place of its own, since a group moves what it is given.
    let serving = Box::pin(async move {
        // One that ends before it has begun is no event.
        if let Ok(upgraded) = upgrade.stream().await {
            session::serve(node, upgraded, from).await;
        }
    });
    sessions.spawn("connection", serving);
    let headers = [
        (CONNECTION, "upgrade".to_owned()),
        (UPGRADE, "websocket".to_owned()),
        (SEC_WEBSOCKET_ACCEPT, accept),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// What proves that the request was understood; `None` when it asks for no web socket.
fn accept_key(headers: &HeaderMap) -> Option<String> {
    let is_asked = names(headers, &CONNECTION, "upgrade")
        && names(headers, &UPGRADE, "websocket")
        && headers.get(SEC_WEBSOCKET_VERSION)?.as_bytes() == VERSION.as_bytes();
    is_asked.then_some(())?;
    Some(derive_accept_key(headers.get(SEC_WEBSOCKET_KEY)?.as_bytes()))
}

/// Whether a header that is a list holds a word.
fn names(headers: &HeaderMap, header: &HeaderName, word: &str) -> bool {
    let mut lines = headers.get_all(header).iter();
    lines.any(|line| {
        let words = line.to_str().unwrap_or_default().split(',');
        words.map(str::trim).any(|named| named.eq_ignore_ascii_case(word))
    })
}
