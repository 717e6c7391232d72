//! What has changed between two looks at the status.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use chrono::{DateTime, SecondsFormat, Utc};
use domain::clock::{Clock as _, SystemClock};
use serde_json::Value;

use super::words;
use crate::age::length;
use crate::shown::items;

/// How many of the latest changes stay on a screen that is watched.
const LATEST_MAX: usize = 5;

/// What has changed between two looks.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The findings of the last look, and since when each is known.
    known: Option<BTreeMap<String, (String, DateTime<Utc>)>>,
    /// When the last look was, and how many there were.
    at: DateTime<Utc>,
    looks: u64,
    /// What the last look has found to be new or gone.
    now: Vec<String>,
    /// The latest changes, the oldest first.
    latest: VecDeque<String>,
}

impl Changes {
    /// Notes what a status has that the one before had not, and the other way round.
    pub(super) fn look(&mut self, status: &Value) {
        let at = status["at"].as_str().and_then(|at| at.parse().ok());
        self.at = at.unwrap_or_else(|| SystemClock.now());
        self.looks += 1;
        self.now.clear();
        let first = self.known.is_none();
        let before = self.known.take().unwrap_or_default();
        let mut known = BTreeMap::new();
        let (time, mut said) = (self.at.format("%H:%M:%S"), Vec::new());
        for finding in items(&status["findings"]) {
            // Of one kind there may be several, each with a command of its own; the text has numbers that change.
            let key = format!("{} {}", finding["id"], finding["command"]);
            let (text, since) = (words(&finding["text"]), before.get(&key).map(|(_, since)| *since));
            if since.is_none() && !first {
                said.push(format!("{time} new: {text}"));
            }
            known.insert(key, (text, since.unwrap_or(self.at)));
        }
        for (_, (text, since)) in before.iter().filter(|(key, _)| !known.contains_key(*key)) {
            let lasted = (self.at - *since).num_seconds().max(0).unsigned_abs();
            said.push(format!("{time} gone after {}: {text}", length(lasted)));
        }
        self.known = Some(known);
        self.latest.extend(said.iter().cloned());
        while self.latest.len() > LATEST_MAX {
            self.latest.pop_front();
        }
        self.now = said;
    }

    /// What begins a look where one follows the other.
    pub(super) fn separator(&self) -> String {
        let mut text = format!(
            "--- look {} at {}\n",
            self.looks,
            self.at.to_rfc3339_opts(SecondsFormat::Secs, true)
        );
        for change in &self.now {
            let _ = writeln!(text, "{change}");
        }
        text
    }

    /// The latest changes, to follow a line.
    pub(super) fn latest(&self) -> String {
        self.latest.iter().fold(String::new(), |mut text, change| {
            let _ = write!(text, "\n{change}");
            text
        })
    }
}
