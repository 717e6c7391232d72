//! What the handlers share.

use std::sync::Arc;

use broker::Broker;
use chrono::{DateTime, SubsecRound as _, Utc};
use config::Config;
use domain::clock::Clock;
use http_api::{Keys, TakesBodies};
use oidc::Provider;
use store::Store;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::console::{self, SignInLimit, Visits};
use crate::status::Shared;

/// The state behind every request.
pub(crate) struct App {
    pub(crate) keys: Keys,
    pub(crate) visits: Visits,
    /// Whom people sign in to the console with.
    pub(crate) provider: Option<Provider>,
    pub(crate) sign_ins: SignInLimit,
    /// Held while a person who has not shown for a while who it is does what is dangerous only when it is much.
    pub(crate) stale: Mutex<()>,
    /// How the system is, for all pages that follow it.
    pub(crate) status: Shared,
    pub(crate) store: Store,
    pub(crate) broker: Broker,
    clock: Arc<dyn Clock>,
    pub(crate) config: Arc<Config>,
}

impl App {
    pub(crate) fn new(config: Arc<Config>, store: Store, broker: Broker, clock: Arc<dyn Clock>) -> Self {
        Self {
            keys: Keys::new(store.clone()),
            visits: Visits::default(),
            provider: console::provider_of(&config),
            sign_ins: SignInLimit::default(),
            stale: Mutex::default(),
            status: Shared::default(),
            store,
            broker,
            clock,
            config,
        }
    }

    /// The present time, as precise as the database keeps it, so that an answer and a later one say the same.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now().trunc_subsecs(6)
    }
}

impl TakesBodies for App {
    fn max_body_bytes(&self) -> usize {
        self.config.operator.max_body_bytes
    }

    /// When a request that starts now has to be answered.
    fn deadline(&self) -> Instant {
        Instant::now() + self.config.operator.request_timeout
    }
}
