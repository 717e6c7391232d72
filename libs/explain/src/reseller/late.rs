//! Why a notification is late: what its time went to, by cause. Pure.
//!
//! What is not recorded is not guessed: for which limit it waited before its first attempt is known only while it does, and of the daily quota also
//! once that attempt has delivered it. A pause counts from when the
//! notification could have been sent: a retry that was due later anyway is not its doing.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use chrono::TimeDelta;
use domain::notification::NotificationStatus;
use domain::reason::NotificationReason;
use domain::subscription::SubscriptionState;
use store::timeline::NotificationTimeline;
use store::webhook::StateEntry;

use super::{Sentence, Teller};
use crate::attempt::{attempted, retried_at};
use crate::course::{Attempted, Course, Due, Phase, Stop, Stretch, walk};
use crate::quota_wait::QuotaWait;
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

/// What kept the notification back: pauses of the lane, and what the subscription was.
fn stops(it: &NotificationTimeline, states: &[StateEntry]) -> Vec<Stop<Cause>> {
    let of_lane = it.pauses.iter().filter(|pause| pause.scope == "lane");
    let of_lane = of_lane.map(|pause| Stop {
        cause: Cause::Held,
        from: pause.paused_at,
        until: pause.resumed_at,
    });
    let mut states: Vec<_> = states.iter().collect();
    states.sort_by_key(|entry| (entry.at, entry.id));
    let next = states.iter().skip(1).map(|entry| Some(entry.at));
    let of_subscription = states.iter().zip(next.chain([None]));
    let of_subscription = of_subscription.filter_map(|(entry, until)| {
        Some(Stop {
            cause: Cause::of_state(entry)?,
            from: entry.at,
            until,
        })
    });
    of_lane.chain(of_subscription).collect()
}

/// What it waits for in line, if it does, since its status last changed.
fn in_line(it: &NotificationTimeline) -> Option<Cause> {
    match (it.status, &it.reason) {
        (NotificationStatus::Scheduled, Some(NotificationReason::Quota)) => Some(Cause::Quota),
        (NotificationStatus::Scheduled, Some(NotificationReason::Postponed)) => Some(Cause::Postponed),
        (NotificationStatus::Scheduled, _) => Some(Cause::Rate),
        _ => None,
    }
}

/// What the time of a notification went to, from its event or its last sending again until it ended, or until now: the largest part first.
/// Nothing of one that is not late.
pub(super) fn causes(it: &NotificationTimeline, teller: &Teller<'_>) -> Vec<Sentence> {
    let from = it.resent_at.unwrap_or(it.created_at);
    let course = Course {
        accepted_at: from,
        began_as: "accepted",
        finished_at: it.finished_at,
        now: teller.now,
        first: Due::At(from),
        due_at: retried_at(it),
        again_after: 0,
        again_at: None,
        was_delivered: false,
    };
    if course.end() - from < LATE {
        return Vec::new();
    }
    let attempts: Vec<_> = attempted(it, teller.rules)
        .filter(|attempt| attempt.number > it.resent_after)
        .map(|attempt| Attempted {
            number: attempt.number - it.resent_after,
            ..attempt
        })
        .collect();
    let mut stops = stops(it, teller.states);
    stops.extend(QuotaWait::of(it, teller.rules).map(|wait| Stop {
        cause: Cause::Quota,
        from,
        until: Some(wait.until),
    }));
    let mut sums: BTreeMap<Cause, TimeDelta> = BTreeMap::new();
    let mut add = |stretch: Stretch, cause: Cause| {
        for (stopped, took) in stretch.split(&stops) {
            *sums.entry(stopped.unwrap_or(cause)).or_default() += took;
        }
    };
    for stretch in walk(&course, &attempts) {
        let cause = match stretch.phase {
            Phase::Attempt => Cause::Attempts,
            Phase::Before => Cause::Turn,
            Phase::Waiting if attempts.is_empty() => Cause::Turn,
            Phase::Between | Phase::Again | Phase::Waiting => Cause::Retry,
        };
        match in_line(it).filter(|_| stretch.phase == Phase::Waiting) {
            Some(in_line) => {
                let [before, since] = stretch.cut(it.updated_at);
                add(before, cause);
                add(since, in_line);
            }
            None => add(stretch, cause),
        }
    }
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, time)| *time >= TOLD).collect();
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
