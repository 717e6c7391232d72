//! What deliveries need to know of their subscriptions, kept for as long as it is true: every claim says which version
//! of its subscription it saw.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::notification::RetryPlan;
use encryption::Sealer;
use http_client::Endpoint;
use lifecycle::error_chain;
use moka::sync::Cache;
use signing::Secret;
use store::Store;
use store::webhook::ClaimedNotification;
use uuid::Uuid;

/// Most subscriptions kept.
const KEPT: u64 = 100_000;
/// One that is not delivered to for so long is forgotten.
const IDLE: Duration = Duration::from_secs(600);

/// Where and how one subscription is delivered to.
pub(crate) struct Target {
    version: i64,
    pub(crate) reseller: String,
    /// The endpoint, or why there is none.
    pub(crate) endpoint: Result<Endpoint, String>,
    /// What the endpoint belongs to; see [`Endpoint::site`].
    pub(crate) site: String,
    pub(crate) timeout: Duration,
    pub(crate) retry_plan: RetryPlan,
    pub(crate) retry_client_errors: bool,
    secrets: Vec<SigningSecret>,
}

struct SigningSecret {
    /// The secret, or why it cannot be used.
    secret: Result<Secret, String>,
    expires_at: Option<DateTime<Utc>>,
}

impl Target {
    /// Whether it is what the notification was claimed for. Another version may have another URL, which may not have answered
    /// its challenge yet, and is not the one that the attempt is recorded with.
    pub(crate) fn is_of(&self, claimed: &ClaimedNotification) -> bool {
        self.version == claimed.version
    }

    /// The secrets that sign at a time, the newest first.
    pub(crate) fn secrets(&self, at: DateTime<Utc>) -> Result<Vec<&Secret>, String> {
        let valid: Vec<&Secret> = self
            .secrets
            .iter()
            .filter(|secret| secret.expires_at.is_none_or(|end| at < end))
            .map(|secret| secret.secret.as_ref().map_err(Clone::clone))
            .collect::<Result<_, _>>()?;
        if valid.is_empty() {
            return Err("the subscription has no signing secret".to_owned());
        }
        Ok(valid)
    }
}

/// The targets of the last minutes.
pub(crate) struct Endpoints {
    store: Store,
    sealer: Arc<Sealer>,
    timeout: Duration,
    longest: Duration,
    kept: Cache<Uuid, Arc<Target>>,
}

impl Endpoints {
    pub(crate) fn new(store: Store, sealer: Arc<Sealer>, timeout: Duration, longest: Duration) -> Self {
        Self {
            store,
            sealer,
            timeout,
            longest,
            kept: Cache::builder().max_capacity(KEPT).time_to_idle(IDLE).build(),
        }
    }

    /// The targets of what was claimed, by subscription. One that takes no notifications any more is missing. One that changed
    /// since the claim is as it is now, which need not be what was claimed: see [`Target::is_of`].
    pub(crate) async fn of(
        &self,
        claimed: &[ClaimedNotification],
    ) -> Result<HashMap<Uuid, Arc<Target>>, store::Error> {
        let (mut targets, mut missing) = (HashMap::new(), Vec::new());
        for notification in claimed {
            let subscription = notification.subscription_id;
            if targets.contains_key(&subscription) || missing.contains(&subscription) {
                continue;
            }
            match self.kept.get(&subscription) {
                Some(target) if target.is_of(notification) => {
                    targets.insert(subscription, target);
                }
                _ => missing.push(subscription),
            }
        }
        if missing.is_empty() {
            return Ok(targets);
        }
        for (subscription, endpoint) in self.store.find_endpoints(&missing).await? {
            if !endpoint.takes_notifications {
                continue;
            }
            let target = Arc::new(self.open(subscription, &endpoint));
            // One with a secret that cannot be opened now is read again for the next notification: it may be sealed with another key then, and its
            // version says nothing of that.
            if target.secrets.iter().all(|secret| secret.secret.is_ok()) {
                self.kept.insert(subscription, target.clone());
            }
            targets.insert(subscription, target);
        }
        Ok(targets)
    }

    /// The target as it was read.
    pub(crate) fn open(&self, subscription: Uuid, endpoint: &store::webhook::Endpoint) -> Target {
        let timeout = endpoint
            .timeout_millis
            .map_or(self.timeout, |millis| Duration::from_millis(millis.into()));
        let parsed = Endpoint::parse(&endpoint.url).map_err(|error| error_chain(&error));
        Target {
            version: endpoint.version,
            reseller: endpoint.reseller.clone(),
            site: parsed.as_ref().map(Endpoint::site).unwrap_or_default(),
            endpoint: parsed,
            timeout: timeout.min(self.longest),
            retry_plan: endpoint.retry_plan,
            retry_client_errors: endpoint.retry_client_errors,
            secrets: endpoint
                .secrets
                .iter()
                .map(|sealed| self.unseal(subscription, sealed))
                .collect(),
        }
    }

    fn unseal(&self, subscription: Uuid, sealed: &store::webhook::SealedSecret) -> SigningSecret {
        let secret = match self.sealer.open(subscription, &sealed.sealed) {
            Ok(plain) => Secret::from_bytes(plain).map_err(|error| error_chain(&error)),
            Err(error) => {
                tracing::error!(
                    subscription.id = %subscription,
                    error = error_chain(&error),
                    "cannot open a signing secret with the keys of reseller.secrets"
                );
                Err("a signing secret cannot be opened with the keys of reseller.secrets".to_owned())
            }
        };
        SigningSecret {
            secret,
            expires_at: sealed.expires_at,
        }
    }
}
