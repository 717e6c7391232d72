//! The mail about notifications that were given up.

use super::{Circumstances, facts, name, paragraph, steps, time};
use crate::news::Exhaustion;
use crate::page::Page;

pub(super) fn page(exhaustion: &Exhaustion, circumstances: Circumstances) -> Page {
    let (what, verb) = match exhaustion.count {
        1 => ("1 notification".to_owned(), "was"),
        count => (format!("{count} notifications"), "were"),
    };
    let mut facts = facts(&exhaustion.subject, circumstances);
    facts.push(("Given up", exhaustion.count.to_string()));
    if let Some(since) = exhaustion.since.filter(|_| exhaustion.count > 1) {
        facts.push(("First of them", time(since)));
    }
    for (name, value) in [
        ("Event type", &exhaustion.event_type),
        ("Last error", &exhaustion.error),
    ] {
        facts.extend(value.clone().map(|value| (name, value)));
    }
    Page {
        subject: format!("{}: {what} could not be delivered", name(&exhaustion.subject)),
        headline: format!("{what} {verb} given up after all retries had failed."),
        blocks: vec![
            paragraph(
                "Your endpoint could not be reached, did not answer in time or answered with an error, each time. New \
                 notifications are still sent to the endpoint as they come. Once it takes one, these are sent again by \
                 themselves, unless that is switched off (resendAfterOutage of the subscription).",
            ),
            paragraph(
                "While it goes on like this you get at most one such mail an hour. An endpoint that fails for days is \
                 marked as degraded and in the end deactivated; you are told of both.",
            ),
            steps([
                "Look at the attempts, with status and answer: GET /subscriptions/{subscription}/notifications?status=GIVEN_UP.",
                "Check that the endpoint is reachable from the internet, that its TLS certificate is valid, and that it \
                 answers with a status from 200 to 299 within the time limit.",
                "Have single notifications sent again now, POST /notifications/{id}/resend, or all that were missed since a \
                 time, POST /subscriptions/{subscription}/replays.",
            ]),
        ],
        facts,
    }
}
