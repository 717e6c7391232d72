//! One lane: each item that was accepted is there, once, has ended, with an explanation; and what arrived is explained by attempts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use uuid::Uuid;

use super::item::{Ending, Item, Status};
use super::{Ends, Violation};
use crate::ledger::{Answer, Arrivals};

/// What a lane is judged by.
#[derive(Debug)]
pub struct Lane<'a> {
    /// What its items are called.
    pub name: &'static str,
    /// All that the database has.
    pub items: &'a [Item],
    /// All that has arrived.
    pub arrivals: &'a Arrivals,
    /// All that may be.
    pub expected: &'a BTreeMap<String, Ends>,
    /// How often each was asked for once more.
    pub again: &'a HashMap<Uuid, u32>,
    /// Attempts after which one is given up.
    pub max_attempts: i32,
}

/// What became of a lane's items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Its name.
    pub name: &'static str,
    /// Rows.
    pub stored: usize,
    /// Rows of which no caller had an answer.
    pub unanswered: usize,
    /// Delivered.
    pub sent: usize,
    /// Refused for good.
    pub failed: usize,
    /// Given up.
    pub given_up: usize,
    /// Waiting for the quota of another day.
    pub over_quota: usize,
    /// Attempts.
    pub attempts: usize,
    /// Requests that came.
    pub arrivals: usize,
    /// Requests that were accepted although the same had been before, because Postrider had not learnt of it.
    pub duplicates: usize,
    /// The same, because a reseller asked for it once more.
    pub asked_for: usize,
    /// Attempts whose lease ran out.
    pub lost: usize,
    /// Attempts without an answer.
    pub without_answer: usize,
}

impl Lane<'_> {
    pub(super) fn judge(&self, violations: &mut Vec<Violation>) -> Tally {
        let mut tally = Tally {
            name: self.name,
            arrivals: self.arrivals.count(),
            ..Tally::default()
        };
        let mut seen = BTreeSet::new();
        for item in self.items {
            if !seen.insert(item.key.as_str()) {
                violations.push(Violation::new(
                    "once",
                    &item.key,
                    format!("stored more than once, also as {}", item.id),
                ));
            }
            self.judge_item(item, &mut tally, violations);
        }
        for (key, _) in self.expected.iter().filter(|(_, ends)| ends.accepted) {
            if !seen.contains(key.as_str()) {
                let text = format!("the {} was accepted and is not there", self.name);
                violations.push(Violation::new("lost", key, text));
            }
        }
        for key in self
            .arrivals
            .by_key
            .keys()
            .filter(|key| !seen.contains(key.as_str()))
        {
            violations.push(Violation::new("arrivals", key, "arrived, and no row is about it"));
        }
        let objections = self.arrivals.objections.iter();
        violations.extend(objections.map(|objection| Violation::new("contents", self.name, objection)));
        tally
    }

    fn judge_item(&self, item: &Item, tally: &mut Tally, violations: &mut Vec<Violation>) {
        let mut object = |check, text: String| violations.push(Violation::new(check, &item.key, text));
        let Some(ends) = self.expected.get(&item.key) else {
            return object("strangers", "stored, and no caller has handed it in".to_owned());
        };
        count(item, *ends, tally);
        if let Some(text) = wrong_end(item, *ends, self.max_attempts) {
            object("ends", text);
        }
        if let Some(text) = unrecorded(item) {
            object("attempts", text);
        }
        let again = self.again.get(&item.id).copied().unwrap_or(0);
        // Asking for it once more leaves the dead letter of before as it is.
        let letters = i64::from(matches!(item.status, Status::Failed | Status::GivenUp));
        if !(letters..=letters + i64::from(again)).contains(&item.open_dead_letters) {
            object(
                "dead letters",
                format!("{} has {} open dead letters", item.said, item.open_dead_letters),
            );
        }
        let (duplicates, text) = self.unexplained(item);
        if let Some(text) = text {
            object("duplicates", text);
        }
        let delivered = item.ended(|ending| ending == Ending::Ok);
        if delivered > 1 + again as usize {
            object(
                "duplicates",
                format!(
                    "{delivered} attempts are recorded as delivered, and it was asked for again {again} times"
                ),
            );
        }
        let asked_for = delivered.saturating_sub(1).min(duplicates);
        tally.asked_for += asked_for;
        tally.duplicates += duplicates - asked_for;
    }

    /// How often it was accepted too often; and what about its arrivals no attempt explains.
    fn unexplained(&self, item: &Item) -> (usize, Option<String>) {
        let arrivals = self.arrivals.of(&item.key);
        let unknown = item.unknown();
        let accepted = arrivals.iter().filter(|arrival| arrival.is_accepted()).count();
        let duplicates = accepted.saturating_sub(1);
        let delivered = item.ended(|ending| ending == Ending::Ok);
        if arrivals.len() > item.recorded.len() {
            let text = format!(
                "arrived {} times and was attempted {} times",
                arrivals.len(),
                item.recorded.len()
            );
            return (duplicates, Some(text));
        }
        if delivered > accepted {
            let text = format!(
                "{delivered} attempts are recorded as delivered, and {accepted} requests were accepted"
            );
            return (duplicates, Some(text));
        }
        if accepted > delivered + unknown {
            let text = format!(
                "was accepted {accepted} times, with {delivered} attempts delivered and {unknown} unknown"
            );
            return (duplicates, Some(text));
        }
        for arrival in arrivals.iter().filter(|arrival| !arrival.is_accepted()) {
            let Answer::Status(status) = arrival.answer else {
                continue;
            };
            let given = arrivals
                .iter()
                .filter(|other| other.answer == Answer::Status(status))
                .count();
            let recorded = item.ended(|ending| ending == Ending::Answered(status));
            if given > recorded + unknown {
                let text = format!(
                    "was answered {status} {given} times, with {recorded} attempts that say so and {unknown} unknown"
                );
                return (duplicates, Some(text));
            }
        }
        let invented = item.recorded.iter().find_map(|attempt| match attempt.ending {
            Ending::Answered(status)
                if !arrivals
                    .iter()
                    .any(|arrival| arrival.answer == Answer::Status(status)) =>
            {
                Some(status)
            }
            _ => None,
        });
        (
            duplicates,
            invented.map(|status| {
                format!("an attempt is recorded as answered {status}, and no receiver has answered so")
            }),
        )
    }
}

fn count(item: &Item, ends: Ends, tally: &mut Tally) {
    tally.stored += 1;
    tally.unanswered += usize::from(!ends.accepted);
    match item.status {
        Status::Sent => tally.sent += 1,
        Status::Failed => tally.failed += 1,
        Status::GivenUp => tally.given_up += 1,
        Status::OverQuota => tally.over_quota += 1,
        Status::Underway => {}
    }
    tally.attempts += item.recorded.len();
    let lost = item.ended(|ending| ending == Ending::Unknown { lost: true });
    tally.lost += lost;
    tally.without_answer += item.unknown() - lost;
}

/// What is wrong with where an item stands.
fn wrong_end(item: &Item, ends: Ends, max_attempts: i32) -> Option<String> {
    let said = &item.said;
    let fits = match item.status {
        Status::Underway => return Some(format!("is stuck: {said}")),
        Status::OverQuota if !ends.may_wait => {
            return Some(format!("waits for a quota that it does not have: {said}"));
        }
        Status::OverQuota => item.recorded.is_empty(),
        Status::Sent if !ends.taken => return Some("was sent, and its receiver takes nothing".to_owned()),
        Status::Sent => item.last() == Some(Ending::Ok),
        Status::Failed if !ends.refused => {
            return Some("failed, and its receiver would not refuse it".to_owned());
        }
        Status::Failed => matches!(item.last(), Some(Ending::NotSent | Ending::Answered(_))),
        Status::GivenUp => {
            let spent = item.attempts - item.before >= max_attempts;
            spent && !matches!(item.last(), None | Some(Ending::Ok | Ending::Running))
        }
    };
    (!fits).then(|| format!("{said} does not follow from its attempts"))
}

/// What is wrong with the records of its attempts.
fn unrecorded(item: &Item) -> Option<String> {
    let numbers = item.recorded.iter().map(|attempt| attempt.number);
    if !numbers.eq(1..=item.attempts) {
        return Some(format!(
            "counts {} attempts and has {} records",
            item.attempts,
            item.recorded.len()
        ));
    }
    let running = item.ended(|ending| ending == Ending::Running);
    (running > 0).then(|| format!("{running} attempts have no end"))
}

#[cfg(test)]
mod tests;
