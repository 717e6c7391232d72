//! That a pause is a promise: no claim that it concerns commits after its answer (`enter_lane` in
//! `migrations/0017_pauses.sql`, `libs/store/src/pauses.rs`, ADR 0021).
//!
//! A statement sees what was committed when it began, however long it waits afterwards; a query inside a volatile function sees
//! what is committed when that query begins. The lock is an advisory one of the transaction: claims share it, a pause has it alone.

use stateright::{Model, Property};

/// The model.
#[derive(Debug, Clone, Copy)]
pub struct Pause {
    /// Processes that claim.
    pub claimers: usize,
    /// Pauses and resumptions in all.
    pub changes: u8,
    /// Claims that each process makes one after another, at most.
    pub claims: u8,
    /// What is paused.
    pub scope: Scope,
    /// Which safeguard is missing.
    pub broken: Option<Broken>,
}

/// What is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The lane: `lanes.paused`, which `enter_lane` reads.
    Lane,
    /// A subscription or a reseller: `subscriptions.suspended`, which the claiming statement has read before.
    Subscription,
}

/// A variant with one of its safeguards missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// A claim only looks, as an `EXISTS` in its statement would.
    ClaimsWithoutLock,
    /// A pause does not wait for claims under way.
    PausesWithoutLock,
    /// A claim does not ask whether its snapshot is older than the last pause.
    IgnoresChanges,
}

/// One moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// What is committed.
    pub present: View,
    /// The processes that claim.
    pub claimers: Vec<Claimer>,
    /// The one who pauses and resumes.
    pub operator: Operator,
    /// How many more times that happens.
    pub changes: u8,
    /// Whether a pause is answered and not taken back.
    pub promised: bool,
    /// Whether a claim committed against a promise.
    pub broke_promise: bool,
    /// Whether a claim found its snapshot too old.
    pub began_again: bool,
}

/// What a snapshot shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct View {
    /// Whether what is to be claimed is paused.
    pub paused: bool,
    /// `lanes.changes`.
    pub changes: u8,
}

/// A process that claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Claimer {
    /// How far its claim has come.
    pub step: ClaimStep,
    /// Claims that it may still make.
    pub left: u8,
}

/// How far a claim has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClaimStep {
    /// Not begun.
    Idle,
    /// The statement has its snapshot, and may wait for row locks or for the lock of the lane.
    Began(View),
    /// It has the lock of the lane.
    Entered(View),
    /// It has decided to claim; the rows are changed and not committed.
    Claiming,
}

/// How far a pause or a resumption has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// Not begun.
    Idle,
    /// It has the lock alone.
    Locked,
    /// It has committed and let the lock go; the answer is under way.
    Committed,
}

/// One step. The place is that of the claimer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// The claiming statement begins.
    Begin(usize),
    /// `pg_advisory_xact_lock_shared` in `enter_lane`.
    Enter(usize),
    /// The rest of `enter_lane`, and what the statement makes of it.
    Decide(usize),
    /// The transaction of the claim commits, and lets the lock go.
    Commit(usize),
    /// `close_lane`: the lock is taken alone.
    Lock,
    /// The pause or the resumption commits.
    Change,
    /// It is answered.
    Answer,
}

impl Pause {
    fn is(&self, broken: Broken) -> bool {
        self.broken == Some(broken)
    }

    fn decide(&self, state: &mut State, at: usize) {
        let (ClaimStep::Entered(seen) | ClaimStep::Began(seen)) = state.claimers[at].step else {
            return;
        };
        if self.is(Broken::ClaimsWithoutLock) {
            state.claimers[at].step = if seen.paused {
                ClaimStep::Idle
            } else {
                ClaimStep::Claiming
            };
            return;
        }
        let changed = state.present.changes != seen.changes && !self.is(Broken::IgnoresChanges);
        state.began_again |= changed;
        let paused = match self.scope {
            Scope::Lane => state.present.paused,
            Scope::Subscription => seen.paused,
        };
        state.claimers[at].step = if changed || paused {
            ClaimStep::Idle
        } else {
            ClaimStep::Claiming
        };
    }
}

fn holds_lock(claimer: &Claimer) -> bool {
    matches!(claimer.step, ClaimStep::Entered(_) | ClaimStep::Claiming)
}

impl Model for Pause {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let claimer = Claimer {
            step: ClaimStep::Idle,
            left: self.claims,
        };
        vec![State {
            present: View {
                paused: false,
                changes: 0,
            },
            claimers: vec![claimer; self.claimers],
            operator: Operator::Idle,
            changes: self.changes,
            promised: false,
            broke_promise: false,
            began_again: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (at, claimer) in state.claimers.iter().enumerate() {
            match claimer.step {
                ClaimStep::Idle if claimer.left > 0 => actions.push(Action::Begin(at)),
                ClaimStep::Idle => {}
                ClaimStep::Began(_) if self.is(Broken::ClaimsWithoutLock) => actions.push(Action::Decide(at)),
                ClaimStep::Began(_) if state.operator != Operator::Locked => actions.push(Action::Enter(at)),
                ClaimStep::Began(_) => {}
                ClaimStep::Entered(_) => actions.push(Action::Decide(at)),
                ClaimStep::Claiming => actions.push(Action::Commit(at)),
            }
        }
        let free = !state.claimers.iter().any(holds_lock)
            || self.is(Broken::PausesWithoutLock)
            || self.is(Broken::ClaimsWithoutLock);
        match state.operator {
            Operator::Idle if state.changes > 0 && free => actions.push(Action::Lock),
            Operator::Idle => {}
            Operator::Locked => actions.push(Action::Change),
            Operator::Committed => actions.push(Action::Answer),
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Begin(at) => {
                next.claimers[at].left -= 1;
                next.claimers[at].step = ClaimStep::Began(state.present);
            }
            Action::Enter(at) => {
                if let ClaimStep::Began(seen) = state.claimers[at].step {
                    next.claimers[at].step = ClaimStep::Entered(seen);
                }
            }
            Action::Decide(at) => self.decide(&mut next, at),
            Action::Commit(at) => {
                next.broke_promise |= state.promised;
                next.claimers[at].step = ClaimStep::Idle;
            }
            Action::Lock => {
                next.changes -= 1;
                next.operator = Operator::Locked;
                // From here on no operator is told any more that it is paused.
                next.promised = false;
            }
            Action::Change => {
                next.present = View {
                    paused: !state.present.paused,
                    changes: state.present.changes + 1,
                };
                next.operator = Operator::Committed;
            }
            Action::Answer => {
                next.operator = Operator::Idle;
                next.promised = state.present.paused;
            }
        }
        next.claimers.sort_unstable();
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no claim after a pause was answered", |_, state: &State| {
                !state.broke_promise
            }),
            Property::always("a pause has the lock alone", |_, state: &State| {
                state.operator != Operator::Locked || !state.claimers.iter().any(holds_lock)
            }),
            Property::sometimes(
                "a claim begins before a pause and decides after it",
                |_, state: &State| {
                    let late = |claimer: &Claimer| matches!(claimer.step, ClaimStep::Entered(seen) if seen != state.present);
                    state.claimers.iter().any(late)
                },
            ),
            Property::sometimes("a claim begins again", |_, state: &State| state.began_again),
            Property::sometimes("a pause is answered", |_, state: &State| state.promised),
            Property::sometimes("two claim at once", |_, state: &State| {
                let claiming = |claimer: &&Claimer| claimer.step == ClaimStep::Claiming;
                state.claimers.iter().filter(claiming).count() > 1
            }),
        ]
    }
}
