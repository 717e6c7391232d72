//! The reseller lane as fast as it goes: as many events are kept under way as it can use, and no more. Without a bound the
//! faster accepting would take the CPU from the slower delivering, and the number would be that of neither.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Result;

use super::Bench;
use super::stored::{self, Moment, Since};
use crate::load::{self, Gate, Load};
use crate::receiver::Receiver;
use crate::report::Section;
use crate::rig::{Lane, Usage};

/// Subscriptions that share the load.
pub(super) const SUBSCRIPTIONS: usize = 50;

/// How events are handed in.
pub(super) struct Feed {
    pub(super) name: &'static str,
    batch: Option<usize>,
    pub(super) connections: usize,
    /// Deliveries of events that are accepted, and have not arrived yet.
    under_way: usize,
    /// Resellers whose events come in turn.
    resellers: usize,
    /// Subscriptions of each, all of which get its events.
    each: u32,
}

pub(super) const SINGLE: Feed = Feed {
    name: "POST /events",
    batch: None,
    connections: 64,
    under_way: 1_024,
    resellers: SUBSCRIPTIONS,
    each: 1,
};

pub(super) const BATCHES: Feed = Feed {
    name: "POST /events/batch of 100",
    batch: Some(100),
    connections: 8,
    under_way: 2_000,
    resellers: SUBSCRIPTIONS,
    each: 1,
};

/// Small batches, of which every event goes to `each` subscriptions of one of so many resellers.
pub(super) const fn fanned_out(resellers: usize, each: u32) -> Feed {
    Feed {
        name: "POST /events/batch of 10",
        batch: Some(10),
        resellers,
        each,
        ..BATCHES
    }
}

/// What was seen in one round.
pub(super) struct Delivered {
    /// Notifications that became SENT while the load was on.
    pub(super) sent: u64,
    pub(super) per_second: f64,
    pub(super) usage: Usage,
    /// Requests that were not accepted.
    pub(super) refused: u64,
    /// Deliveries of an event that had arrived before.
    pub(super) repeated: usize,
}

/// A warm-up and a round. What was accepted and has not arrived once everything is finished is told in `section`.
pub(super) async fn deliver(
    bench: &Bench<'_>,
    lane: &Lane,
    receiver: &Receiver,
    feed: &Feed,
    section: &mut Section,
) -> Result<Delivered> {
    deliver_for(bench, lane, receiver, feed, bench.sizes.measured, section).await
}

/// As [`deliver`], for so long.
pub(super) async fn deliver_for(
    bench: &Bench<'_>,
    lane: &Lane,
    receiver: &Receiver,
    feed: &Feed,
    measured: Duration,
    section: &mut Section,
) -> Result<Delivered> {
    let (rig, since) = (bench.rig, Since::now()?);
    let gate = Gate::fanning_out(feed.under_way, feed.each);
    receiver.restart(Some(gate.clone()));
    let target = lane.events(0, feed.resellers, feed.batch, Some(gate));
    let warm_up = Load::at_once(feed.connections, bench.sizes.warm_up);
    let warmed = load::put(warm_up, &target).await?;
    rig.analyze().await?;
    let (before, from) = (rig.usage(), Moment::now()?);
    let tally = load::put(Load::at_once(feed.connections, measured), &target).await?;
    let usage = rig.usage().since(&before);
    stored::settled(&rig.pool, since).await?;
    let sent = stored::sent_within(&rig.pool, since, from, from.plus(measured)).await?;

    let requests = warmed.accepted_in_all() + tally.accepted_in_all();
    let expected = requests * feed.batch.unwrap_or(1) as u64 * u64::from(feed.each);
    let arrivals = receiver.arrivals();
    let distinct: HashSet<(usize, u64)> = arrivals
        .iter()
        .map(|arrival| (arrival.to, arrival.number))
        .collect();
    if (distinct.len() as u64) < expected {
        section.broken(format!(
            "{}: {expected} deliveries of accepted events were to arrive, {} have",
            feed.name,
            distinct.len()
        ));
    }
    Ok(Delivered {
        sent,
        per_second: sent as f64 / measured.as_secs_f64(),
        usage,
        refused: tally.errors(),
        repeated: arrivals.len() - distinct.len(),
    })
}
