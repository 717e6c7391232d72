//! Endpoints, states, rates and reasons as resellers read them. Pure.

use std::time::Duration;

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use http_api::Problem;
use pages::{Markup, escape};
use url::Url;

/// What an endpoint is called where there is no room for all of it: its host.
pub(super) fn host(url: &str) -> String {
    let host = Url::parse(url).ok().and_then(|url| {
        let host = url.host_str()?;
        Some(
            url.port()
                .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")),
        )
    });
    host.unwrap_or_else(|| url.to_owned())
}

/// What tells an endpoint from others on its host: host and path, without the query, which can hold a token.
pub(super) fn place(url: &str) -> String {
    Url::parse(url).map_or_else(
        |_| url.to_owned(),
        |parsed| format!("{}{}", host(url), parsed.path().trim_end_matches('/')),
    )
}

/// Why a subscription is in its state.
pub(super) fn state_reason(reason: &str) -> &'static str {
    match reason {
        "CREATED" => "it is new",
        "VERIFIED" => "its endpoint answered the challenge",
        "FAILING" => "its endpoint has failed for days",
        "RECOVERED" => "its endpoint works again",
        "REDIRECTED" => "its endpoint answered with a redirect, which is not followed",
        "GONE" => "its endpoint answered 410, which says that it is gone",
        "BY_RESELLER" => "one of you did it",
        "ENDPOINT_CHANGED" => "it got another endpoint",
        "VERIFICATION_REQUESTED" => "its endpoint has to answer a challenge",
        _ => "for a reason that this page does not know",
    }
}

/// Why a notification waits or has ended.
pub(super) fn reason(reason: &str) -> String {
    let said = match reason {
        "QUOTA" => "the quota of the day is used up",
        "RATE" => "it has to wait for its second",
        "PAUSED" => "the subscription is paused",
        "UNVERIFIED" => "the endpoint has not answered its challenge yet",
        "RESENT" => "it is sent again",
        "REPLAYED" => "it is part of a replay",
        "BUSY" | "BACKLOG" | "WITHHELD" => "others of the subscription come first",
        "POSTPONED" => "we could not try",
        "SUBSCRIPTION_DEACTIVATED" => "the subscription was deactivated",
        "SUBSCRIPTION_DELETED" => "the subscription was deleted",
        "EXPIRED" => "it waited for too long",
        "CANCELLED" => "it was cancelled",
        failure => return failed(failure),
    };
    said.to_owned()
}

/// What went wrong with an attempt, from the kind of its failure.
fn failed(failure: &str) -> String {
    let mut parts = failure.split('/').skip(1);
    match (parts.next(), parts.next()) {
        (Some("http"), Some(status)) => format!("the endpoint answered {status}"),
        (Some("timeout"), _) => "the endpoint did not answer in time".to_owned(),
        (Some("dns"), _) => "the name of the endpoint has no public address".to_owned(),
        (Some("tls"), _) => "there was no secure connection".to_owned(),
        (Some("connect"), _) => "there was no connection".to_owned(),
        (Some("protocol"), _) => "what the endpoint answered was no HTTP".to_owned(),
        (Some("egress"), _) => "the address of the endpoint may not be asked".to_owned(),
        _ => failure.to_owned(),
    }
}

/// A part of a whole.
pub(super) fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if part < 1.0 && percent > 99.9 {
        return "99.9 %".to_owned();
    }
    let text = format!("{percent:.1}");
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// How long something took.
pub(super) fn millis(millis: f64) -> String {
    if millis < 1_000.0 {
        format!("{millis:.0} ms")
    } else {
        format!("{:.1} s", millis / 1_000.0)
    }
}

/// How long something waited, which can be for days.
pub(super) fn wait(of: f64) -> String {
    if of < 60_000.0 {
        millis(of)
    } else {
        explain::words::length(Duration::from_secs_f64(of / 1_000.0))
    }
}

/// The hours of a bar.
pub(super) const BAR_HOURS: i64 = 3;

/// How many bars a chart of this time has.
pub(super) fn bars_of(since: DateTime<Utc>, now: DateTime<Utc>) -> usize {
    let count = (now - since).num_hours() / BAR_HOURS + 1;
    usize::try_from(count).unwrap_or_default().min(250)
}

/// Delivered and failed of the last days as bars, each of three hours, with what they say in words; of hours with what was delivered and failed in
/// them.
pub(super) fn week_of(
    hours: impl Iterator<Item = (DateTime<Utc>, u64, u64)>,
    since: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Markup {
    let count = bars_of(since, now);
    let mut bars = vec![[0; 3]; count];
    for (hour, ended, lost) in hours {
        let place = (hour - since).num_hours() / BAR_HOURS;
        if let Some([delivered, _, failed]) =
            usize::try_from(place).ok().and_then(|place| bars.get_mut(place))
        {
            *delivered += ended;
            *failed += lost;
        }
    }
    let sum = |kind: usize| bars.iter().map(|bar| bar[kind]).sum::<u64>();
    let days = TimeDelta::hours(BAR_HOURS * i64::try_from(count).unwrap_or_default()).num_days();
    let label = format!("{} delivered and {} failed in {days} days", sum(0), sum(2));
    stacked(&bars, &label)
}

/// Counts of what was delivered, tried again and failed as bars, with what they say in words.
pub(super) fn stacked(bars: &[[u64; 3]], label: &str) -> Markup {
    const HEIGHT: u64 = 48;
    let most = bars.iter().map(|bar| bar.iter().sum::<u64>()).max();
    let most = most.unwrap_or_default().max(1);
    let mut drawn = String::new();
    for (place, bar) in bars.iter().enumerate() {
        let (x, mut y) = (place * 10, HEIGHT);
        for (count, kind) in bar.iter().zip(["ok", "warn", "bad"]) {
            if *count > 0 {
                // One that is there is seen, however small beside the others.
                let height = (count.saturating_mul(HEIGHT - 4) / most).max(2);
                y = y.saturating_sub(height);
                drawn.push_str(&format!(
                    r#"<rect {fill} x="{x}" y="{y}" width="8" height="{height}"/>"#,
                    fill = pages::markup::fill(kind)
                ));
            }
        }
    }
    Markup(format!(
        r#"<svg class="spark" viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{label}">{drawn}<rect class="fill-track" x="0" y="47" width="{width}" height="1"/></svg>"#,
        width = bars.len() * 10,
        label = escape(label),
    ))
}

/// How much of a whole is behind, as a bar.
pub(super) fn progress(part: f64, tone: &str) -> Markup {
    let width = (part * 100.0).clamp(0.0, 100.0);
    Markup(format!(
        r#"<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{label}"><rect class="fill-track" width="100" height="8"/><rect class="fill-{tone}" width="{width:.1}" height="8"/></svg>"#,
        label = percent(part.clamp(0.0, 1.0)),
    ))
}

/// A time as a field for one sends it, which is in the viewer's zone, or as the API takes it. Where clocks go back, a time is there twice: the
/// earlier one of a beginning and the later one of an end leave nothing out.
pub(super) fn time(
    text: &str,
    zone: Tz,
    pick: fn(MappedLocalTime<DateTime<Tz>>) -> Option<DateTime<Tz>>,
) -> Option<DateTime<Utc>> {
    if let Ok(at) = text.parse() {
        return Some(at);
    }
    let formats = [
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M",
        "%Y-%m-%d %H:%M:%S%.f",
    ];
    let found = formats
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())?;
    Some(pick(found.and_local_timezone(zone))?.to_utc())
}

/// The time that a parameter asks for, as [`time`] reads it.
pub(super) fn asked(
    name: &'static str,
    text: Option<&str>,
    zone: Tz,
) -> Result<Option<DateTime<Utc>>, Problem> {
    let pick = if matches!(name, "until" | "endedUntil") {
        MappedLocalTime::latest
    } else {
        MappedLocalTime::earliest
    };
    let wrong = || Problem::query(name, "must be a time such as 2026-11-21T12:00");
    let text = text.map(str::trim);
    text.map(|text| time(text, zone, pick).ok_or_else(wrong))
        .transpose()
}

/// A time of an address as the field for it takes it; nothing of what is none.
pub(super) fn field(text: &str, zone: Tz) -> String {
    time(text, zone, MappedLocalTime::earliest).map_or_else(String::new, |at| pages::local(at, zone))
}

/// A size.
pub(super) fn bytes(size: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "rounded for people")]
    let of = |unit: u64| size as f64 / unit as f64;
    match size {
        0..1_024 => format!("{size} bytes"),
        1_024..1_048_576 => format!("{:.1} KiB", of(1_024)),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", of(1_048_576)),
        _ => format!("{:.1} GiB", of(1_073_741_824)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_never_rounded_up_to_all() {
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.99999), "99.9 %");
        assert_eq!(percent(0.978), "97.8 %");
        assert_eq!(percent(0.0), "0 %");
    }

    #[test]
    fn a_wait_is_told_in_the_unit_that_suits_it() {
        assert_eq!(wait(40.0), "40 ms");
        assert_eq!(wait(1_500.0), "1.5 s");
        assert_eq!(wait(90_000.0), "1 min 30 s");
        assert_eq!(wait(75.0 * 3_600_000.0), "3 days 3 h");
    }

    #[test]
    fn endpoints_are_called_by_their_host() {
        assert_eq!(
            host("https://hooks.example:8443/in?token=x"),
            "hooks.example:8443"
        );
        assert_eq!(host("https://hooks.example/in"), "hooks.example");
        assert_eq!(host("nothing"), "nothing");
    }

    #[test]
    fn failures_read_as_sentences() {
        assert_eq!(reason("delivery/http/503/json"), "the endpoint answered 503");
        assert_eq!(reason("delivery/timeout"), "the endpoint did not answer in time");
        assert_eq!(reason("QUOTA"), "the quota of the day is used up");
    }

    #[test]
    fn a_time_is_read_in_the_zone_of_the_viewer() {
        let riga = chrono_tz::Europe::Riga;
        let read = |text| time(text, riga, MappedLocalTime::earliest).map(|at| at.to_rfc3339());
        let noon = Some("2026-11-21T10:00:00+00:00".to_owned());
        assert_eq!(read("2026-11-21T12:00"), noon);
        assert_eq!(read("2026-11-21 12:00"), noon);
        assert_eq!(read("2026-11-21 12:00:00"), noon);
        assert_eq!(read("2026-11-21T10:00:00Z"), noon);
        assert_eq!(
            read("2026-10-25T03:30"),
            Some("2026-10-25T00:30:00+00:00".to_owned())
        );
        assert_eq!(read("yesterday"), None);
        for (text, shown) in [
            ("2026-11-21T10:00:00Z", "2026-11-21T12:00"),
            ("2026-11-21T10:00:33Z", "2026-11-21T12:00:33"),
        ] {
            assert_eq!(field(text, riga), shown);
        }
    }
}
