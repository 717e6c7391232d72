//! What holds beside single items: answers keep their word, bodies stay what they were, and what was lost on the way is no more than
//! what was interrupted.

use std::collections::{BTreeSet, HashMap};

use uuid::Uuid;

use super::lane::Tally;
use super::rows::EventRow;
use super::{Rules, Violation};
use crate::ledger::HandedIn;

/// What was answered 202 is stored under the identifier of the answer, and nothing is there that was not handed in.
pub(super) fn judge_handed_in<'a>(
    name: &'static str,
    handed_in: &HandedIn,
    stored: impl Iterator<Item = (&'a str, Uuid)>,
    violations: &mut Vec<Violation>,
) {
    let stored: HashMap<&str, Uuid> = stored.collect();
    for (key, id) in &handed_in.accepted {
        match stored.get(key.as_str()) {
            None => violations.push(Violation::new(
                "lost",
                key,
                format!("the {name} was answered 202 and is not there"),
            )),
            Some(other) if other != id => {
                let text =
                    format!("the {name} was answered with the identifier {id} and is stored as {other}");
                violations.push(Violation::new("lost", key, text));
            }
            Some(_) => {}
        }
    }
}

/// The stored bodies are what was handed in.
pub(super) fn judge_bodies(events: &[EventRow], violations: &mut Vec<Violation>) {
    let mut seen = BTreeSet::new();
    for event in events {
        if event.altered {
            violations.push(Violation::new(
                "contents",
                &event.event_id,
                "its stored body is another one",
            ));
        }
        if !seen.insert(&event.event_id) {
            violations.push(Violation::new(
                "once",
                &event.event_id,
                "the event is stored more than once",
            ));
        }
    }
}

/// Claims are only lost when something was interrupted, and then no more than can have been in flight.
pub(super) fn judge_lost(tally: &Tally, rules: &Rules, violations: &mut Vec<Violation>) {
    let bound = rules.interruptions * rules.in_flight;
    if tally.lost > bound {
        let text = format!(
            "{} claims ran out, and {} interruptions explain {bound}",
            tally.lost, rules.interruptions
        );
        violations.push(Violation::new("duplicates", tally.name, text));
    }
    let unknown = tally.lost + tally.without_answer;
    if tally.duplicates > unknown {
        let text = format!(
            "{} duplicates, and {unknown} attempts of unknown outcome",
            tally.duplicates
        );
        violations.push(Violation::new("duplicates", tally.name, text));
    }
}
