//! How it stands with a subscription. Pure.

use chrono::{DateTime, Utc};
use domain::reason::StateReason;
use domain::subscription::{PausedBy, SubscriptionState};
use store::webhook::SubscriptionView;

use super::Sentence;
use crate::explanation::sentence;
use crate::words::when;

/// The state of a subscription with its reason.
pub fn describe(view: &SubscriptionView, paused_by: Option<PausedBy>, now: DateTime<Utc>) -> Sentence {
    if view.state == SubscriptionState::Deactivated {
        return deactivated(view, now);
    }
    match paused_by {
        Some(PausedBy::Reseller) => return paused(view, now),
        Some(PausedBy::Lane | PausedBy::AllOfReseller | PausedBy::Operator) => return held(view, now),
        None => {}
    }
    match (view.state, view.failing_since) {
        (SubscriptionState::PendingVerification, _) => unverified(view, now),
        (SubscriptionState::Degraded, since) => {
            let since = since.unwrap_or(view.state_changed_at);
            let text = format!(
                "Degraded: every attempt has failed since {}. What fails is tried again; after some days the subscription is deactivated.",
                when(since, now)
            );
            Sentence::new("degraded", text).with("since", since)
        }
        (_, Some(since)) => {
            let text = format!("Active, but every attempt has failed since {}.", when(since, now));
            Sentence::new("failing", text).with("since", since)
        }
        _ => Sentence::new(
            "active",
            format!("Active since {}.", when(view.state_changed_at, now)),
        )
        .with("since", view.state_changed_at),
    }
}

fn deactivated(view: &SubscriptionView, now: DateTime<Utc>) -> Sentence {
    let (code, why) = match view.state_reason {
        StateReason::Failing => ("deactivated-failing", "every attempt had failed for days"),
        StateReason::Redirected => ("deactivated-redirected", "the endpoint answered with a redirect"),
        StateReason::Gone => ("deactivated-gone", "the endpoint answered 410 (gone)"),
        _ => ("deactivated", "this was asked for with a key of yours"),
    };
    let text = format!(
        "Deactivated since {}: {why}. Nothing is sent until it is activated.",
        when(view.state_changed_at, now)
    );
    Sentence::new(code, text).with("since", view.state_changed_at)
}

fn paused(view: &SubscriptionView, now: DateTime<Utc>) -> Sentence {
    let since = view.paused_at.unwrap_or(view.updated_at);
    let text = format!(
        "Paused by you since {}. Its events wait until you resume it.",
        when(since, now)
    );
    Sentence::new("paused", text).with("since", since)
}

fn held(view: &SubscriptionView, now: DateTime<Utc>) -> Sentence {
    let since = view
        .held_at
        .map_or(String::new(), |since| format!(" since {}", when(since, now)));
    let text = format!(
        "Held by the operators of the platform{since}. Its events wait, and are sent when they let it go on."
    );
    let held = Sentence::new("held", text);
    match view.held_at {
        Some(since) => held.with("since", since),
        None => held,
    }
}

fn unverified(view: &SubscriptionView, now: DateTime<Utc>) -> Sentence {
    let due = view.verification_due_at;
    let next = due.map_or("It is challenged when you ask for it.".to_owned(), |at| {
        format!("It is challenged next at {}.", when(at, now))
    });
    let said = match &view.verification_error {
        Some(error) => {
            let failure = sentence(&format!(
                "Not verified: the endpoint has not answered its challenge {}: {error}",
                match view.verification_attempts {
                    1 => "once".to_owned(),
                    times => format!("{times} times"),
                }
            ));
            Sentence::new("challenge-failed", format!("{failure} {next}"))
                .with("error", error)
                .with("failedAttempts", view.verification_attempts)
        }
        None => Sentence::new(
            "unverified",
            format!("Not verified: the endpoint has not answered its challenge yet. {next}"),
        ),
    };
    match due {
        Some(at) => said.with("nextAttemptAt", at),
        None => said,
    }
}
