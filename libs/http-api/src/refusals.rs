//! A line of the log for requests that were refused for want of a key or a role: who guesses keys, and whose key is used
//! where it may do nothing.
//!
//! A key is told by the first bytes of its digest, by which a lost one can be recognised and none be found. Of a flood one
//! line a second is written, which says how many were left out; the metric of requests counts all.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::key::KeyDigest;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::{HeaderValue, StatusCode};

use crate::auth::key_in;
use crate::peer;

/// Lines a second, and at once after a pause.
const LINES: (NonZeroU32, NonZeroU32) = (
    NonZeroU32::new(1).expect("invariant: 1 is not zero"),
    NonZeroU32::new(10).expect("invariant: 10 is not zero"),
);

/// Writes the lines.
pub(crate) struct Refusals {
    lines: DefaultDirectRateLimiter,
    left_out: AtomicU64,
}

impl Default for Refusals {
    fn default() -> Self {
        let (rate, burst) = LINES;
        Self {
            lines: RateLimiter::direct(Quota::per_second(rate).allow_burst(burst)),
            left_out: AtomicU64::new(0),
        }
    }
}

impl Refusals {
    /// Tells of an answer with this status to a request with this `Authorization`, if it is a refusal.
    pub(crate) fn tell(&self, status: StatusCode, route: &str, authorization: Option<&HeaderValue>) {
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return;
        }
        if self.lines.check().is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        let from = peer::current().map(tracing::field::display);
        tracing::warn!(
            status = status.as_u16(),
            route,
            from,
            key = authorization.and_then(mark),
            left_out,
            "a request was refused"
        );
    }
}

/// The first bytes of the digest of the key that was shown.
fn mark(authorization: &HeaderValue) -> Option<String> {
    let digest = KeyDigest::of(key_in(authorization)?);
    let bytes = digest.as_bytes().iter().take(4);
    Some(bytes.map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_by_the_start_of_its_digest_and_nothing_of_itself() {
        let key = domain::key::format_key(&[0xab; 32]);
        let bearer = HeaderValue::from_str(&format!("Bearer {key}")).unwrap();
        let mark = mark(&bearer).unwrap();
        assert!(mark.len() == 8 && !key.contains(&mark), "{mark}");
    }

    #[test]
    fn a_flood_is_counted_and_not_written() {
        let refusals = Refusals::default();
        for _ in 0..1_000 {
            refusals.tell(StatusCode::UNAUTHORIZED, "/", None);
        }
        refusals.tell(StatusCode::OK, "/", None);
        let left_out = refusals.left_out.load(Ordering::Relaxed);
        assert!((1..1_000).contains(&left_out), "{left_out}");
    }
}
