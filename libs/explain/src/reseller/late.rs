//! Why a notification is late: what its time went to, by cause. Pure.
//!
//! What is not recorded is not guessed: for which limit it waited before its first attempt is known only while it does, and of pauses only those
//! of the subscription itself.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::NotificationStatus;
use domain::push::AttemptStatus;
use domain::reason::NotificationReason;
use domain::subscription::SubscriptionState;
use store::timeline::NotificationTimeline;
use store::webhook::StateEntry;

use super::Sentence;
use crate::words::length;

/// What took no longer is not late.
const LATE: TimeDelta = TimeDelta::seconds(10);
/// Less is not worth a sentence.
const TOLD: TimeDelta = TimeDelta::seconds(1);

/// What time went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Paused,
    Held,
    Unverified,
    Deactivated,
    Quota,
    Rate,
    Postponed,
    Retry,
    Attempts,
    Turn,
}

impl Cause {
    /// What keeps everything of a subscription in this state from being sent.
    fn of_state(entry: &StateEntry) -> Option<Self> {
        match entry.state {
            SubscriptionState::Deactivated => Some(Self::Deactivated),
            _ if entry.paused => Some(Self::Paused),
            _ if entry.held => Some(Self::Held),
            SubscriptionState::PendingVerification => Some(Self::Unverified),
            _ => None,
        }
    }

    fn said(self) -> (&'static str, &'static str) {
        match self {
            Self::Paused => ("waited-paused", "you had the subscription paused"),
            Self::Held => (
                "waited-held",
                "the operators of the platform held the subscription back",
            ),
            Self::Unverified => ("waited-unverified", "the endpoint was not verified"),
            Self::Deactivated => ("waited-deactivated", "the subscription was deactivated"),
            Self::Quota => ("waited-quota", "in line, since the daily quota was used up"),
            Self::Rate => ("waited-rate", "in line for the requests per second"),
            Self::Postponed => ("waited-postponed", "it could not be tried on our side"),
            Self::Retry => (
                "waited-retry",
                "between attempts, since the one before had failed",
            ),
            Self::Attempts => ("waited-attempts", "for the answers of the endpoint"),
            Self::Turn => ("waited-turn", "for its first attempt"),
        }
    }
}

/// What time has gone to so far.
struct Spent<'a> {
    /// The earliest first.
    states: Vec<&'a StateEntry>,
    sums: BTreeMap<Cause, TimeDelta>,
}

impl Spent<'_> {
    /// Adds a stretch of time, cut where the state of the subscription changed: what that keeps back waits for nothing else.
    fn add(&mut self, mut from: DateTime<Utc>, until: DateTime<Utc>, cause: Cause) {
        while from < until {
            let place = self.states.partition_point(|entry| entry.at <= from);
            let next = self.states.get(place).map_or(until, |entry| entry.at.min(until));
            let in_force = place.checked_sub(1).and_then(|place| self.states.get(place));
            let kept_back = in_force.and_then(|entry| Cause::of_state(entry));
            *self.sums.entry(kept_back.unwrap_or(cause)).or_default() += next - from;
            from = next;
        }
    }
}

/// What the time of a notification went to, from its event or its last sending again until it ended, or until now: the largest part first.
/// Nothing of one that is not late.
pub(super) fn causes(it: &NotificationTimeline, states: &[StateEntry], now: DateTime<Utc>) -> Vec<Sentence> {
    let mut from = it.resent_at.unwrap_or(it.created_at);
    let end = it.finished_at.unwrap_or(now);
    if end - from < LATE {
        return Vec::new();
    }
    let mut states: Vec<_> = states.iter().collect();
    states.sort_by_key(|entry| (entry.at, entry.id));
    let mut spent = Spent {
        states,
        sums: BTreeMap::new(),
    };
    // Clocks differ, so nothing begins before what was before it has ended.
    let within = |from: DateTime<Utc>, at: DateTime<Utc>| at.max(from).min(end);
    let mut cause = Cause::Turn;
    for attempt in it
        .history
        .iter()
        .filter(|attempt| attempt.number > it.resent_after)
    {
        if attempt.number > it.resent_after + 1 {
            // The earliest of many attempts are not told.
            cause = Cause::Retry;
        }
        let ended = match (attempt.millis, attempt.status) {
            (Some(millis), _) => {
                attempt.started_at + TimeDelta::milliseconds(millis.clamp(0, i64::from(u32::MAX)))
            }
            (None, AttemptStatus::InProcess) => end,
            (None, _) => attempt.started_at,
        };
        let started = within(from, attempt.started_at);
        let ended = within(started, ended);
        spent.add(from, started, cause);
        // A pause ends no attempt that is under way.
        *spent.sums.entry(Cause::Attempts).or_default() += ended - started;
        (from, cause) = (ended, Cause::Retry);
    }
    let in_line = match (it.status, &it.reason) {
        (NotificationStatus::Scheduled, Some(NotificationReason::Quota)) => Some(Cause::Quota),
        (NotificationStatus::Scheduled, Some(NotificationReason::Postponed)) => Some(Cause::Postponed),
        (NotificationStatus::Scheduled, _) => Some(Cause::Rate),
        _ => None,
    };
    let in_line_since = in_line.map_or(end, |_| within(from, it.updated_at));
    spent.add(from, in_line_since, cause);
    spent.add(in_line_since, end, in_line.unwrap_or(cause));
    let mut sums: Vec<_> = spent.sums.into_iter().filter(|(_, time)| *time >= TOLD).collect();
    sums.sort_by_key(|(_, time)| Reverse(*time));
    sums.into_iter().map(|(cause, time)| told(cause, time)).collect()
}

fn told(cause: Cause, time: TimeDelta) -> Sentence {
    let (code, said) = cause.said();
    let seconds = time.num_seconds().unsigned_abs();
    // In whole minutes, so that a page that asks for itself again mostly finds that nothing has changed.
    let shown = if seconds < 120 { seconds } else { seconds / 60 * 60 };
    let text = format!("{}: {said}.", length(Duration::from_secs(shown)));
    Sentence::new(code, text).with("millis", time.num_milliseconds())
}
