//! Talking to the provider: its documents, its keys, and the exchange of a code for an ID token.
//!
//! Every answer is read within 5 seconds and 1 MiB, and no redirect is followed: what is secret goes to the endpoint that was checked,
//! and nowhere else. Time is the caller's, and nothing is waited for past a deadline of its: a question for a document goes on by itself
//! then, and is shared by all who wait for it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use reqwest::header::ACCEPT;
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, StatusCode};
use serde::Deserialize;
use tokio::time::timeout_at;
use url::{Url, form_urlencoded};

use crate::attempt::{Attempt, Seal, shown};
use crate::claims::Claims;
use crate::discovery::Discovery;
use crate::error::{ProviderError, TokenError};
use crate::health::{Health, Question, Standing};
use crate::id_token::{Expected, LEEWAY, verify};
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
    /// The value of the cookie that the answer is held against.
    pub cookie: String,
}

/// A provider, and what is known of it.
#[derive(Debug)]
pub struct Provider {
    seal: Seal,
    shared: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    issuer: String,
    client: Client,
    http: reqwest::Client,
    known: Mutex<Known>,
}

/// A question that was asked, and that several may wait for.
type Asked<T> = Shared<BoxFuture<'static, Result<T, Arc<ProviderError>>>>;

#[derive(Debug, Default)]
struct Known {
    discovery: Option<(Discovery, DateTime<Utc>)>,
    keys: Option<Jwks>,
    /// When keys were last asked for, in vain or not.
    keys_at: Option<DateTime<Utc>>,
    /// When the document was last asked for, in vain or not.
    discovery_at: Option<DateTime<Utc>>,
    health: Health,
    /// When the last question for the document failed, if it did.
    failed: Option<Instant>,
    asked_discovery: Option<Asked<Discovery>>,
    asked_keys: Option<Asked<Jwks>>,
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
    /// The provider of this issuer. Nothing is asked of it yet, so that it may be away. `seal` is for the cookies of sign-ins.
    pub fn new(issuer: &str, client: Client, seal: Seal) -> Result<Self, ProviderError> {
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
        let shared = Inner {
            issuer: issuer.to_owned(),
            client,
            http,
            known: Mutex::default(),
        };
        Ok(Self {
            seal,
            shared: Arc::new(shared),
        })
    }

    /// The host of the issuer, by which a person knows the provider.
    pub fn host(&self) -> String {
        let host = Url::parse(&self.shared.issuer)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned));
        host.unwrap_or_else(|| self.shared.issuer.clone())
    }

    /// Begins a sign-in that leads to `next`, of a person who has shown who it is within `max_age` seconds, if that is asked for.
    pub async fn begin(
        &self,
        max_age: Option<u32>,
        next: &str,
        (now, deadline): (DateTime<Utc>, tokio::time::Instant),
    ) -> Result<SignIn, ProviderError> {
        let discovery = self.shared.discovery(now, deadline).await?;
        let attempt = Attempt::new(max_age, next, now);
        Ok(SignIn {
            address: attempt.address(&discovery, &self.shared.client),
            cookie: attempt.written(&self.seal),
        })
    }

    /// The sign-in that a cookie is of, unless it is over or was not begun here.
    pub fn attempt(&self, cookie: &str, now: DateTime<Utc>) -> Option<Attempt> {
        Attempt::read(cookie, &self.seal, now)
    }

    /// Ends a sign-in with the query that the provider sent the browser back with. A code is worth something only once; that is the
    /// provider's to see to.
    pub async fn finish(
        &self,
        attempt: &Attempt,
        query: &str,
        (now, deadline): (DateTime<Utc>, tokio::time::Instant),
    ) -> Result<Claims, ProviderError> {
        let shared = &self.shared;
        let discovery = shared.discovery(now, deadline).await?;
        let code = attempt.code(query, &discovery)?;
        let exchanging = shared.exchange(attempt, &code, &discovery);
        let exchanged = timeout_at(deadline, exchanging).await;
        let token = exchanged.unwrap_or(Err(ProviderError::Late(TOKEN)));
        match &token {
            Err(error) if error.is_outage() => shared.known().health.failed(Question::Token, now),
            Ok(_) | Err(_) => shared.known().health.answered(Question::Token),
        }
        let token = token?;
        let expected = Expected {
            issuer: &shared.issuer,
            client_id: &shared.client.id,
            nonce: &attempt.nonce,
            max_age: attempt.max_age.map(|seconds| TimeDelta::seconds(seconds.into())),
            now,
        };
        let keys = shared.keys(&discovery, KEYS_KEPT, (now, deadline)).await?;
        let verified = match verify(&token, &keys, &expected) {
            Err(TokenError::UnknownKey) => {
                let keys = shared.keys(&discovery, KEYS_PAUSE, (now, deadline)).await?;
                verify(&token, &keys, &expected)
            }
            verified => verified,
        };
        let claims = verified?;
        // It is made for a sign-in of the last ten minutes, whose nonce it has: what is older by its own account was made by another clock.
        if claims.issued_at < attempt.begun_at - LEEWAY {
            return Err(TokenError::Claim {
                name: "iat",
                fault: "lies before this sign-in was begun",
            }
            .into());
        }
        Ok(claims)
    }

    /// How the provider stands. While that is in doubt it is asked, every few seconds; what has not come by `deadline` is left out.
    pub async fn standing(&self, now: DateTime<Utc>, deadline: tokio::time::Instant) -> Standing {
        let was_asked = |at: Option<DateTime<Utc>>| at.is_some_and(|at| (now - at).abs() < PROBE_PAUSE);
        let (discovery, keys) = {
            let known = self.shared.known();
            let of_discovery = if known.health.doubts(Question::Discovery) {
                !was_asked(known.discovery_at)
            } else {
                known.fresh(now).is_none()
            };
            let of_keys = known.health.doubts(Question::Keys) && !was_asked(known.keys_at);
            let of_keys = known.fresh(now).filter(|_| of_keys);
            (of_discovery, of_keys)
        };
        if discovery {
            // What came of it stands with the other answers.
            let _ = within(deadline, DISCOVERY, self.shared.ask_for_discovery(now)).await;
        }
        if let Some(discovery) = keys {
            let _ = within(deadline, KEYS, self.shared.ask_for_keys(&discovery, now)).await;
        }
        self.shared.known().health.standing(now)
    }
}

impl Known {
    /// The document, unless it is too old.
    fn fresh(&self, now: DateTime<Utc>) -> Option<Discovery> {
        let (discovery, at) = self.discovery.as_ref()?;
        (now - *at < DISCOVERED).then(|| discovery.clone())
    }
}

/// Waits for what was asked, as long as there is time.
async fn within<T: Clone>(
    deadline: tokio::time::Instant,
    name: &'static str,
    asked: Asked<T>,
) -> Result<T, ProviderError> {
    match timeout_at(deadline, asked).await {
        Ok(answered) => Ok(answered?),
        Err(_) => Err(ProviderError::Late(name)),
    }
}

/// Goes on by itself, so that the one who asked may leave while others wait.
fn ask<T: Clone + Send + Sync + 'static>(
    name: &'static str,
    asking: impl Future<Output = Result<T, ProviderError>> + Send + 'static,
) -> Asked<T> {
    let task = tokio::spawn(asking);
    let asked = async move {
        let answered = task.await.unwrap_or(Err(ProviderError::Away(name, None)));
        answered.map_err(Arc::new)
    };
    asked.boxed().shared()
}

/// Of a question that was answered there is nothing more to wait for.
fn goes_on<T: Clone>(asked: Option<&Asked<T>>) -> Option<Asked<T>> {
    asked.filter(|asked| asked.peek().is_none()).cloned()
}

impl Inner {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that can panic is done while it is held.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn discovery(
        self: &Arc<Self>,
        now: DateTime<Utc>,
        deadline: tokio::time::Instant,
    ) -> Result<Discovery, ProviderError> {
        if let Some(discovery) = self.known().fresh(now) {
            return Ok(discovery);
        }
        within(deadline, DISCOVERY, self.ask_for_discovery(now)).await
    }

    /// Asks for the document, or waits with those who have asked for it already.
    fn ask_for_discovery(self: &Arc<Self>, now: DateTime<Utc>) -> Asked<Discovery> {
        let mut known = self.known();
        if let Some(asked) = goes_on(known.asked_discovery.as_ref()) {
            return asked;
        }
        if known.failed.is_some_and(|at| at.elapsed() < FAILURE_SHARED) {
            let failed = Err(Arc::new(ProviderError::Away(DISCOVERY, None)));
            return std::future::ready(failed).boxed().shared();
        }
        known.discovery_at = Some(now);
        let inner = Arc::clone(self);
        let asked = ask(DISCOVERY, async move {
            let answered = inner.discover().await;
            let mut known = inner.known();
            known.asked_discovery = None;
            known.failed = answered.is_err().then(Instant::now);
            known.discovery = answered.as_ref().ok().map(|discovery| (discovery.clone(), now));
            match &answered {
                Ok(_) => known.health.answered(Question::Discovery),
                Err(_) => known.health.failed(Question::Discovery, now),
            }
            answered
        });
        known.asked_discovery = Some(asked.clone());
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
        self: &Arc<Self>,
        discovery: &Discovery,
        max_age: TimeDelta,
        (now, deadline): (DateTime<Utc>, tokio::time::Instant),
    ) -> Result<Jwks, ProviderError> {
        {
            let known = self.known();
            if let (Some(keys), Some(at)) = (&known.keys, known.keys_at)
                && now - at < max_age
            {
                return Ok(keys.clone());
            }
        }
        within(deadline, KEYS, self.ask_for_keys(discovery, now)).await
    }

    /// Asks for the keys, or waits with those who have asked for them already.
    fn ask_for_keys(self: &Arc<Self>, discovery: &Discovery, now: DateTime<Utc>) -> Asked<Jwks> {
        let mut known = self.known();
        if let Some(asked) = goes_on(known.asked_keys.as_ref()) {
            return asked;
        }
        known.keys_at = Some(now);
        known.keys = None;
        let (inner, address) = (Arc::clone(self), discovery.jwks_uri.clone());
        let asked = ask(KEYS, async move {
            let read = inner.read(KEYS, inner.http.get(address)).await;
            let answered = read.and_then(|document| Ok(Jwks::read(&document)?));
            let mut known = inner.known();
            known.asked_keys = None;
            known.keys = answered.as_ref().ok().cloned();
            match &answered {
                Ok(_) => known.health.answered(Question::Keys),
                Err(_) => known.health.failed(Question::Keys, now),
            }
            answered
        });
        known.asked_keys = Some(asked.clone());
        asked
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
