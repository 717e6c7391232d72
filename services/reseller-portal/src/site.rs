//! The documentation for resellers, as `make docs` built it: the files of one folder, under `/docs/`.
//!
//! Files are looked up when they are asked for, so that a site that is built again is seen at once. What it deliberately does
//! not do: build anything, list a folder, or follow a link out of the folder.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path as Tail, Request, State};
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use axum::routing::get;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tower::ServiceExt as _;
use tower_http::services::ServeFile;

/// What the pages may load: what comes from here. The theme writes colours into `style` elements; scripts stand in files.
const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);
/// Asked for again each time, and answered with 304 as long as it is the same.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");
/// For what is asked for with the hash of what it holds.
const FOR_GOOD: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const NOT_FOUND: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Page not found</title><meta name=\"viewport\" content=\"width=device-width\">\
    <style>:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}</style></head>\
    <body><h1>Page not found</h1><p>The documentation has no such page. It begins at <a href=\"/docs/\">/docs/</a>.</p>\
    </body></html>\n";

/// What a path of the site leads to.
enum Found {
    File(PathBuf),
    /// A folder, asked for without the slash that relative links of its page need.
    Folder,
    Nothing,
}

/// The routes of the site in `folder`.
pub(crate) fn router(folder: PathBuf) -> Router {
    if !folder.join("index.html").is_file() {
        tracing::warn!(
            folder = %folder.display(),
            "portal.docsDirectory holds no index.html: /docs/ has nothing to show until `make docs` has built it there"
        );
    }
    Router::new()
        .route("/", get(async || Redirect::temporary("/docs/")))
        .route("/docs", get(async || Redirect::temporary("/docs/")))
        .route("/docs/", get(index))
        .route("/docs/{*path}", get(page))
        .with_state(Arc::new(folder))
}

async fn index(State(folder): State<Arc<PathBuf>>, request: Request) -> Response {
    answer(&folder, "", request).await
}

async fn page(State(folder): State<Arc<PathBuf>>, Tail(path): Tail<String>, request: Request) -> Response {
    answer(&folder, &path, request).await
}

/// `path`: what follows `/docs/`, decoded.
async fn answer(folder: &Path, path: &str, request: Request) -> Response {
    let for_good = request.uri().query().is_some_and(|query| query.starts_with("v="));
    let mut response = match find(folder, path).await {
        Ok(Found::File(file)) => serve(&file, request).await,
        Ok(Found::Folder) => Redirect::temporary(&format!("{}/", request.uri().path())).into_response(),
        Ok(Found::Nothing) => not_found(),
        Err(error) => {
            tracing::error!(%error, path, "failed to read the documentation");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    };
    let lasting = for_good && response.status().is_success();
    let caching = if lasting { FOR_GOOD } else { ASK_AGAIN };
    guard(response.headers_mut(), caching);
    response
}

fn guard(headers: &mut HeaderMap, caching: HeaderValue) {
    headers.insert(header::CACHE_CONTROL, caching);
    headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let text = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .filter(|text| text.starts_with("text/") && !text.contains("charset"))
        .and_then(|text| HeaderValue::try_from(format!("{text}; charset=utf-8")).ok());
    if let Some(text) = text {
        headers.insert(header::CONTENT_TYPE, text);
    }
}

async fn serve(file: &Path, request: Request) -> Response {
    let served = ServeFile::new(file).oneshot(request).await;
    match served {
        Ok(response) => response.map(Body::new),
        Err(never) => match never {},
    }
}

fn not_found() -> Response {
    (StatusCode::NOT_FOUND, Html(NOT_FOUND)).into_response()
}

/// Looks `path` up in `folder`.
///
/// # Errors
///
/// What keeps us from reading what is there. That it is not there is no error, nor that no reader is to see it.
async fn find(folder: &Path, path: &str) -> io::Result<Found> {
    let found = match below(path) {
        Some(relative) => look(folder, &relative, path.is_empty() || path.ends_with('/')).await,
        None => Ok(Found::Nothing),
    };
    match found {
        Err(error) if is_askers(&error) => Ok(Found::Nothing),
        other => other,
    }
}

/// `path` as a path without any way up or back to the root, and without hidden files.
fn below(path: &str) -> Option<PathBuf> {
    let mut relative = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) if !name.as_encoded_bytes().starts_with(b".") => relative.push(name),
            _ => return None,
        }
    }
    Some(relative)
}

/// Links are followed before anything is judged, so that none leads out of `folder`.
async fn look(folder: &Path, relative: &Path, as_folder: bool) -> io::Result<Found> {
    let root = tokio::fs::canonicalize(folder).await?;
    let asked = tokio::fs::canonicalize(root.join(relative)).await?;
    let is_folder = asked.starts_with(&root) && tokio::fs::metadata(&asked).await?.is_dir();
    let file = if is_folder {
        tokio::fs::canonicalize(asked.join("index.html")).await?
    } else {
        asked
    };
    if !file.starts_with(&root) || !tokio::fs::metadata(&file).await?.is_file() {
        return Ok(Found::Nothing);
    }
    Ok(match (is_folder, as_folder) {
        (true, false) => Found::Folder,
        (false, true) => Found::Nothing,
        _ => Found::File(file),
    })
}

/// The path that was asked for leads nowhere; nothing is wrong with the folder.
fn is_askers(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::NotFound
            | Kind::NotADirectory
            | Kind::InvalidFilename
            | Kind::InvalidInput
            | Kind::PermissionDenied
    )
}
