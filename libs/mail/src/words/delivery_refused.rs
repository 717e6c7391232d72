//! The mail about notifications that an endpoint refused.

use super::{Circumstances, facts, name, paragraph, time};
use crate::news::Refusal;
use crate::page::{Block, Page};

pub(super) fn page(refusal: &Refusal, circumstances: Circumstances) -> Page {
    let (what, verb) = match refusal.count {
        1 => ("1 notification".to_owned(), "was"),
        count => (format!("{count} notifications"), "were"),
    };
    let mut facts = facts(&refusal.subject, circumstances);
    facts.push(("Refused", refusal.count.to_string()));
    if let Some(since) = refusal.since.filter(|_| refusal.count > 1) {
        facts.push(("First of them", time(since)));
    }
    facts.extend(refusal.status.map(|status| ("Last status", status.to_string())));
    facts.extend(refusal.event_type.clone().map(|value| ("Event type", value)));
    let answer = refusal
        .status
        .map_or("a status from 400 to 499".to_owned(), |status| status.to_string());
    let steps = [
        where_to_look(refusal.status),
        "Look at the attempts, with status and answer: GET /subscriptions/{subscription}/notifications?status=FAILED.",
        "Send a test event to see whether it works again: POST /subscriptions/{subscription}/test.",
        "Have single notifications sent again, POST /notifications/{id}/resend, or all that were missed since a time, POST \
         /subscriptions/{subscription}/replays.",
    ];
    Page {
        subject: format!("{}: {what} refused by the endpoint", name(&refusal.subject)),
        headline: format!("{what} {verb} refused by your endpoint, the last with {answer}."),
        blocks: vec![
            paragraph(
                "Such an answer says that the same request would be refused again, so that it is not retried. These \
                 notifications are not sent again by themselves; new ones are still sent to the endpoint as they come.",
            ),
            paragraph(
                "While it goes on like this you get at most one such mail an hour. An endpoint that refuses everything for \
                 days is marked as degraded and in the end deactivated; you are told of both.",
            ),
            Block::Steps("What you can do:", steps.map(str::to_owned).to_vec()),
        ],
        facts,
    }
}

/// What such a status usually means.
fn where_to_look(status: Option<u16>) -> &'static str {
    match status {
        Some(401 | 403) => {
            "Did you rotate the signing secret? Check that the endpoint verifies with a secret that is valid now, GET \
             /subscriptions/{subscription}/secrets, that its clock is right, and that no gateway before it asks for a login."
        }
        Some(404 | 405) => {
            "Check that the path of the endpoint is still the one that you have entered, and that it accepts POST."
        }
        Some(413) => "Check how large a body the endpoint and the gateways before it accept.",
        Some(400 | 415 | 422) => {
            "Check that the endpoint accepts the JSON of every event type that the filter selects, fields that it does not \
             know included."
        }
        _ => "Look into the log of the endpoint, and of the gateways before it, why it refuses the request.",
    }
}
