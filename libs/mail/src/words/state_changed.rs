//! The mail about a change of state.

use chrono::TimeDelta;
use domain::reason::StateReason;
use domain::subscription::SubscriptionState;

use super::{Circumstances, facts, name, paragraph, span, steps, time};
use crate::news::StateChange;
use crate::page::{Block, Page};

const REPLAY: &str =
    "Have missed events sent again, from a time of your choice: POST /subscriptions/{subscription}/replays.";
const ACTIVATE: &str = "Switch it on again: POST /subscriptions/{subscription}/activate.";
const STORED: &str = "Events of yours are still stored, so that nothing is lost for good, but no notifications are made of \
                      them until the subscription is active again.";

/// The parts that depend on what the change is.
struct Story {
    /// The end of the subject line.
    headword: &'static str,
    headline: String,
    blocks: Vec<Block>,
}

pub(super) fn page(change: &StateChange, circumstances: Circumstances) -> Page {
    let story = story(change, circumstances);
    let mut facts = facts(&change.subject, circumstances);
    facts.push(("State", format!("{} (before: {})", change.state, change.previous)));
    facts.push(("Reason", change.reason.clone()));
    if change.count > 1 {
        facts.push((
            "Changes",
            format!("{}, of which this is the latest", change.count),
        ));
    }
    if let Some(since) = change.failing_since {
        facts.push(("Failing since", time(since)));
    }
    Page {
        subject: format!("{}: {}", name(&change.subject), story.headword),
        headline: story.headline,
        blocks: story.blocks,
        facts,
    }
}

fn story(change: &StateChange, circumstances: Circumstances) -> Story {
    match (change.state.parse(), change.reason.parse().ok()) {
        (Ok(SubscriptionState::Degraded), _) => degraded(change, circumstances),
        (Ok(SubscriptionState::Deactivated), Some(StateReason::Failing)) => {
            failed_too_long(change, circumstances)
        }
        (Ok(SubscriptionState::Deactivated), Some(StateReason::Redirected)) => redirected(),
        (Ok(SubscriptionState::Deactivated), Some(StateReason::Gone)) => gone(),
        (Ok(SubscriptionState::Deactivated), _) => switched_off(change),
        (Ok(SubscriptionState::Active), Some(StateReason::Recovered)) => recovered(),
        (Ok(SubscriptionState::Active), Some(StateReason::Verified)) => verified(),
        (Ok(SubscriptionState::Active), _) => switched_on(change),
        (Ok(SubscriptionState::PendingVerification), _) => unverified(change),
        (Err(_), _) => Story {
            headword: "the state of your subscription has changed",
            headline: format!(
                "Your subscription is now {}; it was {}.",
                change.state, change.previous
            ),
            blocks: Vec::new(),
        },
    }
}

fn how_long(change: &StateChange, Circumstances { at, .. }: Circumstances) -> String {
    let lasted = change.failing_since.map_or(TimeDelta::zero(), |since| at - since);
    match change.failing_since {
        Some(since) => format!("for {} (since {})", span(lasted), time(since)),
        None => "for a long time".to_owned(),
    }
}

fn degraded(change: &StateChange, circumstances: Circumstances) -> Story {
    let end = change.deactivated_at.map_or_else(String::new, |at| {
        format!(
            " If no delivery succeeds until {}, the subscription is deactivated.",
            time(at)
        )
    });
    Story {
        headword: "subscription degraded, deliveries keep failing",
        headline: format!(
            "Every delivery to your endpoint has failed {}.",
            how_long(change, circumstances)
        ),
        blocks: vec![
            paragraph(format!(
                "The subscription is now DEGRADED. We go on delivering: each notification is still tried and retried as \
                 before, and the first one that your endpoint accepts makes the subscription ACTIVE again.{end}"
            )),
            steps([
                "Check that the endpoint is reachable from the internet, that its TLS certificate is valid, and that it \
                 answers with a status from 200 to 299 within the time limit.",
                "Look at the latest attempts, with status and answer: GET /subscriptions/{subscription}/notifications?status=GIVEN_UP.",
                "Send a test event to see whether it works again: POST /subscriptions/{subscription}/test.",
                REPLAY,
            ]),
        ],
    }
}

fn failed_too_long(change: &StateChange, circumstances: Circumstances) -> Story {
    Story {
        headword: "subscription deactivated after failing for days",
        headline: format!(
            "Every delivery to your endpoint has failed {}.",
            how_long(change, circumstances)
        ),
        blocks: vec![
            paragraph(format!(
                "The subscription has been DEACTIVATED: nothing more is sent to the endpoint, and what was waiting for it \
                 has been given up. {STORED}"
            )),
            steps([
                "Repair the endpoint, or enter another one: PATCH /subscriptions/{subscription}.",
                ACTIVATE,
                REPLAY,
            ]),
        ],
    }
}

fn redirected() -> Story {
    Story {
        headword: "subscription deactivated, the endpoint redirects",
        headline: "Your endpoint answered a notification with a redirect (a status from 300 to 399)."
            .to_owned(),
        blocks: vec![
            paragraph(format!(
                "Notifications are never sent to another place than the one you have verified, so redirects are not \
                 followed. The subscription has been DEACTIVATED at once, without retries. {STORED}"
            )),
            steps([
                "Enter the URL that the notifications should really go to (often the one with https:// or with the \
                 trailing slash): PATCH /subscriptions/{subscription}.",
                "Or make the endpoint answer without a redirect.",
                ACTIVATE,
                REPLAY,
            ]),
        ],
    }
}

fn gone() -> Story {
    Story {
        headword: "subscription deactivated, the endpoint is gone",
        headline: "Your endpoint answered a notification with 410 Gone.".to_owned(),
        blocks: vec![
            paragraph(format!(
                "That status says that the endpoint is gone for good. The subscription has been DEACTIVATED at once, \
                 without retries. {STORED}"
            )),
            steps([
                "If that was intended, nothing: you can also delete the subscription, DELETE /subscriptions/{subscription}.",
                "If not, repair the endpoint or enter another one: PATCH /subscriptions/{subscription}.",
                ACTIVATE,
                REPLAY,
            ]),
        ],
    }
}

fn switched_off(change: &StateChange) -> Story {
    Story {
        headword: "subscription deactivated",
        headline: format!("Your subscription has been deactivated{}.", by_whom(change)),
        blocks: vec![
            paragraph(format!(
                "Nothing more is sent to the endpoint, and what was waiting for it has been given up. {STORED}"
            )),
            steps([ACTIVATE, REPLAY]),
        ],
    }
}

fn recovered() -> Story {
    Story {
        headword: "subscription active again",
        headline: "Your endpoint has accepted a notification again.".to_owned(),
        blocks: vec![
            paragraph(
                "The subscription is ACTIVE again, and deliveries go on as usual. Notifications whose retries were used up \
                 while the endpoint failed are not sent again by themselves.",
            ),
            steps([REPLAY]),
        ],
    }
}

fn verified() -> Story {
    Story {
        headword: "endpoint verified, subscription active",
        headline: "Your endpoint has answered its challenge.".to_owned(),
        blocks: vec![
            paragraph(
                "The subscription is ACTIVE: from now on every event that its filter selects is sent to the endpoint.",
            ),
            steps([
                "Check the signature of everything that arrives, and treat an event with an id that you have seen before as \
                 the same event.",
                "Send a test event: POST /subscriptions/{subscription}/test.",
            ]),
        ],
    }
}

fn switched_on(change: &StateChange) -> Story {
    Story {
        headword: "subscription active",
        headline: format!("Your subscription has been activated{}.", by_whom(change)),
        blocks: vec![
            paragraph("From now on every event that its filter selects is sent to the endpoint."),
            steps([REPLAY]),
        ],
    }
}

fn unverified(change: &StateChange) -> Story {
    let why = match change.reason.parse() {
        Ok(StateReason::EndpointChanged) => "The endpoint of your subscription has been changed.",
        _ => "The endpoint of your subscription has to be verified.",
    };
    Story {
        headword: "endpoint waits for its verification",
        headline: why.to_owned(),
        blocks: vec![
            paragraph(
                "Before anything else is sent to it, the endpoint gets a signed request of the type \
                 postrider.verification and has to answer it with the challenge that the request holds. Until then no \
                 notifications are made of your events, which are stored and can be sent later; those that were made \
                 before wait. You get another mail when the endpoint has answered, or when it did not.",
            ),
            steps([
                "Answer the challenge: status 200, and data.challenge of the request as the body.",
                "If you did not ask for this change, replace your API key and look at the subscription.",
            ]),
        ],
    }
}

fn by_whom(change: &StateChange) -> &'static str {
    match change.reason.parse() {
        Ok(StateReason::ByReseller) => " with your API key",
        _ => "",
    }
}
