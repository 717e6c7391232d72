//! The words of each kind of mail, and the form of all as HTML: the files of `templates`, compiled once.
//!
//! What a template inserts is one line without anything that a terminal or a mail reader would obey, and escaped in HTML, so that
//! nothing from outside becomes a part of the mail.

use std::sync::LazyLock;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use domain::email::EmailKind;
use domain::origin::origin;
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior, Value};

use crate::page::{escaped, one_line};

const SOURCES: [(&str, &str); 10] = [
    ("facts.txt", include_str!("../templates/facts.txt")),
    ("mail.html", include_str!("../templates/mail.html")),
    ("STATE_CHANGED", include_str!("../templates/state_changed.txt")),
    (
        "RETRIES_EXHAUSTED",
        include_str!("../templates/retries_exhausted.txt"),
    ),
    (
        "VERIFICATION_FAILED",
        include_str!("../templates/verification_failed.txt"),
    ),
    (
        "DELIVERY_REFUSED",
        include_str!("../templates/delivery_refused.txt"),
    ),
    ("QUOTA_DECIDED", include_str!("../templates/quota_decided.txt")),
    (
        "ADDRESS_CONFIRMATION",
        include_str!("../templates/address_confirmation.txt"),
    ),
    (
        "SECURITY_CHANGED",
        include_str!("../templates/security_changed.txt"),
    ),
    (
        "DELIVERIES_RECOVERED",
        include_str!("../templates/deliveries_recovered.txt"),
    ),
];

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).keep_trailing_newline(true);
    templates.set_syntax(syntax.build().expect("invariant: these are the usual delimiters"));
    templates.set_formatter(|out, state, value| {
        let text = value.to_string();
        let is_html = matches!(state.auto_escape(), AutoEscape::Html);
        out.write_str(&if is_html { escaped(&text) } else { one_line(&text) })?;
        Ok(())
    });
    templates.add_filter("origin", |url: &str| origin(url));
    templates.add_filter("host", host);
    templates.add_filter("notifications", |count: u64| counted(count, "notification"));
    templates.add_filter("time", |at: &str| {
        Ok::<_, Error>(read(at)?.format("%Y-%m-%d %H:%M:%S UTC").to_string())
    });
    // Two mails can be about one second: an inbox tells by this which of them came later.
    templates.add_filter("moment", |at: &str| {
        Ok::<_, Error>(read(at)?.format("%Y-%m-%d %H:%M:%S%.3f UTC").to_string())
    });
    // As commands and addresses take one; of what happened within the second nothing is left out.
    templates.add_filter("instant", |at: &str| {
        Ok::<_, Error>(read(at)?.to_rfc3339_opts(SecondsFormat::Secs, true))
    });
    templates.add_filter("until", |since: &str, at: &str| {
        Ok::<_, Error>(span(read(at)? - read(since)?))
    });
    templates.add_function("way", way);
    for (name, source) in SOURCES {
        templates
            .add_template(name, source)
            .expect("invariant: each is compiled by the tests of wording");
    }
    templates
});

/// A kind's template, filled in.
pub(crate) fn text(kind: EmailKind, told: Value) -> Result<String, Error> {
    TEMPLATES.get_template(kind.as_str())?.render(told)
}

/// How something is done about the subscription of the mail: on this page of it where resellers have a dashboard, else with this request.
fn way(state: &State<'_, '_>, page: &str, method: &str, part: &str) -> String {
    let subscription = state.lookup("subscription").unwrap_or_default();
    match state.lookup("dashboard").filter(Value::is_true) {
        Some(dashboard) => format!("{dashboard}/s/{subscription}/{page}"),
        None => format!("{method} /subscriptions/{subscription}{part}"),
    }
}

/// A page as HTML.
pub(crate) fn html(page: Value) -> Result<String, Error> {
    TEMPLATES.get_template("mail.html")?.render(page)
}

fn read(at: &str) -> Result<DateTime<Utc>, Error> {
    at.parse().map_err(|error| {
        Error::new(ErrorKind::InvalidOperation, "no time").with_source::<chrono::ParseError>(error)
    })
}

fn counted(number: u64, unit: &str) -> String {
    match number {
        1 => format!("1 {unit}"),
        number => format!("{number} {unit}s"),
    }
}

/// How long something took, in its largest unit: `3 days`.
fn span(span: TimeDelta) -> String {
    let (days, hours, minutes) = (span.num_days(), span.num_hours(), span.num_minutes().max(1));
    match (days, hours) {
        (1.., _) => counted(days.unsigned_abs(), "day"),
        (_, 1..) => counted(hours.unsigned_abs(), "hour"),
        _ => counted(minutes.unsigned_abs(), "minute"),
    }
}

/// What a subscription is called in a subject line: the host of its endpoint. Its description is what its owner wrote, and a
/// subject is read before its reader can tell whose words they are.
fn host(url: &str) -> String {
    const LONGEST: usize = 60;
    let origin = origin(url);
    let host = origin.split_once("://").map_or(&*origin, |(_, host)| host);
    host.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_their_largest_unit() {
        for (seconds, told) in [
            (1, "1 minute"),
            (7_200, "2 hours"),
            (86_400, "1 day"),
            (431_999, "4 days"),
        ] {
            assert_eq!(span(TimeDelta::seconds(seconds)), told);
        }
    }

    #[test]
    fn a_subscription_is_called_by_its_host() {
        assert_eq!(
            host("https://hooks.example.org:8443/a?b"),
            "hooks.example.org:8443"
        );
        assert_eq!(host("no url"), "an endpoint");
        let long = format!("https://{}.example", "a".repeat(100));
        assert_eq!(host(&long).chars().count(), 60);
    }

    #[test]
    fn every_kind_has_a_template() {
        for kind in EmailKind::ALL {
            assert!(TEMPLATES.get_template(kind.as_str()).is_ok(), "{kind}");
        }
    }
}
