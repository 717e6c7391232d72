//! The event types that are accepted, looked up in the database and remembered for a moment.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::nearest;
use event_schema::PayloadRules;
use http_api::{Outage, Problem, ProblemKind, Remembered};
use moka::future::Cache;
use runtime::error_chain;
use serde_json::Value;
use store::Store;
use store::webhook::EventType;
use tokio::time::{Instant, timeout_at};

/// Most compiled schemas.
const TYPES: u64 = 10_000;
/// When to try again while types cannot be looked up, in seconds.
const RETRY_AFTER: u32 = 5;

/// What is known of an event type.
#[derive(Clone)]
pub(crate) struct KnownType {
    /// New events of it are refused.
    pub(crate) retired: bool,
    /// What its payloads have to keep to.
    pub(crate) rules: Option<Arc<PayloadRules>>,
}

/// The types of the events of the last seconds.
pub(crate) struct Catalogue {
    store: Store,
    remembered: Remembered<String, KnownType>,
    /// The names of those in use, for what is told of a slip: to read all of them for each would keep the database busy.
    names: Remembered<(), Arc<[String]>>,
    /// By name and by when the entry last changed: compiling outlives forgetting.
    compiled: Cache<(String, DateTime<Utc>), Arc<PayloadRules>>,
    outage: Outage,
}

impl Catalogue {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            remembered: Remembered::default(),
            names: Remembered::default(),
            compiled: Cache::builder().max_capacity(TYPES).build(),
            outage: Outage::of("look up an event type"),
        }
    }

    /// The type of this name, by `deadline`.
    pub(crate) async fn find(&self, name: &str, deadline: Instant) -> Result<Option<KnownType>, Problem> {
        let looking_up = self.remembered.find(name, self.look_up(name));
        timeout_at(deadline, looking_up)
            .await
            .unwrap_or_else(|_| Err(unavailable()))
    }

    /// `"; did you mean …?"` about a name that the catalogue does not have, by `deadline`; nothing when that cannot be told.
    pub(crate) async fn question(&self, name: &str, deadline: Instant) -> String {
        let reading = async {
            let types = self.store.list_event_types().await.map_err(drop)?;
            let in_use = types.into_iter().filter(|known| known.retired_at.is_none());
            Ok::<_, ()>(Some(in_use.map(|known| known.name).collect()))
        };
        match timeout_at(deadline, self.names.find(&(), reading)).await {
            Ok(Ok(Some(names))) => nearest::question(name, names.iter().map(String::as_str)),
            _ => String::new(),
        }
    }

    /// Makes this process forget what it knew of a type, since it was changed here.
    pub(crate) async fn forget(&self, name: &str) {
        self.remembered.forget(name).await;
    }

    async fn look_up(&self, name: &str) -> Result<Option<KnownType>, Problem> {
        match self.store.find_event_type(name).await {
            Ok(found) => {
                self.outage.worked();
                match found {
                    Some(found) => self.known(found).await.map(Some),
                    None => Ok(None),
                }
            }
            Err(error) if error.is_transient() => {
                self.outage.failed(&error);
                Err(unavailable())
            }
            Err(error) => {
                tracing::error!(error = error_chain(&error), "failed to look up an event type");
                Err(failed())
            }
        }
    }

    async fn known(&self, found: EventType) -> Result<KnownType, Problem> {
        let retired = found.retired_at.is_some();
        let rules = match &found.schema {
            Some(schema) => Some(self.rules(&found, schema).await?),
            None => None,
        };
        Ok(KnownType { retired, rules })
    }

    async fn rules(&self, found: &EventType, schema: &Value) -> Result<Arc<PayloadRules>, Problem> {
        let version = (found.name.clone(), found.updated_at);
        if let Some(compiled) = self.compiled.get(&version).await {
            return Ok(compiled);
        }
        match PayloadRules::compile_stored(schema, found.unknown_fields) {
            Ok(compiled) => {
                let compiled = Arc::new(compiled);
                self.compiled.insert(version, Arc::clone(&compiled)).await;
                Ok(compiled)
            }
            Err(error) => {
                // Only an edit by hand in the database can bring this about: our code compiles a schema before it puts the type in.
                tracing::error!(
                    error = error_chain(&error),
                    name = version.0,
                    "the schema of an event type cannot be used"
                );
                Err(failed())
            }
        }
    }
}

fn unavailable() -> Problem {
    Problem::unavailable("the event type cannot be looked up now", RETRY_AFTER)
}

fn failed() -> Problem {
    Problem::new(ProblemKind::INTERNAL, "the event type could not be looked up")
}
