//! What can be wrong with a configuration: all of it, each with its key, its origin and how to mend it.
//!
//! It deliberately quotes no secret: a fault of a secret key says what kind of value was found, never the value.

use std::fmt;
use std::path::PathBuf;

/// Every problem of a configuration, in the order in which they were found. `Display` numbers them, one per line.
#[derive(Debug, thiserror::Error)]
pub struct Errors {
    problems: Vec<Problem>,
}

impl Errors {
    pub(crate) fn unless_none(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self { problems })
        }
    }

    /// The problems, at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.problems.len() == 1 {
            "error"
        } else {
            "errors"
        };
        write!(f, "{} configuration {noun}", self.problems.len())?;
        for (number, problem) in (1..).zip(&self.problems) {
            write!(f, "\n  {number}. {problem}")?;
        }
        Ok(())
    }
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The dotted path of the key, the name of the variable, or the file, whichever the fault is about.
    pub subject: String,
    /// Where the value came from; `None` when there is none.
    pub origin: Option<Origin>,
    /// What is wrong.
    pub fault: Fault,
    /// What to do about it.
    pub mend: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.subject)?;
        if let Some(origin) = &self.origin {
            write!(f, " ({origin})")?;
        }
        write!(f, ": {}; {}", self.fault, self.mend)
    }
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `config/default.yaml`.
    Default,
    /// The configuration file.
    File {
        /// Its path.
        path: PathBuf,
        /// The line of the value, from 1.
        line: u64,
    },
    /// The environment variable of this name.
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
        }
    }
}

/// What is wrong with a value, a key, a variable or the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A required key has no value.
    #[error("is required but not set")]
    Missing,
    /// The value is of another type, or a text that does not have the required form.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What the key takes.
        expected: String,
        /// What it got; for secrets only the kind of value.
        found: String,
    },
    /// The number is outside its range.
    #[error("{found} is out of range ({range})")]
    OutOfRange {
        /// The number.
        found: String,
        /// Its limits.
        range: String,
    },
    /// There is no such key.
    #[error("unknown key")]
    UnknownKey,
    /// There is no key that the variable could set.
    #[error("unknown variable")]
    UnknownVariable,
    /// Two variables set the same key.
    #[error("sets the same key as {other}")]
    Ambiguous {
        /// The other variable.
        other: String,
    },
    /// Each value is right but they do not fit together.
    #[error("{statement}")]
    RuleBroken {
        /// The rule with the numbers that break it.
        statement: String,
    },
    /// The text is not YAML.
    #[error("not valid YAML at line {line}, column {column}: {message}")]
    Syntax {
        /// Counted from 1.
        line: u64,
        /// Counted from 1.
        column: u64,
        /// The parser's words.
        message: String,
    },
    /// The file cannot be read.
    #[error("cannot be read: {message}")]
    Unreadable {
        /// The operating system's words.
        message: String,
    },
}
