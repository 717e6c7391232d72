//! What is known of a run from outside the product: what was handed in and accepted, and what arrived where, when and with which
//! answer. It keeps no bodies: each is compared with what it must be when it comes, so that hours fit into memory.

mod arrival;
mod starts;
mod webpush;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

pub use arrival::{Answer, Arrival};
pub use starts::{Start, read_starts};
pub use webpush::{SentMessage, Shown, WebpushHistory};

/// Alterations and the like that are kept in words; further ones are only counted.
const WORDS: usize = 50;

/// What was handed in, by what callers know it by: the user of a push, the identifier of an event.
#[derive(Debug, Default)]
pub struct HandedIn {
    /// What was answered 202, with the identifier of the answer.
    pub accepted: BTreeMap<String, Uuid>,
    /// What was handed in at all.
    pub tried: u64,
    /// Requests, repeated ones included.
    pub requests: u64,
}

/// What one side has received, by what it is known by there.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// In the order of their arrival.
    pub by_key: HashMap<String, Vec<Arrival>>,
    /// Requests that broke off before they said what they were.
    pub broken_off: u64,
    /// What is wrong with some of them, in words.
    pub objections: Vec<String>,
    /// How many have something wrong.
    pub objected: u64,
}

impl Arrivals {
    /// Adds one.
    pub fn add(&mut self, key: String, arrival: Arrival) {
        self.by_key.entry(key).or_default().push(arrival);
    }

    /// Notes that something is wrong with an arrival.
    pub fn object(&mut self, objection: String) {
        self.objected += 1;
        if self.objections.len() < WORDS {
            self.objections.push(objection);
        }
    }

    /// All of one key.
    pub fn of(&self, key: &str) -> &[Arrival] {
        self.by_key.get(key).map_or(&[], Vec::as_slice)
    }

    /// All together.
    pub fn count(&self) -> usize {
        self.by_key.values().map(Vec::len).sum()
    }
}

/// The history of a run, written by many tasks.
#[derive(Debug, Default)]
pub struct Ledger {
    pushes: Mutex<HandedIn>,
    events: Mutex<HandedIn>,
    at_swrve: Mutex<Arrivals>,
    at_receivers: Mutex<Arrivals>,
    sent_again: Mutex<HashMap<Uuid, u32>>,
    webpush: Mutex<WebpushHistory>,
    complaints: Mutex<Vec<String>>,
}

/// The history when nothing is written into it any more.
#[derive(Debug, Default)]
pub struct History {
    /// By user.
    pub pushes: HandedIn,
    /// By the caller's own identifier.
    pub events: HandedIn,
    /// By user.
    pub at_swrve: Arrivals,
    /// By path and identifier of the event.
    pub at_receivers: Arrivals,
    /// How often each notification was asked for once more.
    pub sent_again: HashMap<Uuid, u32>,
    /// Messages of Web Push.
    pub webpush: WebpushHistory,
    /// Answers to callers that no caller should get.
    pub complaints: Vec<String>,
}

impl Ledger {
    /// Pushes that were handed in.
    pub fn pushes(&self) -> MutexGuard<'_, HandedIn> {
        open(&self.pushes)
    }

    /// Events that were handed in.
    pub fn events(&self) -> MutexGuard<'_, HandedIn> {
        open(&self.events)
    }

    /// What has arrived at Swrve.
    pub fn at_swrve(&self) -> MutexGuard<'_, Arrivals> {
        open(&self.at_swrve)
    }

    /// What has arrived at endpoints.
    pub fn at_receivers(&self) -> MutexGuard<'_, Arrivals> {
        open(&self.at_receivers)
    }

    /// What was sent and shown of Web Push.
    pub fn webpush(&self) -> MutexGuard<'_, WebpushHistory> {
        open(&self.webpush)
    }

    /// Notes that a reseller is about to ask for a notification once more.
    pub fn ask_again(&self, notification: Uuid) {
        *open(&self.sent_again).entry(notification).or_default() += 1;
    }

    /// Notes an answer that no caller should get.
    pub fn complain(&self, complaint: String) {
        let mut complaints = open(&self.complaints);
        if complaints.len() < WORDS {
            complaints.push(complaint);
        }
    }

    /// Closes the history.
    pub fn close(&self) -> History {
        History {
            pushes: std::mem::take(&mut open(&self.pushes)),
            events: std::mem::take(&mut open(&self.events)),
            at_swrve: std::mem::take(&mut open(&self.at_swrve)),
            at_receivers: std::mem::take(&mut open(&self.at_receivers)),
            sent_again: std::mem::take(&mut open(&self.sent_again)),
            webpush: std::mem::take(&mut open(&self.webpush)),
            complaints: std::mem::take(&mut open(&self.complaints)),
        }
    }
}

fn open<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}
