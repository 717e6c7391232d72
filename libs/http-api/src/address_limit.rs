//! How often one address may have something that costs us more than it costs the caller.
//!
//! It deliberately bounds no more than that: all addresses together are bounded by connections, and by what is asked for.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::kind::ProblemKind;
use crate::peer;
use crate::problem::Problem;

/// So many addresses are remembered before those are forgotten that have been quiet for a while.
const KEPT: usize = 10_000;

/// The limit of each address, or /64 network of IPv6.
pub struct AddressLimit {
    limiter: DefaultKeyedRateLimiter<IpAddr>,
    /// How many are remembered before they are looked through the next time: twice what was left, so that a crowd of addresses
    /// that are all busy is not looked through for each of them.
    tidy_at: AtomicUsize,
}

impl AddressLimit {
    pub(crate) fn new(quota: Quota) -> Self {
        Self {
            limiter: RateLimiter::keyed(quota),
            tidy_at: AtomicUsize::new(KEPT),
        }
    }

    /// So many a minute, all of them at once after a pause.
    pub fn per_minute(rate: NonZeroU32) -> Self {
        Self::new(Quota::per_minute(rate))
    }

    /// So many a second, and so many at once after a pause.
    pub fn per_second(rate: NonZeroU32, burst: NonZeroU32) -> Self {
        Self::new(Quota::per_second(rate).allow_burst(burst))
    }

    /// Takes one of what this address may have; `false` when there is none left. One that is not known is not bounded.
    pub(crate) fn admits(&self, address: Option<IpAddr>) -> bool {
        let Some(address) = address else { return true };
        if self.limiter.len() > self.tidy_at.load(Ordering::Relaxed) {
            self.limiter.retain_recent();
            let left = self.limiter.len().saturating_mul(2);
            self.tidy_at.store(left.max(KEPT), Ordering::Relaxed);
        }
        self.limiter.check_key(&address).is_ok()
    }

    /// The same, where loopback is not bounded: a proxy there that is not trusted speaks for many.
    pub fn admits_stranger(&self, address: Option<IpAddr>) -> bool {
        self.admits(address.filter(|address| !address.is_loopback()))
    }

    /// Takes one of what the address may have that the request of this task comes from.
    ///
    /// # Errors
    ///
    /// A [`ProblemKind::TOO_MANY_REQUESTS`] that says of `what` there were too many.
    pub fn take(&self, what: &str) -> Result<(), Problem> {
        if self.admits(peer::current()) {
            return Ok(());
        }
        let detail = format!("there were too many {what} from your address; try again in a second");
        Err(Problem::new(ProblemKind::TOO_MANY_REQUESTS, detail).retry_after(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_has_its_burst_and_no_other_suffers_for_it() {
        let (rate, burst) = (NonZeroU32::MIN, NonZeroU32::new(3).unwrap());
        let limit = AddressLimit::per_second(rate, burst);
        let from = |last| IpAddr::from([192, 0, 2, last]);
        let taken = async |last| peer::scope(from(last), async { limit.take("sign-ins").is_ok() }).await;
        for number in 0..3 {
            assert!(taken(1).await, "{number}");
        }
        assert!(!taken(1).await);
        assert!(taken(2).await);
        let refused = peer::scope(from(1), async { limit.take("sign-ins") }).await;
        assert_eq!(refused.unwrap_err().kind().status(), 429);
    }
}
