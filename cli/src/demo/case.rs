//! A kind of push that the demo sends: what is sent, what should become of it, and what did.

use std::fmt;

use domain::push::{ErrorType, PushStatus};
use simulators::swrve::Rule;

use crate::ingest::{self, Answer, Push, PushRequest};

/// A kind of push before it is sent.
#[derive(Debug)]
pub(crate) struct Case {
    /// What is special about it, for people.
    pub(crate) kind: &'static str,
    pub(crate) requests: Vec<Request>,
    /// How Swrve is to behave towards these pushes.
    pub(crate) rules: Vec<Rule>,
    pub(crate) expected: Expected,
}

/// One call of `POST /push`.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) push: PushRequest,
    pub(crate) idempotency_key: Option<String>,
}

/// What should become of every push of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Accepted, and then this.
    Status {
        status: PushStatus,
        attempts: Attempts,
        /// Of the last attempt.
        error: Option<ErrorType>,
    },
    /// All requests are answered alike, and it is one push.
    OnePush { status: PushStatus },
    /// Not accepted: 422 with these fields named.
    Refused { fields: &'static [&'static str] },
}

/// How many attempts there should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempts {
    Exactly(u32),
    /// As many as the configuration allows, which the demo does not know.
    AtLeast(u32),
}

/// A case after its requests were answered.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) case: Case,
    pub(crate) answers: Vec<Answer>,
}

/// A case at the end.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) posted: Posted,
    /// The pushes of the case, each once, as they were seen last.
    pub(crate) pushes: Vec<Push>,
    /// Pushes of which nothing could be seen, and why.
    pub(crate) unseen: Vec<String>,
}

impl Attempts {
    pub(crate) fn allow(self, attempts: u32) -> bool {
        match self {
            Self::Exactly(wanted) => attempts == wanted,
            Self::AtLeast(least) => attempts >= least,
        }
    }
}

impl Expected {
    /// The status that ends the wait.
    pub(crate) fn status(self) -> Option<PushStatus> {
        match self {
            Self::Status { status, .. } | Self::OnePush { status } => Some(status),
            Self::Refused { .. } => None,
        }
    }

    fn is_met_by(self, push: &Push) -> bool {
        match self {
            Self::Status {
                status,
                attempts,
                error,
            } => {
                let last = push.history.last().and_then(|attempt| attempt.error_type);
                push.status == status && attempts.allow(push.attempts) && last == error
            }
            Self::OnePush { status } => push.status == status && push.attempts == 1,
            Self::Refused { .. } => false,
        }
    }

    fn is_met_by_answers(self, answers: &[Answer]) -> bool {
        match self {
            Self::Status { .. } => answers.iter().all(Answer::is_new),
            Self::OnePush { .. } => ingest::are_one(answers),
            Self::Refused { fields } => answers.iter().all(|answer| answer.names(fields)),
        }
    }
}

impl Ended {
    /// What is not as it should be, if anything.
    pub(crate) fn deviation(&self) -> Option<String> {
        let Posted { case, answers } = &self.posted;
        if !case.expected.is_met_by_answers(answers) {
            return Some(format!("{}: the API was to answer otherwise", case.kind));
        }
        if let Some(reason) = self.unseen.first() {
            return Some(format!(
                "{}: {} pushes cannot be looked up: {reason}",
                case.kind,
                self.unseen.len()
            ));
        }
        let wrong: Vec<_> = self
            .pushes
            .iter()
            .filter(|push| !case.expected.is_met_by(push))
            .collect();
        let first = wrong.first()?;
        Some(format!(
            "{}: {} of {} should be {}, but for example {} is {} after {} attempts: {}",
            case.kind,
            wrong.len(),
            self.pushes.len(),
            case.expected,
            first.id,
            first.status,
            first.attempts,
            first.explanation
        ))
    }
}

impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(1) => f.write_str("1 attempt"),
            Self::Exactly(attempts) => write!(f, "{attempts} attempts"),
            Self::AtLeast(attempts) => write!(f, "{attempts} attempts or more"),
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status {
                status,
                attempts,
                error,
            } => {
                write!(f, "{status} after {attempts}")?;
                error.map_or(Ok(()), |error| write!(f, " with the error {}", error.as_str()))
            }
            Self::OnePush { status } => write!(f, "{status} after 1 attempt"),
            Self::Refused { .. } => f.write_str("refused"),
        }
    }
}
