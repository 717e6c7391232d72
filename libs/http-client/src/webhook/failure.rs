//! Tells what kind of failure an error of the HTTP client is, by the types in its chain of causes, and says it in words
//! that hold no URL, no resolved address and nothing else that differs from attempt to attempt.

use std::error::Error as _;
use std::time::Duration;

use domain::notification::{DeliveryOutcome, FailureKind};

use super::connecting::{Handshake, Phase};
use super::guard::Guarded;
use super::policy::{NO_PUBLIC_ADDRESS, Refusal};
use super::resolver::LookupError;
use crate::connection::{failure, find, innermost};
use crate::own_fault::is_own;
use crate::sanitise::sanitise;

/// The outcome that `error` stands for.
pub(super) fn outcome_of(error: &reqwest::Error) -> DeliveryOutcome {
    if error.is_builder() {
        return failed(FailureKind::Other, &innermost(error).to_string());
    }
    if let Some(guarded) = find::<Guarded>(error) {
        return match guarded {
            // The kind of the failure tells operators; which kind of address it is stands in the log.
            Guarded::Refused(_) => failed(FailureKind::Egress, NO_PUBLIC_ADDRESS),
            Guarded::Lookup(error) => unresolved(error),
        };
    }
    if is_own(error) {
        return failed(
            FailureKind::Local,
            &format!("no connection could be begun: {}", innermost(error)),
        );
    }
    if let Some(tls) = find::<rustls::Error>(error) {
        return failed(FailureKind::Tls, &tls.to_string());
    }
    if error.is_timeout() {
        let words = if error.is_connect() {
            "the connection could not be opened in time"
        } else {
            "the connection timed out"
        };
        return failed(FailureKind::Timeout, words);
    }
    if let Some(handshake) = find::<Handshake>(error) {
        return failed(FailureKind::Tls, &format!("{handshake}: {}", innermost(error)));
    }
    let (kind, words) = failure(error);
    failed(kind, &words)
}

/// The outcome of an attempt whose deadline passed in `phase`.
pub(super) fn timed_out(timeout: Duration, phase: Phase) -> DeliveryOutcome {
    let doing = match phase {
        Phase::Resolving => "while its name was being looked up",
        Phase::Connecting => "while the connection was being opened",
        Phase::Waiting => "after the connection was there",
    };
    let message = format!("no answer within {} ms, {doing}", timeout.as_millis());
    failed(FailureKind::Timeout, &message)
}

/// The outcome of an attempt that the policy forbids.
pub(super) fn refused(refusal: Refusal) -> DeliveryOutcome {
    failed(FailureKind::Egress, &refusal.to_string())
}

fn unresolved(error: &LookupError) -> DeliveryOutcome {
    let message = match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    let kind = match error {
        LookupError::Unreachable(_) => FailureKind::Local,
        _ => FailureKind::Dns,
    };
    failed(kind, &message)
}

fn failed(kind: FailureKind, message: &str) -> DeliveryOutcome {
    DeliveryOutcome::Failed {
        kind,
        message: sanitise(message),
    }
}
