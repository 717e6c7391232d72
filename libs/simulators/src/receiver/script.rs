//! Scripted behaviour: rules that make chosen notifications fail, wait or get no answer at all.
//!
//! Rules are tried in their order; the first that matches and is not used up decides. It does not know HTTP beyond the
//! numbers and texts of an answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::receiver::notification::CHALLENGE;
use crate::script::{self, Pattern, RuleError, ScriptError, Scripted};

/// Which notifications a rule is about: those that all the given patterns match; every one when there are none.
///
/// A verification challenge is matched only by a rule that names its type, `postrider.verification`: an endpoint that is told to
/// fail can be verified first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Match {
    /// The event type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub event_type: Option<Pattern>,
    /// The identifier: `webhook-id`, or the `id` of the body without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Pattern>,
    /// The path of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Pattern>,
    /// Only the first so many arrivals of each identifier, so that each is accepted after as many failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_arrivals: Option<u32>,
}

/// What happens to the notifications that match. Without anything else a rule accepts them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Rule {
    /// Which notifications it is about.
    #[serde(rename = "match")]
    pub matching: Match,
    /// The status of the answer, 200 to 599; default 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Further headers of the answer, such as `Retry-After` or `Location`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// A body of so many bytes, which mean nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<u64>,
    /// A body that never ends.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub endless: bool,
    /// The body of `bodyBytes` or `endless` comes one byte at a time, with so long before each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_millis: Option<u64>,
    /// How long it takes until the answer begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_millis: Option<u64>,
    /// Closes the connection instead of answering, after `delayMillis`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drop: bool,
    /// Never answers and keeps the connection open.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hang: bool,
    /// How often the rule applies before it is used up; default for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
}

/// Reads a script: a JSON list of rules, as the file of `--script` has it.
pub fn parse_script(json: &[u8]) -> Result<Vec<Rule>, ScriptError> {
    script::parse(json)
}

/// What rules are matched with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) event_type: &'a str,
    pub(crate) id: &'a str,
    pub(crate) path: &'a str,
    /// How often this identifier has arrived, this time included.
    pub(crate) arrivals: u32,
}

impl Match {
    pub(crate) fn matches(&self, subject: Subject<'_>) -> bool {
        (self.event_type.is_some() || subject.event_type != CHALLENGE)
            && self.first_arrivals.is_none_or(|first| subject.arrivals <= first)
            && Pattern::all([
                (&self.event_type, subject.event_type),
                (&self.id, subject.id),
                (&self.path, subject.path),
            ])
    }
}

impl Rule {
    /// Always this status.
    pub fn answering(status: u16) -> Self {
        Self {
            status: Some(status),
            ..Self::default()
        }
    }

    /// The same, for notifications of this type.
    pub fn about(mut self, event_type: impl Into<String>) -> Self {
        self.matching.event_type = Some(Pattern::Exact(event_type.into()));
        self
    }

    /// The same, for requests with this path.
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.matching.path = Some(Pattern::Exact(path.into()));
        self
    }

    /// The same, for the first so many arrivals of each identifier.
    pub fn first(mut self, arrivals: u32) -> Self {
        self.matching.first_arrivals = Some(arrivals);
        self
    }
}

impl Scripted for Rule {
    fn times(&self) -> Option<u64> {
        self.times
    }

    fn check(&self) -> Result<(), RuleError> {
        script::sendable(self.status, &self.headers)?;
        let bodies = [
            ("body", self.body.is_some()),
            ("bodyBytes", self.body_bytes.is_some()),
            ("endless", self.endless),
        ];
        exclusive(&bodies)?;
        let ends = [
            ("drop", self.drop),
            ("hang", self.hang),
            ("status", self.status.is_some()),
        ];
        exclusive(&ends)?;
        let has_body = bodies.iter().any(|(_, set)| *set);
        if (self.drop || self.hang) && (has_body || !self.headers.is_empty()) {
            return Err(RuleError::Conflict("drop or hang", "an answer"));
        }
        if self.byte_millis.is_some() && self.body_bytes.is_none() && !self.endless {
            return Err(RuleError::PaceOfNothing);
        }
        Ok(())
    }
}

/// Names the first two that are both set.
fn exclusive(fields: &[(&'static str, bool)]) -> Result<(), RuleError> {
    let mut set = fields.iter().filter(|(_, set)| *set).map(|(name, _)| *name);
    match (set.next(), set.next()) {
        (Some(first), Some(second)) => Err(RuleError::Conflict(first, second)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
