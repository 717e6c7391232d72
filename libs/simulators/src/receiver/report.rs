//! The report: what a run looked like from the receiver's side.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::receiver::keyring::Verdict;
use crate::receiver::received::Received;

/// Everything since the start or the last reset, in whole numbers: what is read from JSON is what was written.
///
/// An arrival is a request whose head has been read, whatever its answer; questions to the receiver itself do not count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Arrivals, challenges included.
    pub received: u64,
    /// Requests that were answered with a 2xx.
    pub accepted: u64,
    /// Verification challenges that were met.
    pub challenges: u64,
    /// Answers by status.
    pub by_status: BTreeMap<u16, u64>,
    /// Requests by event type; `(none)` for those without, `(others)` when there are too many.
    pub by_type: BTreeMap<String, u64>,
    /// Requests by what was thought of their signature.
    pub by_verdict: BTreeMap<Verdict, u64>,
    /// Connections that a rule closed instead of answering.
    pub dropped: u64,
    /// Requests whose client went away before the answer.
    pub abandoned: u64,
    /// Requests that are not answered yet.
    pub in_flight: u64,
    /// The most requests that were unanswered at one time.
    pub max_concurrent: u64,
    /// Connections that were accepted.
    pub connections: u64,
    /// Distinct identifiers.
    pub distinct_ids: u64,
    /// Arrivals of an identifier that had arrived before: retries as well as duplicates.
    pub repeats: u64,
    /// Requests accepted although one of the same identifier had been accepted before.
    pub duplicates: u64,
    /// More identifiers came than can be told apart: from there on the three counts above are too low.
    pub distinct_saturated: bool,
    /// From the first to the last arrival.
    pub span_micros: u64,
    /// Arrivals per second over that span.
    pub rate_per_second: Option<u64>,
    /// From the `timestamp` in the body to the arrival.
    pub delay_millis: Option<Delay>,
    /// The latest requests.
    pub last: Vec<Received>,
}

/// How long notifications were on their way. A clock that is behind the sender's makes it zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delay {
    /// The shortest.
    pub min: u64,
    /// Half of them took no longer.
    pub median: u64,
    /// 99 in a hundred took no longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}
