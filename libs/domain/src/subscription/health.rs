//! When an endpoint that keeps failing counts as degraded, and when it is given up.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

/// How an endpoint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Well enough.
    Healthy,
    /// It has failed for days.
    Degraded,
    /// It has failed for so long that it gets nothing more.
    Deactivated,
}

/// How long an endpoint may fail (`reseller.health`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthPolicy {
    /// Failing for this long without a success makes it degraded.
    pub degraded_after: Duration,
    /// Failing for this long without a success makes it deactivated.
    pub deactivated_after: Duration,
    /// How far the first and the latest failure must lie apart. One failed delivery and then days without any are no
    /// evidence of a dead endpoint.
    pub evidence_after: Duration,
}

impl HealthPolicy {
    /// Judges an endpoint whose first failure since its last success was at `failing_since`, and its latest at
    /// `last_failure_at`. Both boundaries belong to the worse state.
    pub fn evaluate(
        &self,
        now: DateTime<Utc>,
        failing_since: Option<DateTime<Utc>>,
        last_failure_at: Option<DateTime<Utc>>,
    ) -> Health {
        let (Some(since), Some(latest)) = (failing_since, last_failure_at) else {
            return Health::Healthy;
        };
        if latest - since < span(self.evidence_after) {
            return Health::Healthy;
        }
        match now - since {
            failing if failing >= span(self.deactivated_after) => Health::Deactivated,
            failing if failing >= span(self.degraded_after) => Health::Degraded,
            _ => Health::Healthy,
        }
    }
}

fn span(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3_600;
    const POLICY: HealthPolicy = HealthPolicy {
        degraded_after: Duration::from_secs(48 * 3_600),
        deactivated_after: Duration::from_secs(120 * 3_600),
        evidence_after: Duration::from_secs(12 * 3_600),
    };

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn evaluated(now: i64, latest: i64) -> Health {
        POLICY.evaluate(at(now), Some(at(0)), Some(at(latest)))
    }

    #[test]
    fn both_boundaries_hold_to_the_second() {
        assert_eq!(evaluated(48 * HOUR - 1, 40 * HOUR), Health::Healthy);
        assert_eq!(evaluated(48 * HOUR, 40 * HOUR), Health::Degraded);
        assert_eq!(evaluated(120 * HOUR - 1, 40 * HOUR), Health::Degraded);
        assert_eq!(evaluated(120 * HOUR, 40 * HOUR), Health::Deactivated);
    }

    #[test]
    fn one_failure_and_then_silence_is_no_evidence() {
        assert_eq!(evaluated(200 * HOUR, 0), Health::Healthy);
        assert_eq!(evaluated(200 * HOUR, 12 * HOUR - 1), Health::Healthy);
        assert_eq!(evaluated(200 * HOUR, 12 * HOUR), Health::Deactivated);
    }

    #[test]
    fn what_does_not_fail_is_healthy() {
        assert_eq!(POLICY.evaluate(at(0), None, None), Health::Healthy);
        assert_eq!(
            POLICY.evaluate(at(900 * HOUR), None, Some(at(0))),
            Health::Healthy
        );
    }

    proptest! {
        /// Time alone never makes an endpoint better, and a clock that jumps back never makes it worse.
        #[test]
        fn health_only_falls_while_it_fails(a in 0_i64..1_000_000, b in 0_i64..1_000_000, latest in 0_i64..1_000_000) {
            let (early, late) = (a.min(b), a.max(b));
            prop_assert!(evaluated(early, latest) <= evaluated(late, latest));
            prop_assert_eq!(evaluated(-early - 1, latest), Health::Healthy);
        }
    }
}
