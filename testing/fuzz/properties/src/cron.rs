//! Quartz expressions and sending windows. Any text: an answer or a reason that says where; the next time lies ahead,
//! matches, and is its own next time. Expressions made from sets of values: the next time is the one that a plain walk
//! over days, hours, minutes and seconds finds.

mod walk;

use std::time::Duration;

use arbitrary::Unstructured;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use domain::push::{CronError, SendingWindow};

use crate::given::now;

const ZONES: [Tz; 5] = [
    Tz::UTC,
    Tz::Europe__Riga,
    Tz::America__New_York,
    Tz::Australia__Lord_Howe,
    Tz::Pacific__Apia,
];

/// Checks the property. The first byte chooses between text and sets, the second the zone.
pub fn check(input: &[u8]) {
    let [choice, zone, rest @ ..] = input else { return };
    let zone = ZONES[usize::from(*zone) % ZONES.len()];
    if choice % 2 == 0 {
        walk::check(&mut Unstructured::new(rest));
    } else if let Ok(text) = std::str::from_utf8(rest) {
        of_text(text, zone);
    }
}

fn of_text(text: &str, zone: Tz) {
    let window = match SendingWindow::parse(text, zone) {
        Ok(window) => window,
        Err(error) => return is_explained(text, &error),
    };
    assert!(SendingWindow::parse(&text.to_ascii_lowercase(), zone).is_ok());
    for from in [
        now(),
        at("2026-03-29T00:59:59Z"),
        at("2026-10-25T00:30:00Z"),
        at("2098-12-31T23:59:59Z"),
    ] {
        let Ok(next) = window.opens_at_or_after(from) else {
            assert!(!window.is_open(from, Duration::ZERO));
            continue;
        };
        assert!(next >= from, "{text}: {next} is before {from}");
        assert_eq!(window.opens_at_or_after(next), Ok(next), "{text}");
        assert!(window.is_open(next, Duration::ZERO), "{text}: {next}");
        assert_eq!(window.is_open(from, Duration::ZERO), next == from, "{text}");
    }
}

fn is_explained(text: &str, error: &CronError) {
    let said = error.to_string();
    assert!(!said.trim().is_empty());
    if let CronError::Field { column, reason, .. } = error {
        assert!(
            (1..=text.chars().count() + 1).contains(column),
            "{text:?}: {said}"
        );
        assert!(!reason.is_empty());
    }
}

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("a time")
}
