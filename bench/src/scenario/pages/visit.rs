//! Visits to the console and to the dashboard, and requests that they make.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use hyper::StatusCode;
use serde_json::Value;

use crate::http::{self, Answer};

/// Requests of each page, after some that are not measured.
pub(super) const REQUESTS: usize = 100;
const WARM_UP: usize = 5;

/// Who asks for pages, where, and how long it waits between them.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    pub(super) address: SocketAddr,
    pub(super) cookie: String,
    pub(super) rest: Duration,
}

/// What a form is sent with; a browser says from where.
fn from_here() -> [(&'static str, String); 1] {
    [("sec-fetch-site", "same-origin".to_owned())]
}

fn of(address: SocketAddr, answer: Answer, rest: Duration) -> Result<Visit> {
    ensure!(
        answer.status == StatusCode::SEE_OTHER,
        "beginning a visit was answered with {}",
        answer.status
    );
    let cookie = answer
        .cookie
        .context("beginning a visit was answered without a cookie")?;
    Ok(Visit {
        address,
        cookie,
        rest,
    })
}

/// A visit to the console with a key.
pub(super) async fn sign_in(address: SocketAddr, key: &str) -> Result<Visit> {
    let form = format!("key={key}&next=%2Fconsole");
    let answer = http::post_form_with(address, "/console/sign-in", form, &from_here()).await?;
    of(address, answer, Duration::ZERO)
}

/// The token of a link to the dashboard, which is made with the reseller's key.
pub(super) async fn link(address: SocketAddr, key: &str) -> Result<String> {
    let headers = [("authorization", format!("Bearer {key}"))];
    let body = r#"{"person":{"id":"bench"},"capabilities":["bodies","manage","resend","quota"]}"#;
    let link = http::post_json_with(address, "/portal-links", body.to_owned(), &headers).await?;
    let link: Value =
        serde_json::from_slice(&link.body).context("a link was answered with something else")?;
    let url = link["url"].as_str().context("no link was made")?;
    let (_, token) = url.split_once("#t=").context("a link without a token")?;
    Ok(token.to_owned())
}

/// A visit to the dashboard.
pub(super) async fn enter(address: SocketAddr, key: &str) -> Result<Visit> {
    /// A reseller is let do fifty requests in a second.
    const REST: Duration = Duration::from_millis(25);
    let form = format!("token={}", link(address, key).await?);
    let answer = http::post_form_with(address, "/app/enter", form, &from_here()).await?;
    of(address, answer, REST)
}

impl Visit {
    /// One request; `tag` is what the browser has of the page that follows what happens, if it does.
    pub(super) async fn get(&self, path: &str, tag: Option<&str>) -> Result<Answer> {
        let mut headers = vec![("cookie", self.cookie.clone())];
        if let Some(tag) = tag {
            headers.push(("x-postrider-tick", "1".to_owned()));
            headers.push(("if-none-match", tag.to_owned()));
        }
        let answer = http::get_with(self.address, path, &headers).await?;
        ensure!(
            answer.status == StatusCode::OK || tag.is_some() && answer.status == StatusCode::NOT_MODIFIED,
            "{path} was answered with {}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
        Ok(answer)
    }

    /// Some requests that are not measured.
    pub(super) async fn warm_up(&self, path: &str) -> Result<()> {
        for _ in 0..WARM_UP {
            self.get(path, None).await?;
            tokio::time::sleep(self.rest).await;
        }
        Ok(())
    }

    /// The times of the requests in milliseconds.
    pub(super) async fn ask(&self, path: &str) -> Result<Vec<f64>> {
        let mut times = Vec::with_capacity(REQUESTS);
        for _ in 0..REQUESTS {
            let started = Instant::now();
            self.get(path, None).await?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
            tokio::time::sleep(self.rest).await;
        }
        Ok(times)
    }
}
