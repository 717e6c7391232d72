//! What the scripts of the simulators have in common: patterns, the check of rules, and how often each has applied.
//!
//! Rules are tried in their order; the first that matches and is not used up decides.

use std::collections::BTreeMap;

use hyper::header::{HeaderName, HeaderValue};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What a text must be to match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Pattern {
    /// Exactly this.
    Exact(String),
    /// Anything that begins like this.
    Prefix {
        /// The beginning.
        prefix: String,
    },
}

/// What is wrong with one rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The status cannot be answered.
    #[error("status {0} is not between 200 and 599")]
    Status(u16),
    /// Two fields exclude each other.
    #[error("{0} and {1} exclude each other")]
    Conflict(&'static str, &'static str),
    /// A pace without a body that could have it.
    #[error("byteMillis needs bodyBytes or endless")]
    PaceOfNothing,
    /// A header cannot be sent.
    #[error("header {0:?} has a name or value that cannot be sent")]
    Header(String),
}

/// Why a script was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It is not a JSON list of rules.
    #[error("not a JSON list of rules")]
    Json(#[source] serde_json::Error),
    /// One of the rules makes no sense.
    #[error("rule {number} is invalid")]
    Rule {
        /// The rule's place in the list, from 1.
        number: usize,
        /// What is wrong with it.
        #[source]
        source: RuleError,
    },
}

/// A rule of one of the simulators.
pub(crate) trait Scripted: Clone {
    fn check(&self) -> Result<(), RuleError>;

    /// How often it applies before it is used up.
    fn times(&self) -> Option<u64>;
}

/// A rule and how often it has applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleInForce<R> {
    /// The rule.
    #[serde(flatten)]
    pub rule: R,
    /// How often it has applied.
    pub used: u64,
}

/// The rules in force.
#[derive(Debug)]
pub(crate) struct Script<R>(Vec<RuleInForce<R>>);

impl Pattern {
    /// Whether all the given patterns match their texts.
    pub(crate) fn all<const N: usize>(patterns: [(&Option<Self>, &str); N]) -> bool {
        patterns.into_iter().all(|(pattern, text)| match pattern {
            None => true,
            Some(Self::Exact(exact)) => text == exact,
            Some(Self::Prefix { prefix }) => text.starts_with(prefix),
        })
    }
}

impl ScriptError {
    pub(crate) fn with_cause(&self) -> String {
        match std::error::Error::source(self) {
            Some(cause) => format!("{self}: {cause}"),
            None => self.to_string(),
        }
    }
}

/// Reads a script: a JSON list of rules.
pub(crate) fn parse<R: Scripted + DeserializeOwned>(json: &[u8]) -> Result<Vec<R>, ScriptError> {
    let rules: Vec<R> = serde_json::from_slice(json).map_err(ScriptError::Json)?;
    check(&rules)?;
    Ok(rules)
}

/// Names the first rule that makes no sense.
pub(crate) fn check<R: Scripted>(rules: &[R]) -> Result<(), ScriptError> {
    rules.iter().zip(1..).try_for_each(|(rule, number)| {
        rule.check()
            .map_err(|source| ScriptError::Rule { number, source })
    })
}

/// Whether an answer with this status and these headers can be sent.
pub(crate) fn sendable(status: Option<u16>, headers: &BTreeMap<String, String>) -> Result<(), RuleError> {
    if let Some(status) = status.filter(|status| !(200..600).contains(status)) {
        return Err(RuleError::Status(status));
    }
    let unfit = headers
        .iter()
        .find(|(name, value)| name.parse::<HeaderName>().is_err() || value.parse::<HeaderValue>().is_err());
    unfit.map_or(Ok(()), |(name, _)| Err(RuleError::Header(name.clone())))
}

impl<R: Scripted> Script<R> {
    /// All of them, none used yet.
    pub(crate) fn new(rules: Vec<R>) -> Self {
        Self(
            rules
                .into_iter()
                .map(|rule| RuleInForce { rule, used: 0 })
                .collect(),
        )
    }

    /// The first rule that matches and is not used up, which is thereby used once.
    pub(crate) fn apply(&mut self, matches: impl Fn(&R) -> bool) -> Option<R> {
        let found = self.0.iter_mut().find(|known| {
            known.rule.times().is_none_or(|times| known.used < times) && matches(&known.rule)
        })?;
        found.used += 1;
        Some(found.rule.clone())
    }

    pub(crate) fn in_force(&self) -> Vec<RuleInForce<R>> {
        self.0.clone()
    }
}
