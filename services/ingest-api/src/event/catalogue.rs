//! The event types that are accepted, looked up in the database and remembered for a moment.
//!
//! It deliberately remembers no type that was not found, so that a new one works at once; one that was retired or
//! changed is seen when the old one is forgotten.

use std::sync::Arc;
use std::time::Duration;

use bootstrap::error_chain;
use chrono::{DateTime, Utc};
use event_schema::PayloadSchema;
use http_api::{Outage, Problem, ProblemKind};
use moka::future::Cache;
use store::Store;
use store::reseller::EventType;
use tokio::time::{Instant, timeout_at};

/// How long a type is remembered, and so how long a retired one is still accepted.
const REMEMBERED: Duration = Duration::from_secs(5);
/// Most types remembered, and most compiled schemas.
const TYPES: u64 = 10_000;
/// When to try again while types cannot be looked up, in seconds.
const RETRY_AFTER: u32 = 5;

/// What is known of an event type.
#[derive(Clone)]
pub(crate) struct KnownType {
    /// New events of it are refused.
    pub(crate) retired: bool,
    /// What its payloads have to keep to.
    pub(crate) schema: Option<Arc<PayloadSchema>>,
}

/// Why nothing is known of a type.
enum Missing {
    Unknown,
    Unavailable,
    Failed,
}

/// The types of the events of the last seconds.
pub(crate) struct Catalogue {
    store: Store,
    remembered: Cache<String, KnownType>,
    /// By name and by when the entry last changed: compiling outlives forgetting.
    compiled: Cache<(String, DateTime<Utc>), Arc<PayloadSchema>>,
    outage: Outage,
}

impl Catalogue {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            remembered: Cache::builder()
                .max_capacity(TYPES)
                .time_to_live(REMEMBERED)
                .build(),
            compiled: Cache::builder().max_capacity(TYPES).build(),
            outage: Outage::of("look up an event type"),
        }
    }

    /// The type of this name, by `deadline`.
    ///
    /// # Errors
    ///
    /// The problem to answer with when it cannot be looked up.
    pub(crate) async fn find(&self, name: &str, deadline: Instant) -> Result<Option<KnownType>, Problem> {
        if let Some(known) = self.remembered.get(name).await {
            return Ok(Some(known));
        }
        // Simultaneous requests with the same type share one look-up.
        let looking_up = self.remembered.try_get_with_by_ref(name, self.look_up(name));
        let unavailable = || Problem::unavailable("the event type cannot be looked up now", RETRY_AFTER);
        match timeout_at(deadline, looking_up).await {
            Ok(Ok(known)) => Ok(Some(known)),
            Ok(Err(missing)) => match *missing {
                Missing::Unknown => Ok(None),
                Missing::Unavailable => Err(unavailable()),
                Missing::Failed => Err(Problem::new(
                    ProblemKind::INTERNAL,
                    "the event type could not be looked up",
                )),
            },
            Err(_) => Err(unavailable()),
        }
    }

    /// Makes this process forget what it knew of a type, since it was changed here.
    pub(crate) async fn forget(&self, name: &str) {
        self.remembered.invalidate(name).await;
    }

    async fn look_up(&self, name: &str) -> Result<KnownType, Missing> {
        match self.store.find_event_type(name).await {
            Ok(found) => {
                self.outage.worked();
                self.known(found.ok_or(Missing::Unknown)?).await
            }
            Err(error) if error.is_transient() => {
                self.outage.failed(&error);
                Err(Missing::Unavailable)
            }
            Err(error) => {
                tracing::error!(error = error_chain(&error), "failed to look up an event type");
                Err(Missing::Failed)
            }
        }
    }

    async fn known(&self, found: EventType) -> Result<KnownType, Missing> {
        let retired = found.retired_at.is_some();
        let Some(schema) = found.schema else {
            return Ok(KnownType {
                retired,
                schema: None,
            });
        };
        let version = (found.name, found.updated_at);
        if let Some(compiled) = self.compiled.get(&version).await {
            return Ok(KnownType {
                retired,
                schema: Some(compiled),
            });
        }
        match PayloadSchema::compile_stored(&schema) {
            Ok(compiled) => {
                let compiled = Arc::new(compiled);
                self.compiled.insert(version, Arc::clone(&compiled)).await;
                Ok(KnownType {
                    retired,
                    schema: Some(compiled),
                })
            }
            Err(error) => {
                // Only a hand in the database can bring this about: whoever puts a type in compiles its schema first.
                tracing::error!(
                    error = error_chain(&error),
                    name = version.0,
                    "the schema of an event type cannot be used"
                );
                Err(Missing::Failed)
            }
        }
    }
}
