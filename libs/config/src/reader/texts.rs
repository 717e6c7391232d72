//! Keys whose values are texts of a [`Form`]: one, one or none, or several.

use serde_json::Value;

use super::{Reader, found, kind};
use crate::environment::{variable_of, variable_of_file};
use crate::form::Form;
use crate::layers::Layers;
use crate::yaml::Content;
use crate::{Fault, Problem, Secret};

impl Reader {
    /// A text that has a default.
    pub(crate) fn text<T>(&mut self, key: &str, form: &Form<T>) -> T {
        self.declare(key, form.words, form.is_secret);
        self.parsed(key, form, form.words).unwrap_or_else(|| {
            let mut defaults = Self::new(Layers::defaults());
            let default = defaults.parsed(key, form, form.words);
            default.expect("invariant: default.yaml is right; every test of this crate loads it")
        })
    }

    /// A text, or null.
    pub(crate) fn optional<T>(&mut self, key: &str, form: &Form<T>) -> Option<T> {
        let words = format!("{}, or null", form.words);
        if self.declare(key, &words, form.is_secret).value.content.is_null() {
            return None;
        }
        self.parsed(key, form, &words)
    }

    /// A text that has no default; the variable `fallback` fills it when nothing else does.
    pub(crate) fn required(&mut self, key: &str, form: &Form<Secret>, fallback: &str) -> Secret {
        self.layers.lay_fallback(key, fallback);
        self.problems.append(&mut self.layers.problems);
        let missing = Secret::new("");
        if !self
            .declare(key, form.words, form.is_secret)
            .value
            .content
            .is_null()
        {
            return self.parsed(key, form, form.words).unwrap_or(missing);
        }
        let variable = variable_of(key);
        if [variable.as_str(), fallback]
            .into_iter()
            .any(|name| self.file_is_unread(name))
        {
            return missing;
        }
        self.problems.push(Problem {
            subject: key.to_owned(),
            origin: None,
            fault: Fault::Missing,
            mend: format!(
                "set it in the configuration file or in the environment as {variable} or {fallback}"
            ),
        });
        missing
    }

    /// Whether it has been said already that the file cannot be read in which a variable's value should stand.
    fn file_is_unread(&self, variable: &str) -> bool {
        let subject = format!("environment variable {}", variable_of_file(variable));
        self.problems.iter().any(|problem| problem.subject == subject)
    }

    /// Several texts: a list, or one text with commas, which a variable is easier to fill with.
    pub(crate) fn list<T>(&mut self, key: &str, form: &Form<T>) -> Vec<T> {
        self.declare(key, form.words, form.is_secret);
        let Some(texts) = self.texts(key) else {
            self.wrong(key, form, form.words);
            return Vec::new();
        };
        let mut values = Vec::new();
        for text in &texts {
            let Some(value) = (form.parse)(text) else {
                if form.is_secret {
                    self.wrong(key, form, form.words);
                } else {
                    let found = format!("the text {}", Value::from(text.as_str()));
                    self.push_unexpected(key, form.words.to_owned(), found);
                }
                return Vec::new();
            };
            values.push(value);
        }
        values
    }

    fn parsed<T>(&mut self, key: &str, form: &Form<T>, words: &str) -> Option<T> {
        let value = self.given_text(key).and_then(|text| (form.parse)(&text));
        if value.is_none() {
            self.wrong(key, form, words);
        }
        value
    }

    fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        let Content::List(items) = &self.layers.entry(key).value.content else {
            let text = self.given_text(key)?;
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            return Some(parts.map(str::to_owned).collect());
        };
        let texts = items.iter().map(|item| match &item.content {
            Content::Scalar(Value::String(text)) => Some(text.clone()),
            _ => None,
        });
        texts.collect()
    }

    /// The value as a text. For a variable that is the text it was given as, which from here on counts as the value.
    fn given_text(&mut self, key: &str) -> Option<String> {
        let entry = self.layers.entries.get_mut(key)?;
        if let Some(given) = entry.given.take() {
            entry.value.content = Content::Scalar(given.into());
        }
        match &entry.value.content {
            Content::Scalar(Value::String(text)) => Some(text.clone()),
            _ => None,
        }
    }

    fn wrong<T>(&mut self, key: &str, form: &Form<T>, words: &str) {
        let content = &self.layers.entry(key).value.content;
        let found = if form.is_secret {
            format!("{} (not shown, it is a secret)", kind(content))
        } else {
            found(content)
        };
        self.push_unexpected(key, words.to_owned(), found);
    }
}
