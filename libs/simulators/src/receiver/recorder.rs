//! Remembers what arrived and how it ended. Bounded memory; knows nothing of HTTP beyond its texts and numbers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use hdrhistogram::Histogram;

use crate::received::{Outcome, Ring};
use crate::receiver::ids::Ids;
use crate::receiver::keyring::Verdict;
use crate::receiver::options::Options;
use crate::receiver::received::{Received, ReceivedPage};
use crate::receiver::report::{Delay, Report};

/// Types that are counted by name.
const MAX_TYPES: usize = 1_000;
/// Longest delay that is told from longer ones: a week.
const MAX_DELAY_MILLIS: u64 = 7 * 24 * 3_600 * 1_000;

/// The head of a request.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) received_at: DateTime<Utc>,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
}

/// What the body of an arrival said.
#[derive(Debug)]
pub(crate) struct Content<'a> {
    pub(crate) id: &'a str,
    pub(crate) event_type: &'a str,
    pub(crate) body: String,
    pub(crate) delay_millis: Option<i64>,
}

/// How an arrival ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    pub(crate) status: Option<u16>,
    /// A verification challenge was met.
    pub(crate) challenge: bool,
}

#[derive(Debug)]
pub(crate) struct Recorder {
    started: Instant,
    limits: Limits,
    ring: Ring<Received>,
    counts: Counts,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    items: usize,
    bytes: usize,
    distinct: usize,
}

#[derive(Debug)]
struct Counts {
    /// Arrivals with smaller numbers belong to the time before the last reset.
    first_number: u64,
    received: u64,
    accepted: u64,
    challenges: u64,
    by_status: BTreeMap<u16, u64>,
    by_type: BTreeMap<String, u64>,
    by_verdict: BTreeMap<Verdict, u64>,
    dropped: u64,
    abandoned: u64,
    in_flight: u64,
    max_concurrent: u64,
    connections: u64,
    ids: Ids,
    first_arrival: Option<Instant>,
    last_arrival: Option<Instant>,
    delays: Histogram<u64>,
}

impl Recorder {
    pub(crate) fn new(options: &Options) -> Self {
        let limits = Limits {
            items: options.received_capacity,
            bytes: options.received_bytes,
            distinct: options.distinct_capacity,
        };
        Self::starting_with(1, Instant::now(), limits)
    }

    fn starting_with(first_number: u64, started: Instant, limits: Limits) -> Self {
        Self {
            started,
            limits,
            ring: Ring::new(limits.items, limits.bytes, first_number),
            counts: Counts::starting_with(first_number, limits.distinct),
        }
    }

    /// Forgets everything. Requests that are still in flight are no longer counted.
    pub(crate) fn reset(&mut self) {
        *self = Self::starting_with(self.ring.next_number(), self.started, self.limits);
    }

    pub(crate) fn connect(&mut self) {
        self.counts.connections += 1;
    }

    /// Stamps an arrival; returns its number. The clock is read under the recorder's exclusive borrow, so that times have the
    /// order of numbers.
    pub(crate) fn arrive(&mut self, head: Head) -> u64 {
        let now = Instant::now();
        let number = self.ring.next_number();
        self.ring.push(Received {
            number,
            received_at: head.received_at,
            arrival_micros: micros(now.duration_since(self.started)),
            method: head.method,
            path: head.path,
            headers: head.headers,
            body: String::new(),
            id: String::new(),
            event_type: String::new(),
            arrivals: 0,
            verdict: Verdict::Unread,
            delay_millis: None,
            outcome: Outcome::Pending,
            status: None,
        });
        self.counts.arrive(now);
        number
    }

    /// Adds what the body of an arrival said; returns how often this identifier has arrived.
    pub(crate) fn identify(&mut self, number: u64, content: Content<'_>, verdict: Verdict) -> u32 {
        if number < self.counts.first_number {
            return 1;
        }
        let arrivals = self.counts.identify(&content, verdict);
        self.ring.change(number, |item| {
            item.id = content.id.to_owned();
            item.event_type = content.event_type.to_owned();
            item.body = content.body;
            item.delay_millis = content.delay_millis;
            item.verdict = verdict;
            item.arrivals = arrivals;
        });
        arrivals
    }

    /// Notes that a notification is going to be answered with a 2xx. Before the answer: the sender may ask for the report as soon
    /// as it has it.
    pub(crate) fn accept(&mut self, number: u64, id: &str) {
        if number >= self.counts.first_number && !id.is_empty() {
            self.counts.ids.accept(id);
        }
    }

    /// Notes the end of an arrival, and returns it unless it is forgotten.
    pub(crate) fn end(&mut self, number: u64, end: End) -> Option<&Received> {
        if number < self.counts.first_number {
            return None;
        }
        self.counts.end(end);
        self.ring.change(number, |item| {
            item.outcome = end.outcome;
            item.status = end.status;
        })
    }

    pub(crate) fn page(&self, after: u64, limit: usize) -> ReceivedPage {
        self.ring.page(after, limit)
    }

    /// The counts, and the latest `last` requests.
    pub(crate) fn report(&self, last: usize) -> Report {
        let mut report = self.counts.report();
        report.last = self.ring.latest(last);
        report
    }
}

impl Counts {
    fn starting_with(first_number: u64, distinct: usize) -> Self {
        Self {
            first_number,
            received: 0,
            accepted: 0,
            challenges: 0,
            by_status: BTreeMap::new(),
            by_type: BTreeMap::new(),
            by_verdict: BTreeMap::new(),
            dropped: 0,
            abandoned: 0,
            in_flight: 0,
            max_concurrent: 0,
            connections: 0,
            ids: Ids::new(distinct),
            first_arrival: None,
            last_arrival: None,
            delays: Histogram::new_with_max(MAX_DELAY_MILLIS, 3)
                .expect("invariant: the bounds of the histogram are valid"),
        }
    }

    fn arrive(&mut self, now: Instant) {
        self.received += 1;
        self.in_flight += 1;
        self.max_concurrent = self.max_concurrent.max(self.in_flight);
        self.first_arrival.get_or_insert(now);
        self.last_arrival = Some(now);
    }

    fn identify(&mut self, content: &Content<'_>, verdict: Verdict) -> u32 {
        *self.by_verdict.entry(verdict).or_default() += 1;
        *self.count_of_type(content.event_type) += 1;
        if let Some(delay) = content.delay_millis {
            self.delays.saturating_record(u64::try_from(delay).unwrap_or(0));
        }
        if content.id.is_empty() {
            return 1;
        }
        self.ids.arrive(content.id)
    }

    fn count_of_type(&mut self, event_type: &str) -> &mut u64 {
        let is_known = self.by_type.contains_key(event_type);
        let name = match event_type {
            "" => "(none)",
            _ if !is_known && self.by_type.len() >= MAX_TYPES => "(others)",
            name => name,
        };
        self.by_type.entry(name.to_owned()).or_default()
    }

    fn end(&mut self, end: End) {
        self.in_flight -= 1;
        self.challenges += u64::from(end.challenge);
        match end.outcome {
            Outcome::Dropped => self.dropped += 1,
            Outcome::Abandoned => self.abandoned += 1,
            Outcome::Pending | Outcome::Answered => {}
        }
        if let Some(status) = end.status {
            *self.by_status.entry(status).or_default() += 1;
            self.accepted += u64::from((200..300).contains(&status));
        }
    }

    fn report(&self) -> Report {
        let span = self.first_arrival.zip(self.last_arrival);
        let span = span.map_or(Duration::ZERO, |(first, last)| last.duration_since(first));
        Report {
            received: self.received,
            accepted: self.accepted,
            challenges: self.challenges,
            by_status: self.by_status.clone(),
            by_type: self.by_type.clone(),
            by_verdict: self.by_verdict.clone(),
            dropped: self.dropped,
            abandoned: self.abandoned,
            in_flight: self.in_flight,
            max_concurrent: self.max_concurrent,
            connections: self.connections,
            distinct_ids: self.ids.len() as u64,
            repeats: self.ids.repeats,
            duplicates: self.ids.duplicates,
            distinct_saturated: self.ids.saturated,
            span_micros: micros(span),
            rate_per_second: rate(self.received, span),
            delay_millis: self.delay(),
            last: Vec::new(),
        }
    }

    fn delay(&self) -> Option<Delay> {
        (!self.delays.is_empty()).then(|| Delay {
            min: self.delays.min(),
            median: self.delays.value_at_quantile(0.5),
            p99: self.delays.value_at_quantile(0.99),
            max: self.delays.max(),
        })
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Gaps per second: one arrival alone has no rate.
fn rate(received: u64, span: Duration) -> Option<u64> {
    let gaps = received.checked_sub(1).filter(|gaps| *gaps > 0)?;
    gaps.saturating_mul(1_000_000).checked_div(micros(span))
}
