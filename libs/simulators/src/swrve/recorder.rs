//! Remembers what arrived and how it ended. Bounded memory; knows nothing of HTTP.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::received::{Outcome, Ring};
use crate::swrve::distinct::Distinct;
use crate::swrve::options::Options;
use crate::swrve::pace::Pace;
use crate::swrve::received::{Received, ReceivedPage, cut};
use crate::swrve::report::Report;

/// The fields of a push that can be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PushFields<'a> {
    pub(crate) push_key: &'a str,
    pub(crate) user: &'a str,
    pub(crate) message: &'a str,
    pub(crate) test: bool,
}

/// What an arrival is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket {
    pub(crate) number: u64,
    /// How many arrived within the last second, this one included.
    pub(crate) in_last_second: usize,
}

#[derive(Debug)]
pub(crate) struct Recorder {
    started: Instant,
    short_gap: Duration,
    distinct_capacity: usize,
    received_capacity: usize,
    /// Arrivals with smaller numbers belong to the time before the last reset.
    first_number: u64,
    pace: Pace,
    ring: Ring<Received>,
    users: Distinct,
    pushes: Distinct,
    accepted_pushes: Distinct,
    by_status: BTreeMap<u16, u64>,
    dropped: u64,
    abandoned: u64,
    in_flight: u64,
    max_concurrent: u64,
}

impl Recorder {
    pub(crate) fn new(options: &Options) -> Self {
        Self::starting_with(
            1,
            Instant::now(),
            options.shortest_allowed_gap,
            options.distinct_capacity,
            options.received_capacity,
        )
    }

    fn starting_with(
        first_number: u64,
        started: Instant,
        short_gap: Duration,
        distinct_capacity: usize,
        received_capacity: usize,
    ) -> Self {
        Self {
            started,
            short_gap,
            distinct_capacity,
            received_capacity,
            first_number,
            pace: Pace::new(short_gap),
            ring: Ring::new(received_capacity, usize::MAX, first_number),
            users: Distinct::new(distinct_capacity),
            pushes: Distinct::new(distinct_capacity),
            accepted_pushes: Distinct::new(distinct_capacity),
            by_status: BTreeMap::new(),
            dropped: 0,
            abandoned: 0,
            in_flight: 0,
            max_concurrent: 0,
        }
    }

    /// Forgets everything. Requests that are still in flight are no longer counted.
    pub(crate) fn reset(&mut self) {
        *self = Self::starting_with(
            self.ring.next_number(),
            self.started,
            self.short_gap,
            self.distinct_capacity,
            self.received_capacity,
        );
    }

    /// Stamps an arrival. The clock is read under the recorder's exclusive borrow, so that times have the order of
    /// numbers and no gap is misjudged by two threads overtaking each other.
    pub(crate) fn arrive(&mut self) -> Ticket {
        let now = Instant::now();
        self.in_flight += 1;
        self.max_concurrent = self.max_concurrent.max(self.in_flight);
        let in_last_second = self.pace.arrive(now);
        let number = self.ring.next_number();
        self.ring.push(Received {
            number,
            arrival_micros: micros(now.duration_since(self.started)),
            push_key: String::new(),
            user: String::new(),
            message: String::new(),
            test: false,
            outcome: Outcome::Pending,
            status: None,
        });
        Ticket {
            number,
            in_last_second,
        }
    }

    /// Adds what the body of an arrival said.
    pub(crate) fn identify(&mut self, number: u64, fields: PushFields<'_>) {
        if number < self.first_number {
            return;
        }
        self.users.see(fields.user);
        self.pushes.see((fields.user, fields.message));
        self.ring.change(number, |item| {
            item.push_key = cut(fields.push_key);
            item.user = cut(fields.user);
            item.message = cut(fields.message);
            item.test = fields.test;
        });
    }

    /// Notes that a push was accepted, before its answer is given.
    pub(crate) fn accept(&mut self, number: u64, fields: PushFields<'_>) {
        if number >= self.first_number {
            self.accepted_pushes.see((fields.user, fields.message));
        }
    }

    /// Notes the end of an arrival.
    pub(crate) fn end(&mut self, number: u64, outcome: Outcome, status: Option<u16>) {
        if number < self.first_number {
            return;
        }
        self.in_flight -= 1;
        match outcome {
            Outcome::Dropped => self.dropped += 1,
            Outcome::Abandoned => self.abandoned += 1,
            Outcome::Pending | Outcome::Answered => {}
        }
        if let Some(status) = status {
            *self.by_status.entry(status).or_default() += 1;
        }
        self.ring.change(number, |item| {
            item.outcome = outcome;
            item.status = status;
        });
    }

    pub(crate) fn page(&self, after: u64, limit: usize) -> ReceivedPage {
        self.ring.page(after, limit)
    }

    pub(crate) fn report(&self) -> Report {
        let distinct = [&self.users, &self.pushes, &self.accepted_pushes];
        Report {
            received: self.pace.count,
            accepted: self.by_status.range(200..300).map(|(_, count)| count).sum(),
            by_status: self.by_status.clone(),
            dropped: self.dropped,
            abandoned: self.abandoned,
            in_flight: self.in_flight,
            max_concurrent: self.max_concurrent,
            distinct_users: self.users.len() as u64,
            distinct_pushes: self.pushes.len() as u64,
            repeats: self.pushes.repeats,
            duplicates: self.accepted_pushes.repeats,
            distinct_saturated: distinct.iter().any(|distinct| distinct.saturated),
            smallest_gap_micros: self.pace.smallest_gap.map(micros),
            short_gaps: self.pace.short_gaps,
            short_gap_micros: micros(self.short_gap),
            max_in_any_second: self.pace.max_in_any_second as u64,
            span_millis: micros(self.pace.span()) / 1_000.0,
            rate_per_second: self.pace.rate(),
        }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1_000.0
}
