//! One request as it is remembered and shown.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::received::{Outcome, Page, Remembered};
use crate::receiver::keyring::Verdict;

/// One request that is no question to the receiver itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Received {
    /// Counts arrivals from 1; never used twice, also after a reset.
    pub number: u64,
    /// When its head had been read.
    pub received_at: DateTime<Utc>,
    /// The same in microseconds since the receiver's start, by a clock that is never set.
    pub arrival_micros: u64,
    /// The method.
    pub method: String,
    /// The path of its URL with the query.
    pub path: String,
    /// Its headers, names in lower case; the values of one that came repeatedly are joined with a comma.
    pub headers: BTreeMap<String, String>,
    /// Its body, with replacement characters for what is not UTF-8.
    pub body: String,
    /// `webhook-id`, or the `id` of the body without one.
    pub id: String,
    /// The event type in the body.
    #[serde(rename = "type")]
    pub event_type: String,
    /// How many requests with this identifier had arrived, this one included.
    pub arrivals: u32,
    /// What the receiver thinks of its signature.
    pub verdict: Verdict,
    /// From the `timestamp` in the body to the arrival.
    pub delay_millis: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// The status of the answer, once there is one.
    pub status: Option<u16>,
}

/// A part of the list of received requests.
pub type ReceivedPage = Page<Received>;

impl Remembered for Received {
    fn number(&self) -> u64 {
        self.number
    }

    fn bytes(&self) -> usize {
        let headers: usize = self
            .headers
            .iter()
            .map(|(name, value)| name.len() + value.len() + 48)
            .sum();
        size_of::<Self>() + self.path.len() + self.body.len() + headers
    }
}
