//! Events at even distances that the lane keeps up with easily: what each takes when little gathers.

use std::collections::HashSet;

use anyhow::Result;

use super::Bench;
use super::flat_out::SUBSCRIPTIONS;
use super::stored::{self, Since};
use crate::load::{self, Load};
use crate::receiver::{Arrival, Receiver};
use crate::report::Section;
use crate::rig::{Lane, Usage};

/// Events a second.
pub(super) const RATE: u32 = 1_000;
const CONNECTIONS: usize = 64;

/// What was seen in one round.
pub(super) struct Delivered {
    pub(super) usage: Usage,
    /// Milliseconds from the moment when its POST was due to its arrival, of every delivery.
    pub(super) times: Vec<f64>,
    /// Requests that were not accepted.
    pub(super) refused: u64,
}

/// A warm-up and a round. What was accepted and has not arrived once everything is finished is told in `section`.
pub(super) async fn deliver(
    bench: &Bench<'_>,
    lane: &Lane,
    receiver: &Receiver,
    section: &mut Section,
) -> Result<Delivered> {
    let (rig, since) = (bench.rig, Since::now()?);
    receiver.restart(None);
    let target = lane.events(0, SUBSCRIPTIONS, None, None);
    load::put(Load::evenly(CONNECTIONS, RATE, bench.sizes.warm_up), &target).await?;
    rig.analyze().await?;
    stored::settled(&rig.pool, since).await?;
    receiver.restart(None);
    let before = rig.usage();
    let tally = load::put(Load::evenly(CONNECTIONS, RATE, bench.sizes.measured), &target).await?;
    stored::settled(&rig.pool, since).await?;
    let usage = rig.usage().since(&before);
    let arrivals = receiver.arrivals();
    let distinct: HashSet<u64> = arrivals.iter().map(|arrival| arrival.number).collect();
    if (distinct.len() as u64) < tally.accepted {
        section.broken(format!(
            "{RATE} a second: {} events were accepted, {} have arrived",
            tally.accepted,
            distinct.len()
        ));
    }
    Ok(Delivered {
        usage,
        times: arrivals.iter().map(Arrival::millis).collect(),
        refused: tally.errors(),
    })
}
