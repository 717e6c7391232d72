//! What waits, one by one: why it does, and until when.

use chrono::{DateTime, Utc};
use domain::notification::NotificationStatus;
use domain::reason::NotificationReason;
use domain::subscription::PausedBy;
use explain::words::answer;
use uuid::Uuid;

use super::cancel_form;
use crate::console::act::ActForm;
use crate::console::frame::Frame;
use crate::notifications::NotificationDocument;
use crate::pushes::PushDocument;

/// A push or a notification.
pub(super) struct Row {
    pub(super) id: Uuid,
    pub(super) status: &'static str,
    pub(super) reason: Option<String>,
    /// Why it is where it is, and until when.
    pub(super) why: String,
    pub(super) at: Option<DateTime<Utc>>,
    pub(super) accepted_at: DateTime<Utc>,
    pub(super) ended_at: Option<DateTime<Utc>>,
    pub(super) attempts: u32,
    pub(super) about: About,
    /// To cancel it, unless it has ended.
    pub(super) form: Option<ActForm>,
}

pub(super) enum About {
    Push {
        prototype: Option<String>,
        platform: &'static str,
    },
    Notification {
        event: Uuid,
        event_id: Option<String>,
        event_type: String,
        reseller: String,
        subscription: Uuid,
        endpoint: String,
    },
}

pub(super) fn row_of_push(push: PushDocument, frame: &Frame) -> Row {
    let (why, at) = why_push(&push, frame.now);
    let subject = format!(
        "One push: {}, {}, of the prototype {}.",
        push.id,
        push.status,
        push.prototype.as_deref().unwrap_or("none")
    );
    Row {
        form: waits(push.status, push.claimed)
            .then(|| cancel_form(("push", push.id), subject, frame.address.clone(), true, frame)),
        id: push.id,
        status: push.status,
        reason: push.reason.map(str::to_owned),
        why,
        at,
        accepted_at: push.created_at,
        ended_at: push.finished_at,
        attempts: push.attempts,
        about: About::Push {
            prototype: push.prototype,
            platform: push.platform,
        },
    }
}

fn why_push(push: &PushDocument, now: DateTime<Utc>) -> (String, Option<DateTime<Utc>>) {
    let failure = push.last_failure.as_ref().map(|failure| {
        let error = failure.error.as_deref();
        let why = match answer(failure.response_status, failure.code, error) {
            Some(answer) => format!(" {answer}"),
            None => error.map_or(String::new(), |error| format!(" ({error})")),
        };
        format!("attempt {} failed: {}{why}", push.attempts, failure.error_type)
    });
    let due = push.next_attempt_at;
    match push.status {
        "SCHEDULED" if due.is_some_and(|at| at > now) => {
            let cron = push.cron_expression.as_deref().unwrap_or_default();
            let why = format!("Is sent once, in its sending window, {cron}; it opens");
            (why, due)
        }
        _ if push.paused_by.is_some() => (said("Waits: an operator has paused the lane", failure), None),
        _ if push.held => (said("Waits until Swrve works again", failure), None),
        "SCHEDULED" => (
            "Its sending window is open; it waits for room in the queue, due".to_owned(),
            due,
        ),
        "PENDING" => (said("Waits for room in the queue", failure), None),
        "IN_MEMORY" if push.claimed => (format!("Is being sent: attempt {}.", push.attempts), None),
        "IN_MEMORY" => (said("Is in the queue", failure), None),
        "RETRY" => (said("Waits to be tried again", failure), due),
        "SENT" => ("Swrve accepted it".to_owned(), None),
        "GIVEN_UP" if push.reason == Some("CANCELLED") => ("An operator cancelled it".to_owned(), None),
        _ => (said("Will not be sent", failure), None),
    }
}

fn said(what: &str, failure: Option<String>) -> String {
    failure.map_or(what.to_owned(), |failure| format!("{what}; {failure}"))
}

pub(super) fn row_of_notification(it: NotificationDocument, frame: &Frame) -> Row {
    let (why, at) = why_notification(&it);
    let subject = format!(
        "One notification: {}, {}, of {} ({}) for {}.",
        it.id,
        it.status,
        it.event_id.as_deref().unwrap_or("an event that is forgotten"),
        it.event_type,
        it.reseller_id
    );
    Row {
        form: waits(it.status, false).then(|| {
            cancel_form(
                ("notification", it.id),
                subject,
                frame.address.clone(),
                true,
                frame,
            )
        }),
        id: it.id,
        status: it.status,
        reason: it.reason,
        why,
        at,
        accepted_at: it.accepted_at,
        ended_at: it.finished_at,
        attempts: it.attempts,
        about: About::Notification {
            event: it.event,
            event_id: it.event_id,
            event_type: it.event_type,
            reseller: it.reseller_id,
            subscription: it.subscription_id,
            endpoint: it.url,
        },
    }
}

fn why_notification(it: &NotificationDocument) -> (String, Option<DateTime<Utc>>) {
    let failure = match (it.response_status, &it.error) {
        (Some(code), _) if it.attempts > 0 => {
            Some(format!("attempt {}: the endpoint answered {code}", it.attempts))
        }
        (None, Some(error)) => Some(format!("attempt {} failed: {error}", it.attempts)),
        _ => None,
    };
    if let Some(by) = it.paused_by.and_then(|by| by.parse::<PausedBy>().ok()) {
        return (said(&format!("Waits: {}", by.said()), failure), None);
    }
    let due = it.next_attempt_at;
    let reason = it.reason.as_ref().and_then(|reason| reason.parse().ok());
    match (it.status, reason) {
        ("SCHEDULED", Some(NotificationReason::Quota)) => (
            "Waits in line: its subscription's daily quota is used up. Its turn comes".to_owned(),
            due,
        ),
        ("SCHEDULED", Some(NotificationReason::Rate)) => (
            "Waits in line for its subscription's requests per second; its turn comes".to_owned(),
            due,
        ),
        ("SCHEDULED", Some(NotificationReason::Postponed)) => (
            "Was put off for want of something of our own; its turn comes".to_owned(),
            due,
        ),
        ("SCHEDULED", _) => ("Waits in line; its turn comes".to_owned(), due),
        ("PENDING" | "RETRY", Some(NotificationReason::Withheld)) => (
            "Is held back: most endpoints fail in one way at once, its own among them".to_owned(),
            due,
        ),
        ("PENDING", Some(NotificationReason::Busy)) => (
            "Waits because as many of its subscription are being sent as may be at once".to_owned(),
            None,
        ),
        ("PENDING" | "RETRY", Some(NotificationReason::Unverified)) => {
            ("Is held back: its endpoint is not verified".to_owned(), None)
        }
        ("PENDING", _) => (said("Waits for room in the queue", failure), None),
        ("IN_MEMORY", _) => (said("Is in the queue or being sent", failure), None),
        ("RETRY", _) => (said("Waits to be tried again", failure), due),
        ("SENT", _) => (said("The endpoint accepted it", failure), None),
        ("GIVEN_UP", Some(NotificationReason::Cancelled)) => ("It was cancelled".to_owned(), None),
        ("GIVEN_UP", Some(NotificationReason::Expired)) => ("It had waited for too long".to_owned(), None),
        ("GIVEN_UP", Some(NotificationReason::SubscriptionDeleted)) => {
            ("Its subscription was deleted".to_owned(), None)
        }
        ("GIVEN_UP", Some(NotificationReason::SubscriptionDeactivated)) => {
            ("Its subscription was deactivated".to_owned(), None)
        }
        _ => (said("Will not be sent again", failure), None),
    }
}

/// Whether something of this status can still be cancelled, as far as is known.
fn waits(status: &str, claimed: bool) -> bool {
    let ended = status.parse().is_ok_and(NotificationStatus::is_terminal);
    !ended && !claimed
}
