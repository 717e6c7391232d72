//! Times in an address: a form writes them as they are in the viewer's zone, and they stand there as they are everywhere.

use chrono::{DateTime, NaiveDateTime, SecondsFormat, TimeDelta, TimeZone as _, Utc};
use chrono_tz::Tz;
use http_api::{FieldProblem, Problem, ProblemKind};
use url::form_urlencoded;

use super::frame::Frame;

/// The words of an address that are times.
const TIMES: [&str; 4] = ["since", "until", "endedSince", "endedUntil"];
/// What is said of a time that cannot be read.
pub(super) const NEEDED: &str =
    "must be a time such as 2026-11-23T14:05, or 2026-11-23T12:05:00Z, or an age such as 2h or 3d";

/// Whether the times of the address can be read; they stand there as they are everywhere, see [`with_zones`].
pub(super) fn check(frame: &Frame) -> Result<(), Problem> {
    let is_wrong = |name: &str| {
        let asked = frame.asked(name);
        !asked.is_empty() && DateTime::parse_from_rfc3339(&asked).is_err()
    };
    let wrong: Vec<_> = TIMES
        .into_iter()
        .filter(|&name| is_wrong(name))
        .map(|name| FieldProblem::new(name, NEEDED))
        .collect();
    match wrong.first() {
        Some(first) => {
            let detail = format!("{} {NEEDED}", first.field);
            Err(Problem::new(ProblemKind::INVALID_QUERY, detail).with_errors(wrong))
        }
        None => Ok(()),
    }
}

/// The address of the page with its times as they are everywhere, if a form wrote one as it is in the viewer's zone: a copied address then
/// shows others the same.
pub(super) fn with_zones(frame: &Frame) -> Option<String> {
    let (path, query) = frame.address.split_once('?')?;
    let zone = frame.preferences.zone;
    let mut has_changed = false;
    let mut changed = form_urlencoded::Serializer::new(String::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let is_time = TIMES.contains(&&*name);
        let read = || moment(zone, &value).or_else(|| as_told(&value, frame.now));
        let at = is_time.then(read).flatten();
        has_changed |= at.is_some();
        changed.append_pair(&name, at.as_deref().unwrap_or(&value));
    }
    has_changed.then(|| format!("{path}?{}", changed.finish()))
}

/// A time without a zone, as it is in this one; of an hour that is there twice the first one is meant, so that nothing is left out.
fn moment(zone: Tz, local: &str) -> Option<String> {
    let formats = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"];
    let local = formats
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(local, format).ok())?;
    let at = zone.from_local_datetime(&local).earliest()?;
    Some(at.with_timezone(&Utc).to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// A time as stories and commands tell it, with `UTC` behind it, or how long ago it was, as commands take it.
fn as_told(text: &str, now: DateTime<Utc>) -> Option<String> {
    let text = text.trim();
    let told = text.strip_suffix("UTC").map(str::trim_end);
    let told = told.and_then(|bare| {
        let formats = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"];
        let mut times = formats.iter();
        times.find_map(|format| NaiveDateTime::parse_from_str(bare, format).ok())
    });
    let at = match told {
        Some(at) => at.and_utc(),
        None => now.checked_sub_signed(age(text)?)?.max(DateTime::UNIX_EPOCH),
    };
    Some(at.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// An age: a number, and `s`, `m`, `h` or `d` behind it.
fn age(text: &str) -> Option<TimeDelta> {
    let (count, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if !count.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let count = count.parse().ok()?;
    match unit {
        "s" => TimeDelta::try_seconds(count),
        "m" => TimeDelta::try_minutes(count),
        "h" => TimeDelta::try_hours(count),
        "d" => TimeDelta::try_days(count),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_story_tells_and_an_age_are_times() {
        let now = DateTime::parse_from_rfc3339("2026-11-30T03:00:00Z")
            .expect("a time")
            .to_utc();
        for (text, at) in [
            ("2026-11-30 02:13:15 UTC", Some("2026-11-30T02:13:15Z")),
            ("2026-11-30 02:13 UTC", Some("2026-11-30T02:13:00Z")),
            ("1h", Some("2026-11-30T02:00:00Z")),
            (" 90s ", Some("2026-11-30T02:58:30Z")),
            ("3d", Some("2026-11-27T03:00:00Z")),
            ("999999999999999999d", None),
            ("-1h", None),
            ("h", None),
            ("", None),
            ("yesterday", None),
            ("2026-11-30T02:13:15Z", None),
            ("1ä", None),
        ] {
            assert_eq!(as_told(text, now).as_deref(), at, "{text}");
        }
    }

    #[test]
    fn a_time_is_read_in_the_zone_of_the_viewer() {
        let riga = chrono_tz::Europe::Riga;
        for text in ["2026-11-23T14:05", "2026-11-23T14:05:00"] {
            assert_eq!(
                moment(riga, text).as_deref(),
                Some("2026-11-23T12:05:00Z"),
                "{text}"
            );
        }
        // The clocks go back: this hour is there twice.
        assert_eq!(
            moment(riga, "2026-10-25T03:30").as_deref(),
            Some("2026-10-25T00:30:00Z")
        );
        for text in [
            "yesterday",
            "2026-11-23",
            "2026-11-23T12:05:00Z",
            "2026-03-29T03:30",
        ] {
            assert_eq!(moment(riga, text), None, "{text}");
        }
    }
}
