//! Scripted behaviour: rules that make chosen pushes fail, wait or get no answer at all.
//!
//! Rules are tried in their order; the first that matches and is not used up decides. It does not know HTTP beyond the
//! numbers and texts of an answer.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::script::{self, Pattern, RuleError, ScriptError, Scripted};

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

/// Reads a script: a JSON list of rules, as `PUT /script` and script files have it.
pub fn parse_script(json: &[u8]) -> Result<Vec<Rule>, ScriptError> {
    script::parse(json)
}

impl Match {
    pub(crate) fn matches(&self, user: &str, message: &str, push_key: &str) -> bool {
        Pattern::all([
            (&self.user, user),
            (&self.message, message),
            (&self.push_key, push_key),
        ])
    }
}

impl Rule {
    /// How long the answer takes, when the rule says so.
    pub(crate) fn delay(&self) -> Option<Duration> {
        self.delay_millis.map(Duration::from_millis)
    }
}

impl Scripted for Rule {
    fn times(&self) -> Option<u64> {
        self.times
    }

    fn check(&self) -> Result<(), RuleError> {
        script::sendable(self.status, &self.headers)?;
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
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    fn apply(script: &mut Script<Rule>, user: &str, message: &str, push_key: &str) -> Option<Rule> {
        script.apply(|rule| rule.matching.matches(user, message, push_key))
    }

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
        let mut status =
            |user, message| apply(&mut script, user, message, "k").map(|rule| rule.status.unwrap());
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
        assert!(apply(&mut script, "u", "m", "dead-beef").is_some());
        assert!(apply(&mut script, "u", "m", "beef").is_none());
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
