//! How much one reseller may ask in how much time, so that none takes the database, the mail server or the endpoints of
//! strangers for itself.
//!
//! Each replica counts for itself: the limits keep a loop in bounds, they are no quota.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use http::Method;
use http_api::Problem;
use moka::future::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::problems::TOO_MANY_REQUESTS;

/// Requests of any kind: a second, and at once after a pause.
const REQUESTS: Rate = (per(50), per(200));
/// Requests that change something or make something be sent.
const CHANGES: Rate = (per(2), per(120));
/// The same of an embedder, whose key asks for the people of many resellers: its control panel may not take the database for itself either.
const REQUESTS_OF_EMBEDDER: Rate = (per(100), per(400));
/// Links that it makes and visits that it ends.
const CHANGES_OF_EMBEDDER: Rate = (per(20), per(400));
/// Endpoints to be checked: in a minute, and at once after a pause. Each is a request to a host that need not be the reseller's.
const CHECKS: NonZeroU32 = per(6);
/// Requests at once. Every request takes a connection to the database sooner or later, and all resellers share those.
const AT_ONCE: usize = 4;
/// The same of an embedder.
const AT_ONCE_OF_EMBEDDER: usize = 8;
/// Requests of a reseller that wait for changes. Each looks for them once a second.
const FOLLOWERS: usize = 8;
/// How long the requests of a reseller that has none under way are remembered: longer than any request takes.
const IDLE: Duration = Duration::from_hours(1);
/// Resellers counted before those are forgotten that have been quiet for a while.
const KEPT: usize = 10_000;

/// Requests in a second, and at once after a pause.
type Rate = (NonZeroU32, NonZeroU32);

const fn per(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("invariant: no limit here is zero")
}

/// What each reseller, or each embedder, has asked for lately.
pub(crate) struct Limits {
    /// Whose keys they are, for problems.
    whose: &'static str,
    turns: usize,
    requests: DefaultKeyedRateLimiter<String>,
    changes: DefaultKeyedRateLimiter<String>,
    checks: DefaultKeyedRateLimiter<String>,
    at_once: Cache<String, Arc<Semaphore>>,
    followers: Cache<String, Arc<Semaphore>>,
}

/// A request's turn, which ends with this.
#[derive(Debug)]
pub(crate) struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl Limits {
    /// Those of resellers.
    pub(crate) fn new() -> Self {
        Self::with("this reseller", (REQUESTS, CHANGES), AT_ONCE)
    }

    /// Those of embedders, by their keys.
    pub(crate) fn of_embedders() -> Self {
        let rates = (REQUESTS_OF_EMBEDDER, CHANGES_OF_EMBEDDER);
        Self::with("this embedder", rates, AT_ONCE_OF_EMBEDDER)
    }

    fn with(whose: &'static str, (requests, changes): (Rate, Rate), turns: usize) -> Self {
        let remembered = || {
            let cache = Cache::builder().max_capacity(KEPT as u64);
            cache.time_to_idle(IDLE).build()
        };
        let limiter = |(rate, burst)| RateLimiter::keyed(Quota::per_second(rate).allow_burst(burst));
        Self {
            whose,
            turns,
            requests: limiter(requests),
            changes: limiter(changes),
            checks: RateLimiter::keyed(Quota::per_minute(CHECKS)),
            at_once: remembered(),
            followers: remembered(),
        }
    }

    /// Counts a request of a reseller.
    ///
    /// # Errors
    ///
    /// A [`TOO_MANY_REQUESTS`] when it has asked too much.
    pub(crate) fn count(&self, reseller: &str, method: &Method) -> Result<(), Problem> {
        let reseller = reseller.to_owned();
        count(&self.requests, &reseller, self.whose)?;
        if method == Method::GET || method == Method::HEAD {
            return Ok(());
        }
        count(&self.changes, &reseller, self.whose)
    }

    /// Counts an endpoint that a reseller has checked.
    ///
    /// # Errors
    ///
    /// A [`TOO_MANY_REQUESTS`] when it has had too many checked.
    pub(crate) fn count_check(&self, reseller: &str) -> Result<(), Problem> {
        count(&self.checks, &reseller.to_owned(), self.whose)
    }

    /// Waits, until `latest`, for the turn of a request: a page that asks for ten things at once gets them, and one that
    /// never stops asking waits for itself alone.
    ///
    /// # Errors
    ///
    /// A [`TOO_MANY_REQUESTS`] when there is no turn in time.
    pub(crate) async fn turn(&self, reseller: &str, latest: Instant) -> Result<Turn, Problem> {
        let turns = self
            .at_once
            .get_with_by_ref(reseller, async { Arc::new(Semaphore::new(self.turns)) })
            .await;
        match timeout_at(latest, turns.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Turn { _permit: permit }),
            _ => {
                let detail = format!("too many requests with keys of {} are under way", self.whose);
                Err(Problem::new(TOO_MANY_REQUESTS, detail).retry_after(1))
            }
        }
    }
}

impl Limits {
    /// A place for a request that waits for changes.
    ///
    /// # Errors
    ///
    /// A [`TOO_MANY_REQUESTS`] when as many wait as may.
    pub(crate) async fn follow(&self, reseller: &str) -> Result<Turn, Problem> {
        let places = self
            .followers
            .get_with_by_ref(reseller, async { Arc::new(Semaphore::new(FOLLOWERS)) })
            .await;
        places
            .try_acquire_owned()
            .map(|permit| Turn { _permit: permit })
            .map_err(|_| {
                let detail = format!("{FOLLOWERS} requests of {} wait for changes already", self.whose);
                Problem::new(TOO_MANY_REQUESTS, detail).retry_after(5)
            })
    }
}

fn count(limiter: &DefaultKeyedRateLimiter<String>, reseller: &String, whose: &str) -> Result<(), Problem> {
    if limiter.len() > KEPT {
        limiter.retain_recent();
    }
    limiter.check_key(reseller).map_err(|early| {
        let wait = early.wait_time_from(DefaultClock::default().now());
        let seconds = u32::try_from(wait.as_secs() + 1).unwrap_or(u32::MAX);
        Problem::new(
            TOO_MANY_REQUESTS,
            format!("there were too many requests with keys of {whose}"),
        )
        .retry_after(seconds)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reseller_in_a_loop_is_stopped_and_the_others_are_not() {
        let limits = Limits::new();
        let granted = (0..1_000)
            .filter(|_| limits.count("loop", &Method::POST).is_ok())
            .count();
        assert!((120..200).contains(&granted), "{granted}");
        assert!(limits.count("loop", &Method::GET).is_ok() || limits.requests.len() == 1);
        assert!(limits.count("other", &Method::POST).is_ok());
    }

    #[test]
    fn an_embedder_may_ask_more_than_a_reseller_and_not_without_end() {
        let limits = Limits::of_embedders();
        let granted = (0..5_000)
            .filter(|_| limits.count("key", &Method::POST).is_ok())
            .count();
        assert!((400..2_000).contains(&granted), "{granted}");
        assert!(limits.count("other key", &Method::POST).is_ok());
    }

    #[test]
    fn a_reseller_has_few_endpoints_checked_in_a_minute() {
        let limits = Limits::new();
        let granted = (0..100).filter(|_| limits.count_check("loop").is_ok()).count();
        assert!((6..12).contains(&granted), "{granted}");
        assert!(limits.count_check("other").is_ok());
    }

    #[tokio::test]
    async fn few_requests_of_a_reseller_wait_for_changes_at_once() {
        let limits = Limits::new();
        let mut places = Vec::new();
        for _ in 0..FOLLOWERS {
            places.push(limits.follow("busy").await.unwrap());
        }
        let refused = limits.follow("busy").await.unwrap_err();
        assert_eq!(refused.kind(), TOO_MANY_REQUESTS);
        limits.follow("other").await.unwrap();
        places.pop();
        limits.follow("busy").await.unwrap();
    }

    #[tokio::test]
    async fn requests_of_one_reseller_take_turns_and_do_not_wait_for_ever() {
        let limits = Limits::new();
        let later = || Instant::now() + Duration::from_hours(1);
        let mut turns = Vec::new();
        for _ in 0..AT_ONCE {
            turns.push(limits.turn("busy", later()).await.unwrap());
        }
        let refused = limits.turn("busy", Instant::now()).await.unwrap_err();
        assert_eq!(refused.kind(), TOO_MANY_REQUESTS);
        limits.turn("other", Instant::now()).await.unwrap();
        let (next, ()) = tokio::join!(limits.turn("busy", later()), async {
            turns.pop();
        });
        next.unwrap();
    }
}
