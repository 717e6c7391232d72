//! The state of a cable: what impairs it now. How bytes are moved is not known here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::lock;

/// Something that is wrong with a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impairment {
    /// Connections end; new ones end at once.
    Cut,
    /// Connections stay open, new ones are taken, and nothing passes. What was sent meanwhile arrives when it is over.
    Silence,
    /// What passes arrives late.
    Latency {
        /// How late, each way.
        delay: Duration,
        /// Up to how much later still, at random. The order of bytes stays.
        jitter: Duration,
    },
}

/// What all impairments come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) cut: bool,
    pub(crate) silent: bool,
    pub(crate) delay: Duration,
    pub(crate) jitter: Duration,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Line(Arc<State>);

#[derive(Debug, Default)]
struct State {
    impairments: Mutex<Impairments>,
    condition: watch::Sender<Condition>,
    /// Ends the connections of now.
    reset: Mutex<CancellationToken>,
}

#[derive(Debug, Default)]
struct Impairments {
    next: u64,
    of_now: BTreeMap<u64, Impairment>,
}

/// An impairment in force; it is over when this is dropped.
#[derive(Debug)]
#[must_use = "the impairment is over when this is dropped"]
pub struct Impaired {
    line: Line,
    number: u64,
}

impl Line {
    pub(crate) fn impair(&self, impairment: Impairment) -> Impaired {
        let number = {
            let mut impairments = lock(&self.0.impairments);
            let number = impairments.next;
            impairments.next += 1;
            impairments.of_now.insert(number, impairment);
            self.0.condition.send_replace(impairments.condition());
            number
        };
        if impairment == Impairment::Cut {
            // After the condition has changed: no connection can slip in between.
            self.reset();
        }
        Impaired {
            line: self.clone(),
            number,
        }
    }

    pub(crate) fn reset(&self) {
        std::mem::take(&mut *lock(&self.0.reset)).cancel();
    }

    /// A token that ends with the connections of now; `None` when the cable is cut.
    pub(crate) fn join(&self) -> Option<CancellationToken> {
        // Taken first: whoever cuts in between cancels it.
        let token = lock(&self.0.reset).clone();
        (!self.0.condition.borrow().cut).then_some(token)
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Condition> {
        self.0.condition.subscribe()
    }
}

impl Impairments {
    fn condition(&self) -> Condition {
        let mut condition = Condition::default();
        for impairment in self.of_now.values() {
            match *impairment {
                Impairment::Cut => condition.cut = true,
                Impairment::Silence => condition.silent = true,
                Impairment::Latency { delay, jitter } => {
                    condition.delay += delay;
                    condition.jitter += jitter;
                }
            }
        }
        condition
    }
}

impl Drop for Impaired {
    fn drop(&mut self) {
        let mut impairments = lock(&self.line.0.impairments);
        impairments.of_now.remove(&self.number);
        self.line.0.condition.send_replace(impairments.condition());
    }
}
