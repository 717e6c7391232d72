//! The layers put over each other: defaults, file, environment. The result is one value per key, with its origin.
//!
//! It deliberately judges no value, only names: which keys exist is what `config/default.yaml` holds.

use std::collections::BTreeMap;
use std::path::Path;

use crate::sources::{File, Sources};
use crate::yaml::{self, Content, Node};
use crate::{DEFAULT_YAML, Fault, Origin, Problem};

/// Keys that people are likely to know under another name.
const OTHER_NAMES: [(&str, &str); 1] = [("push.job.queue.capacity", "push.queue.capacity")];

/// A value and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Node,
    pub(crate) origin: Origin,
    /// The text of a variable as it was given, for keys that take a text: `1` and `no` need no quotes there.
    pub(crate) given: Option<String>,
}

impl Entry {
    fn new(value: Node, origin: Origin) -> Self {
        Self {
            value,
            origin,
            given: None,
        }
    }
}

/// One value per known key.
pub(crate) struct Layers {
    /// In the order of `config/default.yaml`.
    keys: Vec<String>,
    pub(crate) entries: BTreeMap<String, Entry>,
    pub(crate) problems: Vec<Problem>,
    /// All of the environment: some keys are filled from variables of other programs.
    pub(crate) variables: BTreeMap<String, String>,
}

impl Layers {
    pub(crate) fn new(sources: &Sources) -> Self {
        let mut layers = Self::defaults();
        match &sources.file {
            None => {}
            Some(File::InMemory { name, yaml }) => layers.lay_file(name, yaml),
            Some(File::OnDisk(path)) => match std::fs::read_to_string(path) {
                Ok(text) => layers.lay_file(path, &text),
                Err(error) => layers.problems.push(Problem {
                    subject: path.display().to_string(),
                    origin: None,
                    fault: Fault::Unreadable {
                        message: error.to_string(),
                    },
                    mend: "name an existing, readable file with --config or POSTRIDER_CONFIG".to_owned(),
                }),
            },
        }
        layers.lay_variables(&sources.variables);
        layers.variables.clone_from(&sources.variables);
        layers
    }

    pub(crate) fn defaults() -> Self {
        let root = yaml::parse(DEFAULT_YAML)
            .expect("invariant: default.yaml is YAML; every test of this crate loads it");
        let mut layers = Self {
            keys: Vec::new(),
            entries: BTreeMap::new(),
            problems: Vec::new(),
            variables: BTreeMap::new(),
        };
        layers.lay_defaults("", root);
        layers
    }

    pub(crate) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The value of a known key.
    pub(crate) fn entry(&self, key: &str) -> &Entry {
        self.entries
            .get(key)
            .unwrap_or_else(|| panic!("invariant: {key} is a key of default.yaml"))
    }

    fn lay_defaults(&mut self, path: &str, node: Node) {
        match node.content {
            // An empty mapping is a key whose value is a mapping with free names; any other mapping is a section.
            Content::Map(entries) if !entries.is_empty() => {
                for (name, child) in entries {
                    self.lay_defaults(&join(path, &name), child);
                }
            }
            _ => {
                self.keys.push(path.to_owned());
                self.entries
                    .insert(path.to_owned(), Entry::new(node, Origin::Default));
            }
        }
    }

    fn lay_file(&mut self, file: &Path, text: &str) {
        match yaml::parse(text) {
            Ok(root) => self.lay_section(file, "", root),
            Err(yaml::SyntaxError {
                line,
                column,
                message,
            }) => self.problems.push(Problem {
                subject: file.display().to_string(),
                origin: None,
                fault: Fault::Syntax {
                    line,
                    column,
                    message,
                },
                mend: "mend the text there; nothing of this file was used".to_owned(),
            }),
        }
    }

    fn lay_section(&mut self, file: &Path, path: &str, node: Node) {
        let origin = Origin::File {
            path: file.to_owned(),
            line: node.line,
        };
        match node.content {
            Content::Map(children) => {
                for (name, child) in children {
                    self.lay_child(file, path, &name, child);
                }
            }
            // A section whose keys are all commented out.
            content if content.is_null() => {}
            _ => self.problems.push(Problem {
                subject: if path.is_empty() {
                    "the file".to_owned()
                } else {
                    path.to_owned()
                },
                origin: Some(origin),
                fault: Fault::Unexpected {
                    expected: "a section".to_owned(),
                    found: "a single value or a list".to_owned(),
                },
                mend: format!(
                    "put keys under it, one per line and indented: {}",
                    self.names_in(path).join(", ")
                ),
            }),
        }
    }

    fn lay_child(&mut self, file: &Path, section: &str, name: &str, child: Node) {
        let path = join(section, name);
        // A name with a dot would be taken for a path.
        let dotted = name.contains('.');
        if !dotted && self.entries.contains_key(&path) {
            let origin = Origin::File {
                path: file.to_owned(),
                line: child.line,
            };
            self.entries.insert(path, Entry::new(child, origin));
        } else if !dotted && !self.names_in(&path).is_empty() {
            self.lay_section(file, &path, child);
        } else {
            self.reject_unknown(file, &path, dotted, child);
        }
    }

    fn reject_unknown(&mut self, file: &Path, path: &str, dotted: bool, node: Node) {
        match node.content {
            Content::Map(children) if !children.is_empty() => {
                for (name, child) in children {
                    self.reject_unknown(file, &join(path, &name), dotted || name.contains('.'), child);
                }
            }
            _ => {
                let nearest = self.nearest(path);
                let mend = match nearest {
                    Some(key) if dotted && key == path => {
                        "write it as nested sections, one name per line, without dots".to_owned()
                    }
                    Some(key) => format!("did you mean {key}?"),
                    None => "remove it; config/default.yaml holds every key there is".to_owned(),
                };
                self.problems.push(Problem {
                    subject: path.to_owned(),
                    origin: Some(Origin::File {
                        path: file.to_owned(),
                        line: node.line,
                    }),
                    fault: Fault::UnknownKey,
                    mend,
                });
            }
        }
    }

    /// The names of keys and sections directly in a section; none when there is no such section.
    fn names_in(&self, section: &str) -> Vec<&str> {
        let prefix = join(section, "");
        let mut names: Vec<&str> = Vec::new();
        for key in &self.keys {
            if let Some(rest) = key.strip_prefix(&prefix) {
                let name = rest.split('.').next().unwrap_or(rest);
                if names.last() != Some(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// The known key most like an unknown path, if any is like it.
    pub(crate) fn nearest(&self, path: &str) -> Option<&str> {
        const LIKE: f64 = 0.7;
        let path = path.to_lowercase();
        if let Some((_, key)) = OTHER_NAMES.iter().find(|(other, _)| path == other.to_lowercase()) {
            return Some(key);
        }
        self.keys
            .iter()
            .map(|key| {
                (
                    strsim::normalized_damerau_levenshtein(&path, &key.to_lowercase()),
                    key,
                )
            })
            .filter(|(likeness, _)| *likeness >= LIKE)
            .max_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, key)| key.as_str())
    }
}

/// The path of a name within a section.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
