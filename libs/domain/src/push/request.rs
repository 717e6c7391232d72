//! What a caller hands in, and whether it can be accepted.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::{CronError, Platform, SendingWindow};

/// Bounds on what a caller may hand in, in bytes of UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest message.
    pub message_max_bytes: usize,
    /// Longest push key and message prototype key.
    pub push_key_max_bytes: usize,
}

/// Longest cron expression, in bytes.
const CRON_MAX_BYTES: usize = 256;

/// A push that was found acceptable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushRequest {
    /// The device's platform.
    pub platform: Platform,
    /// Names the Swrve campaign. May be absent or unknown: that is found out when the push is sent.
    pub message_prototype_key: Option<String>,
    /// The client's device id in Swrve.
    pub push_key: String,
    /// The text.
    pub message: String,
    /// When the push may be sent; at any time when absent.
    pub cron_expression: Option<String>,
    /// The first instant from now on at which the cron expression allows sending.
    pub first_window: Option<DateTime<Utc>>,
}

/// What is wrong with one field of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The field is missing or null.
    #[error("is missing")]
    Missing {
        /// The field's name on the wire.
        field: &'static str,
    },
    /// The text is blank.
    #[error("must be a string that is not blank")]
    Blank {
        /// The field's name on the wire.
        field: &'static str,
    },
    /// The platform does not exist.
    #[error("is {found:?}, but must be IOS or ANDROID")]
    UnknownPlatform {
        /// What was given.
        found: String,
    },
    /// The text is too long.
    #[error("is {length} bytes long, but may be at most {limit}")]
    TooLong {
        /// The field's name on the wire.
        field: &'static str,
        /// Its length in bytes.
        length: usize,
        /// The greatest length in bytes.
        limit: usize,
    },
    /// The text holds U+0000, which PostgreSQL cannot store.
    #[error("contains the character U+0000, which cannot be stored")]
    NulCharacter {
        /// The field's name on the wire.
        field: &'static str,
    },
    /// The cron expression is not one.
    #[error("is not a cron expression: {0}")]
    Cron(#[source] CronError),
    /// The cron expression is well-formed, but no such time lies ahead.
    #[error("is a cron expression that matches no time from now on")]
    CronNeverMatches,
}

impl FieldError {
    /// The name of the field on the wire.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Missing { field }
            | Self::Blank { field }
            | Self::TooLong { field, .. }
            | Self::NulCharacter { field } => field,
            Self::UnknownPlatform { .. } => "platform",
            Self::Cron(_) | Self::CronNeverMatches => "cronExpression",
        }
    }
}

impl PushRequest {
    /// Checks everything that can be checked before the push is stored; the error lists every field that is wrong.
    pub fn check(
        platform: Option<&str>,
        message_prototype_key: Option<String>,
        push_key: Option<String>,
        message: Option<String>,
        cron_expression: Option<String>,
        limits: &Limits,
        (now, zone): (DateTime<Utc>, Tz),
    ) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        let platform = checked(&mut errors, check_platform(platform));
        let limit = limits.push_key_max_bytes;
        let prototype = checked(
            &mut errors,
            check_optional("messagePrototypeKey", message_prototype_key, limit),
        );
        let push_key = checked(&mut errors, check_text("pushKey", push_key, limit));
        let message = checked(
            &mut errors,
            check_text("message", message, limits.message_max_bytes),
        );
        let window = checked(&mut errors, check_cron(cron_expression, now, zone));
        match (platform, prototype, push_key, message, window) {
            (Some(platform), Some(message_prototype_key), Some(push_key), Some(message), Some(window)) => {
                let (cron_expression, first_window) = window.unzip();
                Ok(Self {
                    platform,
                    message_prototype_key,
                    push_key,
                    message,
                    cron_expression,
                    first_window,
                })
            }
            _ => Err(errors),
        }
    }
}

fn checked<T>(errors: &mut Vec<FieldError>, result: Result<T, FieldError>) -> Option<T> {
    result.map_err(|error| errors.push(error)).ok()
}

fn check_platform(platform: Option<&str>) -> Result<Platform, FieldError> {
    let name = platform.ok_or(FieldError::Missing { field: "platform" })?;
    name.parse().map_err(|_| FieldError::UnknownPlatform {
        found: name.chars().take(64).collect(),
    })
}

fn check_text(field: &'static str, text: Option<String>, limit: usize) -> Result<String, FieldError> {
    let text = text.ok_or(FieldError::Missing { field })?;
    if text.trim().is_empty() {
        return Err(FieldError::Blank { field });
    }
    check_length(field, &text, limit)?;
    Ok(text)
}

fn check_optional(
    field: &'static str,
    text: Option<String>,
    limit: usize,
) -> Result<Option<String>, FieldError> {
    if let Some(text) = &text {
        check_length(field, text, limit)?;
    }
    Ok(text)
}

fn check_length(field: &'static str, text: &str, limit: usize) -> Result<(), FieldError> {
    if text.len() > limit {
        return Err(FieldError::TooLong {
            field,
            length: text.len(),
            limit,
        });
    }
    if text.contains('\0') {
        return Err(FieldError::NulCharacter { field });
    }
    Ok(())
}

fn check_cron(
    expression: Option<String>,
    now: DateTime<Utc>,
    zone: Tz,
) -> Result<Option<(String, DateTime<Utc>)>, FieldError> {
    let Some(expression) = expression else {
        return Ok(None);
    };
    check_length("cronExpression", &expression, CRON_MAX_BYTES)?;
    let window = SendingWindow::parse(&expression, zone).map_err(FieldError::Cron)?;
    let first = window
        .opens_at_or_after(now)
        .map_err(|_| FieldError::CronNeverMatches)?;
    Ok(Some((expression, first)))
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    const LIMITS: Limits = Limits {
        message_max_bytes: 8,
        push_key_max_bytes: 8,
    };

    fn check(fields: [Option<&str>; 5]) -> Result<PushRequest, Vec<FieldError>> {
        let [platform, prototype, key, message, cron] = fields;
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let now = Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap();
        PushRequest::check(
            platform,
            owned(prototype),
            owned(key),
            owned(message),
            owned(cron),
            &LIMITS,
            (now, Tz::UTC),
        )
    }

    #[test]
    fn every_wrong_field_is_listed_at_once() {
        let errors = check([Some("BEOS"), None, Some(" "), Some("123456789"), Some("x")]).unwrap_err();
        let fields: Vec<_> = errors.iter().map(FieldError::field).collect();
        assert_eq!(fields, ["platform", "pushKey", "message", "cronExpression"]);
    }

    #[test]
    fn what_is_missing_is_told_apart_from_what_is_blank() {
        let errors = check([None, None, None, Some(" "), None]).unwrap_err();
        let told: Vec<_> = errors
            .iter()
            .map(|error| (error.field(), error.to_string()))
            .collect();
        let missing = |field| (field, "is missing".to_owned());
        let blank = ("message", "must be a string that is not blank".to_owned());
        assert_eq!(told, [missing("platform"), missing("pushKey"), blank]);
    }

    #[test]
    fn a_prototype_may_be_absent() {
        assert_eq!(
            check([Some("IOS"), None, Some("k"), Some("m"), None])
                .unwrap()
                .message_prototype_key,
            None
        );
    }

    #[test]
    fn length_is_counted_in_bytes_and_the_limit_is_allowed() {
        assert!(check([Some("IOS"), None, Some("k"), Some("12345678"), None]).is_ok());
        let errors = check([Some("IOS"), None, Some("k"), Some("ååååå"), None]).unwrap_err();
        assert_eq!(
            errors,
            [FieldError::TooLong {
                field: "message",
                length: 10,
                limit: 8
            }]
        );
    }

    #[test]
    fn a_window_that_lies_in_the_past_is_refused() {
        let errors = check([Some("IOS"), None, Some("k"), Some("m"), Some("0 0 12 1 1 ? 2020")]).unwrap_err();
        assert_eq!(errors, [FieldError::CronNeverMatches]);
    }

    #[test]
    fn a_character_that_cannot_be_stored_is_refused() {
        let errors = check([Some("IOS"), Some("a\0"), Some("k"), Some("m"), None]).unwrap_err();
        assert_eq!(
            errors,
            [FieldError::NulCharacter {
                field: "messagePrototypeKey"
            }]
        );
    }
}
