//! Who calls: API keys, looked up in the database and remembered for a moment.
//!
//! It deliberately remembers no key that was refused, so that a new key works at once; a revoked one works until it is
//! forgotten.

use std::sync::Arc;
use std::time::Duration;

use domain::key::{KeyDigest, Role};
use http::{HeaderMap, header};
use lifecycle::error_chain;
use moka::future::Cache;
use store::Store;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::kind::ProblemKind;
use crate::outage::Outage;
use crate::problem::Problem;

/// How long a key is remembered, and so how long a revoked one still works.
const REMEMBERED: Duration = Duration::from_secs(5);
/// Most keys remembered.
const KEYS: u64 = 10_000;
/// When to try again while keys cannot be looked up, in seconds.
const RETRY_AFTER: u32 = 5;

const NO_KEY: &str = r#"Bearer realm="postrider""#;
const BAD_KEY: &str = r#"Bearer realm="postrider", error="invalid_token""#;

/// A caller with a valid key.
#[derive(Debug)]
pub struct Caller {
    /// The key's identifier.
    pub key: Uuid,
    /// What its makers call it.
    pub name: String,
    /// The reseller that the key belongs to; `None` for keys of the house.
    pub reseller_id: Option<String>,
    roles: Vec<Role>,
}

impl Caller {
    /// Whether one of the caller's roles allows what `allows` asks for.
    ///
    /// # Errors
    ///
    /// A [`ProblemKind::FORBIDDEN`] otherwise.
    pub fn require(&self, allows: fn(Role) -> bool) -> Result<(), Problem> {
        if self.roles.iter().copied().any(allows) {
            return Ok(());
        }
        Err(Problem::new(
            ProblemKind::FORBIDDEN,
            "none of the API key's roles allows this request",
        ))
    }

    /// Who it is, for the records: what the key is called, and which one it is.
    #[must_use]
    pub fn signature(&self) -> String {
        format!("{} ({})", self.name, self.key)
    }

    /// The reseller whose key this is.
    ///
    /// # Errors
    ///
    /// A [`ProblemKind::FORBIDDEN`] for a key of the house.
    pub fn reseller(&self) -> Result<&str, Problem> {
        self.reseller_id.as_deref().ok_or_else(|| {
            Problem::new(
                ProblemKind::FORBIDDEN,
                "the API key does not belong to a reseller",
            )
        })
    }
}

/// Why a key was not found.
enum Missing {
    Unknown,
    Unavailable,
    Failed,
}

/// The keys of the callers of the last seconds.
pub struct Keys {
    store: Store,
    remembered: Cache<KeyDigest, Arc<Caller>>,
    outage: Outage,
}

impl Keys {
    /// Keys of this database.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self {
            store,
            remembered: Cache::builder()
                .max_capacity(KEYS)
                .time_to_live(REMEMBERED)
                .build(),
            outage: Outage::of("look up an API key"),
        }
    }

    /// The caller that the request's `Authorization` header shows, by `deadline`.
    ///
    /// # Errors
    ///
    /// The problem to answer with.
    pub async fn caller(&self, headers: &HeaderMap, deadline: Instant) -> Result<Arc<Caller>, Problem> {
        timeout_at(deadline, self.find(headers))
            .await
            .unwrap_or_else(|_| Err(unavailable()))
    }

    async fn find(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Problem> {
        let digest = KeyDigest::of(presented(headers)?);
        if let Some(caller) = self.remembered.get(&digest).await {
            return Ok(caller);
        }
        // Simultaneous requests with the same key share one look-up.
        let looked_up = self.remembered.try_get_with(digest, self.look_up(digest)).await;
        looked_up.map_err(|missing| match *missing {
            Missing::Unknown => Problem::unauthorized("the API key is unknown or revoked", BAD_KEY),
            Missing::Unavailable => unavailable(),
            Missing::Failed => Problem::new(ProblemKind::INTERNAL, "the API key could not be looked up"),
        })
    }

    async fn look_up(&self, digest: KeyDigest) -> Result<Arc<Caller>, Missing> {
        match self.store.find_api_key(&digest).await {
            Ok(found) => {
                self.outage.worked();
                let key = found.ok_or(Missing::Unknown)?;
                Ok(Arc::new(Caller {
                    key: key.id,
                    name: key.name,
                    reseller_id: key.reseller_id,
                    roles: key.roles,
                }))
            }
            Err(error) if error.is_transient() => {
                self.outage.failed(&error);
                Err(Missing::Unavailable)
            }
            Err(error) => {
                tracing::error!(error = error_chain(&error), "failed to look up an API key");
                Err(Missing::Failed)
            }
        }
    }
}

fn unavailable() -> Problem {
    Problem::unavailable("the API key cannot be looked up now", RETRY_AFTER)
}

/// The key in `Authorization: Bearer pr_…`. What does not even look like one is not worth a question to the database.
pub(crate) fn presented(headers: &HeaderMap) -> Result<&str, Problem> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Err(Problem::unauthorized(
            "the Authorization header is missing",
            NO_KEY,
        ));
    };
    value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"))
        .map(|(_, key)| key.trim())
        .filter(|key| is_key(key))
        .ok_or_else(|| {
            Problem::unauthorized(
                "the Authorization header must be \"Bearer\" and an API key, which starts with pr_",
                BAD_KEY,
            )
        })
}

fn is_key(text: &str) -> bool {
    text.strip_prefix("pr_")
        .is_some_and(|random| random.len() == 64 && random.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn key_of(authorization: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::AUTHORIZATION,
            HeaderValue::from_str(authorization).unwrap(),
        );
        presented(&headers).ok().map(str::to_owned)
    }

    #[test]
    fn the_scheme_is_not_case_sensitive_and_the_key_is_taken_as_it_is() {
        let key = domain::key::format_key(&[7; 32]);
        for scheme in ["Bearer", "bearer", "BEARER"] {
            assert_eq!(key_of(&format!("{scheme} {key}")), Some(key.clone()));
        }
    }

    #[test]
    fn what_is_not_a_key_is_refused_without_asking() {
        for authorization in [
            "",
            "Bearer",
            "Bearer ",
            "Basic cHI6cHI=",
            "Bearer pr_123",
            "pr_ab",
        ] {
            assert_eq!(key_of(authorization), None, "{authorization}");
        }
    }
}
