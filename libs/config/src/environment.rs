//! The top layer: environment variables, and which key each of them sets. A variable that ends in `_FILE` names the file that
//! holds the value, as containers and systemd hand secrets over.
//!
//! It deliberately reads no process environment; `Sources` hands the variables over.

use std::collections::BTreeMap;

use crate::layers::{Entry, Layers};
use crate::yaml::{self, Content, Node};
use crate::{Fault, Origin, Problem};

const VARIABLE_PREFIX: &str = "POSTRIDER__";
const FILE_SUFFIX: &str = "_FILE";

impl Layers {
    pub(crate) fn lay_variables(&mut self, variables: &BTreeMap<String, String>) {
        let known: BTreeMap<String, String> = self
            .keys()
            .iter()
            .map(|key| (key.to_lowercase(), key.clone()))
            .collect();
        for (name, text) in variables {
            let Some(path) = key_path(name) else { continue };
            match (known.get(&path), key_of_file(name, &path, &known)) {
                // Compose files and shells pass on what is not set as an empty text.
                _ if text.is_empty() => {}
                (Some(key), _) => self.lay_variable(name, key, text),
                (None, Some(key)) => {
                    if let Some(text) = self.read_value(name, text) {
                        self.lay_variable(name, key, &text);
                    }
                }
                (None, None) => {
                    let nearest = self.nearest(&path);
                    let mend = nearest.map_or_else(
                        || "remove it; config/default.yaml holds every key there is".to_owned(),
                        |key| format!("did you mean {}, for {key}?", variable_of(key)),
                    );
                    self.problems.push(Problem {
                        subject: format!("environment variable {name}"),
                        origin: None,
                        fault: Fault::UnknownVariable,
                        mend,
                    });
                }
            }
        }
    }

    fn lay_variable(&mut self, name: &str, key: &str, text: &str) {
        if let Origin::Variable(other) = &self.entry(key).origin {
            self.problems.push(Problem {
                subject: format!("environment variable {name}"),
                origin: None,
                fault: Fault::Ambiguous { other: other.clone() },
                mend: format!("keep only {}", variable_of(key)),
            });
            return;
        }
        // What is no YAML is taken as plain text: a variable usually comes without quotes.
        let value = yaml::parse(text).unwrap_or_else(|_| plain_text(text));
        let quoted = text.starts_with(['"', '\'']);
        let given = (!quoted && !value.content.is_null()).then(|| text.to_owned());
        self.entries.insert(
            key.to_owned(),
            Entry {
                value,
                origin: Origin::Variable(name.to_owned()),
                given,
            },
        );
    }

    /// Fills a key that nothing else sets from a variable that other programs use too.
    pub(crate) fn lay_fallback(&mut self, key: &str, name: &str) {
        if !self.entry(key).value.content.is_null() {
            return;
        }
        let given = |name: &str| self.variables.get(name).filter(|text| !text.is_empty()).cloned();
        let of_file = variable_of_file(name);
        let (name, text) = match (given(name), given(&of_file)) {
            (Some(text), _) => (name.to_owned(), Some(text)),
            (None, Some(path)) => (of_file.clone(), self.read_value(&of_file, &path)),
            (None, None) => return,
        };
        if let Some(text) = text {
            let entry = Entry {
                value: plain_text(&text),
                origin: Origin::Variable(name),
                given: Some(text),
            };
            self.entries.insert(key.to_owned(), entry);
        }
    }

    /// What the file holds that a variable names, without the line breaks at its end, which editors and `echo` leave there.
    fn read_value(&mut self, variable: &str, path: &str) -> Option<String> {
        match std::fs::read_to_string(path) {
            Ok(text) => Some(text.trim_end_matches(['\r', '\n']).to_owned()),
            Err(error) => {
                self.problems.push(Problem {
                    subject: format!("environment variable {variable}"),
                    origin: None,
                    fault: Fault::Unreadable {
                        message: format!("{path}: {error}"),
                    },
                    mend: "name an existing file that this user may read, with nothing but the value in it"
                        .to_owned(),
                });
                None
            }
        }
    }
}

/// The variable that names the file with the value of another: `DATABASE_URL_FILE` of `DATABASE_URL`.
pub(crate) fn variable_of_file(variable: &str) -> String {
    format!("{variable}{FILE_SUFFIX}")
}

/// The key whose value stands in the file that a variable names.
fn key_of_file<'a>(name: &str, path: &str, known: &'a BTreeMap<String, String>) -> Option<&'a String> {
    let (_, suffix) = name.split_at_checked(name.len().checked_sub(FILE_SUFFIX.len())?)?;
    if !suffix.eq_ignore_ascii_case(FILE_SUFFIX) {
        return None;
    }
    known.get(path.strip_suffix("file")?)
}

fn plain_text(text: &str) -> Node {
    Node {
        line: 1,
        content: Content::Scalar(text.into()),
    }
}

/// The variable that sets a key: `swrve.delayMillis` is set by `POSTRIDER__SWRVE__DELAY_MILLIS`.
pub(crate) fn variable_of(key: &str) -> String {
    let mut name = String::from(VARIABLE_PREFIX);
    for character in key.chars() {
        match character {
            '.' => name.push_str("__"),
            upper if upper.is_ascii_uppercase() => {
                name.push('_');
                name.push(upper);
            }
            other => name.push(other.to_ascii_uppercase()),
        }
    }
    name
}

/// The path that a variable of ours names, in lower case; `None` for a variable of someone else.
fn key_path(variable: &str) -> Option<String> {
    let (prefix, rest) = variable.split_at_checked(VARIABLE_PREFIX.len())?;
    prefix.eq_ignore_ascii_case(VARIABLE_PREFIX).then(|| {
        rest.split("__")
            .map(|segment| segment.replace('_', ""))
            .collect::<Vec<_>>()
            .join(".")
            .to_lowercase()
    })
}
