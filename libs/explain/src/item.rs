//! What is told of pushes and of notifications in the same words.

use std::time::Duration;

use chrono::{DateTime, Utc};
use store::{AuditView, DeadLetterView};
use uuid::Uuid;

use crate::explanation::{Context, Next, open, resolve, sentence};
use crate::reseller::Sentence;
use crate::words::{length, relative};

/// The fingerprints of what was cancelled, a notification or a push.
const CANCELLED: [&str; 2] = ["delivery/cancelled", "other/cancelled"];

/// A push or a notification, as far as the same is told of both.
pub(crate) struct Item<'a> {
    pub(crate) kind: &'static str,
    pub(crate) id: Uuid,
    pub(crate) attempts: u32,
    pub(crate) claimed: bool,
    pub(crate) leased_until: Option<DateTime<Utc>>,
    pub(crate) is_terminal: bool,
    pub(crate) dead_letters: &'a [DeadLetterView],
    pub(crate) acts: &'a [AuditView],
    pub(crate) context: &'a Context,
}

impl Item<'_> {
    /// How it stands with what is in memory: being sent until `answer` decides, `queued`, or overdue; `left` is what allows another attempt.
    pub(crate) fn in_memory(
        &self,
        (answer, left): (&str, &str),
        queued: impl FnOnce() -> (Sentence, Next),
    ) -> (Sentence, Next) {
        let overdue = self.leased_until.filter(|until| *until < self.context.now);
        match (self.claimed, overdue) {
            (true, None) => {
                let text = format!("Is being sent: attempt {}.", self.attempts);
                (
                    Sentence::new("sending", text).with("attempt", self.attempts),
                    Next::some_time("answer-decides", format!("{answer} decides.")),
                )
            }
            (true, Some(at)) => {
                let text = format!(
                    "The outcome of attempt {} is overdue since {}: its sender has died, or does not reach the database.",
                    self.attempts,
                    self.context.when(at)
                );
                let overdue = Sentence::new("outcome-overdue", text).with("attempt", self.attempts);
                let next = format!("A retry-worker rescues it: it is sent again if {left} are left.");
                (
                    overdue.with("since", at),
                    Next::some_time("attempt-rescued", next),
                )
            }
            (false, None) => queued(),
            (false, Some(at)) => {
                let text = format!(
                    "Was in the queue and is overdue since {}: its message is lost.",
                    self.context.when(at)
                );
                let next = "A retry-worker rescues it: it is put into the queue again.";
                (
                    Sentence::new("message-lost", text).with("since", at),
                    Next::some_time("message-rescued", next),
                )
            }
        }
    }

    /// That it was cancelled, and by whom.
    pub(crate) fn cancelled(&self) -> Sentence {
        let text = sentence(&format!("Was cancelled{}", self.cancelled_by()));
        let by = self.cancellation();
        Sentence::new("cancelled", text)
            .with("at", by.map(|(at, ..)| at))
            .with("by", by.map(|(_, by, _)| by))
            .with("note", by.and_then(|(.., note)| note))
    }

    /// Who has cancelled it, when and why, as it follows that it was cancelled.
    pub(crate) fn cancelled_by(&self) -> String {
        self.cancellation().map_or(String::new(), |(at, by, note)| {
            let note = note.map_or_else(
                || "without a note".to_owned(),
                |note| format!("with the note \"{note}\""),
            );
            let when = relative(at, self.context.now);
            format!(" by {by}, {when}, {note}")
        })
    }

    /// When, by whom and why it was cancelled, as far as that is known: many that are cancelled at once have no act of their own, but a dead letter
    /// each, or the act about all of them if they stay delivered.
    fn cancellation(&self) -> Option<(DateTime<Utc>, &str, Option<&str>)> {
        let actions = ["cancel", "cancel-many"].map(|action| format!("{}.{action}", self.kind));
        let mut acts = self.acts.iter().rev();
        let act = acts.find(|act| actions.contains(&act.action));
        let by_act = act.map(|act| (act.at, act.actor.as_str(), act.note.as_deref()));
        // An act before that may have cancelled an earlier sending again.
        let by = [self.cancelled_by_letter(), by_act].into_iter().flatten();
        by.max_by_key(|(at, ..)| *at)
    }

    /// When, by whom and why it was cancelled, by the dead letter of that.
    fn cancelled_by_letter(&self) -> Option<(DateTime<Utc>, &str, Option<&str>)> {
        let mut letters = self.dead_letters.iter().rev();
        let letter = letters.find(|letter| CANCELLED.contains(&letter.fingerprint.as_str()))?;
        // The statement writes this one where none was given.
        let note = letter.note.as_deref().filter(|note| *note != "cancelled");
        Some((letter.resolved_at?, letter.resolved_by.as_deref()?, note))
    }

    /// Commands for its open dead letter when it has ended, and `more` and what ends its waiting when it has not.
    pub(crate) fn commands(&self, more: impl IntoIterator<Item = String>) -> Vec<String> {
        if self.is_terminal {
            return open(self.dead_letters)
                .map_or_else(Vec::new, |dead_letter| resolve(dead_letter.id).to_vec());
        }
        let mut commands: Vec<String> = more.into_iter().collect();
        if self.leased_until.is_some_and(|until| until < self.context.now) {
            commands.push("postrider rescue".to_owned());
        }
        if !self.claimed {
            commands.push(format!(
                "postrider cancel {} {} --yes --note '…'",
                self.kind, self.id
            ));
        }
        commands
    }
}

/// What the last of some attempts that has a `cause` failed for.
pub(crate) fn last_failure<A>(attempts: &[A], cause: impl Fn(&A) -> Option<String>) -> String {
    attempts
        .iter()
        .rev()
        .find_map(cause)
        .map_or("failed for a reason that was not recorded.".to_owned(), |cause| {
            sentence(&format!("failed: {cause}"))
        })
}

/// How long an attempt took, as it follows what came of it.
pub(crate) fn after(millis: Option<i64>) -> String {
    let millis = millis.and_then(|millis| u64::try_from(millis).ok());
    millis.map_or(String::new(), |millis| {
        format!(" after {}", length(Duration::from_millis(millis)))
    })
}

/// Whether an error of ours is that the outcome was lost.
pub(crate) fn is_lost(error: Option<&str>) -> bool {
    error.is_some_and(|error| error.starts_with("the lease ran out"))
}
