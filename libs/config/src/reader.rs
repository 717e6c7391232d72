//! Typed reading of the layered values. A value that is wrong is noted and replaced by a placeholder, so that reading goes on and
//! finds all the others; the caller must throw the result away when there is any problem.
//!
//! It deliberately knows no key by name: those come from `model`, rules between keys from `rules`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Number, Value};

use crate::layers::{Entry, Layers};
use crate::section::Section;
use crate::unit::Unit;
use crate::yaml::Content;
use crate::{Fault, Origin, Problem, render};

mod push_keys;
mod texts;

pub(crate) struct Reader {
    layers: Layers,
    problems: Vec<Problem>,
    /// What each key that was read accepts.
    accepted: BTreeMap<String, Accepted>,
}

pub(crate) struct Accepted {
    /// In the words of the documentation.
    pub(crate) words: String,
    /// Whether the value may be shown at most as a URL without its password.
    pub(crate) is_secret: bool,
}

impl Reader {
    pub(crate) fn new(mut layers: Layers) -> Self {
        let problems = std::mem::take(&mut layers.problems);
        Self {
            layers,
            problems,
            accepted: BTreeMap::new(),
        }
    }

    pub(crate) fn layers(&self) -> &Layers {
        &self.layers
    }

    pub(crate) fn accepted(&self, key: &str) -> Option<&Accepted> {
        self.accepted.get(key)
    }

    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    pub(crate) fn section<T: Section>(&mut self, path: &str) -> T {
        T::read(self, path)
    }

    /// What has been read so far, as YAML without secrets.
    pub(crate) fn redacted_yaml(&mut self, _everything: &str) -> String {
        render::redacted(self)
    }

    /// A whole number. `T` must hold the whole range.
    pub(crate) fn integer<T: TryFrom<u64> + Default>(&mut self, key: &str, range: RangeInclusive<u64>) -> T {
        let words = limits(&range);
        let count = self.whole_number(key, range, words);
        T::try_from(count).unwrap_or_default()
    }

    /// A whole number of which 0 sets no limit.
    pub(crate) fn limit(&mut self, key: &str, range: RangeInclusive<u64>) -> Option<u32> {
        Some(self.integer(key, range)).filter(|limit| *limit > 0)
    }

    pub(crate) fn duration(&mut self, key: &str, unit: Unit, range: RangeInclusive<u64>) -> Duration {
        let words = format!("{}, {}", unit.name(), limits(&range));
        unit.duration(self.whole_number(key, range, words))
    }

    fn whole_number(&mut self, key: &str, range: RangeInclusive<u64>, words: String) -> u64 {
        let Some(number) = number_of(self.declare(key, &words, false)) else {
            return self.unexpected(key, format!("a whole number ({words})"), *range.start());
        };
        match number.as_u64() {
            Some(count) if range.contains(&count) => count,
            Some(_) => self.out_of_range(key, number.to_string(), words, *range.start()),
            None if number.is_i64() => self.out_of_range(key, number.to_string(), words, *range.start()),
            None => self.unexpected(key, format!("a whole number ({words})"), *range.start()),
        }
    }

    pub(crate) fn ratio(&mut self, key: &str) -> f64 {
        const RANGE: &str = "0 to 1";
        let Some(number) = number_of(self.declare(key, RANGE, false)) else {
            return self.unexpected(key, format!("a number ({RANGE})"), 0.0);
        };
        match number.as_f64() {
            Some(ratio) if (0.0..=1.0).contains(&ratio) => ratio,
            _ => self.out_of_range(key, number.to_string(), RANGE.to_owned(), 0.0),
        }
    }

    pub(crate) fn boolean(&mut self, key: &str) -> bool {
        const VALUES: &str = "true or false";
        let Content::Scalar(Value::Bool(value)) = self.declare(key, VALUES, false).value.content else {
            return self.unexpected(key, VALUES, false);
        };
        value
    }

    /// Adds the reason for a limit to the problems of a key, if it has any.
    pub(crate) fn reason(&mut self, key: &str, reason: &str) {
        for problem in self.problems.iter_mut().filter(|problem| problem.subject == key) {
            problem.mend = format!("{} ({reason})", problem.mend);
        }
    }

    /// The number that a key has; 0 when it is wrong by itself, and no rule over it is told then.
    pub(crate) fn number(&self, key: &str) -> u64 {
        number_of(self.layers.entry(key))
            .and_then(|number| number.as_u64())
            .unwrap_or_default()
    }

    /// Whether a key has any value, be it right or wrong.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        !self.layers.entry(key).value.content.is_null()
    }

    /// Notes that a rule over several keys is broken, unless one of them is wrong by itself already.
    pub(crate) fn rule(&mut self, keys: &[&str], holds: bool, statement: &str, mend: String) {
        let faulty = self
            .problems
            .iter()
            .any(|problem| keys.contains(&problem.subject.as_str()));
        if holds || faulty {
            return;
        }
        let (Some(first), others) = (keys.first(), keys.get(1..).unwrap_or_default()) else {
            return;
        };
        let mut statement = statement.to_owned();
        for key in others {
            statement.push_str(&format!("; {key} is from {}", self.layers.entry(key).origin));
        }
        self.problems.push(Problem {
            subject: (*first).to_owned(),
            origin: Some(self.layers.entry(first).origin.clone()),
            fault: Fault::RuleBroken { statement },
            mend,
        });
    }

    /// Notes what a key accepts, and whether its value may be shown.
    fn declare(&mut self, key: &str, words: &str, is_secret: bool) -> &Entry {
        let accepted = Accepted {
            words: words.to_owned(),
            is_secret,
        };
        self.accepted.insert(key.to_owned(), accepted);
        self.layers.entry(key)
    }

    fn unexpected<T>(&mut self, key: &str, expected: impl Into<String>, placeholder: T) -> T {
        let found = found(&self.layers.entry(key).value.content);
        self.push_unexpected(key, expected.into(), found);
        placeholder
    }

    fn push_unexpected(&mut self, key: &str, expected: String, found: String) {
        let problem = self.about(key, Fault::Unexpected { expected, found });
        self.problems.push(problem);
    }

    fn out_of_range<T>(&mut self, key: &str, found: String, range: String, placeholder: T) -> T {
        let problem = self.about(key, Fault::OutOfRange { found, range });
        self.problems.push(problem);
        placeholder
    }

    fn about(&self, key: &str, fault: Fault) -> Problem {
        let origin = self.layers.entry(key).origin.clone();
        let mend = match &origin {
            Origin::Variable(name) => format!("change or unset {name}"),
            Origin::File { .. } | Origin::Default => "change it, or remove it to use the default".to_owned(),
        };
        Problem {
            subject: key.to_owned(),
            origin: Some(origin),
            fault,
            mend,
        }
    }
}

fn limits(range: &RangeInclusive<u64>) -> String {
    format!("{} to {}", range.start(), range.end())
}

fn number_of(entry: &Entry) -> Option<Number> {
    match &entry.value.content {
        Content::Scalar(Value::Number(number)) => Some(number.clone()),
        _ => None,
    }
}

/// What was found, for an error message.
fn found(content: &Content) -> String {
    match content {
        Content::Scalar(Value::Null) => "nothing".to_owned(),
        Content::Scalar(value) => format!("{} {value}", kind(content)),
        Content::Map(_) | Content::List(_) => kind(content).to_owned(),
    }
}

/// What kind of value was found, for an error message that must not show it.
pub(crate) fn kind(content: &Content) -> &'static str {
    match content {
        Content::Scalar(Value::Null) => "nothing",
        Content::Scalar(Value::Bool(_)) => "a boolean",
        Content::Scalar(Value::Number(_)) => "a number",
        Content::Scalar(_) => "the text",
        Content::Map(_) => "a mapping",
        Content::List(_) => "a list",
    }
}
