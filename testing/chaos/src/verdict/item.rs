//! A push or a notification as the database has it, in the words that both have in common.

use chrono::NaiveDate;
use uuid::Uuid;

/// Where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Delivered.
    Sent,
    /// Refused for good.
    Failed,
    /// Tried as often as allowed.
    GivenUp,
    /// It waits for the quota of another day.
    OverQuota,
    /// Anything else, which is no end.
    Underway,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It has not.
    Running,
    /// The receiver accepted.
    Ok,
    /// The receiver answered with another status.
    Answered(u16),
    /// Postrider does not know what the receiver made of it.
    Unknown {
        /// Its lease ran out before an outcome was recorded.
        lost: bool,
    },
    /// It was never sent, for a reason of ours.
    NotSent,
}

/// An attempt as it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// From 1.
    pub number: i32,
    /// How it ended.
    pub ending: Ending,
}

/// A push or a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its identifier.
    pub id: Uuid,
    /// What it is known by outside.
    pub key: String,
    /// Where it stands.
    pub status: Status,
    /// The same in the words of the database.
    pub said: String,
    /// How often it was attempted.
    pub attempts: i32,
    /// Attempts before an operator or a reseller asked for it once more.
    pub before: i32,
    /// What is recorded of them, in their order.
    pub recorded: Vec<Attempt>,
    /// Dead letters about its failure that no operator has dealt with. One about a message that the broker gave up says nothing of it.
    pub open_dead_letters: i64,
    /// The day whose quota it has used.
    pub charged_on: Option<NaiveDate>,
}

impl Item {
    /// How many attempts ended so.
    pub(crate) fn ended(&self, how: impl Fn(Ending) -> bool) -> usize {
        self.recorded.iter().filter(|attempt| how(attempt.ending)).count()
    }

    /// How many attempts have an unknown outcome.
    pub(crate) fn unknown(&self) -> usize {
        self.ended(|ending| matches!(ending, Ending::Unknown { .. }))
    }

    /// How the last attempt ended.
    pub(crate) fn last(&self) -> Option<Ending> {
        self.recorded.last().map(|attempt| attempt.ending)
    }
}
