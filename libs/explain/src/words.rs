//! Times, numbers, endpoints and reasons as people read them.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
pub use domain::counted::{number, of as number_of};
pub use domain::origin::endpoint;
use http::StatusCode;

/// A time, to the second.
pub fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// A length of time, in its two largest units: `2 days 3 h`.
pub fn length(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let units = [
        (days, if days == 1 { "day" } else { "days" }),
        (hours, "h"),
        (minutes, "min"),
        (seconds % 60, "s"),
    ];
    let Some(first) = units.iter().position(|(count, _)| *count > 0) else {
        return if duration.is_zero() {
            "0 s".to_owned()
        } else {
            format!("{} ms", duration.as_millis())
        };
    };
    let shown = units[first..].iter().take(2).filter(|(count, _)| *count > 0);
    let shown: Vec<String> = shown.map(|(count, unit)| format!("{count} {unit}")).collect();
    shown.join(" ")
}

/// When something was or will be, as seen from `now`: `3 min ago`, `in 2 h`, `now`.
pub fn relative(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let distance = at - now;
    match distance.abs().to_std() {
        Ok(length_of_it) if length_of_it >= Duration::from_secs(1) => {
            if distance > TimeDelta::zero() {
                format!("in {}", length(length_of_it))
            } else {
                format!("{} ago", length(length_of_it))
            }
        }
        _ => "now".to_owned(),
    }
}

/// A time, absolute and as seen from `now`.
pub fn when(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    format!("{} ({})", time(at), relative(at, now))
}

/// A number that was counted up to a bound: `more than 100,000`.
pub fn counted(count: u64) -> String {
    if count > store::status::COUNTED_MAX {
        format!("more than {}", number(store::status::COUNTED_MAX))
    } else {
        number(count)
    }
}

/// A noun that was counted up to a bound; `one` and `many` are its forms. [`number_of`] takes a number that is known.
pub fn of(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", counted(count), if count == 1 { one } else { many })
}

/// What Swrve answered: the HTTP status with its usual phrase, the code in its body where that is another number, and its words where they say
/// more. None where nothing was answered.
pub fn answer(status: Option<u16>, code: Option<i64>, message: Option<&str>) -> Option<String> {
    let phrase = status.and_then(|status| StatusCode::from_u16(status).ok()?.canonical_reason());
    let own_code = code.filter(|code| status.map(i64::from) != Some(*code));
    let mut answer = match (status, own_code) {
        (Some(status), _) => status.to_string(),
        (None, code) => code?.to_string(),
    };
    if let Some(phrase) = phrase {
        answer = format!("{answer} {phrase}");
    }
    let says_more = |message: &&str| *message != answer && Some(*message) != phrase;
    let message = message.filter(says_more).map(|message| format!(" ({message})"));
    if let (Some(_), Some(code)) = (status, own_code) {
        answer = format!("{answer}, code {code}");
    }
    Some(answer + &message.unwrap_or_default())
}

/// What a notification waits for, after "waits"; or how one has ended that does not wait.
pub fn waits(status: impl AsRef<str>, reason: impl AsRef<str>) -> &'static str {
    match (status.as_ref(), reason.as_ref()) {
        (_, "CANCELLED") => "cancelled by an operator",
        (_, "EXPIRED") => "it waited for too long",
        (_, "SUBSCRIPTION_DEACTIVATED") => "its subscription was deactivated",
        (_, "SUBSCRIPTION_DELETED") => "its subscription was deleted",
        (_, "QUOTA") => "for the daily quota",
        (_, "RATE") => "for the requests per second",
        (_, "POSTPONED") => "because something of ours was missing when it was to be tried",
        (_, "BUSY") => "while its subscription has its share of the engine",
        (_, "WITHHELD") => "while nothing but probes is sent to its subscription",
        (_, "PAUSED") => "for the end of a pause",
        (_, "UNVERIFIED") => "until its endpoint is verified",
        ("RETRY", _) => "for another attempt after a failed one",
        ("SCHEDULED", _) => "for its turn in line",
        ("PENDING", _) => "for room in the queue",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_two_units_at_most() {
        for (millis, said) in [
            (0, "0 s"),
            (250, "250 ms"),
            (1_000, "1 s"),
            (61_000, "1 min 1 s"),
            (3_600_000, "1 h"),
            (93_784_000, "1 day 2 h"),
            (172_800_000, "2 days"),
        ] {
            assert_eq!(length(Duration::from_millis(millis)), said);
        }
    }

    #[test]
    fn times_are_seen_from_now() {
        let now = DateTime::UNIX_EPOCH;
        assert_eq!(relative(now + TimeDelta::seconds(90), now), "in 1 min 30 s");
        assert_eq!(relative(now - TimeDelta::hours(2), now), "2 h ago");
        assert_eq!(relative(now + TimeDelta::milliseconds(900), now), "now");
        assert_eq!(when(now, now), "1970-01-01 00:00:00 UTC (now)");
    }

    #[test]
    fn an_answer_is_told_by_its_status_and_nothing_is_told_twice() {
        let cases = [
            (Some(503), Some(503), None, "503 Service Unavailable"),
            (
                Some(503),
                Some(503),
                Some("Service Unavailable"),
                "503 Service Unavailable",
            ),
            (Some(502), Some(502), Some("502 Bad Gateway"), "502 Bad Gateway"),
            (
                Some(400),
                Some(1042),
                Some("no such campaign"),
                "400 Bad Request, code 1042 (no such campaign)",
            ),
            (Some(599), Some(599), Some("599"), "599"),
            // Of attempts that did not record the status.
            (
                None,
                Some(1042),
                Some("no such campaign"),
                "1042 (no such campaign)",
            ),
            (None, Some(503), None, "503"),
        ];
        for (status, code, message, told) in cases {
            assert_eq!(answer(status, code, message).as_deref(), Some(told));
        }
        assert_eq!(answer(None, None, Some("connection refused")), None);
    }

    #[test]
    fn what_is_counted_is_bounded() {
        assert_eq!(counted(100_001), "more than 100,000");
        assert_eq!(of(1, "push", "pushes"), "1 push");
        assert_eq!(of(2, "push", "pushes"), "2 pushes");
    }
}
