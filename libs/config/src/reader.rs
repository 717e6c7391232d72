//! Typed reading of the layered values. A value that is wrong is noted and replaced by a placeholder, so that reading goes on and
//! finds all the others; the caller must throw the result away when there is any problem.
//!
//! It deliberately knows no key by name: ranges and units come from `read`, rules between keys from `rules`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Number, Value};

use crate::environment::{FALLBACKS, variable_of};
use crate::layers::{Entry, Layers};
use crate::unit::Unit;
use crate::yaml::Content;
use crate::{Fault, Origin, Problem, Secret};

mod lists;

pub(crate) struct Reader {
    layers: Layers,
    problems: Vec<Problem>,
    /// What each key that was read accepts, in the words of the documentation.
    accepted: BTreeMap<&'static str, String>,
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

    pub(crate) fn accepted(&self) -> &BTreeMap<&'static str, String> {
        &self.accepted
    }

    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// A whole number. `T` must hold the whole range.
    pub(crate) fn integer<T: TryFrom<u64> + Default>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> T {
        let words = limits(&range);
        let count = self.whole_number(key, range, words);
        T::try_from(count).unwrap_or_default()
    }

    pub(crate) fn duration(&mut self, key: &'static str, unit: Unit, range: RangeInclusive<u64>) -> Duration {
        let words = format!("{}, {}", unit.name(), limits(&range));
        unit.duration(self.whole_number(key, range, words))
    }

    fn whole_number(&mut self, key: &'static str, range: RangeInclusive<u64>, words: String) -> u64 {
        let Some(number) = number_of(self.entry(key, &words)) else {
            return self.unexpected(key, format!("a whole number ({words})"), *range.start());
        };
        match number.as_u64() {
            Some(count) if range.contains(&count) => count,
            Some(_) => self.out_of_range(key, number.to_string(), words, *range.start()),
            None if number.is_i64() => self.out_of_range(key, number.to_string(), words, *range.start()),
            None => self.unexpected(key, format!("a whole number ({words})"), *range.start()),
        }
    }

    pub(crate) fn ratio(&mut self, key: &'static str) -> f64 {
        const RANGE: &str = "0 to 1";
        let Some(number) = number_of(self.entry(key, RANGE)) else {
            return self.unexpected(key, format!("a number ({RANGE})"), 0.0);
        };
        match number.as_f64() {
            Some(ratio) if (0.0..=1.0).contains(&ratio) => ratio,
            _ => self.out_of_range(key, number.to_string(), RANGE.to_owned(), 0.0),
        }
    }

    pub(crate) fn boolean(&mut self, key: &'static str) -> bool {
        const VALUES: &str = "true or false";
        let Content::Scalar(Value::Bool(value)) = self.entry(key, VALUES).value.content else {
            return self.unexpected(key, VALUES, false);
        };
        value
    }

    /// A text in a form that `parse` recognises; `form` describes it.
    pub(crate) fn parsed<T>(
        &mut self,
        key: &'static str,
        form: &str,
        placeholder: T,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> T {
        let parsed = self.text(key, form).and_then(|text| parse(&text));
        match parsed {
            Some(value) => value,
            None => self.unexpected(key, form, placeholder),
        }
    }

    /// Like [`Reader::parsed`], or null.
    pub(crate) fn optional<T>(
        &mut self,
        key: &'static str,
        form: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let form = format!("{form}, or null");
        if self.entry(key, &form).value.content.is_null() {
            return None;
        }
        self.parsed(key, &form, None, |text| parse(text).map(Some))
    }

    /// A secret text that has no default.
    pub(crate) fn required_secret(
        &mut self,
        key: &'static str,
        form: &str,
        valid: impl FnOnce(&str) -> bool,
    ) -> Secret {
        if self.entry(key, form).value.content.is_null() {
            let fallback = FALLBACKS
                .iter()
                .find(|(filled, _)| *filled == key)
                .map(|(_, name)| format!(" or {name}"));
            self.problems.push(Problem {
                subject: key.to_owned(),
                origin: None,
                fault: Fault::Missing,
                mend: format!(
                    "set it in the configuration file or in the environment as {}{}",
                    variable_of(key),
                    fallback.unwrap_or_default()
                ),
            });
            return Secret::new("");
        }
        let secret = self.text(key, form).filter(|text| valid(text)).map(Secret::new);
        match secret {
            Some(secret) => secret,
            None => self.unexpected_secret(key, form),
        }
    }

    /// A secret text, or null.
    pub(crate) fn optional_secret(
        &mut self,
        key: &'static str,
        form: &str,
        valid: impl FnOnce(&str) -> bool,
    ) -> Option<Secret> {
        let form = format!("{form}, or null");
        if self.entry(key, &form).value.content.is_null() {
            return None;
        }
        let secret = self.text(key, &form).filter(|text| valid(text)).map(Secret::new);
        secret.or_else(|| Some(self.unexpected_secret(key, &form)))
    }

    /// The raw value, for a key whose value is a mapping with free names.
    pub(crate) fn raw(&mut self, key: &'static str, form: &str) -> Entry {
        self.entry(key, form).clone()
    }

    pub(crate) fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Adds the reason for a limit to the problems of a key, if it has any.
    pub(crate) fn reason(&mut self, key: &str, reason: &str) {
        for problem in self.problems.iter_mut().filter(|problem| problem.subject == key) {
            problem.mend = format!("{} ({reason})", problem.mend);
        }
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

    /// The value as a text. For a variable that is the text it was given as, which from here on counts as the value.
    fn text(&mut self, key: &'static str, accepted: &str) -> Option<String> {
        self.accepted.insert(key, accepted.to_owned());
        let entry = self.layers.entries.get_mut(key)?;
        if let Some(given) = entry.given.take() {
            entry.value.content = Content::Scalar(given.into());
        }
        match &entry.value.content {
            Content::Scalar(Value::String(text)) => Some(text.clone()),
            _ => None,
        }
    }

    fn entry(&mut self, key: &'static str, accepted: &str) -> &Entry {
        self.accepted.insert(key, accepted.to_owned());
        self.layers.entry(key)
    }

    fn unexpected<T>(&mut self, key: &str, expected: impl Into<String>, placeholder: T) -> T {
        let found = found(&self.layers.entry(key).value.content);
        self.push_unexpected(key, expected.into(), found);
        placeholder
    }

    fn unexpected_secret(&mut self, key: &str, expected: &str) -> Secret {
        let found = kind(&self.layers.entry(key).value.content);
        self.push_unexpected(
            key,
            expected.to_owned(),
            format!("{found} (not shown, it is a secret)"),
        );
        Secret::new("")
    }

    fn push_unexpected(&mut self, key: &str, expected: String, found: String) {
        let fault = Fault::Unexpected { expected, found };
        let problem = self.about(key, fault);
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
