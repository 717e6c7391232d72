//! What has been said of which notification, so that nothing is said twice and nothing is left out.

use std::collections::{HashMap, HashSet};

use anyhow::Context as _;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::output;

/// How long an event may need from the moment at which it was accepted to the list: transactions end in another order than
/// they begin, and the clocks of two machines differ.
const OVERLAP: TimeDelta = TimeDelta::seconds(60);

/// A notification as lists show it, as far as it matters here.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) id: Uuid,
    event_id: String,
    event_type: String,
    status: String,
    reason: Option<String>,
    attempts: u32,
    next_attempt_at: Option<DateTime<Utc>>,
    accepted_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
}

/// Where a notification stood when it was last looked at.
#[derive(Debug, PartialEq)]
struct Standing {
    status: String,
    attempts: u32,
    /// A resend of what was sent before leads to the same status and number in the end.
    finished_at: Option<DateTime<Utc>>,
    accepted_at: DateTime<Utc>,
}

/// All of one subscription.
#[derive(Debug, Default)]
pub(super) struct Follower {
    known: HashMap<Uuid, Standing>,
    /// When the newest event was accepted that is known, by the clock of the process that accepted it.
    newest: Option<DateTime<Utc>>,
    /// How often everything was looked at.
    rounds: usize,
}

/// What the portal says of one subscription.
pub(super) struct Found {
    pub(super) rows: Vec<Value>,
    /// Notifications that do not exist any more.
    pub(super) gone: Vec<Uuid>,
    /// How many were asked for one by one.
    pub(super) singles: usize,
}

/// Something to be said.
#[derive(Debug)]
pub(super) struct News {
    pub(super) at: DateTime<Utc>,
    pub(super) text: String,
    pub(super) document: Value,
}

impl Follower {
    /// One that knows everything up to this time.
    pub(super) fn since(newest: Option<DateTime<Utc>>) -> Self {
        Self {
            newest,
            ..Self::default()
        }
    }

    /// From when on events have to be looked at again.
    pub(super) fn horizon(&self) -> Option<DateTime<Utc>> {
        self.newest.and_then(|newest| newest.checked_sub_signed(OVERLAP))
    }

    /// Takes note of everything that was found, and tells what is new.
    pub(super) fn take_all(&mut self, found: Found) -> anyhow::Result<Vec<News>> {
        let mut news = Vec::new();
        for row in found.rows {
            let taken = self.take(row);
            news.extend(taken.context("the portal's list holds something that is no notification")?);
        }
        for id in found.gone {
            self.forget(id);
        }
        self.advance();
        Ok(news)
    }

    /// Takes note of a notification, and tells what is new about it.
    pub(super) fn take(&mut self, document: Value) -> Result<Option<News>, serde_json::Error> {
        let row = Row::deserialize(&document)?;
        let standing = Standing {
            status: row.status.clone(),
            attempts: row.attempts,
            finished_at: row.finished_at,
            accepted_at: row.accepted_at,
        };
        let before = self.known.insert(row.id, standing);
        let is_said = before.as_ref() == self.known.get(&row.id);
        // That one of those that wait has been taken up is no news: what came of it will be.
        let is_dull = before.is_some() && matches!(row.status.as_str(), "PENDING" | "IN_MEMORY");
        Ok((!is_said && !is_dull).then(|| News {
            at: row.updated_at,
            text: row.text(),
            document,
        }))
    }

    /// Everything up to the newest that is known has been looked at: what has ended long before is forgotten.
    pub(super) fn advance(&mut self) {
        self.rounds = self.rounds.wrapping_add(1);
        self.newest = self
            .known
            .values()
            .map(|standing| standing.accepted_at)
            .chain(self.newest)
            .max();
        if let Some(horizon) = self.horizon() {
            self.known
                .retain(|_, standing| standing.finished_at.is_none() || standing.accepted_at >= horizon);
        }
    }

    /// Up to `most` of those that have not ended and were not among these; others in each round.
    pub(super) fn unfinished(&self, looked_at: &HashSet<Uuid>, most: usize) -> Vec<Uuid> {
        let unfinished = self
            .known
            .iter()
            .filter(|(_, standing)| standing.finished_at.is_none());
        let mut ids: Vec<Uuid> = unfinished
            .map(|(id, _)| *id)
            .filter(|id| !looked_at.contains(id))
            .collect();
        ids.sort();
        if !ids.is_empty() {
            let first = self.rounds.wrapping_mul(most) % ids.len();
            ids.rotate_left(first);
        }
        ids.truncate(most);
        ids
    }

    /// It does not exist any more.
    pub(super) fn forget(&mut self, id: Uuid) {
        self.known.remove(&id);
    }
}

/// When the event of a row was accepted.
pub(super) fn accepted_at(row: &Value) -> Option<DateTime<Utc>> {
    row["acceptedAt"].as_str()?.parse().ok()
}

impl Row {
    fn text(&self) -> String {
        let attempts = match self.attempts {
            0 => String::new(),
            1 => "  after 1 attempt".to_owned(),
            more => format!("  after {more} attempts"),
        };
        let reason = self.reason.as_deref().filter(|_| self.status != "SENT");
        let reason = reason.map(|reason| format!("  {}", output::harmless(reason)));
        let next = self
            .next_attempt_at
            .filter(|_| self.finished_at.is_none())
            .map(|at| {
                let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
                format!("  next {at}")
            });
        format!(
            "{}  {:9}  {:24}  {}  {}{attempts}{}{}",
            self.updated_at.format("%H:%M:%S%.3fZ"),
            self.status,
            output::harmless(&self.event_type),
            output::harmless(&self.event_id),
            self.id,
            reason.unwrap_or_default(),
            next.unwrap_or_default(),
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(id: u128, status: &str, attempts: u32, accepted: i64) -> Value {
        let at = DateTime::from_timestamp_secs(1_795_000_000 + accepted).unwrap();
        let ended = ["SENT", "FAILED", "GIVEN_UP"].contains(&status);
        json!({
            "id": Uuid::from_u128(id), "eventId": format!("evt_{id}"), "eventType": "domain.created", "status": status,
            "reason": null, "attempts": attempts, "nextAttemptAt": null, "acceptedAt": at, "updatedAt": at,
            "finishedAt": ended.then_some(at),
        })
    }

    fn said(follower: &mut Follower, document: Value) -> bool {
        follower.take(document).unwrap().is_some()
    }

    #[test]
    fn each_change_is_said_once() {
        let mut follower = Follower::default();
        assert!(said(&mut follower, document(1, "PENDING", 0, 0)));
        for (status, attempts, news) in [
            ("PENDING", 0, false),
            ("IN_MEMORY", 0, false),
            ("RETRY", 1, true),
            ("RETRY", 1, false),
            ("IN_MEMORY", 1, false),
            ("RETRY", 2, true),
            ("SENT", 3, true),
            ("SENT", 3, false),
        ] {
            assert_eq!(
                said(&mut follower, document(1, status, attempts, 0)),
                news,
                "{status} {attempts}"
            );
        }
    }

    #[test]
    fn what_ended_long_ago_is_forgotten_and_what_has_not_is_asked_for() {
        let mut follower = Follower::default();
        said(&mut follower, document(1, "RETRY", 1, 0));
        said(&mut follower, document(2, "SENT", 1, 0));
        said(&mut follower, document(3, "SENT", 1, 1_000));
        follower.advance();
        assert_eq!(follower.known.len(), 2);
        assert_eq!(follower.horizon().unwrap().timestamp(), 1_795_000_940);
        assert_eq!(follower.unfinished(&HashSet::new(), 9), [Uuid::from_u128(1)]);
        assert!(
            follower
                .unfinished(&HashSet::from([Uuid::from_u128(1)]), 9)
                .is_empty()
        );
        // Late, and before what was seen already: within the overlap it is not lost.
        assert!(said(&mut follower, document(4, "SENT", 1, 950)));
    }

    #[test]
    fn no_one_of_many_that_wait_is_left_out() {
        let mut follower = Follower::default();
        for id in 1..=5 {
            said(&mut follower, document(id, "SCHEDULED", 0, 0));
        }
        let mut asked = HashSet::new();
        for _ in 0..5 {
            asked.extend(follower.unfinished(&HashSet::new(), 2));
            follower.advance();
        }
        assert_eq!(asked.len(), 5);
    }

    #[test]
    fn a_line_says_where_a_notification_stands() {
        let mut retry = document(1, "RETRY", 2, 0);
        retry["reason"] = "delivery/http/503\u{1b}".into();
        retry["nextAttemptAt"] = "2026-11-21T12:00:00.5Z".into();
        let text = Follower::default().take(retry).unwrap().unwrap().text;
        assert!(
            text.contains("RETRY      domain.created            evt_1"),
            "{text}"
        );
        assert!(
            text.ends_with("after 2 attempts  delivery/http/503\u{fffd}  next 2026-11-21T12:00:00Z"),
            "{text}"
        );
    }
}
