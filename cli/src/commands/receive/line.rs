//! A request as one line for people.

use simulators::receiver::{Outcome, Received};

/// Columns are aligned as long as types are not longer than usual.
pub(super) fn of(received: &Received) -> String {
    let time = received.received_at.format("%H:%M:%S%.3fZ");
    let answer = match (received.outcome, received.status) {
        (_, Some(status)) => status.to_string(),
        (Outcome::Dropped, None) => "closed".to_owned(),
        (Outcome::Abandoned, None) => "left".to_owned(),
        (Outcome::Pending | Outcome::Answered, None) => "-".to_owned(),
    };
    let mut line = format!(
        "{time}  {answer:6}  {verdict:9}  {event_type:24}  {id}",
        verdict = received.verdict,
        event_type = shown(&received.event_type),
        id = shown(&received.id),
    );
    if let Some(delay) = received.delay_millis {
        line.push_str(&format!("  after {delay} ms"));
    }
    if received.arrivals > 1 {
        line.push_str(&format!("  for the {} time", ordinal(received.arrivals)));
    }
    line
}

/// The sender of a request decides what is in it: nothing of that must reach a terminal as an order.
fn shown(text: &str) -> String {
    match text {
        "" => "-".to_owned(),
        text => text.chars().take(128).flat_map(char::escape_debug).collect(),
    }
}

fn ordinal(number: u32) -> String {
    let suffix = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn received(change: &serde_json::Value) -> Received {
        let mut received = json!({
            "number": 1, "receivedAt": "2025-07-20T08:26:40.25Z", "arrivalMicros": 1, "method": "POST", "path": "/hook",
            "headers": {}, "body": "", "id": "evt_1", "type": "domain.created", "arrivals": 1, "verdict": "verified",
            "delayMillis": 12, "outcome": "answered", "status": 200,
        });
        for (name, value) in change.as_object().unwrap() {
            received[name] = value.clone();
        }
        serde_json::from_value(received).unwrap()
    }

    #[test]
    fn a_line_says_what_came_and_what_became_of_it() {
        assert_eq!(
            of(&received(&json!({}))),
            "08:26:40.250Z  200     verified   domain.created            evt_1  after 12 ms"
        );
        let again = json!({"arrivals": 2, "outcome": "dropped", "status": null, "delayMillis": null});
        assert_eq!(
            of(&received(&again)),
            "08:26:40.250Z  closed  verified   domain.created            evt_1  for the 2nd time"
        );
    }

    #[test]
    fn nothing_that_came_reaches_the_terminal_as_an_order() {
        let line = of(&received(&json!({"id": "\u{1b}[2Jevil\n", "type": ""})));
        assert!(
            line.contains("-                         \\u{1b}[2Jevil\\n"),
            "{line}"
        );
    }

    #[test]
    fn ordinals_are_english() {
        let all = [1, 2, 3, 4, 11, 12, 13, 21, 112].map(ordinal);
        assert_eq!(
            all,
            [
                "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th"
            ]
        );
    }
}
