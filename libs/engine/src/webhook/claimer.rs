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

use crate::claim;

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
        let together = || async move {
            let terms = self.terms();
            // From before the claim was asked for, so that it is never too late.
            let until = Instant::now() + terms.lease;
            let claims = store::within(CLAIM_LIMIT, self.claim_unless_paused(ids, &terms)).await?;
            Ok(claims.map(|claims| (claims, until)))
        };
        let singly = || async move {
            let terms = self.terms();
            let until = Instant::now() + terms.lease;
            (self.claim_singly(ids, &terms).await, until)
        };
        let Some((claims, until)) =
            claim::claim(&self.stop, "notifications", ids.len(), together, singly).await
        else {
            // When the lane is paused, the messages go back to a queue that no engine may read now, this one first of all.
            self.stop.cancel();
            return None;
        };
        count(&claims);
        let targets = self.targets(&claims).await;
        Some(Claimed {
            until: targets.is_some().then_some(until),
            targets: targets.unwrap_or_default(),
            claims,
        })
    }

    /// Claims each notification by itself, so that one that the database refuses for good holds up no other. What came by a message is
    /// brought back by its lease, which bounds how often that is found out; what waits in the database is found with each fetch.
    async fn claim_singly(&self, ids: &[NotificationId], terms: &ClaimTerms) -> Claims {
        let claim_one = |id| async move { self.tools.store.claim_notifications(&[id], terms).await };
        let claims = store::singly(CLAIM_LIMIT, ids, claim_one, |id, error| {
            tracing::error!(
                notification = %id,
                error = error_chain(&error),
                "passed over a notification that could not be claimed"
            );
            Metric::StoreErrors.increment_with(&[("operation", "reading_queue")], 1);
        });
        claims.await.into_iter().sum()
    }

    /// `None` when the lane is paused. That is asked only when a claim took nothing although some of the notifications still
    /// wait; whether there is a pause by now does not tell by itself, since it may have ended meanwhile.
    async fn claim_unless_paused(
        &self,
        ids: &[NotificationId],
        terms: &ClaimTerms,
    ) -> Result<Option<Claims>, store::Error> {
        let store = &self.tools.store;
        loop {
            let claims = store.claim_notifications(ids, terms).await?;
            if claims != Claims::default() || !store.any_notification_waits(ids, terms.at).await? {
                return Ok(Some(claims));
            }
            if store.lane_is_paused(store::Lane::Reseller).await? {
                return Ok(None);
            }
        }
    }

    /// What waits in the database for a subscription, claimed. The flag tells whether there may be more.
    pub(crate) async fn fetch(&self, subscription: Uuid, limit: usize) -> (Claimed, bool) {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        match store::within(CLAIM_LIMIT, self.waiting(subscription, limit)).await {
            Ok(ids) => {
                let claimed = self.claim(&ids).await.unwrap_or_default();
                // When the requests per second are used up, or nothing came of it, the rest is left to the promoter.
                let claims = &claimed.claims;
                let more = ids.len() == limit as usize
                    && claims.claimed.len() as u64 + claims.over_quota > 0
                    && claims.held + claims.over_rate == 0;
                (claimed, more)
            }
            Err(error) => {
                tracing::debug!(
                    error = error_chain(&error),
                    "cannot look for waiting notifications"
                );
                (Claimed::default(), false)
            }
        }
    }

    /// The oldest that waits in the database for a subscription, claimed. `None` when that could not be found out, or when it is to
    /// stop.
    pub(crate) async fn oldest(&self, subscription: Uuid) -> Option<Claimed> {
        match store::within(CLAIM_LIMIT, self.waiting(subscription, 1)).await {
            Ok(ids) => self.claim(&ids).await,
            Err(error) => {
                tracing::debug!(error = error_chain(&error), "cannot look for what to probe with");
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

    fn terms(&self) -> ClaimTerms {
        let reseller = &self.tools.config.reseller;
        ClaimTerms {
            at: self.tools.clock.now(),
            lease: reseller.delivery.max_timeout + HORIZON + CLAIM_SLACK,
            daily_quota: reseller.subscription.daily_quota,
            requests_per_second: reseller.subscription.requests_per_second,
            zone: reseller.quota.time_zone,
            horizon: HORIZON,
        }
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
            claim::paused(&self.stop).await?;
        }
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
