//! What came of an attempt, and what that means for the push.

use crate::dead_letter::fingerprint_part;

use super::{AttemptStatus, ErrorType, Platform};
use crate::lifecycle::Event;

/// What an answer's status code means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusClass {
    /// Any 2xx.
    Success,
    /// The receiver may do better later.
    Retryable,
    /// It will say the same again. Redirects count here: they are never followed.
    Permanent,
}

/// Classifies an HTTP status code as the seed does: 429, 500, 502, 503 and 504 are worth another attempt.
pub fn classify(status: u16) -> StatusClass {
    match status {
        200..=299 => StatusClass::Success,
        429 | 500 | 502 | 503 | 504 => StatusClass::Retryable,
        _ => StatusClass::Permanent,
    }
}

/// What came of one attempt to send a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendOutcome {
    /// Swrve accepted it.
    Delivered,
    /// Swrve answered with something other than 2xx.
    Refused {
        /// The HTTP status code.
        status: u16,
        /// The code of Swrve's own error body, when it had one.
        code: Option<i64>,
        /// Swrve's message, or the status and its reason phrase.
        message: String,
    },
    /// No answer: DNS, connection, TLS or timeout.
    Unreachable {
        /// Why, in words.
        message: String,
    },
    /// No push key is configured for the push's platform and prototype.
    PrototypeKeyMissing {
        /// The push's platform.
        platform: Platform,
        /// The push's message prototype, if it names one.
        prototype: Option<String>,
    },
    /// The attempt failed on our side.
    Internal {
        /// The error chain as text.
        chain: String,
    },
    /// Nothing was tried: this process has no descriptor, port, memory or route for a connection.
    NotTried {
        /// The error chain as text.
        chain: String,
    },
}

/// The consequences of an outcome: the event for the state machine and what the attempt row records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classification {
    /// The event that completes the attempt.
    pub event: Event,
    /// The attempt's final status.
    pub status: AttemptStatus,
    /// Whose fault a failure was.
    pub error_type: Option<ErrorType>,
    /// `SWRVE_ERROR_CODE`: Swrve's own code, else the HTTP status.
    pub swrve_error_code: Option<i64>,
    /// `SWRVE_ERROR_MESSAGE`.
    pub swrve_error_message: Option<String>,
    /// `OTHER_ERROR_STACK_TRACE`: the error chain of a failure of ours.
    pub other_error: Option<String>,
    /// Failures of one kind share it; dead letters are grouped by it.
    pub fingerprint: Option<String>,
}

impl SendOutcome {
    /// The same, but that a missing answer ends the push: a failure of our own while sending, as any other exception there.
    pub fn without_retry_on_timeout(self) -> Self {
        match self {
            Self::Unreachable { message } => Self::Internal { chain: message },
            other => other,
        }
    }

    /// Draws the consequences.
    pub fn classification(self) -> Classification {
        let fingerprint = self.fingerprint();
        let failed = |event, error_type| Classification {
            event,
            status: AttemptStatus::Error,
            error_type: Some(error_type),
            swrve_error_code: None,
            swrve_error_message: None,
            other_error: None,
            fingerprint,
        };
        match self {
            Self::Delivered => Classification {
                status: AttemptStatus::Ok,
                error_type: None,
                ..failed(Event::Succeed, ErrorType::Swrve)
            },
            Self::Refused {
                status,
                code,
                message,
            } => {
                let event = match classify(status) {
                    StatusClass::Retryable => Event::FailRetryable,
                    StatusClass::Success | StatusClass::Permanent => Event::FailPermanently,
                };
                Classification {
                    swrve_error_code: Some(code.unwrap_or_else(|| i64::from(status))),
                    swrve_error_message: Some(message),
                    ..failed(event, ErrorType::Swrve)
                }
            }
            Self::Unreachable { message } => Classification {
                swrve_error_message: Some(message),
                ..failed(Event::FailRetryable, ErrorType::Swrve)
            },
            Self::PrototypeKeyMissing { platform, prototype } => Classification {
                other_error: Some(missing_key(platform, prototype.as_deref())),
                ..failed(Event::FailPermanently, ErrorType::MessagePrototypeKey)
            },
            Self::Internal { chain } => Classification {
                other_error: Some(chain),
                ..failed(Event::FailPermanently, ErrorType::Other)
            },
            Self::NotTried { chain } => Classification {
                other_error: Some(chain),
                ..failed(Event::HandBack, ErrorType::Other)
            },
        }
    }

    fn fingerprint(&self) -> Option<String> {
        match self {
            Self::Delivered => None,
            Self::Refused {
                status,
                code: Some(code),
                ..
            } => Some(format!("swrve/{status}/{code}")),
            Self::Refused {
                status, code: None, ..
            } => Some(format!("swrve/{status}")),
            Self::Unreachable { .. } => Some("swrve/unreachable".to_owned()),
            Self::PrototypeKeyMissing { platform, prototype } => Some(format!(
                "prototype-key/{platform}/{}",
                named(prototype.as_deref()).map_or_else(|| "none".to_owned(), fingerprint_part)
            )),
            Self::Internal { .. } | Self::NotTried { .. } => Some("other/internal".to_owned()),
        }
    }
}

/// A prototype that is blank names none.
fn named(prototype: Option<&str>) -> Option<&str> {
    prototype.filter(|prototype| !prototype.trim().is_empty())
}

fn missing_key(platform: Platform, prototype: Option<&str>) -> String {
    match named(prototype) {
        Some(prototype) => format!(
            "no Swrve push key is configured for {platform} and the message prototype {prototype:?}; \
             add it to swrve.messagePrototypePushKeys"
        ),
        None => "the push names no message prototype, so no Swrve push key can be found for it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_five_statuses_of_the_seed_are_retryable() {
        let retryable: Vec<u16> = (100..600)
            .filter(|s| classify(*s) == StatusClass::Retryable)
            .collect();
        assert_eq!(retryable, [429, 500, 502, 503, 504]);
        let success: Vec<u16> = (100..600)
            .filter(|s| classify(*s) == StatusClass::Success)
            .collect();
        assert_eq!(success, (200..300).collect::<Vec<u16>>());
    }

    #[test]
    fn a_refusal_without_a_swrve_code_records_the_status() {
        let refused = |code| {
            SendOutcome::Refused {
                status: 418,
                code,
                message: "teapot".to_owned(),
            }
            .classification()
        };
        assert_eq!(refused(None).swrve_error_code, Some(418));
        assert_eq!(refused(Some(7)).swrve_error_code, Some(7));
        assert_eq!(refused(None).event, Event::FailPermanently);
    }

    #[test]
    fn each_outcome_names_whose_fault_it_was() {
        let text = || "x".to_owned();
        let types = [
            (SendOutcome::Delivered, None, Event::Succeed),
            (
                SendOutcome::Unreachable { message: text() },
                Some(ErrorType::Swrve),
                Event::FailRetryable,
            ),
            (
                SendOutcome::PrototypeKeyMissing {
                    platform: Platform::Ios,
                    prototype: None,
                },
                Some(ErrorType::MessagePrototypeKey),
                Event::FailPermanently,
            ),
            (
                SendOutcome::Internal { chain: text() },
                Some(ErrorType::Other),
                Event::FailPermanently,
            ),
        ];
        for (outcome, error_type, event) in types {
            let classification = outcome.clone().classification();
            assert_eq!(
                (classification.error_type, classification.event),
                (error_type, event),
                "{outcome:?}"
            );
        }
    }

    #[test]
    fn a_missing_answer_can_be_made_the_end_of_a_push_and_nothing_else_is() {
        let unreachable = SendOutcome::Unreachable {
            message: "no answer within 300 ms".to_owned(),
        };
        let classification = unreachable.without_retry_on_timeout().classification();
        assert_eq!(
            (
                classification.event,
                classification.error_type,
                classification.other_error.as_deref()
            ),
            (
                Event::FailPermanently,
                Some(ErrorType::Other),
                Some("no answer within 300 ms")
            )
        );
        let busy = SendOutcome::Refused {
            status: 503,
            code: None,
            message: String::new(),
        };
        for other in [SendOutcome::Delivered, busy] {
            assert_eq!(other.clone().without_retry_on_timeout(), other);
        }
    }

    #[test]
    fn a_prototype_cannot_make_its_fingerprint_mean_others() {
        let fingerprint = |prototype: &str| {
            SendOutcome::PrototypeKeyMissing {
                platform: Platform::Ios,
                prototype: Some(prototype.to_owned()),
            }
            .classification()
            .fingerprint
        };
        assert_eq!(fingerprint("Sale*").as_deref(), Some("prototype-key/IOS/Sale%2A"));
        assert_eq!(fingerprint("Sale").as_deref(), Some("prototype-key/IOS/Sale"));
    }

    #[test]
    fn a_blank_prototype_fails_like_none() {
        let classified = |prototype: Option<&str>| {
            let outcome = SendOutcome::PrototypeKeyMissing {
                platform: Platform::Ios,
                prototype: prototype.map(str::to_owned),
            };
            let classification = outcome.classification();
            (classification.fingerprint, classification.other_error)
        };
        let none = classified(None);
        assert_eq!(none.0.as_deref(), Some("prototype-key/IOS/none"));
        assert_eq!(
            (classified(Some("")), classified(Some("  "))),
            (none.clone(), none)
        );
    }
}
