//! That no day gets more than its quota, with several processes that claim, clocks that disagree about the day, and a quota that
//! is changed meanwhile (`libs/store/src/reseller/claim.rs`, ADR 0016).
//!
//! The sums are those of [`domain::quota::Budget`]; that the SQL does the same sums is tested in `store`. What is modelled here is
//! which of them works with what it has read when: the quota comes with the snapshot of the statement, the notification is read again
//! under its row lock, and so is the budget.

use chrono::{Days, NaiveDate};
use domain::quota::Budget;
use stateright::{Model, Property};

/// The model.
#[derive(Debug, Clone, Copy)]
pub struct Quota {
    /// Processes that claim.
    pub claimers: usize,
    /// Notifications of the one subscription.
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
    /// A place on a day that has gone by is used as if it were of today.
    KeepsOldPlaces,
    /// The notification is judged by the snapshot, and not read again under its lock.
    JudgesBySnapshot,
}

/// One moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// `subscriptions.daily_quota`.
    pub quota: u8,
    /// `subscription_budgets`, with the quota that it was charged under last.
    pub budget: Option<Counted>,
    /// `notifications`.
    pub notifications: Vec<Notification>,
    /// The processes that claim.
    pub claimers: Vec<Claimer>,
    /// The day that the slower clocks show.
    pub today: u8,
    /// Sends of each day, by the clock of whoever sent.
    pub sent: Vec<u8>,
    /// The largest quota that anybody had read when it charged a place of that day.
    pub allowed: Vec<u8>,
}

/// What a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Counted {
    /// The day that the count begins with.
    pub day: u8,
    /// Places taken.
    pub used: u8,
    /// The quota that they were taken under.
    pub quota: u8,
}

/// A notification that waits for its first attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Notification {
    /// `charged_on`.
    pub charged_on: Option<u8>,
    /// Whether it was claimed; `attempts > 0`.
    pub claimed: bool,
    /// Which claimer has its row locked.
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
    /// What its snapshot shows of the notification.
    pub charged_on: Option<u8>,
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
    /// It charges under the lock of the budget's row, places the notification, and commits.
    Charge(usize),
    /// Midnight.
    Midnight,
    /// Somebody changes the quota.
    Change,
}

impl Quota {
    fn is(&self, broken: Broken) -> bool {
        self.broken == Some(broken)
    }

    /// `charge` and `placed`: a place in the quota, and the budget after that.
    fn place(&self, budget: Option<Counted>, today: u8, quota: u8) -> (u8, Counted) {
        let before = budget.unwrap_or(Counted {
            day: today,
            used: 0,
            quota,
        });
        let counted = Budget {
            day: date(before.day),
            used: before.used.into(),
        };
        let (charged, number) = counted.charge(date(today), before.quota.into(), quota.into(), 1);
        let place = charged.place(number, quota.into());
        let counted = Counted {
            day: number_of(charged.day),
            used: u8::try_from(charged.used).expect("invariant: few notifications take few places"),
            quota,
        };
        (number_of(place.day), counted)
    }

    fn charge(&self, state: &mut State, at: usize) {
        let Some(under) = state.claimers[at].claim.take() else {
            return;
        };
        let found = state.notifications[under.notification];
        state.notifications[under.notification].locked = false;
        // Read again under its lock, it may have been claimed meanwhile.
        let judged = if self.is(Broken::JudgesBySnapshot) {
            under.charged_on
        } else if found.claimed {
            return;
        } else {
            found.charged_on
        };
        let keeps = |day: u8| day >= under.today || self.is(Broken::KeepsOldPlaces);
        let day = match judged {
            Some(day) if keeps(day) => day,
            _ => {
                let before = if self.is(Broken::ChargesWhatItReadBefore) {
                    under.budget
                } else {
                    state.budget
                };
                let (day, counted) = self.place(before, under.today, under.quota);
                state.budget = Some(counted);
                if let Some(allowed) = state.allowed.get_mut(usize::from(day)) {
                    *allowed = under.quota.max(*allowed);
                }
                day
            }
        };
        let notification = &mut state.notifications[under.notification];
        notification.charged_on = Some(day);
        if day <= under.today {
            notification.claimed = true;
            state.sent[usize::from(under.today)] += 1;
        }
    }
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
            charged_on: None,
            claimed: false,
            locked: false,
        };
        let days = usize::from(self.days) + 2;
        vec![State {
            quota: self.quotas[0],
            budget: None,
            notifications: vec![notification; self.notifications],
            // Every second clock is a day ahead.
            claimers: (0..self.claimers)
                .map(|place| Claimer {
                    ahead: place % 2 == 1,
                    claim: None,
                })
                .collect(),
            today: 0,
            sent: vec![0; days],
            allowed: vec![0; days],
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (at, claimer) in state.claimers.iter().enumerate() {
            match claimer.claim {
                None => {
                    for (place, notification) in state.notifications.iter().enumerate() {
                        if !notification.claimed {
                            actions.push(Action::Begin(at, place));
                        }
                    }
                }
                Some(under) if !under.locked => {
                    if !state.notifications[under.notification].locked {
                        actions.push(Action::Lock(at));
                    }
                }
                Some(_) => actions.push(Action::Charge(at)),
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
                    budget: state.budget,
                    charged_on: state.notifications[notification].charged_on,
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
            Action::Midnight => next.today += 1,
            Action::Change => next.quota = self.quotas[1],
        }
        if !self.is(Broken::ChargesWhatItReadBefore) {
            // Only the broken variant looks at it; without it, more moments are the same.
            for under in next
                .claimers
                .iter_mut()
                .filter_map(|claimer| claimer.claim.as_mut())
            {
                under.budget = None;
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no day is overbooked", |_, state: &State| {
                state
                    .sent
                    .iter()
                    .zip(&state.allowed)
                    .all(|(sent, allowed)| sent <= allowed)
            }),
            Property::always("each is claimed once", |_, state: &State| {
                let sent: usize = state.sent.iter().map(|sent| usize::from(*sent)).sum();
                sent == state.notifications.iter().filter(|n| n.claimed).count()
            }),
            Property::sometimes("a day is full and one has to wait", |_, state: &State| {
                let waits = |n: &Notification| !n.claimed && n.charged_on > Some(state.today);
                state.notifications.iter().any(waits)
            }),
            Property::sometimes(
                "a place on a day that has gone by is given up",
                |_, state: &State| {
                    let late = |n: &Notification| {
                        !n.claimed && n.charged_on < Some(state.today) && n.charged_on.is_some()
                    };
                    state.notifications.iter().any(late)
                },
            ),
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
                    .all(|notification| notification.claimed)
            }),
        ]
    }
}
