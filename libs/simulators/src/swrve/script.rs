//! Scripted behaviour: rules that make chosen pushes fail, wait or get no answer at all.
//!
//! Rules are tried in their order; the first that matches and is not used up decides. It does not know HTTP beyond the
//! numbers and texts of an answer.

use std::collections::BTreeMap;
use std::time::Duration;

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

/// Which pushes a rule is about: those that all the given patterns match; every push when there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Match {
    /// The `user` field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Pattern>,
    /// The `message` field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Pattern>,
    /// The `push_key` field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_key: Option<Pattern>,
}

/// What happens to the pushes that match. Without anything else a rule answers like the simulator itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Rule {
    /// Which pushes it is about.
    #[serde(rename = "match")]
    pub matching: Match,
    /// The status of the answer, 200 to 599; default 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The `code` of the answer; default the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// The `message` of the answer; default the reason phrase of the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The body of the answer as it is, instead of `code` and `message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Further headers of the answer, such as `Retry-After` or `Location`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How long the answer takes, instead of the simulator's response time.
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

/// What is wrong with one rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The status cannot be answered.
    #[error("status {0} is not between 200 and 599")]
    Status(u16),
    /// Two fields exclude each other.
    #[error("{0} and {1} exclude each other")]
    Conflict(&'static str, &'static str),
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

/// Reads a script: a JSON list of rules, as `PUT /script` and script files have it.
///
/// # Errors
/// See [`ScriptError`].
pub fn parse_script(json: &[u8]) -> Result<Vec<Rule>, ScriptError> {
    let rules: Vec<Rule> = serde_json::from_slice(json).map_err(ScriptError::Json)?;
    check(&rules)?;
    Ok(rules)
}

/// Names the first rule that makes no sense.
pub(crate) fn check(rules: &[Rule]) -> Result<(), ScriptError> {
    for (index, rule) in rules.iter().enumerate() {
        rule.check().map_err(|source| ScriptError::Rule {
            number: index + 1,
            source,
        })?;
    }
    Ok(())
}

/// The rules in force and how often each has applied.
#[derive(Debug, Default)]
pub(crate) struct Script(Vec<(Rule, u64)>);

/// A rule as `GET /script` shows it.
#[derive(Debug, Serialize)]
pub(crate) struct RuleInForce {
    #[serde(flatten)]
    rule: Rule,
    used: u64,
}

impl Script {
    /// Takes rules that have been checked.
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        Self(rules.into_iter().map(|rule| (rule, 0)).collect())
    }

    /// The rule for this push, which is thereby used once.
    pub(crate) fn apply(&mut self, user: &str, message: &str, push_key: &str) -> Option<Rule> {
        let (rule, used) = self.0.iter_mut().find(|(rule, used)| {
            rule.times.is_none_or(|times| *used < times) && rule.matching.matches(user, message, push_key)
        })?;
        *used += 1;
        Some(rule.clone())
    }

    pub(crate) fn in_force(&self) -> Vec<RuleInForce> {
        self.0
            .iter()
            .map(|(rule, used)| RuleInForce {
                rule: rule.clone(),
                used: *used,
            })
            .collect()
    }
}

impl Pattern {
    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(exact) => text == exact,
            Self::Prefix { prefix } => text.starts_with(prefix),
        }
    }
}

impl Match {
    fn matches(&self, user: &str, message: &str, push_key: &str) -> bool {
        [
            (&self.user, user),
            (&self.message, message),
            (&self.push_key, push_key),
        ]
        .into_iter()
        .all(|(pattern, text)| pattern.as_ref().is_none_or(|pattern| pattern.matches(text)))
    }
}

impl Rule {
    /// How long the answer takes, when the rule says so.
    pub(crate) fn delay(&self) -> Option<Duration> {
        self.delay_millis.map(Duration::from_millis)
    }

    fn check(&self) -> Result<(), RuleError> {
        if let Some(status) = self.status.filter(|status| !(200..600).contains(status)) {
            return Err(RuleError::Status(status));
        }
        let answers = self.status.is_some() || self.code.is_some() || self.message.is_some();
        for (name, set) in [("drop", self.drop), ("hang", self.hang)] {
            if set && (answers || self.body.is_some() || !self.headers.is_empty()) {
                return Err(RuleError::Conflict(name, "an answer"));
            }
        }
        if self.drop && self.hang {
            return Err(RuleError::Conflict("drop", "hang"));
        }
        if self.body.is_some() && (self.code.is_some() || self.message.is_some()) {
            return Err(RuleError::Conflict("body", "code or message"));
        }
        for (name, value) in &self.headers {
            let sendable = name.parse::<hyper::header::HeaderName>().is_ok()
                && value.parse::<hyper::header::HeaderValue>().is_ok();
            if !sendable {
                return Err(RuleError::Header(name.clone()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matching_rule_that_is_not_used_up_decides() {
        let mut script = Script::new(
            parse_script(
                br#"[{"match": {"user": "u1"}, "status": 503, "times": 2},
                     {"match": {"user": {"prefix": "u"}, "message": "hi"}, "status": 400},
                     {"status": 418, "times": 1}]"#,
            )
            .unwrap(),
        );
        let mut status = |user, message| script.apply(user, message, "k").map(|rule| rule.status.unwrap());
        assert_eq!(status("u1", "hi"), Some(503));
        assert_eq!(status("u1", "hi"), Some(503));
        assert_eq!(status("u1", "hi"), Some(400));
        assert_eq!(status("u1", "ho"), Some(418));
        assert_eq!(status("u1", "ho"), None);
        assert_eq!(status("x", "hi"), None);
    }

    #[test]
    fn the_push_key_can_be_matched() {
        let mut script =
            Script::new(parse_script(br#"[{"match": {"pushKey": {"prefix": "dead"}}}]"#).unwrap());
        assert!(script.apply("u", "m", "dead-beef").is_some());
        assert!(script.apply("u", "m", "beef").is_none());
    }

    #[test]
    fn senseless_rules_are_named() {
        for (json, wanted) in [
            (r#"{"status": 99}"#, RuleError::Status(99)),
            (r#"{"status": 600}"#, RuleError::Status(600)),
            (
                r#"{"drop": true, "hang": true}"#,
                RuleError::Conflict("drop", "hang"),
            ),
            (
                r#"{"drop": true, "status": 500}"#,
                RuleError::Conflict("drop", "an answer"),
            ),
            (
                r#"{"hang": true, "body": "x"}"#,
                RuleError::Conflict("hang", "an answer"),
            ),
            (
                r#"{"body": "x", "code": 1}"#,
                RuleError::Conflict("body", "code or message"),
            ),
            (
                r#"{"headers": {"a b": "x"}}"#,
                RuleError::Header("a b".to_owned()),
            ),
            (r#"{"headers": {"a": "x\n"}}"#, RuleError::Header("a".to_owned())),
        ] {
            match parse_script(format!("[{{}}, {json}]").as_bytes()) {
                Err(ScriptError::Rule { number: 2, source }) => assert_eq!(source, wanted),
                other => panic!("{json}: {other:?}"),
            }
        }
    }

    #[test]
    fn misspelt_fields_are_refused() {
        for json in [
            r#"[{"stauts": 503}]"#,
            r#"[{"match": {"usr": "x"}}]"#,
            r#"{"status": 503}"#,
            "[",
        ] {
            assert!(
                matches!(parse_script(json.as_bytes()), Err(ScriptError::Json(_))),
                "{json}"
            );
        }
    }
}
