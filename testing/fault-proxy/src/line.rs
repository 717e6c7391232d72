//! The state of a proxy: which toxics are in its way now. How bytes are moved is not known here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::lock;

/// Something that is wrong with a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toxic {
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

/// What all toxics come to.
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
    toxics: Mutex<Toxics>,
    condition: watch::Sender<Condition>,
    /// Ends the connections of now.
    reset: Mutex<CancellationToken>,
}

#[derive(Debug, Default)]
struct Toxics {
    next: u64,
    of_now: BTreeMap<u64, Toxic>,
}

/// An toxic in force; it is over when this is dropped.
#[derive(Debug)]
#[must_use = "the toxic is over when this is dropped"]
pub struct ToxicGuard {
    line: Line,
    number: u64,
}

impl Line {
    pub(crate) fn add(&self, toxic: Toxic) -> ToxicGuard {
        let number = {
            let mut toxics = lock(&self.0.toxics);
            let number = toxics.next;
            toxics.next += 1;
            toxics.of_now.insert(number, toxic);
            self.0.condition.send_replace(toxics.condition());
            number
        };
        if toxic == Toxic::Cut {
            // After the condition has changed: no connection can slip in between.
            self.reset();
        }
        ToxicGuard {
            line: self.clone(),
            number,
        }
    }

    pub(crate) fn reset(&self) {
        std::mem::take(&mut *lock(&self.0.reset)).cancel();
    }

    /// A token that ends with the connections of now; `None` when the proxy is cut.
    pub(crate) fn join(&self) -> Option<CancellationToken> {
        // Taken first: a cut in between cancels it.
        let token = lock(&self.0.reset).clone();
        (!self.0.condition.borrow().cut).then_some(token)
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Condition> {
        self.0.condition.subscribe()
    }
}

impl Toxics {
    fn condition(&self) -> Condition {
        let mut condition = Condition::default();
        for toxic in self.of_now.values() {
            match *toxic {
                Toxic::Cut => condition.cut = true,
                Toxic::Silence => condition.silent = true,
                Toxic::Latency { delay, jitter } => {
                    condition.delay += delay;
                    condition.jitter += jitter;
                }
            }
        }
        condition
    }
}

impl Drop for ToxicGuard {
    fn drop(&mut self) {
        let mut toxics = lock(&self.line.0.toxics);
        toxics.of_now.remove(&self.number);
        self.line.0.condition.send_replace(toxics.condition());
    }
}
