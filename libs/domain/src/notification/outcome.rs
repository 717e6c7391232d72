//! What came of an attempt to deliver, and what that means for the notification and for its subscription.

use super::RetryAfter;
use super::body_class::BodyClass;
use crate::lifecycle::Event;
use crate::named;

/// What came of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The receiver answered.
    Answered {
        /// The HTTP status code.
        status: u16,
        /// When it wants to be asked again.
        retry_after: Option<RetryAfter>,
        /// The first bytes of the answer, as text.
        body: String,
    },
    /// There was no answer.
    Failed {
        /// What kind of failure.
        kind: FailureKind,
        /// The error chain as text.
        message: String,
    },
}

/// Why there was no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "UPPERCASE")]
pub enum FailureKind {
    /// Not in time.
    Timeout,
    /// The name could not be resolved.
    Dns,
    /// No secure connection.
    Tls,
    /// No connection.
    Connect,
    /// What came was no HTTP.
    Protocol,
    /// The address is not one that may be dialled.
    Egress,
    /// Ours.
    Other,
    /// Ours, and nothing was tried: this process has no descriptor, port, memory, route or resolver for a connection.
    #[strum(serialize = "OTHER")]
    Local,
}

named!(FailureKind, "kind of failure");

/// What an attempt that has failed is recorded as: an answer other than 2xx, or a [`FailureKind`].
pub const ERROR_TYPES: [&str; 8] = [
    "HTTP", "TIMEOUT", "DNS", "TLS", "CONNECT", "PROTOCOL", "EGRESS", "OTHER",
];

impl FailureKind {
    /// What failures of this kind have in common; dead letters are grouped by it.
    pub fn fingerprint(self) -> &'static str {
        match self {
            Self::Timeout => "delivery/timeout",
            Self::Dns => "delivery/dns",
            Self::Tls => "delivery/tls",
            Self::Connect => "delivery/connect",
            Self::Protocol => "delivery/protocol",
            Self::Egress => "delivery/egress",
            Self::Other | Self::Local => "delivery/other",
        }
    }
}

/// Which answers from 400 to 499 are tried again; 410 never is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientErrors {
    /// None: the reading of the original system.
    Final,
    /// Those that ask for another attempt: 408, 425 and 429.
    Usual,
    /// All.
    Retried,
}

/// What an attempt says about the subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthSignal {
    /// It works.
    Success,
    /// It does not work now.
    Failure,
    /// Its endpoint wants nothing more, or has moved: it is deactivated.
    Gone,
    /// Nothing: the failure is ours.
    None,
}

/// The consequences of an outcome: the event for the state machine, and what the attempt row records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classification {
    /// The event that completes the attempt.
    pub event: Event,
    /// What it says about the subscription.
    pub health: HealthSignal,
    /// The HTTP status code of the answer.
    pub response_status: Option<u16>,
    /// The first bytes of the answer.
    pub response_body: Option<String>,
    /// The kind of a failure: `HTTP` for an answer, else a [`FailureKind`].
    pub error_type: Option<&'static str>,
    /// The failure in words.
    pub error: Option<String>,
    /// Failures of one kind share it; dead letters are grouped by it.
    pub fingerprint: Option<String>,
    /// When the receiver wants to be asked again.
    pub retry_after: Option<RetryAfter>,
}

impl DeliveryOutcome {
    /// Draws the consequences.
    pub fn classification(self, client_errors: ClientErrors) -> Classification {
        match self {
            Self::Answered {
                status,
                retry_after,
                body,
            } => answered(status, retry_after, body, client_errors),
            Self::Failed { kind, message } => Classification {
                event: match kind {
                    FailureKind::Local => Event::Postpone,
                    _ => Event::FailRetryable,
                },
                health: match kind {
                    FailureKind::Other | FailureKind::Local => HealthSignal::None,
                    _ => HealthSignal::Failure,
                },
                response_status: None,
                response_body: None,
                error_type: Some(kind.as_str()),
                error: Some(message),
                fingerprint: Some(kind.fingerprint().to_owned()),
                retry_after: None,
            },
        }
    }
}

fn answered(
    status: u16,
    retry_after: Option<RetryAfter>,
    body: String,
    client_errors: ClientErrors,
) -> Classification {
    let (event, health, error) = match status {
        200..=299 => (Event::Succeed, HealthSignal::Success, None),
        300..=399 => (
            Event::FailPermanently,
            HealthSignal::Gone,
            Some(format!(
                "the endpoint redirects ({status}); redirects are not followed"
            )),
        ),
        410 => (
            Event::FailPermanently,
            HealthSignal::Gone,
            Some("the endpoint says that it is gone (410)".to_owned()),
        ),
        408 | 425 | 429 if client_errors != ClientErrors::Final => (
            Event::FailRetryable,
            HealthSignal::Failure,
            Some(format!("the endpoint asks for another attempt later ({status})")),
        ),
        400..=499 => (
            match client_errors {
                ClientErrors::Retried => Event::FailRetryable,
                _ => Event::FailPermanently,
            },
            HealthSignal::Failure,
            Some(format!("the endpoint refuses the notification ({status})")),
        ),
        _ => (
            Event::FailRetryable,
            HealthSignal::Failure,
            Some(format!("the endpoint failed ({status})")),
        ),
    };
    let class = BodyClass::of(&body).as_str();
    Classification {
        event,
        health,
        response_status: Some(status),
        response_body: Some(body),
        error_type: error.as_ref().map(|_| "HTTP"),
        fingerprint: error.as_ref().map(|_| format!("delivery/http/{status}/{class}")),
        error,
        retry_after,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_is_recorded_as_one_of_the_error_types() {
        let answered = DeliveryOutcome::Answered {
            status: 503,
            retry_after: None,
            body: String::new(),
        };
        let failed = FailureKind::ALL.iter().map(|kind| DeliveryOutcome::Failed {
            kind: *kind,
            message: String::new(),
        });
        for outcome in failed.chain([answered]) {
            let recorded = outcome.clone().classification(ClientErrors::Final).error_type;
            assert!(
                recorded.is_some_and(|name| ERROR_TYPES.contains(&name)),
                "{outcome:?}"
            );
        }
    }

    fn of(status: u16, client_errors: ClientErrors) -> (Event, HealthSignal) {
        let outcome = DeliveryOutcome::Answered {
            status,
            retry_after: None,
            body: String::new(),
        };
        let classification = outcome.classification(client_errors);
        assert_eq!(
            classification.error.is_none(),
            classification.event == Event::Succeed
        );
        assert_eq!(
            classification.fingerprint.is_none(),
            classification.event == Event::Succeed
        );
        (classification.event, classification.health)
    }

    #[test]
    fn every_status_has_its_row_in_the_outcome_table() {
        for status in 100..=999 {
            let expected = match status {
                200..=299 => (Event::Succeed, HealthSignal::Success),
                300..=399 | 410 => (Event::FailPermanently, HealthSignal::Gone),
                408 | 425 | 429 => (Event::FailRetryable, HealthSignal::Failure),
                400..=499 => (Event::FailPermanently, HealthSignal::Failure),
                _ => (Event::FailRetryable, HealthSignal::Failure),
            };
            assert_eq!(of(status, ClientErrors::Usual), expected, "{status}");
        }
    }

    #[test]
    fn a_failing_endpoint_and_a_failing_balancer_before_it_have_two_fingerprints() {
        let of = |body: &str| {
            let outcome = DeliveryOutcome::Answered {
                status: 503,
                retry_after: None,
                body: body.to_owned(),
            };
            outcome.classification(ClientErrors::Usual).fingerprint
        };
        assert_eq!(of(r#"{"error":17}"#).as_deref(), Some("delivery/http/503/json"));
        assert_eq!(
            of("<html><h1>503</h1>").as_deref(),
            Some("delivery/http/503/html")
        );
    }

    #[test]
    fn the_strict_reading_retries_no_4xx() {
        for status in 400..=499 {
            assert_eq!(
                of(status, ClientErrors::Final).0,
                Event::FailPermanently,
                "{status}"
            );
        }
        assert_eq!(of(503, ClientErrors::Final).0, Event::FailRetryable);
    }

    #[test]
    fn a_subscription_can_have_what_it_refuses_tried_again_save_that_it_is_gone() {
        for status in 400..=499 {
            let expected = match status {
                410 => (Event::FailPermanently, HealthSignal::Gone),
                _ => (Event::FailRetryable, HealthSignal::Failure),
            };
            assert_eq!(of(status, ClientErrors::Retried), expected, "{status}");
        }
        assert_eq!(of(302, ClientErrors::Retried).1, HealthSignal::Gone);
    }

    #[test]
    fn no_answer_is_retried_whatever_the_reason_and_our_own_failure_is_not_the_receivers() {
        for kind in FailureKind::ALL {
            let message = String::from("no");
            let classification =
                DeliveryOutcome::Failed { kind, message }.classification(ClientErrors::Final);
            let ours = matches!(kind, FailureKind::Other | FailureKind::Local);
            let untried = kind == FailureKind::Local;
            assert_eq!(classification.health == HealthSignal::None, ours);
            assert_eq!(classification.event == Event::Postpone, untried, "{kind:?}");
            assert_eq!(classification.event == Event::FailRetryable, !untried, "{kind:?}");
        }
    }
}
