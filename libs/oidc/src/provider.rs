//! Talking to the provider: its documents, its keys, and the exchange of a code for an ID token.
//!
//! Every answer is read within 5 seconds and 1 MiB, and no redirect is followed: what is secret goes to the endpoint that was checked,
//! and nowhere else. Time is the caller's.

use std::fmt;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use reqwest::header::ACCEPT;
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, StatusCode};
use serde::Deserialize;
use tokio::sync::Mutex;
use url::{Url, form_urlencoded};

use crate::attempt::{Attempt, shown};
use crate::claims::Claims;
use crate::discovery::Discovery;
use crate::error::{ProviderError, TokenError};
use crate::id_token::{Expected, verify};
use crate::jwks::Jwks;

/// Longest wait for one answer, to its last byte.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Largest answer.
const ANSWER_MAX_BYTES: usize = 1024 * 1024;
/// How long the discovery document counts as the present one.
const DISCOVERED: TimeDelta = TimeDelta::seconds(60);
/// How long keys are kept without being asked for again: one that the provider withdraws is believed no longer.
const KEYS_KEPT: TimeDelta = TimeDelta::hours(1);
/// Least time between two looks for a key that is not known.
const KEYS_PAUSE: TimeDelta = TimeDelta::seconds(60);
/// Least time between two questions whether a provider that did not answer does again.
const PROBE_PAUSE: TimeDelta = TimeDelta::seconds(5);
/// For how long nothing is asked after a question that failed, by no clock that anything can set: those who wait for an answer at the same time
/// share the failure instead of asking one after another.
const FAILURE_SHARED: Duration = Duration::from_secs(1);
/// After how long an answer that failed says nothing of the time since.
const OUTAGE_GAP: TimeDelta = TimeDelta::minutes(5);

const DISCOVERY: &str = "the discovery document";
const KEYS: &str = "the key set";
const TOKEN: &str = "the token endpoint";

/// What the provider knows us as.
#[derive(Clone)]
pub struct Client {
    /// Its identifier there.
    pub id: String,
    /// Its secret; none of a public client, which PKCE protects alone.
    pub secret: Option<String>,
    /// Where answers go, as it is registered there.
    pub redirect_uri: String,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id)
            .field("redirect_uri", &self.redirect_uri)
            .finish_non_exhaustive()
    }
}

/// A sign-in that was begun: where to send the browser, and what its cookie keeps meanwhile.
pub struct SignIn {
    /// The provider's page.
    pub address: Url,
    /// What the answer is held against.
    pub attempt: Attempt,
}

/// A provider, and what is known of it.
#[derive(Debug)]
pub struct Provider {
    issuer: String,
    client: Client,
    http: reqwest::Client,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    discovery: Option<(Discovery, DateTime<Utc>)>,
    keys: Option<Jwks>,
    /// When keys were last asked for, in vain or not.
    keys_at: Option<DateTime<Utc>>,
    outage: Option<Outage>,
    /// When the last question failed, if it did.
    failed: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Outage {
    since: DateTime<Utc>,
    asked_at: DateTime<Utc>,
}

#[derive(Deserialize)]
struct Answer {
    id_token: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

impl Provider {
    /// The provider of this issuer. Nothing is asked of it yet, so that it may be away.
    pub fn new(issuer: &str, client: Client) -> Result<Self, ProviderError> {
        let http = reqwest::Client::builder()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .timeout(TIMEOUT)
            .connect_timeout(TIMEOUT)
            .user_agent(concat!("postrider/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(ProviderError::SetUp)?;
        Ok(Self {
            issuer: issuer.to_owned(),
            client,
            http,
            known: Mutex::default(),
        })
    }

    /// The host of the issuer, by which a person knows the provider.
    pub fn host(&self) -> String {
        let host = Url::parse(&self.issuer)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned));
        host.unwrap_or_else(|| self.issuer.clone())
    }

    /// Begins a sign-in that leads to `next`, of a person who has shown who it is within `max_age` seconds, if that is asked for.
    pub async fn begin(
        &self,
        max_age: Option<u32>,
        next: &str,
        now: DateTime<Utc>,
    ) -> Result<SignIn, ProviderError> {
        let discovery = self.discovery(now).await?;
        let attempt = Attempt::new(max_age, next);
        let address = attempt.address(&discovery, &self.client);
        Ok(SignIn { address, attempt })
    }

    /// Ends a sign-in with the query that the provider sent the browser back with. A code is worth something only once; that is the
    /// provider's to see to.
    pub async fn finish(
        &self,
        attempt: &Attempt,
        query: &str,
        now: DateTime<Utc>,
    ) -> Result<Claims, ProviderError> {
        let discovery = self.discovery(now).await?;
        let code = attempt.code(query, &discovery)?;
        let token = self.exchange(attempt, &code, &discovery).await?;
        let expected = Expected {
            issuer: &self.issuer,
            client_id: &self.client.id,
            nonce: &attempt.nonce,
            max_age: attempt.max_age.map(|seconds| TimeDelta::seconds(seconds.into())),
            now,
        };
        let keys = self.keys(&discovery, KEYS_KEPT, now).await?;
        match verify(&token, &keys, &expected) {
            Err(TokenError::UnknownKey) => {
                let keys = self.keys(&discovery, KEYS_PAUSE, now).await?;
                Ok(verify(&token, &keys, &expected)?)
            }
            verified => Ok(verified?),
        }
    }

    /// For how long the provider has not answered; none when it does. Asks it unless that was done a moment ago.
    pub async fn away_for(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        let just_asked = |outage: &Outage| now - outage.asked_at < PROBE_PAUSE;
        let outage = self.known.lock().await.outage;
        if !outage.as_ref().is_some_and(just_asked) {
            match self.discovery(now).await {
                Err(error) if error.is_outage() => {}
                Ok(_) | Err(_) => return None,
            }
        }
        let outage = self.known.lock().await.outage?;
        Some(now - outage.since)
    }

    async fn discovery(&self, now: DateTime<Utc>) -> Result<Discovery, ProviderError> {
        // Held while it is asked for, so that requests at the same time ask once.
        let mut known = self.known.lock().await;
        if let Some((discovery, at)) = &known.discovery
            && now - *at < DISCOVERED
        {
            return Ok(discovery.clone());
        }
        if known.failed.is_some_and(|at| at.elapsed() < FAILURE_SHARED) {
            return Err(ProviderError::Away(DISCOVERY, None));
        }
        let asked = self.discover().await;
        known.failed = asked.is_err().then(Instant::now);
        match &asked {
            Ok(discovery) => {
                known.discovery = Some((discovery.clone(), now));
                known.outage = None;
            }
            Err(_) => {
                known.discovery = None;
                let goes_on = known.outage.filter(|outage| now - outage.asked_at < OUTAGE_GAP);
                known.outage = Some(Outage {
                    since: goes_on.map_or(now, |outage| outage.since),
                    asked_at: now,
                });
            }
        }
        asked
    }

    async fn discover(&self) -> Result<Discovery, ProviderError> {
        let Some(address) = Discovery::address(&self.issuer) else {
            return Err(ProviderError::Away(DISCOVERY, None));
        };
        let document = self.read(DISCOVERY, self.http.get(address)).await?;
        Ok(Discovery::read(&document, &self.issuer)?)
    }

    /// The keys, not older than that.
    async fn keys(
        &self,
        discovery: &Discovery,
        max_age: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Jwks, ProviderError> {
        let mut known = self.known.lock().await;
        if let (Some(keys), Some(at)) = (&known.keys, known.keys_at)
            && now - at < max_age
        {
            return Ok(keys.clone());
        }
        known.keys_at = Some(now);
        known.keys = None;
        let document = self.read(KEYS, self.http.get(discovery.jwks_uri.clone())).await?;
        let keys = Jwks::read(&document)?;
        known.keys = Some(keys.clone());
        Ok(keys)
    }

    async fn exchange(
        &self,
        attempt: &Attempt,
        code: &str,
        discovery: &Discovery,
    ) -> Result<String, ProviderError> {
        let mut form = attempt.form(code, &self.client);
        let mut request = self.http.post(discovery.token_endpoint.clone());
        match &self.client.secret {
            Some(secret) if discovery.secret_in_body => form.push(("client_secret", secret)),
            // Both are encoded as in a form before they are encoded as in a header (RFC 6749, 2.3.1).
            Some(secret) => request = request.basic_auth(encoded(&self.client.id), Some(encoded(secret))),
            None => {}
        }
        let body = self.read(TOKEN, request.form(&form)).await?;
        let token = serde_json::from_slice::<Answer>(&body)
            .ok()
            .and_then(|answer| answer.id_token);
        token.ok_or_else(|| TokenError::Malformed("the token endpoint answered without one").into())
    }

    async fn read(&self, name: &'static str, request: RequestBuilder) -> Result<Vec<u8>, ProviderError> {
        let away = |error| ProviderError::Away(name, Some(error));
        let mut answer = request
            .header(ACCEPT, "application/json")
            .send()
            .await
            .map_err(away)?;
        let status = answer.status();
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(away)? {
            if body.len() + chunk.len() > ANSWER_MAX_BYTES {
                return Err(ProviderError::TooLong(name));
            }
            body.extend_from_slice(&chunk);
        }
        if status == StatusCode::OK {
            return Ok(body);
        }
        match serde_json::from_slice::<Refusal>(&body) {
            Ok(refusal) if status.is_client_error() && name == TOKEN => {
                Err(ProviderError::CodeRefused(shown(&refusal.error)))
            }
            _ => Err(ProviderError::Status {
                name,
                status: status.as_u16(),
            }),
        }
    }
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
