//! What a service says of itself when it reports that it lives; `processes.state` in the database.
//!
//! It deliberately judges nothing. Every field may be missing in a report of another version.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use telemetry::{Metric, Readings};

/// The state of a service. What is counted belongs to its process: services that share one say the same.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// Which readiness conditions do not hold, and why.
    pub failing: BTreeMap<String, String>,
    /// What has been done since the process was started.
    pub counters: Counters,
    /// Pushes that wait for Swrve's answer.
    pub push_in_flight: u64,
    /// Attempts to deliver notifications that wait for their answer.
    pub deliveries_in_flight: u64,
    /// The epoch in which it leads the push lane, if it does.
    pub leading: Option<i64>,
    /// How far the process's clock is ahead of that of the database, in milliseconds, as far as one can tell.
    pub clock_ahead_millis: Option<i64>,
    /// The report before.
    pub previous: Option<Previous>,
}

/// What of an earlier report is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Previous {
    /// When it was made, by the clock of the database.
    pub at: DateTime<Utc>,
    /// What it had counted.
    #[serde(default)]
    pub counters: Option<Counters>,
}

/// What a process has done since it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counters {
    /// Pushes received.
    pub pushes_accepted: u64,
    /// Pushes that Swrve accepted.
    pub pushes_sent: u64,
    /// Pushes that became FAILED or GIVEN_UP.
    pub pushes_failed: u64,
    /// Attempts to send a push that are followed by another.
    pub pushes_retried: u64,
    /// Events stored.
    pub events_accepted: u64,
    /// Notifications that their endpoint accepted.
    pub notifications_delivered: u64,
    /// Notifications that became FAILED or GIVEN_UP.
    pub notifications_failed: u64,
    /// Attempts to deliver a notification that are followed by another.
    pub notifications_retried: u64,
    /// What could not be tried for want of something of the process's own.
    pub own_faults: u64,
}

impl Counters {
    fn of(readings: &Readings) -> Self {
        let count = |metric| readings.count(metric);
        Self {
            pushes_accepted: count(Metric::PushReceived),
            pushes_sent: count(Metric::PushSent),
            pushes_failed: count(Metric::PushFailed) + count(Metric::PushGivenUp),
            pushes_retried: count(Metric::PushAttemptsRetryable).saturating_sub(count(Metric::PushGivenUp)),
            events_accepted: count(Metric::EventsAccepted),
            notifications_delivered: count(Metric::NotificationsDelivered),
            notifications_failed: count(Metric::NotificationsFailed) + count(Metric::NotificationsGivenUp),
            notifications_retried: count(Metric::NotificationsRetried),
            own_faults: count(Metric::OwnFaults),
        }
    }
}

impl Report {
    /// The present state, as far as metrics and conditions tell it.
    pub(crate) fn now(conditions: lifecycle::Report, clock_ahead_millis: Option<i64>) -> Self {
        let readings = Readings::take();
        let leads = readings.count(Metric::PushLeader) > 0;
        Self {
            failing: conditions
                .conditions
                .into_iter()
                .filter_map(|(name, reason)| Some((name, reason?)))
                .collect(),
            counters: Counters::of(&readings),
            push_in_flight: readings.count(Metric::PushSendsInFlight),
            deliveries_in_flight: readings.count(Metric::DeliveriesInFlight),
            leading: leads
                .then(|| i64::try_from(readings.count(Metric::PushLeaderEpoch)).ok())
                .flatten(),
            clock_ahead_millis,
            previous: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_another_version_is_read_as_far_as_it_is_understood() {
        let report: Report = serde_json::from_str(
            r#"{"failing": {"broker": "connecting"}, "counters": {"pushesSent": 3, "new": 1}, "more": {},
                "previous": {"at": "2026-11-21T12:00:00Z", "counters": null}}"#,
        )
        .unwrap();
        assert_eq!(report.counters.pushes_sent, 3);
        assert_eq!(report.failing["broker"], "connecting");
        assert_eq!(report.previous.unwrap().counters, None);
    }
}
