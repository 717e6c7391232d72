//! An attempt to deliver a notification, in sentences. Pure.

use domain::push::AttemptStatus;
use store::webhook::DeliveryAttemptView;

use crate::explanation::sentence;
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
