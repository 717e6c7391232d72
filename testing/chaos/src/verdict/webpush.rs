//! Web Push: what was answered 201 comes, nothing comes once more that is known to be gone, and a topic shows its newest.
//!
//! What may come more than once: what was not acknowledged, or not all of what was outstanding with it; what the node had not dealt with
//! when it or the connection ended; and a direct message whose acknowledgement the endpoint node did not learn of, since it then stores it.
//! Only a message whose sender had its 201 before it was acknowledged was in one place alone by then.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::{Rules, Violation};
use crate::ledger::{SentMessage, Shown, WebpushHistory};

/// By how much two messages of a topic must lie apart, for the earlier one not to be spared because clocks may differ.
const APART: Duration = Duration::from_secs(2);

/// What came of messages of Web Push.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WebpushTally {
    /// Answered 201.
    pub answered: usize,
    /// Notifications that came.
    pub shown: usize,
    /// Of those, the ones that had come before.
    pub again: usize,
    /// Those that came after the acknowledgement of a newer one of their topic.
    pub stale: usize,
}

/// The notifications of each message, in the order in which they came.
type ByName<'a> = HashMap<&'a str, Vec<&'a Shown>>;

pub(super) fn judge(
    history: &WebpushHistory,
    rules: &Rules,
    violations: &mut Vec<Violation>,
) -> WebpushTally {
    let mut shown = ByName::new();
    for one in &history.shown {
        shown.entry(&one.name).or_default().push(one);
        if !history.sent.contains_key(&one.name) {
            violations.push(Violation::new("strangers", &one.name, "no sender has sent it"));
        }
    }
    let mut tally = WebpushTally {
        shown: history.shown.len(),
        ..WebpushTally::default()
    };
    for (name, message) in &history.sent {
        let arrivals = shown.get(name.as_str()).map_or(&[][..], Vec::as_slice);
        tally.answered += usize::from(message.answered.is_some());
        tally.again += arrivals.len().saturating_sub(1);
        let later = later_of_its_topic(message, history, &shown);
        judge_loss(name, message, arrivals, &later, violations);
        judge_repetition(name, message, arrivals, rules, violations);
        tally.stale += judge_staleness(name, message, arrivals, &later, rules, violations);
    }
    tally
}

/// What was shown of the newer messages of its topic.
fn later_of_its_topic<'a>(
    message: &SentMessage,
    history: &'a WebpushHistory,
    shown: &'a ByName<'_>,
) -> Vec<(&'a SentMessage, &'a Shown)> {
    let is_later = |other: &SentMessage| {
        message.topic.is_some()
            && (&other.channel, other.topic) == (&message.channel, message.topic)
            && other.asked > message.asked
    };
    let later = history.sent.iter().filter(|(_, other)| is_later(other));
    later
        .flat_map(|(name, other)| {
            let arrivals = shown.get(name.as_str()).into_iter().flatten();
            arrivals.map(move |arrival| (other, *arrival))
        })
        .collect()
}

fn judge_loss(
    name: &str,
    message: &SentMessage,
    arrivals: &[&Shown],
    later: &[(&SentMessage, &Shown)],
    violations: &mut Vec<Violation>,
) {
    let Some((_, version)) = &message.answered else {
        return;
    };
    if message.is_kept && arrivals.is_empty() && later.is_empty() {
        let text = "it was answered 201, and neither it nor a newer one of its topic has come";
        violations.push(Violation::new("lost", name, text));
    }
    if let Some(other) = arrivals.iter().find(|arrival| arrival.version != *version) {
        let text = format!(
            "it was answered with the message id {version} and came with {}",
            other.version
        );
        violations.push(Violation::new("arrivals", name, text));
    }
}

fn judge_repetition(
    name: &str,
    message: &SentMessage,
    arrivals: &[&Shown],
    rules: &Rules,
    violations: &mut Vec<Violation>,
) {
    if !message.is_kept && arrivals.len() > 1 {
        let text = format!("it has no TTL and came {} times", arrivals.len());
        violations.push(Violation::new("again", name, text));
    }
    for arrival in arrivals {
        let answered = message.answered.as_ref().map(|(at, _)| *at);
        let Some(gone) = gone_at(arrival, rules) else {
            continue;
        };
        let was_in_one_place =
            answered.is_some_and(|answered| arrival.acked.is_some_and(|acked| acked > answered));
        if was_in_one_place && arrivals.iter().any(|other| other.at > gone) {
            let text = "it came once more after its acknowledgement had been dealt with";
            violations.push(Violation::new("again", name, text));
            return;
        }
    }
}

/// Returns how often it came too late.
fn judge_staleness(
    name: &str,
    message: &SentMessage,
    arrivals: &[&Shown],
    later: &[(&SentMessage, &Shown)],
    rules: &Rules,
    violations: &mut Vec<Violation>,
) -> usize {
    let Some((answered, _)) = &message.answered else {
        return 0;
    };
    let after = |moment: Instant| arrivals.iter().filter(|arrival| arrival.at > moment).count();
    let stale = later
        .iter()
        .filter_map(|(_, newer)| newer.acked.map(after))
        .max()
        .unwrap_or(0);
    let is_gone = later.iter().any(|(newer, arrival)| {
        newer.asked > *answered + APART && gone_at(arrival, rules).is_some_and(|gone| after(gone) > 0)
    });
    if is_gone {
        let text = "it came after the acknowledgement of a newer one of its topic had been dealt with";
        violations.push(Violation::new("topics", name, text));
    }
    stale
}

/// From when on nothing is left of it; `None` where that is not known.
fn gone_at(arrival: &Shown, rules: &Rules) -> Option<Instant> {
    let (acked, confirmed) = (arrival.acked?, arrival.confirmed?);
    let may_have_failed = rules
        .storage_away
        .iter()
        .any(|(from, to)| acked <= *to && confirmed >= *from);
    (!may_have_failed).then_some(confirmed)
}

#[cfg(test)]
mod tests;
