//! The report: what a run looked like from Swrve's side.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Everything since the start or the last reset. An arrival is a `POST /push` whose head has been read, whatever its
/// answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Arrivals.
    pub received: u64,
    /// Requests that were answered with a 2xx.
    pub accepted: u64,
    /// Answers by status.
    pub by_status: BTreeMap<u16, u64>,
    /// Connections that a rule closed instead of answering.
    pub dropped: u64,
    /// Requests whose client went away before the answer.
    pub abandoned: u64,
    /// Requests that are not answered yet.
    pub in_flight: u64,
    /// The most requests that were unanswered at one time.
    pub max_concurrent: u64,
    /// Distinct users.
    pub distinct_users: u64,
    /// Distinct pairs of user and message.
    pub distinct_pushes: u64,
    /// Arrivals of a pair of user and message that had arrived before: retries as well as duplicates.
    pub repeats: u64,
    /// Requests accepted although the same pair of user and message had been accepted before.
    pub duplicates: u64,
    /// More users or pushes came than can be told apart: from there on the four counts above are too low.
    pub distinct_saturated: bool,
    /// The smallest distance between two arrivals.
    pub smallest_gap_micros: Option<f64>,
    /// How many distances were below `shortGapMicros`.
    pub short_gaps: u64,
    /// What counts as a short distance.
    pub short_gap_micros: f64,
    /// The most arrivals within any second.
    pub max_in_any_second: u64,
    /// From the first to the last arrival.
    pub span_millis: f64,
    /// Arrivals per second over that span.
    pub rate_per_second: Option<f64>,
}
