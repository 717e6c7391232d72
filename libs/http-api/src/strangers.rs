//! Keys, and other secrets of callers, that this process does not know: made-up ones must not cost a query each, nor stand in the way of real ones.
//!
//! Only look-ups that fail count against a caller, and a key that was valid within the last day is looked up whatever
//! others do. It deliberately decides nothing about a key: what is not looked up is neither known nor unknown, and is
//! answered 429, since a client would throw away a good key after a 401.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use domain::key::KeyDigest;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use moka::future::Cache;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::address_limit::AddressLimit;
use crate::kind::ProblemKind;
use crate::peer;
use crate::problem::Problem;

/// Look-ups that may fail for one caller: a second, and at once after a pause.
const OF_ONE: (NonZeroU32, NonZeroU32) = (per(5), per(20));
/// The same for all callers together, as a stranger may have many addresses.
const OF_ALL: (NonZeroU32, NonZeroU32) = (per(200), per(400));
/// How long a caller past its limit has no look-up, and how long a refused key is remembered: a key that is made after it
/// was refused works as late as this.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);
/// How long a key that was valid is looked up without regard to the limits.
const KNOWN: Duration = Duration::from_hours(24);
/// Look-ups of unknown keys at once, of a pool of connections that every request needs.
const AT_ONCE: usize = 4;
/// Most keys and callers remembered.
const KEPT: u64 = 10_000;

const fn per(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("invariant: no limit here is zero")
}

/// Whether a key may be looked up.
#[derive(Debug)]
pub(crate) enum LookUp<'a> {
    /// It may; a permit has to be held meanwhile, unless the key is a known one.
    Granted(Option<SemaphorePermit<'a>>),
    /// It was refused a moment ago.
    RefusedBefore,
    /// There were too many failed look-ups.
    TooMany,
}

/// What is remembered of the keys and callers of late. Whatever else a caller shows as a secret is a key here.
pub struct Strangers {
    known: Cache<KeyDigest, ()>,
    refused: Cache<KeyDigest, ()>,
    of_one: AddressLimit,
    of_all: DefaultDirectRateLimiter,
    /// Callers past their limit; `None` stands for all.
    stopped: Cache<Option<IpAddr>, ()>,
    at_once: Semaphore,
}

impl Default for Strangers {
    fn default() -> Self {
        Self::new(PAUSE)
    }
}

impl Strangers {
    /// `pause`: how long a caller past its limit has no look-up, and how long a refused key is remembered.
    pub(crate) fn new(pause: Duration) -> Self {
        let quota = |(rate, burst)| Quota::per_second(rate).allow_burst(burst);
        let briefly = || Cache::builder().max_capacity(KEPT).time_to_live(pause);
        Self {
            known: Cache::builder().max_capacity(KEPT).time_to_idle(KNOWN).build(),
            refused: briefly().build(),
            of_one: AddressLimit::new(quota(OF_ONE)),
            of_all: RateLimiter::direct(quota(OF_ALL)),
            stopped: Cache::builder().max_capacity(KEPT).time_to_live(pause).build(),
            at_once: Semaphore::new(AT_ONCE),
        }
    }

    /// What `read` finds for a key, if it may be looked up; `None` when there is no such key, or was none a moment ago. `what` says what
    /// keys are to callers.
    pub async fn look_up<T>(
        &self,
        key: KeyDigest,
        what: &str,
        read: impl Future<Output = Result<Option<T>, Problem>>,
    ) -> Result<Option<T>, Problem> {
        let from = peer::current();
        let _permit = match self.ask(&key, from).await {
            LookUp::Granted(permit) => permit,
            LookUp::RefusedBefore => return Ok(None),
            LookUp::TooMany => return Err(too_many(what)),
        };
        let found = read.await?;
        match found {
            Some(_) => self.found(key).await,
            None => self.failed(key, from).await,
        }
        Ok(found)
    }

    /// Asks for a look-up; may wait for others to end.
    pub(crate) async fn ask(&self, key: &KeyDigest, caller: Option<IpAddr>) -> LookUp<'_> {
        // Not only asked whether it is there: a key that is used stays known.
        if self.known.get(key).await.is_some() {
            return LookUp::Granted(None);
        }
        if let Some(refusal) = self.refusal(key, caller) {
            return refusal;
        }
        let permit = self.at_once.acquire().await.ok();
        // Those that were before it may have failed.
        self.refusal(key, caller).unwrap_or(LookUp::Granted(permit))
    }

    fn refusal(&self, key: &KeyDigest, caller: Option<IpAddr>) -> Option<LookUp<'_>> {
        if self.refused.contains_key(key) {
            return Some(LookUp::RefusedBefore);
        }
        let is_stopped = self.stopped.contains_key(&None) || self.stopped.contains_key(&caller);
        is_stopped.then_some(LookUp::TooMany)
    }

    /// The key is valid.
    pub(crate) async fn found(&self, key: KeyDigest) {
        self.known.insert(key, ()).await;
    }

    /// There is no such key, or it is revoked.
    pub(crate) async fn failed(&self, key: KeyDigest, caller: Option<IpAddr>) {
        self.known.invalidate(&key).await;
        self.refused.insert(key, ()).await;
        if !self.of_one.admits(caller) {
            self.stopped.insert(caller, ()).await;
        }
        if self.of_all.check().is_err() {
            self.stopped.insert(None, ()).await;
        }
    }
}

/// The answer to a key that is not looked up.
fn too_many(what: &str) -> Problem {
    let detail = format!("there were too many unknown {what}; this one was not looked up");
    Problem::new(ProblemKind::TOO_MANY_REQUESTS, detail).retry_after(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any test takes.
    const LASTING: Duration = Duration::from_hours(1);

    fn key(number: usize) -> KeyDigest {
        KeyDigest::of(&number.to_string())
    }

    fn address(number: u32) -> Option<IpAddr> {
        Some(std::net::Ipv4Addr::from_bits(number).into())
    }

    /// How many of so many made-up keys are looked up.
    async fn looked_up(
        strangers: &Strangers,
        keys: std::ops::Range<usize>,
        caller: fn(usize) -> Option<IpAddr>,
    ) -> usize {
        let mut granted = 0;
        for number in keys {
            if matches!(
                strangers.ask(&key(number), caller(number)).await,
                LookUp::Granted(_)
            ) {
                granted += 1;
                strangers.failed(key(number), caller(number)).await;
            }
        }
        granted
    }

    #[tokio::test]
    async fn a_refused_key_is_refused_again_without_a_look_up() {
        let strangers = Strangers::new(LASTING);
        strangers.failed(key(1), address(1)).await;
        assert!(matches!(
            strangers.ask(&key(1), address(2)).await,
            LookUp::RefusedBefore
        ));
    }

    #[tokio::test]
    async fn made_up_keys_stop_their_caller_and_no_other() {
        let strangers = Strangers::new(LASTING);
        let granted = looked_up(&strangers, 0..1_000, |_| address(1)).await;
        assert!((20..200).contains(&granted), "{granted}");
        let other = strangers.ask(&key(5_000), address(2)).await;
        assert!(matches!(other, LookUp::Granted(Some(_))), "{other:?}");
    }

    #[tokio::test]
    async fn made_up_keys_from_everywhere_are_bounded_together() {
        let strangers = Strangers::new(LASTING);
        let granted = looked_up(&strangers, 0..10_000, |number| address(number as u32)).await;
        assert!((400..5_000).contains(&granted), "{granted}");
    }

    #[tokio::test]
    async fn a_key_that_was_valid_is_looked_up_whatever_others_do() {
        let strangers = Strangers::new(LASTING);
        strangers.found(key(1)).await;
        for number in 10..1_000 {
            strangers.failed(key(number), address(1)).await;
        }
        assert!(matches!(
            strangers.ask(&key(2), address(1)).await,
            LookUp::TooMany
        ));
        assert!(matches!(
            strangers.ask(&key(1), address(1)).await,
            LookUp::Granted(None)
        ));
        strangers.failed(key(1), address(1)).await;
        let revoked = strangers.ask(&key(1), address(1)).await;
        assert!(matches!(revoked, LookUp::RefusedBefore), "{revoked:?}");
    }

    #[tokio::test]
    async fn few_unknown_keys_are_looked_up_at_once() {
        let strangers = Strangers::new(LASTING);
        let mut held = Vec::new();
        for number in 0..AT_ONCE {
            held.push(strangers.ask(&key(number), None).await);
        }
        let fifth = key(100);
        let mut waiting = std::pin::pin!(strangers.ask(&fifth, None));
        let waits = tokio::time::timeout(Duration::ZERO, waiting.as_mut()).await;
        assert!(waits.is_err(), "it waits");
        held.pop();
        assert!(matches!(waiting.await, LookUp::Granted(Some(_))));
    }
}
