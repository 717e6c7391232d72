//! Claims, made aside so that the next ones gather meanwhile.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::notification::NotificationId;
use lifecycle::error_chain;
use store::webhook::{ClaimTerms, ClaimedNotification, Claims, PromotedNotification};
use telemetry::Metric;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::claim::{Claiming, claim, paused};

use super::endpoints::{Endpoints, Target};
use super::scheduler::Fetch;
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
    /// Subscriptions of which more waits in the database and may be fetched at once.
    pub(crate) more: HashSet<Uuid>,
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
            more: HashSet::new(),
        })
    }

    /// What waits in the database for some subscriptions, for each as much as it has slots, claimed together. `None` when that could
    /// not be found out, or when it is to stop.
    pub(crate) async fn fetch(&self, fetches: &[Fetch]) -> Option<Claimed> {
        match store::within(CLAIM_LIMIT, self.waiting(fetches)).await {
            Ok(waiting) => {
                let (ids, mut more) = fitting(fetches, waiting);
                let mut claimed = self.claim(&ids).await?;
                more.retain(|subscription| goes_on(&claimed.claims, *subscription));
                claimed.more = more;
                Some(claimed)
            }
            Err(error) => {
                tracing::warn!(
                    error = error_chain(&error),
                    "cannot look for waiting notifications"
                );
                None
            }
        }
    }

    /// What there is to say where [`Claimer::fetch`] could not find it out: each of these may have something still, and is asked after again in
    /// its turn. Said after a moment, for which they keep their slots. `None` when it is to stop.
    pub(crate) async fn ask_again(&self, fetches: &[Fetch]) -> Option<Claimed> {
        paused(&self.stop).await?;
        Some(Claimed {
            more: fetches.iter().map(|fetch| fetch.subscription).collect(),
            ..Claimed::default()
        })
    }

    /// One more than there are slots for, so that it is known of which subscriptions there is more.
    async fn waiting(&self, fetches: &[Fetch]) -> Result<Vec<PromotedNotification>, store::Error> {
        let Tools { store, clock, .. } = &self.tools;
        let most = |fetch: &Fetch| u32::try_from(fetch.slots + 1).unwrap_or(u32::MAX);
        let of_each: Vec<(Uuid, u32)> = fetches
            .iter()
            .map(|fetch| (fetch.subscription, most(fetch)))
            .collect();
        match self.lane {
            Lane::First => store.waiting_first_attempts(&of_each).await,
            Lane::Retry => store.waiting_retries(&of_each, clock.now()).await,
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

/// What there are slots for, and the subscriptions that have more than that.
fn fitting(fetches: &[Fetch], waiting: Vec<PromotedNotification>) -> (Vec<NotificationId>, HashSet<Uuid>) {
    let mut slots: HashMap<Uuid, usize> = fetches
        .iter()
        .map(|fetch| (fetch.subscription, fetch.slots))
        .collect();
    let (mut ids, mut more) = (Vec::new(), HashSet::new());
    for one in waiting {
        match slots.get_mut(&one.subscription_id) {
            Some(left) if *left > 0 => {
                *left -= 1;
                ids.push(one.id.into());
            }
            _ => {
                more.insert(one.subscription_id);
            }
        }
    }
    (ids, more)
}

/// Whether what waits behind these is worth asking for. When the requests per second are used up, or nothing came of it, it is
/// left to the promoter.
fn goes_on(claims: &Claims, subscription: Uuid) -> bool {
    let is_its = |claimed: &ClaimedNotification| claimed.subscription_id == subscription;
    !claims.held_up.contains(&subscription)
        && (claims.in_line.contains(&subscription) || claims.claimed.iter().any(is_its))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn subscription(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn waiting(subscription_id: u128, ids: std::ops::Range<u128>) -> Vec<PromotedNotification> {
        ids.map(|id| PromotedNotification {
            id: Uuid::from_u128(id),
            subscription_id: subscription(subscription_id),
        })
        .collect()
    }

    #[test]
    fn of_each_subscription_what_it_has_slots_for_is_claimed_and_the_rest_is_more() {
        let fetch = |number, slots| Fetch {
            subscription: subscription(number),
            slots,
        };
        let found = [waiting(1, 10..13), waiting(2, 20..22), waiting(3, 0..0)].concat();
        let (ids, more) = fitting(&[fetch(1, 2), fetch(2, 2), fetch(3, 2)], found);
        let expected = [10, 11, 20, 21].map(|id| NotificationId::from(Uuid::from_u128(id)));
        assert_eq!(ids, expected);
        assert_eq!(more, HashSet::from([subscription(1)]));
    }

    #[test]
    fn a_subscription_that_is_held_up_or_of_which_nothing_came_is_not_asked_after_again() {
        let mut claims = Claims::default();
        assert!(!goes_on(&claims, subscription(1)), "others have taken it");
        claims.in_line.insert(subscription(1));
        assert!(goes_on(&claims, subscription(1)) && !goes_on(&claims, subscription(2)));
        claims.held_up.insert(subscription(1));
        assert!(!goes_on(&claims, subscription(1)));
    }
}
