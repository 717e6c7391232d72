//! Endpoints, states, rates and reasons as resellers read them. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use pages::{Markup, escape};
use url::Url;

use crate::metrics::HourDocument;

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
        "VERIFICATION_REQUESTED" => "its endpoint has to answer a challenge again",
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

/// The hours of a bar.
const BAR_HOURS: i64 = 3;

/// Delivered and failed of the last days as bars, each of three hours, with what they say in words.
pub(super) fn week(hours: &[HourDocument], since: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    const HEIGHT: u64 = 48;
    let count = (now - since).num_hours() / BAR_HOURS + 1;
    let count = usize::try_from(count).unwrap_or_default().min(250);
    let mut bars = vec![(0_u64, 0_u64); count];
    for hour in hours {
        let place = (hour.hour - since).num_hours() / BAR_HOURS;
        if let Some(bar) = usize::try_from(place).ok().and_then(|place| bars.get_mut(place)) {
            bar.0 += hour.counts.delivered;
            bar.1 += hour.counts.failed;
        }
    }
    let most = bars.iter().map(|(delivered, failed)| delivered + failed).max();
    let most = most.unwrap_or_default().max(1);
    let (delivered, failed) = bars
        .iter()
        .fold((0, 0), |sum, bar| (sum.0 + bar.0, sum.1 + bar.1));
    let mut drawn = String::new();
    let mut draw = |kind: &str, x: usize, y: u64, height: u64| {
        drawn.push_str(&format!(
            r#"<rect class="fill-{kind}" x="{x}" y="{y}" width="8" height="{height}"/>"#
        ));
    };
    for (place, (delivered, failed)) in bars.iter().enumerate() {
        let x = place * 10;
        // One that is there is seen, however small beside the others.
        let height = |count: u64| {
            if count == 0 {
                0
            } else {
                (count * (HEIGHT - 4) / most).max(2)
            }
        };
        let (good, bad) = (height(*delivered), height(*failed));
        if good > 0 {
            draw("ok", x, HEIGHT.saturating_sub(good), good);
        }
        if bad > 0 {
            draw("bad", x, HEIGHT.saturating_sub(good + bad), bad);
        }
    }
    let days = TimeDelta::hours(BAR_HOURS * i64::try_from(count).unwrap_or_default()).num_days();
    let label = format!("{delivered} delivered and {failed} failed in {days} days");
    Markup(format!(
        r#"<svg class="spark" viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{label}">{drawn}<rect class="fill-track" x="0" y="47" width="{width}" height="1"/></svg>"#,
        width = count * 10,
        label = escape(&label),
    ))
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
}
