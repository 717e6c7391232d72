//! How often and when a delivery is tried again.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::lifecycle::LaneRules;
use crate::named;

/// Each delay is this many times the one before: with few retries, a small factor would be over while the receiver is
/// still restarting.
const FACTOR: u32 = 4;
/// The delay is spread by this share in both directions, so that what failed together does not come back together.
const SPREAD: f64 = 0.25;

/// The rules for further attempts (`reseller.retry`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts after the first one.
    pub max_retries: u32,
    /// Time before the first retry; four times as long before each further one.
    pub initial_delay: Duration,
    /// The longest such time.
    pub max_delay: Duration,
    /// How far a receiver may put its next attempt off with `Retry-After`.
    pub max_retry_after: Duration,
}

/// For how long what failed is tried again; a subscription says which.
#[derive(
    serde::Deserialize,
    serde::Serialize,
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum RetryPlan {
    /// As configured: for some minutes.
    #[default]
    Short,
    /// For a day, with growing waits.
    Day,
}

named!(RetryPlan, "retry plan");

impl RetryPlan {
    /// Attempts after the first one, of which `configured` are those of the short plan.
    pub fn retries(self, configured: u32) -> u32 {
        match self {
            Self::Short => configured,
            Self::Day => RetryPolicy::DAY_RETRIES,
        }
    }
}

/// What a receiver said about when to come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// After so much time.
    Delay(Duration),
    /// At this time.
    At(DateTime<Utc>),
}

impl RetryPolicy {
    /// The retries of [`RetryPlan::Day`]: after 30 s, 2, 8, 32 and 128 minutes, and three times after 7 hours, which is 24 hours in all.
    pub const DAY_RETRIES: u32 = 8;
    const DAY_INITIAL_DELAY: Duration = Duration::from_secs(30);
    const DAY_MAX_DELAY: Duration = Duration::from_secs(7 * 3_600);

    /// What it is with this plan.
    #[must_use]
    pub fn with(self, plan: RetryPlan) -> Self {
        match plan {
            RetryPlan::Short => self,
            RetryPlan::Day => Self {
                max_retries: Self::DAY_RETRIES,
                initial_delay: Self::DAY_INITIAL_DELAY,
                max_delay: Self::DAY_MAX_DELAY,
                ..self
            },
        }
    }

    /// What the life cycle of notifications is with it.
    pub fn rules(&self) -> LaneRules {
        LaneRules::notifications(self.max_retries)
    }

    /// When the next attempt is due after the one that ended at `now` as number `attempts`. `chance` is a random number
    /// from 0 to 1.
    pub fn next_attempt_at(
        &self,
        now: DateTime<Utc>,
        attempts: u32,
        retry_after: Option<RetryAfter>,
        chance: f64,
    ) -> DateTime<Utc> {
        let spread = 1.0 + SPREAD * (2.0 * chance.clamp(0.0, 1.0) - 1.0);
        let backoff = self.backoff(attempts).mul_f64(spread);
        let asked = match retry_after {
            None => Duration::ZERO,
            Some(RetryAfter::Delay(delay)) => delay,
            Some(RetryAfter::At(at)) => (at - now).to_std().unwrap_or(Duration::ZERO),
        };
        let delay = backoff.max(asked.min(self.max_retry_after));
        TimeDelta::from_std(delay)
            .ok()
            .and_then(|delay| now.checked_add_signed(delay))
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    /// The time before each retry, without the chance in it.
    pub fn delays(&self) -> impl Iterator<Item = Duration> {
        (1..=self.max_retries).map(move |attempts| self.backoff(attempts))
    }

    fn backoff(&self, attempts: u32) -> Duration {
        let factor = FACTOR.saturating_pow(attempts.saturating_sub(1));
        self.initial_delay.saturating_mul(factor).min(self.max_delay)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        max_retries: 3,
        initial_delay: Duration::from_secs(30),
        max_delay: Duration::from_secs(300),
        max_retry_after: Duration::from_secs(3_600),
    };

    fn delay(attempts: u32, retry_after: Option<RetryAfter>, chance: f64) -> i64 {
        let now = DateTime::UNIX_EPOCH;
        (POLICY.next_attempt_at(now, attempts, retry_after, chance) - now).num_seconds()
    }

    #[test]
    fn delays_grow_up_to_the_longest() {
        assert_eq!(
            [1, 2, 3, 40].map(|attempts| delay(attempts, None, 0.5)),
            [30, 120, 300, 300]
        );
    }

    #[test]
    fn the_plan_of_a_day_takes_a_day_whatever_is_configured() {
        let day = POLICY.with(RetryPlan::Day);
        let waits: Vec<u64> = day.delays().map(|delay| delay.as_secs()).collect();
        assert_eq!(waits, [30, 120, 480, 1_920, 7_680, 25_200, 25_200, 25_200]);
        let all: u64 = waits.iter().sum();
        assert!(all.abs_diff(24 * 3_600) < 900, "{all}");
        assert_eq!(day.max_retry_after, POLICY.max_retry_after);
        assert_eq!(POLICY.with(RetryPlan::Short), POLICY);
    }

    #[test]
    fn there_is_one_first_attempt_and_the_retries() {
        assert_eq!(POLICY.rules().max_attempts, 4);
    }

    #[test]
    fn a_receiver_can_ask_for_more_time_within_limits_but_not_for_less() {
        let after = |seconds| Some(RetryAfter::Delay(Duration::from_secs(seconds)));
        assert_eq!(delay(1, after(600), 0.5), 600);
        assert_eq!(delay(1, after(1), 0.5), 30);
        assert_eq!(delay(1, after(86_400), 0.5), 3_600);
        let at = DateTime::UNIX_EPOCH + TimeDelta::seconds(700);
        assert_eq!(delay(1, Some(RetryAfter::At(at)), 0.5), 700);
        let past = DateTime::UNIX_EPOCH - TimeDelta::seconds(700);
        assert_eq!(delay(1, Some(RetryAfter::At(past)), 0.5), 30);
    }

    proptest! {
        #[test]
        fn delays_stay_within_their_spread(attempts in 1_u32..100, chance in 0.0_f64..1.0) {
            let now = DateTime::UNIX_EPOCH;
            let plain = POLICY.backoff(attempts);
            let delay = (POLICY.next_attempt_at(now, attempts, None, chance) - now).to_std().unwrap();
            prop_assert!(delay >= plain.mul_f64(0.749) && delay <= plain.mul_f64(1.251));
        }
    }
}
