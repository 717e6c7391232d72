//! What the handlers share.

use std::sync::{Arc, OnceLock};

use chrono::{DateTime, SubsecRound as _, Utc};
use config::Config;
use domain::clock::Clock;
use domain::event::is_reserved;
use domain::nearest;
use domain::push::PushId;
use domain::subscription::HeldBack;
use encryption::{Sealer, SealingKey};
use engine::webhook::EndpointChecker;
use http_api::{FieldCode, Keys, Problem, Remembered, TakesBodies};
use http_client::EgressPolicy;
use lifecycle::{Shutdown, error_chain};
use pages::Violations;
use store::Store;
use store::webhook::{Addresses, SubscriptionView};
use tokio::time::Instant;
use uuid::Uuid;

use crate::dashboard::Visits;
use crate::limits::Limits;
use crate::problems;
use crate::request::Reseller;

/// When to try again while no secret can be sealed, in seconds. The operator has to change the configuration first.
const UNCONFIGURED_RETRY: u32 = 60;

/// The state behind every request.
pub(crate) struct App {
    pub(crate) keys: Keys,
    pub(crate) visits: Visits,
    pub(crate) limits: Limits,
    pub(crate) embedders: Limits,
    /// What browsers report of the pages.
    pub(crate) violations: Violations,
    pub(crate) store: Store,
    clock: Arc<dyn Clock>,
    pub(crate) config: Arc<Config>,
    pub(crate) egress: EgressPolicy,
    sealer: Option<Sealer>,
    /// Their names: with those that were retired, or without.
    event_types: Remembered<bool, Arc<[String]>>,
    /// When it is over, nothing waits for a change any more.
    pub(crate) shutdown: Shutdown,
    /// Made with the first check: it reads the certificates of the system. Where it could not be made the next check tries again.
    checker: OnceLock<EndpointChecker>,
}

impl App {
    pub(crate) fn new(config: Arc<Config>, store: Store, clock: Arc<dyn Clock>, shutdown: Shutdown) -> Self {
        let secrets = &config.reseller.secrets;
        let sealer = secrets.key_bytes().map(|key| {
            let previous: Vec<_> = secrets
                .previous_key_bytes()
                .into_iter()
                .map(SealingKey::from_bytes)
                .collect();
            Sealer::new(&SealingKey::from_bytes(key), &previous)
        });
        if sealer.is_none() {
            tracing::warn!("reseller.secrets.key is not set: no subscription can be made");
        }
        if let Some(opened) = config.reseller.egress.opened() {
            tracing::warn!(
                opened,
                "endpoints may lie where the internet does not reach; this is for development"
            );
        }
        Self {
            keys: Keys::new(store.clone()),
            visits: Visits::default(),
            limits: Limits::new(),
            embedders: Limits::of_embedders(),
            violations: Violations::default(),
            store,
            clock,
            egress: EgressPolicy {
                allow: config.reseller.egress.allow_networks.clone(),
                allow_http: config.reseller.egress.allow_http,
                deny: config.reseller.egress.deny_networks.clone(),
                ports: config.reseller.egress.allow_ports.clone(),
            },
            sealer,
            event_types: Remembered::default(),
            shutdown,
            checker: OnceLock::new(),
            config,
        }
    }

    /// The present time, as precise as the database keeps it, so that an answer and a later one say the same.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now().trunc_subsecs(6)
    }

    /// When a request that starts now has to be answered.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.config.portal.request_timeout
    }

    /// When a request that starts now has to have its turn, so that there is time left for what it asks.
    pub(crate) fn latest_turn(&self) -> Instant {
        Instant::now() + self.config.portal.request_timeout / 2
    }

    /// What seals secrets.
    ///
    /// # Errors
    ///
    /// An `UNAVAILABLE` when the installation has no key for that.
    pub(crate) fn sealer(&self) -> Result<&Sealer, Problem> {
        self.sealer.as_ref().ok_or_else(|| {
            Problem::unavailable(
                "no signing secret can be made: the operator has to set reseller.secrets.key first",
                UNCONFIGURED_RETRY,
            )
        })
    }

    /// What checks endpoints.
    ///
    /// # Errors
    ///
    /// An `UNAVAILABLE` when there is no client for it, for example because the system's certificates cannot be read.
    pub(crate) fn checker(&self) -> Result<&EndpointChecker, Problem> {
        if let Some(checker) = self.checker.get() {
            return Ok(checker);
        }
        let made = EndpointChecker::new(&self.config).map_err(|error| {
            tracing::error!(error = error_chain(&error), "endpoints cannot be checked");
            Problem::unavailable("endpoints cannot be checked here", UNCONFIGURED_RETRY)
        })?;
        Ok(self.checker.get_or_init(|| made))
    }

    /// The reseller's subscription with this identifier.
    ///
    /// # Errors
    ///
    /// A `NOT_FOUND` when it has none, even if another reseller has one.
    pub(crate) async fn subscription(
        &self,
        reseller: &Reseller,
        id: Uuid,
    ) -> Result<SubscriptionView, Problem> {
        let look = self.store.find_subscription(&reseller.id, id);
        let found = http_api::by(reseller.deadline, ("the subscription", "read"), look).await?;
        found.ok_or_else(problems::no_subscription)
    }

    /// What holds back the notifications of a subscription.
    pub(crate) async fn held_back(&self, reseller: &Reseller, id: Uuid) -> Result<HeldBack, Problem> {
        let ids = [id];
        let look = self.store.held_back(&ids);
        let found = http_api::by(reseller.deadline, ("the subscription", "read"), look).await?;
        Ok(found.get(&id).copied().unwrap_or_default())
    }

    /// The names of the event types that can be selected, as of some seconds ago at most: to read the whole catalogue for
    /// each subscription would let one reseller keep the database busy.
    pub(crate) async fn event_types(&self, reseller: &Reseller) -> Result<Arc<[String]>, Problem> {
        self.names_of_event_types(reseller, false).await
    }

    /// Refuses event types that the catalogue never had, of which nothing can be found. Retired ones stay in it.
    pub(crate) async fn require_event_types(
        &self,
        reseller: &Reseller,
        names: &[String],
    ) -> Result<(), Problem> {
        if names.is_empty() {
            return Ok(());
        }
        let known = self.names_of_event_types(reseller, true).await?;
        let is_unknown = |name: &&String| !is_reserved(name) && !known.contains(name);
        let Some(unknown) = names.iter().find(is_unknown) else {
            return Ok(());
        };
        let question = nearest::question(unknown, known.iter().map(String::as_str));
        let detail = format!(
            "has {unknown}, but the catalogue has no such event type; GET /event-types lists what it has{question}"
        );
        Err(Problem::query("eventType", detail).coded(FieldCode::UnknownValue))
    }

    async fn names_of_event_types(
        &self,
        reseller: &Reseller,
        with_retired: bool,
    ) -> Result<Arc<[String]>, Problem> {
        let reading = async {
            let list = self.store.list_event_types();
            let types = http_api::by(reseller.deadline, ("the event types", "read"), list).await?;
            let wanted = types
                .into_iter()
                .filter(|event_type| with_retired || event_type.retired_at.is_none());
            Ok(Some(wanted.map(|event_type| event_type.name).collect()))
        };
        let names = self.event_types.find(&with_retired, reading).await?;
        Ok(names.unwrap_or_default())
    }

    /// What is thought of an address that a reseller names.
    pub(crate) fn addresses(&self) -> Addresses {
        Addresses::confirmed_if(self.config.mail.confirm_addresses)
    }
}

impl TakesBodies for App {
    fn max_body_bytes(&self) -> usize {
        self.config.portal.max_body_bytes
    }

    fn deadline(&self) -> Instant {
        Self::deadline(self)
    }
}

/// A new identifier for something made at `now`.
pub(crate) fn new_id(now: DateTime<Utc>) -> Uuid {
    // Every identifier is made the same way, whatever it identifies.
    PushId::at(now).uuid()
}
