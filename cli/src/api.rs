//! A caller of one of the HTTP APIs.
//!
//! It deliberately knows no document of an API: each command reads what it shows.

use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::header::ETAG;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::problem::Refusal;
use crate::web;

/// Longer than a service takes for its own "not now".
const LIMIT: Duration = Duration::from_secs(30);

/// Which API it is, in what people are told.
#[derive(Debug)]
pub(crate) struct Service {
    /// As in "something that no … says".
    pub(crate) name: &'static str,
    /// Where its address comes from.
    pub(crate) address: &'static str,
    /// What mends a refusal that is not about what was asked for.
    pub(crate) advice: fn(StatusCode) -> Option<&'static str>,
}

/// A part of a list.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// The `cursor` with which the list goes on.
    #[serde(default)]
    pub(crate) next: Option<String>,
}

/// A caller with an address and a key.
pub(crate) struct Api {
    client: Client,
    url: String,
    key: String,
    service: &'static Service,
}

impl Api {
    /// A caller of the service at `url`.
    pub(crate) fn new(service: &'static Service, url: &str, key: &str) -> anyhow::Result<Self> {
        web::note_what_is_in_the_clear(url);
        Ok(Self {
            client: web::client(LIMIT)?,
            url: url.trim_end_matches('/').to_owned(),
            key: key.to_owned(),
            service,
        })
    }

    /// What is at `path`. `query` is whatever becomes a query string: pairs, or a struct whose empty options are left out.
    /// With `T` = [`serde_json::Value`] it is the document just as the API gives it.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &(impl Serialize + ?Sized),
    ) -> anyhow::Result<T> {
        let request = self.request(Method::GET, path).query(query);
        self.document(request, path).await
    }

    /// What `POST path` answers.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        self.send(Method::POST, path, body).await
    }

    /// Posts to `path` what needs no body, where the answer has none either.
    pub(crate) async fn post_empty(&self, path: &str) -> anyhow::Result<()> {
        let answer = self.answer(self.request(Method::POST, path), path).await?;
        self.success(answer, path).await.map(drop)
    }

    /// What a request with a body is answered.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        self.document(self.request(method, path).json(body), path).await
    }

    /// Sends a body to where nothing is answered but that it is done.
    pub(crate) async fn tell(&self, method: Method, path: &str, body: &impl Serialize) -> anyhow::Result<()> {
        let answer = self.answer(self.request(method, path).json(body), path).await?;
        self.success(answer, path).await.map(drop)
    }

    /// Deletes what is at `path`.
    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<()> {
        let answer = self.answer(self.request(Method::DELETE, path), path).await?;
        self.success(answer, path).await.map(drop)
    }

    /// Deletes what is at `path`, and says why.
    pub(crate) async fn delete_noted(&self, path: &str, note: Option<&str>) -> anyhow::Result<()> {
        let request = self.request(Method::DELETE, path).query(&[("note", note)]);
        let answer = self.answer(request, path).await?;
        self.success(answer, path).await.map(drop)
    }

    /// A request with the key, to be sent with [`Api::answer`].
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, self.url(path));
        request.bearer_auth(&self.key)
    }

    /// The address of what is at `path`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// The answer, whatever it is.
    pub(crate) async fn answer(&self, request: RequestBuilder, path: &str) -> anyhow::Result<Response> {
        web::send_to(request, &self.url(path), self.service.address).await
    }

    /// The document that a request is answered with.
    pub(crate) async fn document<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        path: &str,
    ) -> anyhow::Result<T> {
        let (document, _) = self.versioned(request, path).await?;
        Ok(document)
    }

    /// The same, with the version of the document where the answer names one: its `ETag`.
    pub(crate) async fn versioned<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        path: &str,
    ) -> anyhow::Result<(T, Option<String>)> {
        let answer = self.answer(request, path).await?;
        let answer = self.success(answer, path).await?;
        let version = answer.headers().get(ETAG);
        let version = version.and_then(|version| version.to_str().ok().map(str::to_owned));
        let text = answer.text().await.map_err(reqwest::Error::without_url)?;
        let strange = format!(
            "{}{path} answered with something that no {} says; check {}",
            self.url, self.service.name, self.service.address
        );
        // Each document is an object; any other value would be shown as an empty one.
        if !text.trim_start().starts_with('{') {
            bail!(strange);
        }
        Ok((serde_json::from_str(&text).context(strange)?, version))
    }

    async fn success(&self, answer: Response, path: &str) -> anyhow::Result<Response> {
        if answer.status().is_success() {
            return Ok(answer);
        }
        let refusal = Refusal::of(self.url(path), answer).await;
        Err(refusal.advised(self.service.advice).into())
    }
}
