//! An attempt to deliver a notification, in sentences and as far as it took time. Pure.

use chrono::{DateTime, Utc};
use domain::notification::NotificationStatus;
use domain::push::AttemptStatus;
use store::timeline::NotificationTimeline;
use store::webhook::DeliveryAttemptView;

use crate::course::{Attempted, Due};
use crate::explanation::{Rules, sentence};
use crate::item::{after, is_lost};
use crate::reseller::Sentence;
use crate::words::endpoint;

/// That it was made, and what came of it.
pub(crate) fn said_of_attempt(attempt: &DeliveryAttemptView) -> Sentence {
    let number = attempt.number;
    let took = after(attempt.millis);
    let place = endpoint(&attempt.url);
    let said = match attempt.status {
        AttemptStatus::InProcess => {
            Sentence::new("attempt-began", format!("Attempt {number} began, to {place}."))
        }
        AttemptStatus::Ok => {
            let status = attempt
                .response_status
                .map_or(String::new(), |status| format!(" with {status}"));
            let text = format!("Attempt {number}: {place} accepted it{status}{took}.");
            Sentence::new("attempt-delivered", text).with("status", attempt.response_status)
        }
        AttemptStatus::Error
            if attempt.error_type.as_deref() == Some("OTHER") && is_lost(attempt.error.as_deref()) =>
        {
            let text = format!(
                "Attempt {number} began, to {place}, and its outcome was never recorded; it was rescued and may have been \
             delivered."
            );
            Sentence::new("attempt-lost", text)
        }
        AttemptStatus::Error => {
            let why = cause_of(attempt);
            let text = sentence(&format!("Attempt {number} to {place} failed{took}: {why}"));
            Sentence::new("attempt-failed", text)
                .with("errorType", &attempt.error_type)
                .with("status", attempt.response_status)
                .with("error", &attempt.error)
        }
    };
    said.with("attempt", number).with("millis", attempt.millis)
}

/// Why an attempt failed, by what is stored of it.
pub(crate) fn cause(error_type: Option<&str>, response_status: Option<i32>, error: Option<&str>) -> String {
    let detail = error.map_or(String::new(), |error| format!(" ({error})"));
    match (error_type, response_status) {
        (_, Some(status)) => format!("the endpoint answered {status}"),
        (Some("TIMEOUT"), _) => format!("the endpoint did not answer in time{detail}"),
        (Some("DNS"), _) => format!("the endpoint's name could not be resolved{detail}"),
        (Some("TLS"), _) => format!("no secure connection to the endpoint came about{detail}"),
        (Some("CONNECT"), _) => format!("the endpoint could not be reached{detail}"),
        (Some("PROTOCOL"), _) => format!("what came from the endpoint was no HTTP{detail}"),
        (Some("EGRESS"), _) => format!("the endpoint's address is not a public one{detail}"),
        _ => match error {
            Some(error) => format!("on our side, {error}"),
            None => "on our side".to_owned(),
        },
    }
}

/// The same of an attempt.
pub(crate) fn cause_of(attempt: &DeliveryAttemptView) -> String {
    cause(
        attempt.error_type.as_deref(),
        attempt.response_status.map(i32::from),
        attempt.error.as_deref(),
    )
}

/// When it is tried again, as it is recorded.
pub(crate) fn retried_at(it: &NotificationTimeline) -> Option<DateTime<Utc>> {
    it.next_attempt_at
        .filter(|_| it.status == NotificationStatus::Retry)
}

/// The attempts of a notification as far as they took time. By chance a retry is due somewhat earlier than is said here, so that no pause before
/// it is taken for the cause; how far an answer put it off is not recorded.
pub(crate) fn attempted(it: &NotificationTimeline, rules: &Rules) -> impl Iterator<Item = Attempted> {
    let policy = rules.delivery_retry.with(it.subscription.retry_plan);
    it.history.iter().map(move |attempt| {
        let ended_at = Attempted::end(attempt.started_at, attempt.millis);
        let before = if attempt.number > it.resent_after {
            it.resent_after
        } else {
            0
        };
        let retried_at = policy.next_attempt_at(ended_at, attempt.number - before, None, 1.0);
        Attempted {
            number: attempt.number,
            started_at: attempt.started_at,
            millis: attempt.millis,
            goes_on: attempt.status == AttemptStatus::InProcess && attempt.millis.is_none(),
            next: match (attempt.millis, attempt.response_status) {
                (None, _) => Due::At(ended_at),
                (Some(_), None) => Due::At(retried_at),
                (Some(_), Some(_)) => Due::NotBefore(retried_at),
            },
        }
    })
}
