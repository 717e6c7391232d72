//! Every model with the bounds that it is checked with: the small ones by the tests, the large ones by hand.
//!
//! `docs/model.md` holds this table with the counts; a test compares those of the small ones.

use std::fmt::Debug;
use std::hash::Hash;

use stateright::Model;

use crate::check::{Counts, Failure, liveness, safety};
use crate::delivery::{Bounds, Delivery, Lane, Mishaps};
use crate::graph::Progress;
use crate::leadership::Leadership;
use crate::pause::{Pause, Scope};
use crate::quota::Quota;
use crate::webpush::Webpush;

/// How long a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Seconds.
    Small,
    /// Minutes, and gigabytes.
    Large,
}

/// A model with its bounds.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Its bounds in words.
    pub bounds: String,
    /// How long it takes.
    pub size: Size,
    subject: Subject,
}

#[derive(Debug, Clone)]
enum Subject {
    Delivery(Delivery),
    Leadership(Leadership),
    Pause(Pause),
    Quota(Quota),
    Webpush(Webpush),
}

impl Entry {
    /// Checks it: its properties, and for a delivery and for Web Push that everything ends.
    pub fn check(&self) -> Result<Counts, Failure> {
        match &self.subject {
            Subject::Delivery(model) => whole(model),
            Subject::Leadership(model) => safety(model),
            Subject::Pause(model) => safety(model),
            Subject::Quota(model) => safety(model),
            Subject::Webpush(model) => whole(model),
        }
    }

    /// Shows it in a browser, until the process is ended.
    pub fn explore(&self, address: &str) {
        match self.subject.clone() {
            Subject::Delivery(model) => drop(model.checker().serve(address)),
            Subject::Leadership(model) => drop(model.checker().serve(address)),
            Subject::Pause(model) => drop(model.checker().serve(address)),
            Subject::Quota(model) => drop(model.checker().serve(address)),
            Subject::Webpush(model) => drop(model.checker().serve(address)),
        }
    }
}

/// The properties of a model, and that everything ends.
fn whole<M>(model: &M) -> Result<Counts, Failure>
where
    M: Progress + Clone + Send + Sync + 'static,
    M::State: Clone + Debug + Eq + Hash + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let counts = safety(model)?;
    let states = liveness(model)?;
    if states != counts.states {
        return Err(Failure::Collision {
            fingerprints: counts.states,
            states,
        });
    }
    Ok(counts)
}

const ONE: Bounds = Bounds {
    rows: 1,
    workers: 2,
    capacity: 1,
    prefetch: 1,
    publishers: 1,
    mishaps: 1,
    wishes: 1,
};

/// A message about two rows, and room for it.
const SHARED: Bounds = Bounds {
    rows: 2,
    prefetch: 2,
    wishes: 0,
    ..ONE
};

/// The same with one process that sends, which is few enough for two attempts.
const ONE_SENDER: Bounds = Bounds { workers: 1, ..SHARED };

/// All of them.
pub fn entries() -> Vec<Entry> {
    let mut entries = small();
    entries.extend(large());
    entries
}

fn small() -> Vec<Entry> {
    let (push, reseller) = (Lane::push(2), Lane::reseller(2));
    let two_mishaps = Bounds {
        mishaps: 2,
        wishes: 0,
        ..ONE
    };
    vec![
        delivery("push", Delivery::new(push, ONE)),
        delivery("push, mishaps", Delivery::new(push, two_mishaps)),
        delivery("push, crashes", Delivery::new(push, two_mishaps).only_crashes()),
        delivery(
            "notification, mishaps",
            Delivery::new(reseller, Bounds { wishes: 0, ..ONE }),
        ),
        delivery(
            "notification, wishes",
            Delivery::new(reseller, Bounds { mishaps: 0, ..ONE }),
        ),
        delivery(
            "notification, cancelled",
            Delivery::new(Lane::reseller(1), TWO_WISHES).only_crashes(),
        ),
        delivery("notification, shared messages", sharing(Mishaps::Messages)),
        delivery(
            "notification, shared messages that are kept",
            sharing(Mishaps::Kept),
        ),
        delivery(
            "notification, shared messages tried twice",
            Delivery::new(reseller, ONE_SENDER).sharing(Mishaps::Messages),
        ),
        leadership("leadership", LEADERSHIP),
        leadership(
            "leadership, clocks apart",
            Leadership {
                drift: 1,
                margin: 2,
                ttl: 12,
                ..LEADERSHIP
            },
        ),
        pause("pause, lane", PAUSE),
        pause(
            "pause, subscription",
            Pause {
                scope: Scope::Subscription,
                ..PAUSE
            },
        ),
        quota("quota", QUOTA),
        quota(
            "quota, lowered",
            Quota {
                quotas: [2, 1],
                ..QUOTA
            },
        ),
        webpush("web push", WEBPUSH),
        webpush("web push, topic", TOPIC),
        webpush("web push, without pings", WITHOUT_PINGS),
    ]
}

fn large() -> Vec<Entry> {
    let (push, reseller) = (Lane::push(2), Lane::reseller(2));
    let large = |entry: Entry| Entry {
        size: Size::Large,
        ..entry
    };
    vec![
        large(delivery(
            "push, three mishaps",
            Delivery::new(
                push,
                Bounds {
                    mishaps: 3,
                    wishes: 0,
                    ..ONE
                },
            ),
        )),
        large(delivery(
            "push, room for more",
            Delivery::new(
                push,
                Bounds {
                    capacity: 2,
                    prefetch: 2,
                    wishes: 0,
                    ..ONE
                },
            ),
        )),
        large(delivery(
            "notification, room for more",
            Delivery::new(
                reseller,
                Bounds {
                    capacity: 2,
                    prefetch: 2,
                    wishes: 0,
                    ..ONE
                },
            ),
        )),
        large(delivery(
            "notification, shared messages and two mishaps",
            Delivery::new(Lane::reseller(1), Bounds { mishaps: 2, ..SHARED }).sharing(Mishaps::Messages),
        )),
        large(leadership(
            "leadership, three replicas",
            Leadership {
                processes: 3,
                ..LEADERSHIP
            },
        )),
        large(pause(
            "pause, three that claim",
            Pause {
                claimers: 3,
                changes: 4,
                claims: 3,
                ..PAUSE
            },
        )),
        large(quota(
            "quota, raised",
            Quota {
                notifications: 4,
                quotas: [1, 2],
                ..QUOTA
            },
        )),
        large(webpush(
            "web push, two mishaps",
            Webpush {
                mishaps: 2,
                turns: false,
                ..WEBPUSH
            },
        )),
        large(webpush(
            "web push, topic and a mishap",
            Webpush { mishaps: 1, ..TOPIC },
        )),
    ]
}

/// Clocks that agree, and no margin.
pub const LEADERSHIP: Leadership = Leadership {
    processes: 2,
    ttl: 6,
    margin: 0,
    drift: 0,
    delay: 2,
    crashes: 1,
    broken: None,
};

/// A lane that is paused, resumed and paused again.
pub const PAUSE: Pause = Pause {
    claimers: 2,
    changes: 3,
    claims: 2,
    scope: Scope::Lane,
    broken: None,
};

/// One place a day.
pub const QUOTA: Quota = Quota {
    claimers: 2,
    notifications: 3,
    days: 2,
    quotas: [1, 1],
    broken: None,
};

/// A message, a month that turns, and a mishap.
pub const WEBPUSH: Webpush = Webpush {
    messages: 1,
    of_topic: false,
    mishaps: 1,
    turns: true,
    pings: true,
    broken: None,
};

/// Two messages of one topic, within one month.
pub const TOPIC: Webpush = Webpush {
    messages: 2,
    of_topic: true,
    mishaps: 0,
    turns: false,
    ..WEBPUSH
};

/// As long as no process dies, everything comes at once.
pub const WITHOUT_PINGS: Webpush = Webpush {
    messages: 2,
    mishaps: 0,
    pings: false,
    ..WEBPUSH
};

/// Enough for something to be cancelled and then asked for again.
pub const TWO_WISHES: Bounds = Bounds {
    mishaps: 0,
    wishes: 2,
    ..ONE
};

/// Two rows that share messages.
pub fn sharing(mishaps: Mishaps) -> Delivery {
    Delivery::new(Lane::reseller(1), SHARED).sharing(mishaps)
}

/// One row, two processes that send.
pub fn one_row() -> Bounds {
    ONE
}

fn delivery(name: &'static str, model: Delivery) -> Entry {
    let bounds = model.bounds;
    let words = format!(
        "rows {}, senders {}, attempts {}, queue {}, prefetch {}, publishers {}, mishaps {}, wishes {}",
        bounds.rows,
        bounds.workers,
        model.lane.max_attempts(),
        bounds.capacity,
        bounds.prefetch,
        bounds.publishers,
        bounds.mishaps,
        bounds.wishes
    );
    entry(name, words, Subject::Delivery(model))
}

fn leadership(name: &'static str, model: Leadership) -> Entry {
    let words = format!(
        "replicas {}, time-to-live {}, margin {}, clocks wrong by {}, delay {}, crashes {}",
        model.processes, model.ttl, model.margin, model.drift, model.delay, model.crashes
    );
    entry(name, words, Subject::Leadership(model))
}

fn pause(name: &'static str, model: Pause) -> Entry {
    let words = format!(
        "claimers {}, claims of each {}, changes {}",
        model.claimers, model.claims, model.changes
    );
    entry(name, words, Subject::Pause(model))
}

fn quota(name: &'static str, model: Quota) -> Entry {
    let words = format!(
        "claimers {}, notifications {}, midnights {}, quota {}, then {}",
        model.claimers, model.notifications, model.days, model.quotas[0], model.quotas[1]
    );
    entry(name, words, Subject::Quota(model))
}

fn webpush(name: &'static str, model: Webpush) -> Entry {
    let words = format!(
        "messages {}, topics {}, mishaps {}, turns of the month {}",
        model.messages,
        u8::from(model.of_topic),
        model.mishaps,
        u8::from(model.turns)
    );
    entry(name, words, Subject::Webpush(model))
}

fn entry(name: &'static str, bounds: String, subject: Subject) -> Entry {
    Entry {
        name,
        bounds,
        size: Size::Small,
        subject,
    }
}

/// A row of the table in `docs/model.md`.
pub fn row(entry: &Entry, counts: Counts) -> String {
    let Counts { states, steps, depth } = counts;
    format!(
        "| {} | {} | {} | {} | {depth} |",
        entry.name,
        entry.bounds,
        grouped(states),
        grouped(steps)
    )
}

/// With commas between thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
