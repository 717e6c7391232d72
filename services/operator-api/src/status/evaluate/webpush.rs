//! Web Push: whether user agents and senders are served, and what piles up.

use super::processes::{last_seen, not_there};
use super::{Finding, Known, Severity};
use crate::status::thresholds::{WEBPUSH_ERROR_SHARE, WEBPUSH_ERRORS_PER_SECOND, WEBPUSH_MANY, WEBPUSH_OLD};
use domain::month::Month;
use explain::words::{length, number, of};

/// The services, and what happens without them.
const SERVICES: [(&str, &str); 2] = [
    (
        "webpush-connection",
        "No user agent is connected, and no message of Web Push is delivered. What comes is stored and waits.",
    ),
    (
        "webpush-endpoint",
        "Senders of Web Push get no answer. User agents stay connected, and get what is stored.",
    ),
];

pub(super) fn evaluate(known: &Known<'_>, findings: &mut Vec<Finding>) {
    for (service, meaning) in SERVICES {
        findings.extend(missing(known, service, meaning));
    }
    findings.extend(without_keys(known));
    findings.extend(errors(known));
    findings.extend(many(known));
    findings.extend(old(known));
}

/// An installation without keys has no Web Push; one that fell silent was not taken away on purpose.
fn missing(known: &Known<'_>, service: &str, meaning: &str) -> Option<Finding> {
    let is_wanted = known.facts.settings.has_webpush_keys && has_clients(known);
    if known.runs(service) || !(is_wanted || last_seen(known, service).is_some()) {
        return None;
    }
    Some(not_there(known, service, meaning, Severity::Critical))
}

fn has_clients(known: &Known<'_>) -> bool {
    known.tables.webpush.months.iter().any(|month| month.clients > 0)
}

fn without_keys(known: &Known<'_>) -> Option<Finding> {
    if known.facts.settings.has_webpush_keys || !has_clients(known) {
        return None;
    }
    let clients: u64 = known
        .tables
        .webpush
        .months
        .iter()
        .map(|month| month.clients)
        .sum();
    let finding = Finding::new(
        ("webpush-keys-missing", Severity::Warning, "keys-of-web-push"),
        format!(
            "{} registered for Web Push, and webpush.keys is not set for operator-api.",
            of(clients, "user agent is", "user agents are")
        ),
        "A service of Web Push does not start without the keys, and other keys end every subscription that was made with these.",
    );
    let finding = finding.naming("userAgents", clients);
    Some(finding.with("postrider config check"))
}

/// Senders are answered with 503, as the alert has it.
fn errors(known: &Known<'_>) -> Option<Finding> {
    let lately = known.tables.lately();
    let (failed, all) = (
        lately.webpush_errors,
        lately.webpush_errors + lately.webpush_accepted,
    );
    if !lately.exceeds(failed, WEBPUSH_ERRORS_PER_SECOND) || lately.share(failed, all) <= WEBPUSH_ERROR_SHARE
    {
        return None;
    }
    let finding = Finding::new(
        (
            "webpush-errors",
            Severity::Warning,
            "messages-of-web-push-are-refused",
        ),
        format!(
            "{} of the last {} of Web Push, within {}, could not be stored.",
            number(failed),
            of(all, "message", "messages"),
            length(lately.span)
        ),
        "Senders were answered with 503, keep what was not taken, and are to try again after two minutes.",
    );
    Some(
        finding
            .naming("failed", failed)
            .naming("messages", all)
            .naming("withinSeconds", lately.span.as_secs()),
    )
}

fn many(known: &Known<'_>) -> Option<Finding> {
    let messages: u64 = known
        .tables
        .webpush
        .months
        .iter()
        .map(|month| month.messages)
        .sum();
    (messages > WEBPUSH_MANY).then(|| {
        Finding::new(
            ("webpush-messages-many", Severity::Warning, "messages-of-web-push-pile-up"),
            format!("About {} messages of Web Push are stored.", number(messages)),
            "More than the store is measured with: more are sent with a long TTL than user agents fetch, or user agents do not come.",
        )
        .naming("messages", messages)
    })
}

fn old(known: &Known<'_>) -> Option<Finding> {
    let goes_next = Month::containing(known.facts.now).minus(2);
    let months = known.tables.webpush.months.iter();
    let messages: u64 = months
        .filter(|it| it.month <= goes_next)
        .map(|it| it.messages)
        .sum();
    (messages > WEBPUSH_OLD).then(|| {
        Finding::new(
            ("webpush-messages-old", Severity::Warning, "messages-of-web-push-pile-up"),
            format!(
                "About {} messages wait for user agents that have not connected for two months.",
                number(messages)
            ),
            "They go with their month when the next one begins, and so do their user agents, which then have to register again.",
        )
        .naming("messages", messages)
    })
}
