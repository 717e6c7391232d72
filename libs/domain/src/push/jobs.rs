//! The seed's rules for the two promoting jobs: a portion must fit the queue, and the sender must be able to send it
//! before the next one arrives. And what follows from the same numbers: how long a push may be in the queue.

use std::time::Duration;

/// A job's settings that would overrun the queue or the sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobRuleViolation {
    /// `portionSize < queue capacity` does not hold.
    #[error("portionSize is {portion_size}, but must be less than push.queue.capacity, which is {capacity}")]
    PortionExceedsQueue {
        /// Rows that one execution may promote.
        portion_size: u32,
        /// Messages that the queue holds.
        capacity: u32,
    },
    /// `portionSize * delay < repeatInterval` does not hold.
    #[error(
        "portionSize * swrve.delayMillis is {} ms ({portion_size} * {} ms), but must be less than repeatInterval, \
         which is {} ms",
        busy.as_millis(), delay.as_millis(), repeat_interval.as_millis()
    )]
    PortionOutlastsInterval {
        /// Rows that one execution may promote.
        portion_size: u32,
        /// Least time between two sends.
        delay: Duration,
        /// Time that sending the portion takes.
        busy: Duration,
        /// Time between two executions.
        repeat_interval: Duration,
    },
}

/// Checks one job's settings against both rules; the result lists every rule that does not hold.
pub fn check_job(
    portion_size: u32,
    repeat_interval: Duration,
    capacity: u32,
    delay: Duration,
) -> Vec<JobRuleViolation> {
    let mut violations = Vec::new();
    if portion_size >= capacity {
        violations.push(JobRuleViolation::PortionExceedsQueue {
            portion_size,
            capacity,
        });
    }
    let busy = delay.saturating_mul(portion_size);
    if busy >= repeat_interval {
        violations.push(JobRuleViolation::PortionOutlastsInterval {
            portion_size,
            delay,
            busy,
            repeat_interval,
        });
    }
    violations
}

/// Added to the time that a full queue takes to drain, for a change of leader and for claims under way.
const QUEUE_LEASE_SLACK: Duration = Duration::from_secs(15);

/// How long a push that was handed to the broker may stay unclaimed before it is taken for lost: the time that a full
/// queue of `capacity` messages takes to drain at one send per `delay`, plus slack.
///
/// A lease that ends early is harmless: the push becomes `PENDING`, and a pending push can still be claimed by its
/// first message.
pub fn queue_lease(capacity: u32, delay: Duration) -> Duration {
    delay.saturating_mul(capacity).saturating_add(QUEUE_LEASE_SLACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(4);

    #[test]
    fn both_rules_are_strict_inequalities() {
        let interval = Duration::from_secs(1);
        assert_eq!(check_job(249, interval, 250, DELAY), []);
        assert!(matches!(
            check_job(249, interval, 249, DELAY)[..],
            [JobRuleViolation::PortionExceedsQueue { .. }]
        ));
        assert!(matches!(
            check_job(250, interval, 251, DELAY)[..],
            [JobRuleViolation::PortionOutlastsInterval { .. }]
        ));
        assert_eq!(check_job(250, interval, 250, DELAY).len(), 2);
    }

    #[test]
    fn a_violation_names_the_numbers() {
        let text = check_job(300, Duration::from_secs(1), 10_000, DELAY)[0].to_string();
        assert!(
            text.contains("1200 ms") && text.contains("300 * 4 ms") && text.contains("1000 ms"),
            "{text}"
        );
    }

    #[test]
    fn the_lease_outlasts_a_full_queue_and_never_overflows() {
        assert_eq!(queue_lease(10_000, DELAY), Duration::from_secs(55));
        assert_eq!(queue_lease(u32::MAX, Duration::MAX), Duration::MAX);
    }
}
