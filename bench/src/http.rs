//! Single requests to the processes under measurement: readiness, metrics, the simulator's report. No load goes this way.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::http::request::Builder;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;

/// A report of 100,000 arrivals takes the simulator a moment.
const LIMIT: Duration = Duration::from_secs(20);

/// One answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    /// The cookie that a browser would keep, name and value.
    pub(crate) cookie: Option<String>,
    /// By which a browser knows a page that it has.
    pub(crate) tag: Option<String>,
}

/// A GET, whatever the status.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<Answer> {
    let request = Request::get(path).body(Full::default())?;
    call(address, request).await
}

/// A GET with an API key, whatever the status.
pub(crate) async fn get_with_key(address: SocketAddr, path: &str, key: &str) -> Result<Answer> {
    get_with(address, path, &[("authorization", format!("Bearer {key}"))]).await
}

/// A GET with these headers, whatever the status.
pub(crate) async fn get_with(
    address: SocketAddr,
    path: &str,
    headers: &[(&'static str, String)],
) -> Result<Answer> {
    let request = with(Request::get(path), headers).body(Full::default())?;
    call(address, request).await
}

fn with(request: Builder, headers: &[(&'static str, String)]) -> Builder {
    let headers = headers.iter();
    headers.fold(request, |request, (name, value)| request.header(*name, value))
}

/// A GET that must be answered with 200 and text.
pub(crate) async fn get_text(address: SocketAddr, path: &str) -> Result<String> {
    let answer = get(address, path).await?;
    ensure!(
        answer.status == StatusCode::OK,
        "{path} was answered with {}",
        answer.status
    );
    Ok(String::from_utf8(answer.body.into())?)
}

/// A GET that must be answered with 200 and JSON.
pub(crate) async fn get_json<T: DeserializeOwned>(address: SocketAddr, path: &str) -> Result<T> {
    let text = get_text(address, path).await?;
    serde_json::from_str(&text).with_context(|| format!("{path} was answered with something else"))
}

/// A POST of a form, whatever the status.
pub(crate) async fn post_form(address: SocketAddr, path: &str, form: &'static str) -> Result<Answer> {
    post_form_with(address, path, form.to_owned(), &[]).await
}

/// As [`post_form`], with these headers.
pub(crate) async fn post_form_with(
    address: SocketAddr,
    path: &str,
    form: String,
    headers: &[(&'static str, String)],
) -> Result<Answer> {
    post_with(
        address,
        path,
        ("application/x-www-form-urlencoded", form),
        headers,
    )
    .await
}

/// A POST of JSON with these headers, whatever the status.
pub(crate) async fn post_json_with(
    address: SocketAddr,
    path: &str,
    body: String,
    headers: &[(&'static str, String)],
) -> Result<Answer> {
    post_with(address, path, ("application/json", body), headers).await
}

async fn post_with(
    address: SocketAddr,
    path: &str,
    (kind, body): (&str, String),
    headers: &[(&'static str, String)],
) -> Result<Answer> {
    let request = with(Request::post(path), headers)
        .header("content-type", kind)
        .body(Full::from(body))?;
    call(address, request).await
}

async fn call(address: SocketAddr, mut request: Request<Full<Bytes>>) -> Result<Answer> {
    let host = address.to_string().parse()?;
    request.headers_mut().insert("host", host);
    let exchange = async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let response = sender.send_request(request).await?;
        let status = response.status();
        let cookie = response.headers().get("set-cookie");
        let cookie = cookie.and_then(|cookie| Some(cookie.to_str().ok()?.split(';').next()?.to_owned()));
        let tag = response.headers().get("etag");
        let tag = tag.and_then(|tag| Some(tag.to_str().ok()?.to_owned()));
        let body = response.into_body().collect().await?.to_bytes();
        drop(sender);
        connection.abort();
        Ok(Answer {
            status,
            body,
            cookie,
            tag,
        })
    };
    tokio::time::timeout(LIMIT, exchange)
        .await
        .context("no answer in time")?
}
