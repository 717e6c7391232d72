//! Which of the two lanes an engine serves, and what it works with.

use std::sync::Arc;

use broker::{Broker, Queue};
use config::Config;
use domain::clock::Clock;
use domain::notification::RetryPolicy;
use encryption::{KeyError, Sealer, SealingKey};
use http_client::{EgressPolicy, WebhookClient, WebhookError, WebhookSettings};
use store::Store;

/// Which attempts an engine makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// First ones.
    First,
    /// Further ones.
    Retry,
}

impl Lane {
    pub(crate) fn queue(self) -> Queue {
        match self {
            Self::First => Queue::ResellerReady,
            Self::Retry => Queue::ResellerRetry,
        }
    }

    /// The label of its metrics.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Retry => "retry",
        }
    }

    pub(crate) fn slots(self, config: &Config) -> usize {
        match self {
            Self::First => config.reseller.delivery.max_in_flight,
            Self::Retry => config.reseller.retry.max_in_flight,
        }
    }
}

/// Why the tools could not be made.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// `reseller.secrets.key` or one of the previous keys is none.
    #[error("failed to read the keys of reseller.secrets")]
    Key(#[source] KeyError),
    /// The HTTP client could not be set up.
    #[error("failed to prepare the client of resellers' endpoints")]
    Client(#[source] WebhookError),
}

/// What an engine works with. Cheap to clone.
#[derive(Clone)]
pub struct Tools {
    /// The configuration.
    pub config: Arc<Config>,
    /// The database.
    pub store: Store,
    /// The broker.
    pub broker: Broker,
    /// The clock for due times, days and timestamps.
    pub clock: Arc<dyn Clock>,
    /// Opens signing secrets.
    pub sealer: Arc<Sealer>,
    /// Talks to endpoints.
    pub client: WebhookClient,
}

impl Tools {
    /// What the configuration describes; `None` when it has no key for signing secrets, which leaves the lane off.
    pub fn open(
        config: &Arc<Config>,
        store: &Store,
        broker: &Broker,
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<Self>, OpenError> {
        let secrets = &config.reseller.secrets;
        let Some(key) = &secrets.key else {
            return Ok(None);
        };
        if let Some(opened) = config.reseller.egress.opened() {
            tracing::warn!(
                opened,
                "endpoints may lie where the internet does not reach; this is for development"
            );
        }
        let read = |key: &config::Secret| SealingKey::parse(key.expose()).map_err(OpenError::Key);
        let previous: Vec<SealingKey> = secrets.previous_keys.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Some(Self {
            config: config.clone(),
            store: store.clone(),
            broker: broker.clone(),
            clock: clock.clone(),
            sealer: Arc::new(Sealer::new(&read(key)?, &previous)),
            client: client(config, config.reseller.delivery.response_body_bytes)?,
        }))
    }

    /// Another client, which keeps so much of an answer.
    pub(crate) fn client_that_keeps(&self, response_body_bytes: usize) -> Result<WebhookClient, OpenError> {
        client(&self.config, response_body_bytes)
    }

    pub(crate) fn policy(&self) -> RetryPolicy {
        let retry = &self.config.reseller.retry;
        RetryPolicy {
            max_retries: retry.max_retries,
            initial_delay: retry.initial_delay,
            max_delay: retry.max_delay,
            max_retry_after: retry.max_retry_after,
        }
    }
}

/// The client of endpoints as the configuration describes it.
pub(super) fn client(config: &Config, response_body_bytes: usize) -> Result<WebhookClient, OpenError> {
    let egress = &config.reseller.egress;
    let settings = WebhookSettings {
        egress: EgressPolicy {
            allow: egress.allow_networks.clone(),
            allow_http: egress.allow_http,
            deny: egress.deny_networks.clone(),
            ports: egress.allow_ports.clone(),
        },
        response_body_bytes,
    };
    WebhookClient::new(&settings).map_err(OpenError::Client)
}
