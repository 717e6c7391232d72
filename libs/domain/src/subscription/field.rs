//! The fields of a request about a subscription, one check each.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use super::{EventFilter, email};
use crate::nearest;

/// Longest URL, in bytes.
const URL_MAX_BYTES: usize = 2_048;
/// Longest description, in bytes.
const DESCRIPTION_MAX_BYTES: usize = 500;
/// Most entries of a filter.
const FILTER_MAX: usize = 200;

/// What is wrong with one field of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The field is missing, null or blank.
    #[error("must be a string that is not blank")]
    Missing {
        /// The field's name on the wire.
        field: &'static str,
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
    /// Not an e-mail address that mail can be sent to.
    #[error("is not an e-mail address such as ops@example.com")]
    Email,
    /// The filter selects nothing.
    #[error("must list at least one event type, a prefix such as domain.*, or * for all")]
    NothingSelected,
    /// The filter has too many entries.
    #[error("has {length} entries, but may have at most {limit}")]
    TooManyEntries {
        /// How many it has.
        length: usize,
        /// How many it may have.
        limit: usize,
    },
    /// An entry of the filter is none.
    #[error(
        "is {found:?}, but must be an event type such as domain.created, a prefix such as domain.*, or * for all"
    )]
    NoFilter {
        /// Its position.
        index: usize,
        /// What was given.
        found: String,
    },
    /// An entry of the filter selects no event type of the catalogue.
    #[error(
        "is {found:?}, but the catalogue has no such event type; GET /event-types lists what it has{question}"
    )]
    UnknownEventType {
        /// Its position.
        index: usize,
        /// What was given.
        found: String,
        /// What may have been meant, or nothing.
        question: String,
    },
    /// The timeout is too short or too long.
    #[error("is {found}, but must be between 1 and {limit}")]
    Timeout {
        /// What was given.
        found: i64,
        /// The greatest, in milliseconds.
        limit: u64,
    },
    /// The field is not the reseller's to change.
    #[error(
        "cannot be changed here; ask for more with POST /subscriptions/{{id}}/quota-requests, which an administrator decides"
    )]
    NotYours {
        /// The field's name on the wire.
        field: &'static str,
    },
    /// Another request changes the field.
    #[error("cannot be changed here; {how}")]
    Elsewhere {
        /// The field's name on the wire.
        field: &'static str,
        /// Which request does.
        how: &'static str,
    },
}

impl FieldError {
    /// The name of the field on the wire.
    pub fn field(&self) -> Cow<'static, str> {
        match self {
            Self::Missing { field }
            | Self::TooLong { field, .. }
            | Self::NulCharacter { field }
            | Self::NotYours { field }
            | Self::Elsewhere { field, .. } => Cow::Borrowed(field),
            Self::Email => "email".into(),
            Self::NothingSelected | Self::TooManyEntries { .. } => "eventTypes".into(),
            Self::NoFilter { index, .. } | Self::UnknownEventType { index, .. } => {
                format!("eventTypes[{index}]").into()
            }
            Self::Timeout { .. } => "timeoutMillis".into(),
        }
    }
}

/// Collects errors while values are taken.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<FieldError>);

impl Findings {
    pub(super) fn take<T>(&mut self, result: Result<T, FieldError>) -> Option<T> {
        result.map_err(|error| self.0.push(error)).ok()
    }

    /// How much a subscription may get is not for its reseller to say.
    pub(super) fn refuse_limits(&mut self, daily_quota: bool, requests_per_second: bool) {
        let limits = [
            ("dailyQuota", daily_quota),
            ("requestsPerSecond", requests_per_second),
        ];
        let asked = limits.into_iter().filter(|(_, asked)| *asked);
        self.0
            .extend(asked.map(|(field, _)| FieldError::NotYours { field }));
    }
}

pub(super) fn check_url(url: Option<String>) -> Result<String, FieldError> {
    let url = url
        .filter(|url| !url.trim().is_empty())
        .ok_or(FieldError::Missing { field: "url" })?;
    check_text("url", &url, URL_MAX_BYTES)?;
    Ok(url)
}

pub(super) fn check_email(address: Option<String>) -> Result<String, FieldError> {
    let address = address
        .filter(|address| !address.trim().is_empty())
        .ok_or(FieldError::Missing { field: "email" })?;
    if email::is_address(&address) {
        Ok(address)
    } else {
        Err(FieldError::Email)
    }
}

pub(super) fn check_description(description: Option<String>) -> Result<String, FieldError> {
    let description = description.unwrap_or_default();
    check_text("description", &description, DESCRIPTION_MAX_BYTES)?;
    Ok(description)
}

fn check_text(field: &'static str, text: &str, limit: usize) -> Result<(), FieldError> {
    if text.len() > limit {
        let length = text.len();
        return Err(FieldError::TooLong { field, length, limit });
    }
    if text.contains('\0') {
        return Err(FieldError::NulCharacter { field });
    }
    Ok(())
}

pub(super) fn check_timeout(millis: Option<i64>, longest: Duration) -> Result<Option<u32>, FieldError> {
    let Some(found) = millis else { return Ok(None) };
    let limit = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
    let accepted = u32::try_from(found)
        .ok()
        .filter(|millis| *millis > 0 && u64::from(*millis) <= limit);
    accepted.map(Some).ok_or(FieldError::Timeout { found, limit })
}

/// The entries in their order, each once.
pub(super) fn check_filter(
    entries: Option<Vec<String>>,
    catalogue: &[String],
    errors: &mut Vec<FieldError>,
) -> Option<Vec<EventFilter>> {
    let entries = entries.unwrap_or_default();
    let length = entries.len();
    if length == 0 || length > FILTER_MAX {
        errors.push(match length {
            0 => FieldError::NothingSelected,
            _ => FieldError::TooManyEntries {
                length,
                limit: FILTER_MAX,
            },
        });
        return None;
    }
    let mut accepted = Vec::new();
    let before = errors.len();
    for (index, entry) in entries.iter().enumerate() {
        match check_entry(index, entry, catalogue) {
            Ok(filter) if accepted.contains(&filter) => {}
            Ok(filter) => accepted.push(filter),
            Err(error) => errors.push(error),
        }
    }
    (errors.len() == before).then_some(accepted)
}

/// A prefix that selects nothing is most likely misspelt, and only those who wait in vain would notice it.
fn check_entry(index: usize, entry: &str, catalogue: &[String]) -> Result<EventFilter, FieldError> {
    let found = || entry.chars().take(100).collect();
    let filter = EventFilter::parse(entry).map_err(|_| FieldError::NoFilter {
        index,
        found: found(),
    })?;
    if entry == "*" || catalogue.iter().any(|name| filter.matches(name)) {
        Ok(filter)
    } else {
        Err(FieldError::UnknownEventType {
            index,
            found: found(),
            question: meant(entry, catalogue),
        })
    }
}

/// Event types and prefixes that are like an entry that selects nothing.
fn meant(entry: &str, catalogue: &[String]) -> String {
    let heads = catalogue.iter().filter_map(|name| name.split_once('.'));
    let prefixes: BTreeSet<String> = heads.map(|(head, _)| format!("{head}.*")).collect();
    let names = catalogue.iter().filter(|_| !entry.ends_with('*'));
    nearest::question(entry, names.chain(&prefixes).map(String::as_str))
}
