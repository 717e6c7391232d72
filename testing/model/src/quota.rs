//! That no day gets more than its quota and nothing waits unnoticed, with several processes that claim, clocks that
//! disagree about the day, a quota that is changed, and a promoter that releases what waits in line
//! (`libs/store/src/webhook/claim.rs` and `line.rs`, ADR 0033).
//!
//! The sums are those of [`domain::quota::Budget`]; that the SQL does the same sums is tested in `store`. What is modelled here is
//! which of them works with what it has read when: the quota comes with the snapshot of the statement, the notification is read again
//! under its row lock, and so is the budget. The promoter locks the budget by a statement of its own, and looks at the line by the next.

use chrono::{Days, NaiveDate};
use domain::quota::Budget;
use stateright::{Model, Property};

/// The model.
#[derive(Debug, Clone, Copy)]
pub struct Quota {
    /// Processes that claim.
    pub claimers: usize,
    /// Notifications of the one subscription, the oldest first.
    pub notifications: usize,
    /// Days that pass.
    pub days: u8,
    /// The quota at first, and what it is changed to once.
    pub quotas: [u8; 2],
    /// Which safeguard is missing.
    pub broken: Option<Broken>,
}

/// A variant with one of its safeguards missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The budget is read before it is locked.
    ChargesWhatItReadBefore,
    /// The notification is judged by the snapshot, and not read again under its lock.
    JudgesBySnapshot,
    /// What comes does not wait behind the line.
    PassesTheLine,
    /// The promoter locks the budget and looks at the line in one statement, so by a snapshot from before the lock.
    LooksBeforeItLocks,
}

/// One moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// `subscriptions.daily_quota`.
    pub quota: u8,
    /// `subscription_budgets`.
    pub budget: Counted,
    /// `notifications`.
    pub notifications: Vec<Notification>,
    /// The processes that claim.
    pub claimers: Vec<Claimer>,
    /// The promoter's look: what it saw of the line, by the snapshot that the broken variant works with.
    pub look: Option<Vec<bool>>,
    /// The day that the slower clocks show.
    pub today: u8,
    /// Sends of each day, by the clock of the process that sent.
    pub sent: Vec<u8>,
    /// The largest quota that a claim had read when it charged that day.
    pub allowed: Vec<u8>,
    /// Whether something that just came was sent while something waited in line.
    pub overtaken: bool,
}

/// What a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Counted {
    /// The day.
    pub day: u8,
    /// Notifications charged to it.
    pub used: u8,
    /// The quota that they were charged under.
    pub quota: u8,
    /// `release_at` is set: something waits in line.
    pub line: bool,
}

/// Where a notification stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// In the queue, and it has not waited in line.
    Queued,
    /// SCHEDULED.
    InLine,
    /// In the queue again, released from the line.
    Released,
    /// Claimed, and charged to a day.
    Sent,
}

/// A notification that waits for its first attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Notification {
    /// Where it stands.
    pub place: Place,
    /// Whether a claimer has its row locked.
    pub locked: bool,
}

/// A process that claims one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Claimer {
    /// Whether its clock is a day ahead of the others.
    pub ahead: bool,
    /// Its statement under way.
    pub claim: Option<Under>,
}

/// A claiming statement under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Under {
    /// Of which notification.
    pub notification: usize,
    /// The day that it was made on.
    pub today: u8,
    /// The quota of its snapshot.
    pub quota: u8,
    /// The budget of its snapshot, which the broken variant charges.
    pub budget: Option<Counted>,
    /// Where its snapshot shows the notification.
    pub place: Place,
    /// Whether it has the lock of the notification.
    pub locked: bool,
}

/// One step. The place is that of the claimer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A claiming statement begins: its snapshot is taken.
    Begin(usize, usize),
    /// It has the lock of the notification's row, and reads that again.
    Lock(usize),
    /// It has the lock of the budget's row: charges or puts the notification in line, and commits.
    Charge(usize),
    /// The promoter begins its look: the budget's row is locked.
    Look,
    /// It releases what the quota allows, the oldest first, or notes that the line is empty, and commits.
    Release,
    /// A message is lost, and the rescuer finds what it was about.
    Lose(usize),
    /// Midnight.
    Midnight,
    /// The quota is changed.
    Change,
}

impl Quota {
    fn is(&self, broken: Broken) -> bool {
        self.broken == Some(broken)
    }

    fn charge(&self, state: &mut State, at: usize) {
        let Some(under) = state.claimers[at].claim.take() else {
            return;
        };
        let found = state.notifications[under.notification].place;
        state.notifications[under.notification].locked = false;
        // Read again under its lock, it may have been claimed meanwhile.
        let judged = if self.is(Broken::JudgesBySnapshot) {
            under.place
        } else {
            found
        };
        if !matches!(judged, Place::Queued | Place::Released) {
            return;
        }
        let read = if self.is(Broken::ChargesWhatItReadBefore) {
            under.budget.unwrap_or(state.budget)
        } else {
            state.budget
        };
        let behind = state.budget.line && judged == Place::Queued && !self.is(Broken::PassesTheLine);
        let (charged, granted) = read.counted().charge(
            date(under.today),
            read.quota.into(),
            under.quota.into(),
            u64::from(!behind),
        );
        if granted == 0 {
            state.notifications[under.notification].place = Place::InLine;
            state.budget.line = true;
            return;
        }
        let in_line = state
            .notifications
            .iter()
            .any(|other| other.place == Place::InLine);
        state.overtaken |= in_line && judged == Place::Queued;
        state.budget = Counted {
            day: number_of(charged.day),
            used: u8::try_from(charged.used).expect("invariant: few notifications are charged"),
            quota: under.quota,
            line: state.budget.line,
        };
        state.notifications[under.notification].place = Place::Sent;
        let day = usize::from(under.today);
        state.sent[day] += 1;
        state.allowed[day] = under.quota.max(state.allowed[day]);
    }

    fn release(&self, state: &mut State) {
        let Some(seen) = state.look.take() else { return };
        let line = if self.is(Broken::LooksBeforeItLocks) {
            seen
        } else {
            in_line(state)
        };
        let budget = state.budget;
        let free = budget
            .counted()
            .free(date(state.today), budget.quota.into(), state.quota.into());
        let mut left = usize::try_from(free).unwrap_or(usize::MAX);
        for (notification, waits) in state.notifications.iter_mut().zip(&line) {
            if *waits && left > 0 && notification.place == Place::InLine {
                notification.place = Place::Released;
                left -= 1;
            }
        }
        state.budget.line = line.contains(&true);
    }
}

impl Counted {
    fn counted(self) -> Budget {
        Budget {
            day: date(self.day),
            used: self.used.into(),
        }
    }
}

fn in_line(state: &State) -> Vec<bool> {
    let places = state.notifications.iter();
    places
        .map(|notification| notification.place == Place::InLine)
        .collect()
}

fn date(day: u8) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 1)
        .and_then(|first| first.checked_add_days(Days::new(day.into())))
        .expect("invariant: a few days after a date there is one")
}

fn number_of(day: NaiveDate) -> u8 {
    u8::try_from((day - date(0)).num_days()).expect("invariant: few notifications reach few days")
}

impl Model for Quota {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let notification = Notification {
            place: Place::Queued,
            locked: false,
        };
        let days = usize::from(self.days) + 2;
        vec![State {
            quota: self.quotas[0],
            budget: Counted {
                day: 0,
                used: 0,
                quota: self.quotas[0],
                line: false,
            },
            notifications: vec![notification; self.notifications],
            // Every second clock is a day ahead.
            claimers: (0..self.claimers)
                .map(|place| Claimer {
                    ahead: place % 2 == 1,
                    claim: None,
                })
                .collect(),
            look: None,
            today: 0,
            sent: vec![0; days],
            allowed: vec![0; days],
            overtaken: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (at, claimer) in state.claimers.iter().enumerate() {
            match claimer.claim {
                None => {
                    for (place, notification) in state.notifications.iter().enumerate() {
                        if matches!(notification.place, Place::Queued | Place::Released) {
                            actions.push(Action::Begin(at, place));
                        }
                    }
                }
                Some(under) if !under.locked => {
                    if !state.notifications[under.notification].locked {
                        actions.push(Action::Lock(at));
                    }
                }
                // The broken look has taken its snapshot and waits for the lock, so it keeps no claim from it.
                Some(_) if state.look.is_none() || self.is(Broken::LooksBeforeItLocks) => {
                    actions.push(Action::Charge(at));
                }
                Some(_) => {}
            }
        }
        match state.look {
            Some(_) => actions.push(Action::Release),
            None if state.budget.line => actions.push(Action::Look),
            None => {}
        }
        for (place, notification) in state.notifications.iter().enumerate() {
            if notification.place == Place::Released && !notification.locked {
                actions.push(Action::Lose(place));
            }
        }
        if state.today < self.days {
            actions.push(Action::Midnight);
        }
        if state.quota != self.quotas[1] {
            actions.push(Action::Change);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Begin(at, notification) => {
                next.claimers[at].claim = Some(Under {
                    notification,
                    today: state.today + u8::from(state.claimers[at].ahead),
                    quota: state.quota,
                    // Only the broken variant looks at it; without it, more moments are the same.
                    budget: self.is(Broken::ChargesWhatItReadBefore).then_some(state.budget),
                    place: state.notifications[notification].place,
                    locked: false,
                });
            }
            Action::Lock(at) => {
                if let Some(under) = &mut next.claimers[at].claim {
                    under.locked = true;
                    next.notifications[under.notification].locked = true;
                }
            }
            Action::Charge(at) => self.charge(&mut next, at),
            Action::Look => {
                // As above.
                let snapshot = self.is(Broken::LooksBeforeItLocks);
                next.look = Some(if snapshot { in_line(state) } else { Vec::new() });
            }
            Action::Release => self.release(&mut next),
            Action::Lose(place) => next.notifications[place].place = Place::Queued,
            Action::Midnight => next.today += 1,
            Action::Change => next.quota = self.quotas[1],
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no day is overbooked", |_, state: &State| {
                let mut days = state.sent.iter().zip(&state.allowed);
                days.all(|(sent, allowed)| sent <= allowed)
            }),
            Property::always("each is claimed once", |_, state: &State| {
                let sent: usize = state.sent.iter().map(|sent| usize::from(*sent)).sum();
                sent == state
                    .notifications
                    .iter()
                    .filter(|n| n.place == Place::Sent)
                    .count()
            }),
            Property::always("a line is noted", |_, state: &State| {
                state.budget.line || !in_line(state).contains(&true)
            }),
            Property::always("what comes overtakes nothing in line", |_, state: &State| {
                !state.overtaken
            }),
            Property::sometimes("a day is full and one has to wait", |_, state: &State| {
                let full = state.budget.used >= state.quota;
                full && in_line(state).contains(&true)
            }),
            Property::sometimes("a line is found empty", |_, state: &State| {
                state.look.is_some() && !in_line(state).contains(&true)
            }),
            Property::sometimes("two claim at once, a day apart", |_, state: &State| {
                let days: Vec<u8> = state
                    .claimers
                    .iter()
                    .filter_map(|claimer| claimer.claim)
                    .map(|under| under.today)
                    .collect();
                days.windows(2).any(|pair| pair[0] != pair[1])
            }),
            Property::sometimes("all are sent", |_, state: &State| {
                state
                    .notifications
                    .iter()
                    .all(|notification| notification.place == Place::Sent)
            }),
        ]
    }
}
