//! Claims, made aside so that the next ones gather meanwhile.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::notification::NotificationId;
use lifecycle::error_chain;
use store::webhook::{ClaimTerms, Claims};
use telemetry::Metric;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::claim::{Claiming, claim, paused};

use super::endpoints::{Endpoints, Target};
use super::{Lane, Tools};

/// What a claim allows beyond the longest request: making the request, recording its outcome.
const CLAIM_SLACK: Duration = Duration::from_secs(20);
/// How far ahead of its time a notification with a place in the requests per second is claimed.
pub(crate) const HORIZON: Duration = Duration::from_millis(1_500);
/// How long the database may take for a claim before it counts as away.
const CLAIM_LIMIT: Duration = store::webhook::CLAIM_LIMIT.saturating_add(Duration::from_secs(1));

/// What was claimed, and where it goes.
#[derive(Default)]
pub(crate) struct Claimed {
    pub(crate) claims: Claims,
    pub(crate) targets: HashMap<Uuid, Arc<Target>>,
    /// When the claim runs out; `None` when nothing of it may be sent.
    pub(crate) until: Option<Instant>,
    /// Whether more may wait for the same subscription in the database.
    pub(crate) more: bool,
}

pub(crate) struct Claimer {
    pub(crate) lane: Lane,
    pub(crate) tools: Tools,
    pub(crate) endpoints: Endpoints,
    pub(crate) stop: CancellationToken,
}

impl Claimer {
    /// Claims, for as long as it takes: while the database is away there is nothing else to do. `None` when nothing was
    /// claimed because of the stop or a pause: then the messages have to go back.
    pub(crate) async fn claim(&self, ids: &[NotificationId]) -> Option<Claimed> {
        if ids.is_empty() {
            return Some(Claimed::default());
        }
        let Some((claims, asked)) = claim(self, ids, &self.stop).await else {
            // When the lane is paused, the messages go back to a queue that no engine may read now, this one first of all.
            self.stop.cancel();
            return None;
        };
        count(&claims);
        let targets = self.targets(&claims).await;
        Some(Claimed {
            until: targets.is_some().then(|| asked + self.lease()),
            targets: targets.unwrap_or_default(),
            claims,
            more: false,
        })
    }

    /// What waits in the database for a subscription, so many of them, claimed. `None` when that could not be found out, or when it is to
    /// stop.
    pub(crate) async fn fetch(&self, subscription: Uuid, limit: usize) -> Option<Claimed> {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        match store::within(CLAIM_LIMIT, self.waiting(subscription, limit)).await {
            Ok(ids) => {
                let mut claimed = self.claim(&ids).await?;
                // When the requests per second are used up, or nothing came of it, the rest is left to the promoter.
                let claims = &claimed.claims;
                claimed.more = ids.len() == limit as usize
                    && claims.claimed.len() as u64 + claims.over_quota > 0
                    && claims.held + claims.over_rate == 0;
                Some(claimed)
            }
            Err(error) => {
                tracing::debug!(
                    error = error_chain(&error),
                    "cannot look for waiting notifications"
                );
                None
            }
        }
    }

    async fn waiting(&self, subscription: Uuid, limit: u32) -> Result<Vec<NotificationId>, store::Error> {
        let Tools { store, clock, .. } = &self.tools;
        match self.lane {
            Lane::First => store.waiting_first_attempts(subscription, limit).await,
            Lane::Retry => store.waiting_retries(subscription, clock.now(), limit).await,
        }
    }

    fn lease(&self) -> Duration {
        self.tools.config.reseller.delivery.max_timeout + HORIZON + CLAIM_SLACK
    }

    /// The targets of what was claimed, for as long as it takes: it is claimed, and no other engine will send it before its
    /// lease has run out. `None` when it is to stop.
    async fn targets(&self, claims: &Claims) -> Option<HashMap<Uuid, Arc<Target>>> {
        loop {
            match store::within(CLAIM_LIMIT, self.endpoints.of(&claims.claimed)).await {
                Ok(targets) => return Some(targets),
                Err(error) if error.is_transient() => {
                    tracing::warn!(error = error_chain(&error), "cannot read endpoints");
                }
                Err(error) => {
                    tracing::error!(error = error_chain(&error), "endpoints could not be read");
                    return None;
                }
            }
            paused(&self.stop).await?;
        }
    }
}

impl Claiming for Claimer {
    const WHAT: &'static str = "notifications";
    const LIMIT: Duration = CLAIM_LIMIT;
    type Id = NotificationId;
    type Claimed = Claims;

    async fn claim_together(&self, ids: &[NotificationId]) -> Result<Claims, store::Error> {
        let reseller = &self.tools.config.reseller;
        let terms = ClaimTerms {
            at: self.tools.clock.now(),
            lease: self.lease(),
            daily_quota: reseller.subscription.daily_quota,
            requests_per_second: reseller.subscription.requests_per_second,
            zone: reseller.quota.time_zone,
            horizon: HORIZON,
        };
        self.tools.store.claim_notifications(ids, &terms).await
    }

    fn took_nothing(claims: &Claims) -> bool {
        *claims == Claims::default()
    }

    async fn any_waits(&self, ids: &[NotificationId]) -> Result<bool, store::Error> {
        let Tools { store, clock, .. } = &self.tools;
        store.any_notification_waits(ids, clock.now()).await
    }

    async fn may_claim(&self) -> Result<bool, store::Error> {
        let paused = self.tools.store.lane_is_paused(store::Lane::Reseller).await?;
        Ok(!paused)
    }

    fn sum(claims: Vec<Claims>) -> Claims {
        claims.into_iter().sum()
    }
}

fn count(claims: &Claims) {
    Metric::NotificationsClaimed.increment(claims.claimed.len() as u64);
    for (reason, count) in [
        ("quota", claims.over_quota),
        ("rate", claims.over_rate),
        ("paused", claims.held),
    ] {
        if count > 0 {
            Metric::NotificationsDeferred.increment_with(&[("reason", reason)], count);
        }
    }
    if claims.orphaned > 0 {
        tracing::error!(
            count = claims.orphaned,
            "notifications without their event were claimed"
        );
    }
    if claims.abandoned > 0 {
        Metric::NotificationsGivenUp.increment(claims.abandoned);
    }
}
