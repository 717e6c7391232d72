//! The full story of one push or notification: what its caller was told, what the database has recorded, what arrived.

use std::fmt::Write as _;

use crate::ledger::{Answer, Arrivals};
use crate::run::Round;
use crate::verdict::{Ending, Item};

/// The story of what has this key; nothing for what is no push, event or notification.
pub(super) fn of(round: &Round, key: &str) -> String {
    let mut text = String::new();
    let history = &round.history;
    let items = round.rows.pushes.iter().chain(&round.rows.notifications);
    for item in items.filter(|item| item.key == key || item.id.to_string() == key) {
        tell_item(&mut text, item);
    }
    for handed_in in [&history.pushes, &history.events] {
        let caller_key = key.rsplit('/').next().unwrap_or(key);
        if let Some(id) = handed_in.accepted.get(caller_key) {
            let _ = writeln!(text, "    its caller was answered 202 with {id}");
        }
    }
    for arrivals in [&history.at_swrve, &history.at_receivers] {
        tell_arrivals(&mut text, arrivals, key);
    }
    if text.is_empty() {
        return text;
    }
    format!("\n  the story of {key}:\n{text}")
}

fn tell_item(text: &mut String, item: &Item) {
    let _ = writeln!(
        text,
        "    stored as {}: {}, {} attempts ({} before it was asked for again), {} open dead letters",
        item.id, item.said, item.attempts, item.before, item.open_dead_letters
    );
    for attempt in &item.recorded {
        let ending = match attempt.ending {
            Ending::Running => "has no end".to_owned(),
            Ending::Ok => "delivered".to_owned(),
            Ending::Answered(status) => format!("answered {status}"),
            Ending::Unknown { lost: true } => "its lease ran out".to_owned(),
            Ending::Unknown { lost: false } => "had no answer".to_owned(),
            Ending::NotSent => "was not sent".to_owned(),
        };
        let _ = writeln!(text, "      attempt {} {ending}", attempt.number);
    }
}

fn tell_arrivals(text: &mut String, arrivals: &Arrivals, key: &str) {
    for arrival in arrivals.of(key) {
        let answer = match arrival.answer {
            Answer::Status(status) => format!("answered {status}"),
            Answer::None => "not answered".to_owned(),
        };
        let _ = writeln!(
            text,
            "      arrived at {:.6} s of the receiver, {answer}",
            arrival.at_micros as f64 / 1e6
        );
    }
}
