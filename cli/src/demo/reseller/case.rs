//! A kind of event that the demo hands in: what is handed in, what should become of it, and what did.

use std::fmt;

use domain::push::PushStatus;
use simulators::receiver::Rule;

use crate::demo::case::Attempts;
use crate::ingest::{self, Answer, Event, EventRequest, Notification};

/// A kind of event before it is handed in.
#[derive(Debug)]
pub(super) struct Case {
    /// What is special about it, for people.
    pub(super) kind: &'static str,
    pub(super) requests: Vec<EventRequest>,
    /// How the receiver is to behave towards these events.
    pub(super) rules: Vec<Rule>,
    pub(super) expected: Expected,
}

/// What should become of the events of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// One notification of each event, and of that this.
    Notified { status: PushStatus, attempts: Attempts },
    /// All requests are answered alike, and it is one event that is delivered.
    OneEvent,
    /// So many are delivered, the others wait for another day.
    Quota(usize),
    /// Accepted and stored, but no subscription wants it.
    Unwanted,
    /// Not accepted: 422 with these fields named.
    Refused { fields: &'static [&'static str] },
}

/// A case after its requests were answered.
#[derive(Debug)]
pub(super) struct Posted {
    pub(super) case: Case,
    pub(super) answers: Vec<Answer>,
}

/// A case at the end.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) posted: Posted,
    /// The events of the case, each once, as they were seen last.
    pub(super) events: Vec<Event>,
    /// Events of which nothing could be seen, and why.
    pub(super) unseen: Vec<String>,
}

impl Expected {
    /// Whether this event needs no more waiting.
    pub(super) fn is_settled(self, event: &Event) -> bool {
        event.notifications.iter().all(|notification| {
            let waits_rightly =
                matches!(self, Self::Quota(_)) && notification.status == PushStatus::Scheduled;
            waits_rightly || notification.status.is_terminal()
        })
    }

    /// Whether anything can be looked up.
    pub(super) fn is_accepted(self) -> bool {
        !matches!(self, Self::Refused { .. })
    }

    fn is_met_by_answers(self, answers: &[Answer]) -> bool {
        match self {
            Self::Notified { .. } | Self::Quota(_) | Self::Unwanted => answers.iter().all(Answer::is_new),
            Self::OneEvent => ingest::are_one(answers),
            Self::Refused { fields } => answers.iter().all(|answer| answer.names(fields)),
        }
    }

    /// The notifications that are not as they should be; `None` when their number is not.
    fn wrong(self, events: &[Event]) -> Option<Vec<&Notification>> {
        let all: Vec<_> = events.iter().flat_map(|event| &event.notifications).collect();
        let delivered = Self::Notified {
            status: PushStatus::Sent,
            attempts: Attempts::Exactly(1),
        };
        match self {
            Self::Notified { status, attempts } => {
                let fits = |it: &&&Notification| it.status != status || !attempts.allow(it.attempts);
                (all.len() == events.len()).then(|| all.iter().filter(fits).copied().collect())
            }
            Self::OneEvent => delivered.wrong(events),
            Self::Quota(sent) => {
                let count = |status| all.iter().filter(|it| it.status == status).count();
                let fits =
                    count(PushStatus::Sent) == sent && count(PushStatus::Scheduled) == all.len() - sent;
                (all.len() == events.len() && fits).then(Vec::new)
            }
            Self::Unwanted => all.is_empty().then(Vec::new),
            Self::Refused { .. } => Some(Vec::new()),
        }
    }
}

impl Ended {
    /// What is not as it should be, if anything.
    pub(super) fn deviation(&self) -> Option<String> {
        let Posted { case, answers } = &self.posted;
        if !case.expected.is_met_by_answers(answers) {
            return Some(format!("{}: the API was to answer otherwise", case.kind));
        }
        if let Some(reason) = self.unseen.first() {
            let count = self.unseen.len();
            return Some(format!(
                "{}: {count} events cannot be looked up: {reason}",
                case.kind
            ));
        }
        let Some(wrong) = case.expected.wrong(&self.events) else {
            return Some(format!("{}: should be {}", case.kind, case.expected));
        };
        let first = wrong.first()?;
        Some(format!(
            "{}: {} should be {}, but for example one is {} after {} attempts: {}",
            case.kind,
            wrong.len(),
            case.expected,
            first.status,
            first.attempts,
            first.explanation
        ))
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Notified { status, attempts } => write!(f, "{status} after {attempts}"),
            Self::OneEvent => f.write_str("one event, SENT after 1 attempt"),
            Self::Quota(sent) => write!(f, "{sent} of them SENT, the others SCHEDULED"),
            Self::Unwanted => f.write_str("without a notification"),
            Self::Refused { .. } => f.write_str("refused"),
        }
    }
}
