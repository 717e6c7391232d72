//! How one push or notification is delivered, whatever fails meanwhile: accepted, put into the queue, claimed under a
//! lease, sent, recorded, acknowledged; rescued, promoted and sent again.
//!
//! Each action is one commit, one frame to the broker or one request, so that a process can die, sleep or be overtaken between
//! any two. No process's clock is trusted: a lease may run out at any moment after it was given. The rules are those of `domain`
//! itself; the guards are those of the statements in `libs/store/src`, written down a second time in `statements`, and
//! every change that they make is compared with what `transition` says.
//!
//! Who may lead, and for how long, is the business of [`crate::leadership`]: here leaders change at any moment.

mod actions;
mod lane;
mod properties;
mod shared;
mod state;
mod statements;
mod steps;

use domain::push::PushState;
use stateright::{Model, Property};

pub use actions::{Action, Published};
pub use lane::{Lane, Outcome};
pub use state::{
    Accepted, Claim, Fate, Item, PublishStep, Publishing, Receipt, Release, Row, State, Step, Subscription,
    Term, Worker, Wrongs,
};
pub use statements::Judgement;

use crate::graph::{Class, Progress};

/// How large the modelled world is.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Pushes or notifications.
    pub rows: usize,
    /// Processes that send.
    pub workers: usize,
    /// Messages that the queue takes before it refuses more.
    pub capacity: u8,
    /// Rows that a process is at once at, by a message or by a claim.
    pub prefetch: usize,
    /// Publishes under way at once.
    pub publishers: usize,
    /// Mishaps in all.
    pub mishaps: u8,
    /// Interferences by people in all.
    pub wishes: u8,
}

/// What can go wrong by itself, apart from a lease that runs out, which may always happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishaps {
    /// Anything that [`Action`] knows.
    Any,
    /// Processes die, and nothing else.
    Crashes,
    /// Those after which each message is still somewhere.
    Kept,
    /// Those, and those that lose a message or leave some of its rows to their leases.
    Messages,
}

impl Mishaps {
    pub(super) fn allow(self, action: &Action) -> bool {
        match self {
            Self::Any => true,
            Self::Crashes => matches!(action, Action::Crash { .. }),
            Self::Kept => action.keeps_messages(),
            Self::Messages => action.keeps_messages() || action.loses_messages(),
        }
    }
}

/// A variant of the protocol with one of its safeguards missing, to show that the properties would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// A completion does not ask for the lease token.
    CompletionWithoutFence,
    /// A message is acknowledged as soon as it arrives.
    AckBeforeCommit,
    /// The rescuer does not ask whether the lease has run out.
    RescueWithoutLeaseCheck,
    /// A claim does not ask for the epoch of the leader.
    ClaimWithoutEpoch,
    /// The dead letter is not part of the statement that ends a row.
    DeadLetterApart,
    /// No process rescues.
    NoRescue,
    /// Giving back leaves the attempt's row behind.
    HandBackKeepsAttempt,
    /// The rescuer does not ask how often something was tried.
    RescueNeverGivesUp,
    /// What its reseller sends again keeps its open dead letter.
    ResendKeepsDeadLetter,
    /// What was cancelled is sent again when its reseller asks for it.
    ResendForgetsCancellation,
    /// Queued rows can be claimed, pending ones cannot.
    PendingIsNotClaimed,
    /// A shared message is settled as soon as one of its rows is done.
    FirstShareSettles,
    /// What becomes of a shared message is what the last of its rows wants, not the strongest wish of all.
    LastShareDecides,
    /// Of a shared message that was not confirmed, only the first row is marked.
    MarksFirstRowOnly,
    /// Of a shared message that the broker gave up, only the first row is looked after.
    ArchivesFirstRowOnly,
}

/// The model.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Which lane.
    pub lane: Lane,
    /// Whether rows that are published together share a message.
    pub sharing: bool,
    /// How large.
    pub bounds: Bounds,
    /// What may go wrong.
    pub mishaps: Mishaps,
    /// Which safeguard is missing.
    pub broken: Option<Broken>,
}

impl Delivery {
    /// The protocol as it is.
    pub fn new(lane: Lane, bounds: Bounds) -> Self {
        Self {
            lane,
            sharing: false,
            bounds,
            mishaps: Mishaps::Any,
            broken: None,
        }
    }

    /// The protocol without one of its safeguards.
    pub fn broken(mut self, broken: Broken) -> Self {
        self.broken = Some(broken);
        self
    }

    /// A world in which only processes die.
    pub fn only_crashes(mut self) -> Self {
        self.mishaps = Mishaps::Crashes;
        self
    }

    /// A world in which all rows were accepted together, and share messages. What does not depend on messages is left out: what is
    /// fetched without one, and the receiver's answers. That the lease of a queued row runs out although its message is still there is one of
    /// the mishaps.
    pub fn sharing(mut self, mishaps: Mishaps) -> Self {
        self.sharing = true;
        self.mishaps = mishaps;
        self
    }

    pub(super) fn is(&self, broken: Broken) -> bool {
        self.broken == Some(broken)
    }

    /// Where a row may begin: `services/ingest-api/src/lane/writer.rs` stores it as queued while the gate is open, or else as
    /// pending; one with a cron expression as scheduled.
    fn beginnings(&self) -> &'static [PushState] {
        if self.lane.is_push() {
            &[PushState::Queued, PushState::Pending, PushState::Scheduled]
        } else {
            &[PushState::Queued, PushState::Pending]
        }
    }

    fn beginning(&self, states: &[PushState]) -> State {
        let term = if self.lane.is_push() {
            Term::None
        } else {
            Term::Current
        };
        let rows = states.len();
        let messages = rows + usize::from(self.sharing);
        let first = if self.sharing { rows } else { 0 };
        State {
            rows: states.iter().map(|state| Row::new(*state)).collect(),
            ready: vec![0; messages],
            dead: vec![0; messages],
            publishing: (first..messages)
                .filter(|message| self.sharing || states[*message] == PushState::Queued)
                .map(|message| Publishing {
                    message,
                    step: PublishStep::ToPublish,
                })
                .collect(),
            workers: vec![
                Worker {
                    term,
                    items: Vec::new(),
                };
                self.bounds.workers
            ],
            subscription: Subscription::Open,
            mishaps: self.bounds.mishaps,
            wishes: self.bounds.wishes,
            wrongs: Wrongs::default(),
        }
    }
}

impl Model for Delivery {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        if self.sharing {
            return vec![self.beginning(&vec![PushState::Queued; self.bounds.rows])];
        }
        let mut all = vec![Vec::new()];
        for _ in 0..self.bounds.rows {
            all = all
                .iter()
                .flat_map(|begun: &Vec<PushState>| {
                    self.beginnings().iter().map(move |state| {
                        let mut begun = begun.clone();
                        begun.push(*state);
                        begun
                    })
                })
                .collect();
        }
        all.iter().map(|states| self.beginning(states)).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.enabled(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.step(&mut next, action);
        next.sort();
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(self)
    }
}

impl Progress for Delivery {
    fn class(&self, state: &State, action: &Action) -> Option<Class> {
        if self.is_early(state, action) {
            return None;
        }
        action.class(state)
    }

    /// Everything has ended; or an operator or a reseller has stopped it, which is theirs to undo.
    fn is_goal(&self, state: &State) -> bool {
        state.subscription == Subscription::Held || state.rows.iter().all(Row::has_ended)
    }
}
