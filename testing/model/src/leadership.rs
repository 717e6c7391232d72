//! Who may send, in time: leases between replicas that trust no wall clock, and two sends that never start closer together than
//! the delay (`libs/leadership`, `libs/store/src/lease.rs`, `libs/engine/src/push/sender.rs`, ADR 0005).
//!
//! Time passes in ticks. No process has to act at any tick, so that any may sleep for as long as it likes between any two of
//! its steps. Each has its own monotonic clock: what it takes for a time-to-live may last [`Leadership::drift`] ticks longer or
//! shorter. What remains of each wait is counted down, so that the same situation later is the same state.

use stateright::{Model, Property};

/// The model.
#[derive(Debug, Clone, Copy)]
pub struct Leadership {
    /// Replicas.
    pub processes: usize,
    /// The time-to-live of the lease, in ticks.
    pub ttl: u8,
    /// By how much less than that a holder trusts its lease.
    pub margin: u8,
    /// By how much a clock may be wrong over one time-to-live, in both directions.
    pub drift: u8,
    /// The least distance between two sends; small enough for no clock to be wrong about it.
    pub delay: u8,
    /// Processes that may die.
    pub crashes: u8,
    /// Which safeguard is missing.
    pub broken: Option<Broken>,
}

/// A variant with one of its safeguards missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// A successor sends as soon as it leads.
    SuccessorDoesNotWait,
    /// A holder does not look at its clock before it sends.
    SendsPastTheDeadline,
    /// A holder counts from when the answer came, not from when it asked.
    CountsFromTheAnswer,
    /// A watcher takes the lease without naming what it saw.
    TakesWhatItDidNotSee,
    /// A leader that resigns gives the lease up before it has stopped sending.
    ResignsBeforeItStops,
    /// A process can be suspended between the last comparison and the write to the socket. Not a fault of the protocol, but what no
    /// lease can prevent; ADR 0005 says so.
    SuspendedAtTheSocket,
}

/// One moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// Whose epoch is in the row of `leases`.
    pub holder: Holder,
    /// The replicas, in no particular order.
    pub processes: Vec<Process>,
    /// Ticks until the next send may start.
    pub gap: u8,
    /// How many more may die.
    pub crashes: u8,
    /// Whether two sends started too close together.
    pub too_close: bool,
    /// Whether a process took over from one that did not resign.
    pub took_over: bool,
}

/// Whose epoch is in the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// Given up in order: `holder` is null.
    Vacant,
    /// That of a process which knows of it, or is about to.
    Alive,
    /// That of a term which is over without having been resigned.
    Gone,
}

/// One replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// What it does.
    pub role: Role,
    /// Whether the row has its epoch.
    pub holds: bool,
}

/// What a replica does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It knows nothing.
    Idle,
    /// `Candidate::watch` has read the row and not heard of it yet.
    Looking {
        /// Whether the row still is as it was read.
        same: bool,
    },
    /// It has seen the row.
    Watching {
        /// Whether the row still is as it was seen.
        same: bool,
        /// How long it has to stay so.
        left: u8,
    },
    /// `Candidate::take` has asked.
    Taking {
        /// Whether the row still is as it was seen.
        same: bool,
        /// When what it asked for ends.
        left: u8,
    },
    /// It leads.
    Leading {
        /// How long it trusts that.
        left: u8,
        /// How long until its pacer lets it send.
        pause: u8,
        /// Its renewal under way.
        renewal: Renewal,
        /// Whether it has compared its clock for the next send already.
        checked: bool,
    },
    /// It has stopped sending and is about to give the lease up.
    Resigning,
}

/// A renewal under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Renewal {
    /// None.
    None,
    /// Asked for; what it asks for would end then.
    Asked(u8),
    /// Committed and not heard of.
    Committed(u8),
}

/// One step of one process, or of time. The place is that in [`State::processes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Time passes for all.
    Tick,
    /// `Candidate::watch`: the row is read.
    Look(usize),
    /// Its answer; what the watcher's clock makes of a time-to-live from now on.
    Seen(usize, u8),
    /// `Candidate::take` asks; what its clock makes of a time-to-live from now on.
    Take(usize, u8),
    /// `Store::take_lease` commits, or finds that the row has changed.
    Taken(usize),
    /// `Term::start`, and the sender with its pacer.
    Start(usize),
    /// `Keeper::run` asks for a renewal; what its clock makes of a time-to-live from now on.
    Renew(usize, u8),
    /// `Store::renew_lease` commits.
    Renewed(usize),
    /// Its answer; in the broken variant the clock starts here.
    RenewalSeen(usize, u8),
    /// `Loop::send`: turn, comparison and hand-over.
    Send(usize),
    /// The comparison alone, where the process is suspended right after it.
    Check(usize),
    /// The sends have stopped; `Term::resign` begins.
    Stop(usize),
    /// `Store::release_lease`.
    Release(usize),
    /// The term is over and was not resigned: the deadline has passed, or a renewal was refused.
    Lose(usize),
    /// The process dies, and another starts in its place.
    Crash(usize),
}

impl Leadership {
    fn is(&self, broken: Broken) -> bool {
        self.broken == Some(broken)
    }

    /// What a clock may make of so many ticks.
    fn spans(&self, ticks: u8) -> std::ops::RangeInclusive<u8> {
        ticks - self.drift..=ticks + self.drift
    }

    /// For how long a holder trusts its lease.
    fn trusted(&self) -> std::ops::RangeInclusive<u8> {
        self.spans(self.ttl - self.margin)
    }

    fn of_process(&self, state: &State, at: usize, actions: &mut Vec<Action>) {
        let process = state.processes[at];
        match process.role {
            Role::Idle => actions.push(Action::Look(at)),
            Role::Looking { .. } => {
                actions.extend(self.spans(self.ttl).map(|span| Action::Seen(at, span)));
            }
            Role::Watching { same: false, .. } => actions.push(Action::Look(at)),
            Role::Watching { same: true, left } => {
                if left == 0 || state.holder == Holder::Vacant {
                    actions.extend(self.trusted().map(|span| Action::Take(at, span)));
                }
            }
            Role::Taking { .. } if process.holds => actions.push(Action::Start(at)),
            Role::Taking { .. } => actions.push(Action::Taken(at)),
            Role::Leading { .. } => self.of_leader(state, at, actions),
            Role::Resigning => actions.push(Action::Release(at)),
        }
        if state.crashes > 0 && process.role != Role::Idle {
            actions.push(Action::Crash(at));
        }
    }

    fn of_leader(&self, state: &State, at: usize, actions: &mut Vec<Action>) {
        let Process {
            role:
                Role::Leading {
                    left,
                    pause,
                    renewal,
                    checked,
                },
            holds,
        } = state.processes[at]
        else {
            return;
        };
        let trusts = left > 0 || self.is(Broken::SendsPastTheDeadline);
        if checked || trusts && pause == 0 && !self.is(Broken::SuspendedAtTheSocket) {
            actions.push(Action::Send(at));
        } else if trusts && pause == 0 {
            actions.push(Action::Check(at));
        }
        match renewal {
            Renewal::None if left > 0 => {
                actions.extend(self.trusted().map(|span| Action::Renew(at, span)));
            }
            Renewal::None => {}
            Renewal::Asked(_) => actions.push(Action::Renewed(at)),
            Renewal::Committed(_) if self.is(Broken::CountsFromTheAnswer) => {
                actions.extend(self.trusted().map(|span| Action::RenewalSeen(at, span)));
            }
            Renewal::Committed(_) => actions.push(Action::RenewalSeen(at, 0)),
        }
        actions.push(Action::Stop(at));
        if self.is(Broken::ResignsBeforeItStops) && holds {
            actions.push(Action::Release(at));
        }
        if left == 0 && !self.is(Broken::SendsPastTheDeadline) {
            actions.push(Action::Lose(at));
        }
    }

    fn step(&self, state: &mut State, action: Action) {
        match action {
            Action::Tick => tick(state),
            Action::Look(at) => state.processes[at].role = Role::Looking { same: true },
            Action::Seen(at, span) => {
                if let Role::Looking { same } = state.processes[at].role {
                    state.processes[at].role = Role::Watching { same, left: span };
                }
            }
            Action::Take(at, span) => {
                if let Role::Watching { same, .. } = state.processes[at].role {
                    state.processes[at].role = Role::Taking { same, left: span };
                }
            }
            Action::Taken(at) => self.take(state, at),
            Action::Start(at) => {
                let Role::Taking { left, .. } = state.processes[at].role else {
                    return;
                };
                let waits = !self.is(Broken::SuccessorDoesNotWait);
                state.processes[at].role = Role::Leading {
                    left,
                    pause: if waits { self.delay } else { 0 },
                    renewal: Renewal::None,
                    checked: false,
                };
            }
            Action::Stop(at) => state.processes[at].role = Role::Resigning,
            Action::Release(at) => {
                if state.processes[at].holds {
                    row_changes(state);
                    state.processes[at].holds = false;
                    state.holder = Holder::Vacant;
                }
                if state.processes[at].role == Role::Resigning {
                    state.processes[at].role = Role::Idle;
                }
            }
            Action::Lose(at) => end(state, at),
            Action::Crash(at) => {
                state.crashes -= 1;
                end(state, at);
            }
            _ => self.step_of_leader(state, action),
        }
    }

    fn take(&self, state: &mut State, at: usize) {
        let Role::Taking { same, left } = state.processes[at].role else {
            return;
        };
        if !same && !self.is(Broken::TakesWhatItDidNotSee) {
            state.processes[at].role = Role::Idle;
            return;
        }
        state.took_over |= state.holder != Holder::Vacant;
        row_changes(state);
        for process in &mut state.processes {
            process.holds = false;
        }
        state.holder = Holder::Alive;
        state.processes[at] = Process {
            role: Role::Taking { same: false, left },
            holds: true,
        };
    }

    fn step_of_leader(&self, state: &mut State, action: Action) {
        let (Action::Renew(at, _)
        | Action::Renewed(at)
        | Action::RenewalSeen(at, _)
        | Action::Send(at)
        | Action::Check(at)) = action
        else {
            return;
        };
        let Process {
            role:
                Role::Leading {
                    mut left,
                    mut pause,
                    mut renewal,
                    mut checked,
                },
            holds,
        } = state.processes[at]
        else {
            return;
        };
        match (action, renewal) {
            (Action::Renew(_, span), _) => renewal = Renewal::Asked(span),
            (Action::Renewed(_), Renewal::Asked(until)) if holds => {
                row_changes(state);
                renewal = Renewal::Committed(until);
            }
            // Refused: it is no longer ours.
            (Action::Renewed(_), _) => return end(state, at),
            (Action::RenewalSeen(_, span), Renewal::Committed(until)) => {
                left = left.max(until).max(span);
                renewal = Renewal::None;
            }
            (Action::Check(_), _) => checked = true,
            (Action::Send(_), _) => {
                state.too_close |= state.gap > 0;
                (state.gap, pause, checked) = (self.delay, self.delay, false);
            }
            _ => {}
        }
        state.processes[at].role = Role::Leading {
            left,
            pause,
            renewal,
            checked,
        };
    }
}

/// What others have seen of the row is not so any more.
fn row_changes(state: &mut State) {
    for process in &mut state.processes {
        if let Role::Looking { same } | Role::Watching { same, .. } | Role::Taking { same, .. } =
            &mut process.role
        {
            *same = false;
        }
        if let Role::Watching { same: false, left } = &mut process.role {
            // Never asked again before the next look.
            *left = 0;
        }
    }
}

fn end(state: &mut State, at: usize) {
    if state.processes[at].holds {
        state.holder = Holder::Gone;
    }
    state.processes[at] = Process {
        role: Role::Idle,
        holds: false,
    };
}

fn tick(state: &mut State) {
    let down = |ticks: &mut u8| *ticks = ticks.saturating_sub(1);
    down(&mut state.gap);
    for process in &mut state.processes {
        match &mut process.role {
            Role::Watching { left, .. } | Role::Taking { left, .. } => down(left),
            Role::Leading {
                left, pause, renewal, ..
            } => {
                down(left);
                down(pause);
                if let Renewal::Asked(until) | Renewal::Committed(until) = renewal {
                    down(until);
                }
            }
            Role::Idle | Role::Looking { .. } | Role::Resigning => {}
        }
    }
}

/// Whether a process would send now if it had something to send.
fn may_send(process: &Process) -> bool {
    matches!(process.role, Role::Leading { left, .. } if left > 0)
}

impl Model for Leadership {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let idle = Process {
            role: Role::Idle,
            holds: false,
        };
        vec![State {
            holder: Holder::Vacant,
            processes: vec![idle; self.processes],
            gap: 0,
            crashes: self.crashes,
            too_close: false,
            took_over: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        for at in 0..state.processes.len() {
            // One of several that are alike stands for all of them.
            if at == 0 || state.processes[at - 1] != state.processes[at] {
                self.of_process(state, at, actions);
            }
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.step(&mut next, action);
        next.processes.sort_unstable();
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("sends keep their distance", |_, state: &State| !state.too_close),
            Property::always("at most one may send", |_, state: &State| {
                state.processes.iter().filter(|process| may_send(process)).count() <= 1
            }),
            Property::sometimes("a process takes over", |_, state: &State| state.took_over),
            Property::sometimes("a leader wakes up beside its successor", |_, state: &State| {
                let overtaken =
                    |process: &Process| matches!(process.role, Role::Leading { .. }) && !process.holds;
                state.holder == Holder::Alive && state.processes.iter().any(overtaken)
            }),
            Property::sometimes("two want the lease at once", |_, state: &State| {
                let taking = |process: &&Process| matches!(process.role, Role::Taking { .. });
                state.processes.iter().filter(taking).count() > 1
            }),
            Property::sometimes("a send follows a takeover", |model: &Self, state: &State| {
                state.took_over && state.gap == model.delay
            }),
        ]
    }
}
