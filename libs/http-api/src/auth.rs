//! Who calls: API keys, looked up in the database and remembered for a moment.
//!
//! A revoked key works until it is forgotten. One that was refused is refused for a second more without being looked up
//! again; how many unknown ones are looked up at all is the business of `strangers`.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::key::{KeyDigest, Role};
use domain::scope::Scope;
use http::{HeaderMap, HeaderValue, header};
use lifecycle::error_chain;
use moka::future::Cache;
use store::{ApiKey, Store, Visitor};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::kind::ProblemKind;
use crate::outage::Outage;
use crate::problem::Problem;
use crate::remembered::Remembered;
use crate::strangers::Strangers;

/// When to try again while keys cannot be looked up, in seconds.
const RETRY_AFTER: u32 = 5;
/// How often it is noted that a key is used, as the store does.
const NOTED: Duration = Duration::from_secs(60);
/// How long a request waits for that.
const NOTING_LIMIT: Duration = Duration::from_millis(500);
/// Of how many keys it is known that their use was noted.
const KEYS_NOTED: u64 = 10_000;

const NO_KEY: &str = r#"Bearer realm="postrider""#;
const BAD_KEY: &str = r#"Bearer realm="postrider", error="invalid_token""#;

/// What shows who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// The key of this identifier.
    Key(Uuid),
    /// A provider, which people sign in with.
    Person {
        /// The provider.
        issuer: String,
        /// Who it is there.
        subject: String,
        /// When the person last showed the provider who it is, if that says so.
        authenticated_at: Option<DateTime<Utc>>,
    },
}

/// A caller with a valid key, or a person with a visit.
#[derive(Debug)]
pub struct Caller {
    /// What shows who it is.
    pub identity: Identity,
    /// What the key's makers call it, or the provider the person.
    pub name: String,
    /// The reseller that the key belongs to; `None` for keys of the house.
    pub reseller_id: Option<String>,
    /// What the key is limited to.
    pub scope: Arc<Scope>,
    /// How many pushes and events together the key may hand in a second, when that is limited.
    pub per_second: Option<NonZeroU32>,
    roles: Vec<Role>,
    /// The first of the keys that were rotated into this one, if any were.
    first_key: Option<Uuid>,
}

impl From<ApiKey> for Caller {
    fn from(key: ApiKey) -> Self {
        Self {
            identity: Identity::Key(key.id),
            name: key.name,
            reseller_id: key.reseller_id,
            scope: Arc::new(key.scope),
            per_second: key.per_second.and_then(NonZeroU32::new),
            roles: key.roles,
            first_key: key.successor_of,
        }
    }
}

impl From<Visitor> for Caller {
    fn from(visitor: Visitor) -> Self {
        let person = match visitor {
            Visitor::Key(key) | Visitor::BreakGlass(key) => return key.into(),
            Visitor::Person(person) => person,
        };
        Self {
            identity: Identity::Person {
                issuer: person.issuer,
                subject: person.subject,
                authenticated_at: person.authenticated_at,
            },
            name: person.name,
            reseller_id: None,
            scope: Arc::default(),
            per_second: None,
            roles: vec![person.role],
            first_key: None,
        }
    }
}

impl Caller {
    /// Whether one of the caller's roles allows what `allows` asks for.
    pub fn may(&self, allows: fn(Role) -> bool) -> bool {
        self.roles.iter().copied().any(allows)
    }

    /// Refuses what none of the caller's roles allows.
    pub fn require(&self, allows: fn(Role) -> bool) -> Result<(), Problem> {
        if self.may(allows) {
            return Ok(());
        }
        let allowed = Role::ALL.into_iter().filter(|role| allows(*role));
        let allowed: Vec<&str> = allowed.map(Role::as_str).collect();
        let detail = format!(
            "none of {} roles allows this request; it needs {}",
            match self.identity {
                Identity::Key(_) => "the API key's",
                Identity::Person { .. } => "your",
            },
            allowed.join(" or ")
        );
        Err(Problem::new(ProblemKind::FORBIDDEN, detail))
    }

    /// Who it is, for the records: what the key is called, and which one it is; or what the person is called, and who it is to whom.
    pub fn signature(&self) -> String {
        match &self.identity {
            Identity::Key(id) => format!("{} ({id})", self.name),
            Identity::Person { issuer, subject, .. } => format!("{} <{subject}@{issuer}>", self.name),
        }
    }

    /// The key's identifier.
    ///
    /// # Errors
    ///
    /// A [`ProblemKind::FORBIDDEN`] for a person, who has none.
    pub fn key(&self) -> Result<Uuid, Problem> {
        match self.identity {
            Identity::Key(id) => Ok(id),
            Identity::Person { .. } => Err(Problem::new(
                ProblemKind::FORBIDDEN,
                "this takes an API key, and no person",
            )),
        }
    }

    /// What stays the same of a caller whose key is rotated: the identifier of the first of its keys.
    ///
    /// # Errors
    ///
    /// As for [`Caller::key`].
    pub fn first_key(&self) -> Result<Uuid, Problem> {
        self.first_key.map_or_else(|| self.key(), Ok)
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

/// The keys of the callers of the last seconds.
pub struct Keys {
    store: Store,
    remembered: Remembered<KeyDigest, Arc<Caller>>,
    /// Those whose use was noted within a minute.
    noted: Cache<Uuid, ()>,
    strangers: Strangers,
    outage: Outage,
}

impl Keys {
    /// Keys of this database.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            remembered: Remembered::default(),
            noted: Cache::builder()
                .time_to_live(NOTED)
                .max_capacity(KEYS_NOTED)
                .build(),
            strangers: Strangers::default(),
            outage: Outage::of("look up an API key"),
        }
    }

    /// The caller that the request's `Authorization` header shows, by `deadline`.
    pub async fn caller(&self, headers: &HeaderMap, deadline: Instant) -> Result<Arc<Caller>, Problem> {
        timeout_at(deadline, self.find(headers))
            .await
            .unwrap_or_else(|_| Err(unavailable()))
    }

    async fn find(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Problem> {
        let digest = KeyDigest::of(presented(headers)?);
        let found = self.remembered.find(&digest, self.look_up(digest)).await?;
        found.ok_or_else(|| Problem::unauthorized("the API key is unknown, revoked or expired", BAD_KEY))
    }

    /// The key as the database has it now; strangers' keys are looked up within limits.
    async fn look_up(&self, digest: KeyDigest) -> Result<Option<Arc<Caller>>, Problem> {
        let read = self.read(digest);
        self.strangers.look_up(digest, "API keys", read).await
    }

    async fn read(&self, digest: KeyDigest) -> Result<Option<Arc<Caller>>, Problem> {
        match self.store.find_api_key(&digest).await {
            Ok(found) => {
                self.outage.worked();
                if let Some(key) = &found {
                    Box::pin(self.note_use(key.id)).await;
                }
                Ok(found.map(Caller::from).map(Arc::new))
            }
            Err(error) if error.is_transient() => {
                self.outage.failed(&error);
                Err(unavailable())
            }
            Err(error) => {
                tracing::error!(error = error_chain(&error), "failed to look up an API key");
                let detail = "the API key could not be looked up";
                Err(Problem::new(ProblemKind::INTERNAL, detail))
            }
        }
    }

    /// Notes that the key is used, once a minute. That it could not be noted is no reason to refuse the caller, nor to keep it waiting.
    async fn note_use(&self, key: Uuid) {
        if self.noted.contains_key(&key) {
            return;
        }
        self.noted.insert(key, ()).await;
        if let Err(error) = store::within(NOTING_LIMIT, self.store.note_key_use(key)).await {
            tracing::debug!(
                error = error_chain(&error),
                "failed to note that an API key is used"
            );
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
    let detail = match bearer(value) {
        Some(key) if is_key(key) => return Ok(key),
        Some(key) if !key.is_empty() => {
            "the API key is not of the right form, which is pr_ and 64 hexadecimal digits; a part of it may be missing"
        }
        _ => {
            "the Authorization header must be \"Bearer\" and an API key, which is pr_ and 64 hexadecimal digits"
        }
    };
    Err(Problem::unauthorized(detail, BAD_KEY))
}

/// The key in `Bearer pr_…`.
pub(crate) fn key_in(authorization: &HeaderValue) -> Option<&str> {
    bearer(authorization).filter(|key| is_key(key))
}

/// What stands after `Bearer`.
fn bearer(authorization: &HeaderValue) -> Option<&str> {
    let (scheme, key) = authorization.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then_some(key.trim())
}

fn is_key(text: &str) -> bool {
    text.strip_prefix("pr_")
        .is_some_and(|random| random.len() == 64 && random.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(authorization: &str) -> Result<String, Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::AUTHORIZATION,
            HeaderValue::from_str(authorization).unwrap(),
        );
        presented(&headers).map(str::to_owned)
    }

    #[test]
    fn the_scheme_is_not_case_sensitive_and_the_key_is_taken_as_it_is() {
        let key = domain::key::format_key(&[7; 32]);
        for scheme in ["Bearer", "bearer", "BEARER"] {
            assert_eq!(key_of(&format!("{scheme} {key}")).unwrap(), key);
        }
    }

    #[test]
    fn what_is_not_a_key_is_refused_without_asking() {
        for authorization in ["", "Bearer", "Bearer ", "Basic cHI6cHI=", "pr_ab"] {
            let problem = key_of(authorization).unwrap_err();
            assert!(problem.detail().contains("must be \"Bearer\""), "{authorization}");
        }
    }

    #[test]
    fn a_key_of_the_wrong_form_is_told_the_right_one() {
        let key = domain::key::format_key(&[7; 32]);
        for wrong in ["pr_x", &key[..66], &key[3..], &format!("{key}0")] {
            let problem = key_of(&format!("Bearer {wrong}")).unwrap_err();
            assert!(
                problem
                    .detail()
                    .starts_with("the API key is not of the right form")
            );
            assert!(!problem.detail().contains(wrong), "a key is never repeated");
        }
    }
}
