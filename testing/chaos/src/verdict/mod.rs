//! The verdict about a run: pure functions over what was seen from outside and what the database says. Each check is told with
//! made-up histories that it must object to.

mod accepted;
mod item;
mod lane;
mod leftovers;
mod limits;
mod pace;
mod rows;
mod webpush;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::{Duration, Instant};

pub use item::{Attempt, Ending, Item, Status};
pub use lane::{Lane, Tally};
pub use leftovers::Leftovers;
pub use limits::{Limits, Quota, Rate};
pub use pace::{Pace, PaceTally};
pub use rows::{EventRow, Rows, event_rows, leftovers, notifications, pushes};
pub use webpush::WebpushTally;

use crate::ledger::{History, Start};

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which check has found it.
    pub check: &'static str,
    /// What it is about: the key of a push or notification, or a queue and the like.
    pub subject: String,
    /// What is wrong.
    pub text: String,
}

impl Violation {
    pub(crate) fn new(check: &'static str, subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            check,
            subject: subject.into(),
            text: text.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}: {}", self.check, self.subject, self.text)
    }
}

/// Everything that the verdict is made of.
#[derive(Debug)]
pub struct Facts<'a> {
    /// From outside.
    pub history: &'a History,
    /// From the database.
    pub rows: &'a Rows,
    /// From the dispatchers.
    pub starts: &'a [Start],
    /// What nothing may be left of.
    pub leftovers: &'a Leftovers,
    /// What must hold.
    pub rules: &'a Rules,
}

/// What must hold in a run, and what has happened that excuses something.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Attempts after which a push is given up.
    pub push_attempts: i32,
    /// The same of a notification.
    pub notification_attempts: i32,
    /// The least time between two send starts.
    pub gap: Duration,
    /// How often a dispatcher was frozen or otherwise stopped in mid-step and went on later.
    pub freezes: usize,
    /// How often a fault came that may leave outcomes unknown.
    pub interruptions: usize,
    /// The most attempts that one interruption may leave without an outcome.
    pub in_flight: usize,
    /// Limits of subscriptions, by path.
    pub limits: HashMap<String, Limits>,
    /// When connection nodes of Web Push may have failed to delete what was acknowledged.
    pub storage_away: Vec<(Instant, Instant)>,
    /// For how long at most something was frozen or silent, so that what was spread over that time came at once.
    pub longest_silence: Duration,
}

/// The verdict.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What must not be; none when the run has passed.
    pub violations: Vec<Violation>,
    /// What came of pushes.
    pub pushes: Tally,
    /// What came of notifications.
    pub notifications: Tally,
    /// What the send starts were like.
    pub pace: PaceTally,
    /// What came of messages of Web Push.
    pub webpush: WebpushTally,
}

/// Judges a run. `expected` says what has been accepted must have become, by key of the item: which ends it may have.
pub fn judge(facts: &Facts<'_>, expected: &Expected) -> Verdict {
    let Facts {
        history,
        rows,
        starts,
        leftovers,
        rules,
    } = facts;
    let none = HashMap::new();
    let pushes = Lane {
        name: "push",
        items: &rows.pushes,
        arrivals: &history.at_swrve,
        expected: &expected.pushes,
        again: &none,
        max_attempts: rules.push_attempts,
    };
    let notifications = Lane {
        name: "notification",
        items: &rows.notifications,
        arrivals: &history.at_receivers,
        expected: &expected.notifications,
        again: &history.sent_again,
        max_attempts: rules.notification_attempts,
    };
    let mut verdict = Verdict::default();
    verdict.pushes = pushes.judge(&mut verdict.violations);
    verdict.notifications = notifications.judge(&mut verdict.violations);
    accepted::judge_handed_in("push", &history.pushes, rows.push_keys(), &mut verdict.violations);
    accepted::judge_handed_in(
        "event",
        &history.events,
        rows.event_keys(),
        &mut verdict.violations,
    );
    accepted::judge_bodies(&rows.events, &mut verdict.violations);
    for tally in [&verdict.pushes, &verdict.notifications] {
        accepted::judge_lost(tally, rules, &mut verdict.violations);
    }
    let pace = Pace {
        gap: rules.gap,
        freezes: rules.freezes,
        arrivals: history.at_swrve.count() as u64 + history.at_swrve.broken_off,
    };
    verdict.pace = pace.judge(starts, &mut verdict.violations);
    limits::judge(
        &rows.notifications,
        &history.at_receivers,
        rules,
        &mut verdict.violations,
    );
    verdict.webpush = webpush::judge(&history.webpush, rules, &mut verdict.violations);
    leftovers.judge(&mut verdict.violations);
    let complaints = history.complaints.iter();
    verdict
        .violations
        .extend(complaints.map(|complaint| Violation::new("answers", "callers", complaint)));
    verdict
}

/// Which ends each item may have; what is not in here must not exist.
#[derive(Debug, Default)]
pub struct Expected {
    /// By user.
    pub pushes: BTreeMap<String, Ends>,
    /// By path and identifier of the event.
    pub notifications: BTreeMap<String, Ends>,
}

/// How an item may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// It must exist; otherwise it may, because its answer was lost.
    pub accepted: bool,
    /// Its receiver takes it while it behaves well.
    pub taken: bool,
    /// Its receiver refuses it for good while it behaves well, or we do.
    pub refused: bool,
    /// It may wait for another day.
    pub may_wait: bool,
}
