//! What is true at one moment: the rows, the queue, what each process holds and believes.
//!
//! Everything is counted or sorted, so that two moments that differ only in the names of processes or in the order of
//! messages are one state.

use std::ops::Range;

use domain::push::PushState;

use super::lane::Outcome;

/// One moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// The rows of `push_notifications` or `notifications`.
    pub rows: Vec<Row>,
    /// Messages that are ready in their queue: about each row alone and, in one more place where messages are shared, about all of
    /// them. Those that a process holds are with the process.
    pub ready: Vec<u8>,
    /// Messages in the dead-letter queue, in the same places.
    pub dead: Vec<u8>,
    /// Messages that a process is about to publish, or found not to be published.
    pub publishing: Vec<Publishing>,
    /// The processes that send, in no particular order.
    pub workers: Vec<Worker>,
    /// What the one subscription of all rows lets through; of no meaning in the push lane.
    pub subscription: Subscription,
    /// How many more mishaps may happen.
    pub mishaps: u8,
    /// How many more times an operator or a reseller may interfere.
    pub wishes: u8,
    /// What must never happen and did.
    pub wrongs: Wrongs,
}

/// A row, with what is counted beside it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Row {
    /// `status`, and for `IN_MEMORY` whether there is a lease token.
    pub state: PushState,
    /// `lease_token`. Tokens are only ever compared, so the smallest that no process knows stands for a new one.
    pub token: Option<u8>,
    /// Whether `leased_until` has passed.
    pub lapsed: bool,
    /// `attempts`.
    pub attempts: u8,
    /// `replayed_after` or `resent_after`.
    pub before: u8,
    /// Whether one of those attempts was recorded as accepted.
    pub delivered: bool,
    /// Ended with its subscription, which no operator has to mend: its dead letter is not open.
    pub silent: bool,
    /// Its open dead letters.
    pub dead_letters: u8,
    /// The numbers of its attempt rows, one bit each.
    pub attempt_rows: u16,
    /// Those of them that are `IN_PROCESS`.
    pub in_process: u16,
    /// Whether the receiver accepted it, and more than once.
    pub accepted: Accepted,
    /// How often it may still be accepted: once, and once more for each claim that ran out, answer that was lost, and time that
    /// an operator or a reseller asked for it.
    pub spare: u8,
}

/// What the receiver has seen of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accepted {
    /// Nothing, or nothing that it accepted.
    Never,
    /// It accepted it once.
    Once,
    /// It accepted it more than once.
    Again,
}

/// A publish under way, in whichever process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Publishing {
    /// The place of the message in [`State::ready`].
    pub message: usize,
    /// How far it has come.
    pub step: PublishStep,
}

/// How far a publish has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PublishStep {
    /// Its rows are committed as `IN_MEMORY`; the message is still to be published.
    ToPublish,
    /// The broker did not confirm it; its rows are still to be marked.
    ToMark,
}

/// A process that sends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Worker {
    /// Whether it leads the push lane. In the reseller lane every worker does.
    pub term: Term,
    /// What it is at, sorted.
    pub items: Vec<Item>,
}

/// What a process believes of its leadership, and whether it is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// It does not lead.
    None,
    /// It believes that it leads; the lease names another.
    Stale,
    /// It leads: the lease has its epoch.
    Current,
}

/// Something on its way through a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Item {
    /// The row that it is about.
    pub row: usize,
    /// Its say in what becomes of the message.
    pub receipt: Receipt,
    /// How far it has come.
    pub step: Step,
}

/// A row's say in what becomes of the message that a process holds (`libs/broker/src/receipt.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Receipt {
    /// There is no message, or none that the connection still lets it settle.
    Void,
    /// The message is about this row alone.
    Whole,
    /// The message is shared: with all other rows here that have a part, as a process is at one such message at a time. Holds the
    /// strongest wish of those that are done.
    Part(Fate),
}

/// How far something has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The message is here, the claim is still to be made.
    Delivered,
    /// Claimed; nothing was sent yet.
    Claimed(Claim),
    /// It was sent, this came of it, and that is still to be recorded.
    Answered(Claim, Outcome),
    /// It is not to be sent; it is still to be given back, or put off.
    Released(Claim, Release),
    /// What there was to record is recorded; the message is still to be settled.
    Settling(Fate),
    /// A shared message of which one row was dropped and all others are done: it stays until the channel ends.
    Kept,
}

/// What the claiming statement returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// The lease token.
    pub token: u8,
    /// Attempts, this one included.
    pub attempts: u8,
    /// Of them, those before the last replay.
    pub before: u8,
}

/// Why something claimed is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// Its sender stops.
    HandBack,
    /// Its sending window has closed.
    Defer,
}

/// What becomes of a message. Of several wishes the last one here counts, as in `libs/broker/src/part.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// It is acknowledged.
    Ack,
    /// It goes to the dead letters.
    Reject,
    /// It goes back to the queue.
    Requeue,
    /// It is not settled.
    Keep,
}

/// What a subscription lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subscription {
    /// `ACTIVE` or `DEGRADED`.
    Open,
    /// Paused or not verified.
    Held,
    /// `DEACTIVATED` or deleted.
    Ended,
}

/// What must never happen. Remembered in the state, since properties see states and not steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Wrongs {
    /// A row changed as `transition` does not allow.
    pub unlawful: bool,
    /// A row that had ended changed without having been asked to be sent again.
    pub resurrected: bool,
    /// A completion was taken whose claim was not the present one.
    pub stale_completion: bool,
    /// A claim was granted to a process that did not lead.
    pub usurped: bool,
    /// The receiver accepted something once more, and nothing had happened that excuses it.
    pub needless: bool,
    /// An attempt was to be numbered as one that exists.
    pub clash: bool,
}

impl Row {
    pub(super) fn new(state: PushState) -> Self {
        Self {
            state,
            token: None,
            lapsed: false,
            attempts: 0,
            before: 0,
            delivered: false,
            silent: false,
            dead_letters: 0,
            attempt_rows: 0,
            in_process: 0,
            accepted: Accepted::Never,
            spare: 1,
        }
    }

    /// Whether nothing further happens to it by itself.
    pub fn has_ended(&self) -> bool {
        self.state.status().is_terminal()
    }

    /// Whether an operator has to look at how it ended.
    pub fn has_failed(&self) -> bool {
        matches!(self.state, PushState::Failed | PushState::GivenUp) && !self.silent
    }
}

impl Step {
    /// The claim that it rests on.
    pub fn claim(self) -> Option<Claim> {
        match self {
            Self::Claimed(claim) | Self::Answered(claim, _) | Self::Released(claim, _) => Some(claim),
            Self::Delivered | Self::Settling(_) | Self::Kept => None,
        }
    }
}

impl Item {
    /// Whether it shares its message.
    pub fn shares(&self) -> bool {
        matches!(self.receipt, Receipt::Part(_))
    }
}

impl State {
    /// The rows that a message is about, by its place in [`State::ready`]. The first of all is the first in a shared message.
    pub fn rows_of(&self, message: usize) -> Range<usize> {
        if message < self.rows.len() {
            message..message + 1
        } else {
            0..self.rows.len()
        }
    }

    /// What any process has under way about a row.
    pub fn items(&self, row: usize) -> impl Iterator<Item = &Item> {
        let items = self.workers.iter().flat_map(|worker| &worker.items);
        items.filter(move |item| item.row == row)
    }

    /// The smallest token that neither the row nor any process knows.
    pub(super) fn fresh_token(&self, row: usize) -> u8 {
        let known = |token: u8| {
            self.rows[row].token == Some(token)
                || self
                    .items(row)
                    .any(|item| item.step.claim().is_some_and(|claim| claim.token == token))
        };
        (0..=u8::MAX)
            .find(|token| !known(*token))
            .expect("invariant: processes hold fewer claims than there are tokens")
    }

    /// Forgets the order of what has none.
    pub(super) fn sort(&mut self) {
        for worker in &mut self.workers {
            worker.items.sort_unstable();
        }
        self.workers.sort_unstable();
        self.publishing.sort_unstable();
    }
}
