//! What a service says of itself when it reports that it lives; `processes.state` in the database.
//!
//! It deliberately judges nothing. Every field may be missing in a report of another version.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use telemetry::{Metric, Readings, pace};

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
    /// For how many of them it has room; 0 where it delivers none.
    pub delivery_slots: u64,
    /// User agents of Web Push that are connected to it.
    pub webpush_connections: u64,
    /// Valid signing secrets that no configured key opens; 0 where it does not look for them.
    pub stale_secrets: u64,
    /// The epoch in which it leads the push lane, if it does.
    pub leading: Option<i64>,
    /// What it has heard of Swrve since it leads, if it has heard anything.
    pub swrve: Option<SwrveReport>,
    /// Whether it measures the lanes; `None` when that is not known.
    pub measures: Option<bool>,
    /// Whether it reads messages about several notifications; `false` in a report of a version before them.
    pub reads_shared_messages: bool,
    /// How far the process's clock is ahead of that of the database, in milliseconds, as far as one can tell.
    pub clock_ahead_millis: Option<i64>,
    /// The report before.
    pub previous: Option<Previous>,
    /// What it had counted some minutes ago.
    pub earlier: Option<Earlier>,
    /// What it has sent of the push lane in each second of the last two minutes in which it has sent something.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pace: Vec<PaceSecond>,
    /// What Swrve answered in each of those seconds in which it has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswerSecond>,
}

/// A second of the push lane: its beginning in seconds since 1970, how many sends were started in it, the smallest gap between two starts in
/// microseconds, and most that were in flight. Two minutes of them are written every few seconds, so that they have no names there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaceSecond(pub i64, pub u32, pub Option<u64>, pub u32);

impl From<pace::Second> for PaceSecond {
    fn from(second: pace::Second) -> Self {
        let micros = |gap: Duration| u64::try_from(gap.as_micros()).unwrap_or(u64::MAX);
        Self(
            second.at,
            second.sends,
            second.smallest_gap.map(micros),
            second.in_flight,
        )
    }
}

/// What Swrve answered in a second: its beginning, and how many answers of each class. It stands apart from [`PaceSecond`], which a version that
/// knows no answers reads as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerSecond(pub i64, pub pace::Answers);

/// What the sender of pushes has heard of Swrve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SwrveReport {
    /// Since when every attempt has failed; `None` when its last answer was that it works.
    pub failing_since: Option<DateTime<Utc>>,
}

/// What a process had counted at the beginning of [`LATELY`], or when it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    /// How long before the report.
    pub seconds: u64,
    /// What it had counted.
    pub counters: Counters,
}

/// Over how long a report tells what was done lately, as alerts look at it.
pub const LATELY: Duration = Duration::from_secs(5 * 60);

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
    /// Notifications that went from the queue back into the database because their subscription had its share.
    pub notifications_put_back: u64,
    /// What could not be tried for want of something of the process's own.
    pub own_faults: u64,
    /// Pushes claimed for sending.
    pub pushes_claimed: u64,
    /// Attempts to send a push that have ended, well or not.
    pub push_attempts: u64,
    /// Of them, those that failed at Swrve.
    pub swrve_errors: u64,
    /// Notifications claimed for sending.
    pub notifications_claimed: u64,
    /// Requests that handed in pushes or events.
    pub ingest_requests: u64,
    /// Of them, those that were answered with 5xx.
    pub ingest_errors: u64,
    /// Messages of Web Push that their user agents acknowledged to the endpoint node.
    pub webpush_direct: u64,
    /// Messages of Web Push that were stored.
    pub webpush_stored: u64,
    /// Messages of Web Push that could not be stored.
    pub webpush_errors: u64,
    /// Connections of user agents that have begun.
    pub webpush_opened: u64,
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
            notifications_put_back: count(Metric::NotificationsSidelined),
            own_faults: count(Metric::OwnFaults),
            pushes_claimed: count(Metric::PushClaimed),
            push_attempts: count(Metric::PushSent) + count(Metric::PushErrors),
            swrve_errors: readings.count_of(Metric::PushErrors, |labels| labels.contains(r#"type="swrve""#)),
            notifications_claimed: count(Metric::NotificationsClaimed),
            ingest_requests: readings.count_of(Metric::HttpRequests, hands_in),
            ingest_errors: readings.count_of(Metric::HttpRequests, |labels| {
                hands_in(labels) && labels.contains(r#"status="5"#)
            }),
            webpush_direct: readings
                .count_of(Metric::WebpushMessages, |labels| labels.contains("\"direct\"")),
            webpush_stored: readings
                .count_of(Metric::WebpushMessages, |labels| labels.contains("\"stored\"")),
            webpush_errors: readings
                .count_of(Metric::WebpushRefused, |labels| labels.contains("\"storage\"")),
            webpush_opened: count(Metric::WebpushConnectionsOpened),
        }
    }
}

/// Whether a request with these labels handed in pushes or events.
fn hands_in(labels: &str) -> bool {
    ["/push", "/events", "/events/batch"]
        .iter()
        .any(|route| labels.contains(&format!("route=\"{route}\"")))
}

/// What is told of Swrve by a process that leads, from since when it has failed: 0 while it works.
fn swrve(failing_since: Option<f64>) -> Option<SwrveReport> {
    let since = failing_since.filter(|since| since.is_finite())?;
    #[expect(clippy::cast_possible_truncation, reason = "it is a time in whole seconds")]
    let failing_since = (since > 0.0)
        .then(|| DateTime::from_timestamp(since as i64, 0))
        .flatten();
    Some(SwrveReport { failing_since })
}

/// What is told of Swrve now, by a process that leads. It is asked often, and so reads two gauges alone.
pub(crate) fn swrve_now() -> Option<SwrveReport> {
    (Metric::PushLeader.last_set() > 0.0)
        .then(|| swrve(Some(Metric::PushFailingSince.last_set())))
        .flatten()
}

/// Whether the process measures the lanes; not known without metrics.
fn measures(readings: &Readings) -> Option<bool> {
    readings.value(Metric::Ready)?;
    let monitor = |labels: &str| labels.contains(r#"name="monitor""#);
    Some(readings.count_of(Metric::JobLastSuccess, monitor) > 0)
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
            delivery_slots: readings.count(Metric::DeliverySlots),
            webpush_connections: readings.count(Metric::WebpushConnections),
            stale_secrets: readings.count(Metric::SecretsStale),
            leading: leads
                .then(|| i64::try_from(readings.count(Metric::PushLeaderEpoch)).ok())
                .flatten(),
            swrve: leads
                .then(|| swrve(readings.value(Metric::PushFailingSince)))
                .flatten(),
            measures: measures(&readings),
            reads_shared_messages: true,
            clock_ahead_millis,
            previous: None,
            earlier: None,
            pace: Vec::new(),
            answers: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_when_swrve_fails_is_told_or_that_it_works_or_nothing() {
        let failing_since = DateTime::from_timestamp(1_795_262_400, 0);
        assert_eq!(swrve(Some(1_795_262_400.0)), Some(SwrveReport { failing_since }));
        assert_eq!(swrve(Some(0.0)), Some(SwrveReport { failing_since: None }));
        assert_eq!(swrve(Some(f64::NAN)), None);
        assert_eq!(swrve(None), None);
    }

    #[test]
    fn what_is_told_of_swrve_now_is_of_the_leader_alone() {
        assert_eq!(swrve_now(), None);
        Metric::PushFailingSince.set(1_795_262_400.0);
        assert_eq!(swrve_now(), None);
        Metric::PushLeader.set(1);
        let failing_since = DateTime::from_timestamp(1_795_262_400, 0);
        assert_eq!(swrve_now(), Some(SwrveReport { failing_since }));
        Metric::PushFailingSince.set(0);
        assert_eq!(swrve_now(), Some(SwrveReport { failing_since: None }));
        Metric::PushLeader.set(0);
        assert_eq!(swrve_now(), None);
    }

    #[test]
    fn requests_that_hand_something_in_are_counted_with_their_failures() {
        let readings = Readings::of(
            r#"postrider_http_requests_total{route="/push",status="202"} 7
postrider_http_requests_total{route="/push",status="503"} 2
postrider_http_requests_total{route="/events/batch",status="500"} 1
postrider_http_requests_total{route="/push/{id}",status="500"} 100
postrider_push_sent_total 5
postrider_push_errors_total{type="swrve"} 3
postrider_push_errors_total{type="other"} 1
"#,
        );
        let counters = Counters::of(&readings);
        assert_eq!((counters.ingest_requests, counters.ingest_errors), (10, 3));
        assert_eq!((counters.push_attempts, counters.swrve_errors), (9, 3));
    }

    #[test]
    fn only_a_process_with_metrics_says_whether_it_measures() {
        let ready = "postrider_ready{condition=\"broker\"} 1\n";
        let job =
            |name| format!("{ready}postrider_job_last_success_timestamp_seconds{{name=\"{name}\"}} 17\n");
        assert_eq!(measures(&Readings::of("")), None);
        assert_eq!(measures(&Readings::of(ready)), Some(false));
        assert_eq!(measures(&Readings::of(job("rescue"))), Some(false));
        assert_eq!(measures(&Readings::of(job("monitor"))), Some(true));
    }

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
        assert_eq!(report.swrve, None);
    }
}
