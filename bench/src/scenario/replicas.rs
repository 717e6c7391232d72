//! What a second and a third replica of ingest-api, dispatcher and retry-worker cost and bring, on one machine.

use std::time::Duration;

use anyhow::Result;

use super::flat_out::{BATCHES, Delivered, SUBSCRIPTIONS, deliver};
use super::rounds::{Seen, cpu_rows, loaded, rounds};
use super::{Bench, Floor};
use crate::cpu::memory_of;
use crate::load::Load;
use crate::receiver::Receiver;
use crate::report::{Grid, Row, Section, Unit};
use crate::rig::{Lane, Setup, answering};
use crate::sizes::Sizes;

const REPLICAS: [usize; 3] = [1, 2, 3];

pub(super) fn expected(sizes: &Sizes) -> Duration {
    const BEGINNING: Duration = Duration::from_secs(8);
    sizes.all_rounds(2 * REPLICAS.len()) + BEGINNING * 3
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let rig = bench.rig;
    let mut section = Section::new("replicas");
    let floors = bench
        .beside(&[
            Floor::Requests,
            Floor::Rows,
            Floor::EventRows,
            Floor::Relayed,
            Floor::Posts,
        ])
        .await?;
    let receiver = Receiver::start()?;
    let mut accepting = Grid::new("pushes as fast as they are accepted", "replicas");
    let mut delivering = Grid::new("events in batches as fast as they are delivered", "replicas");
    for replicas in REPLICAS {
        let setup = Setup {
            ingest: replicas,
            replicas,
            ..Setup::sending()
        };
        let lane = Lane::fresh(rig, &answering(&receiver, SUBSCRIPTIONS), setup).await?;
        let pushes = lane.pushes();
        let load = |length| Load::at_once(bench.sizes.connections, length);
        let what = format!("replicas, {replicas}, delivering");
        let delivered = rounds(bench, &what, async || {
            deliver(bench, &lane, &receiver, &BATCHES, &mut section).await
        })
        .await?;
        let what = format!("replicas, {replicas}, accepting");
        let accepted = rounds(bench, &what, async || loaded(bench, &pushes, load).await).await?;
        let name = replicas.to_string();
        accepting.line(name.clone(), accepted_rows(&accepted));
        let mut rows = delivered_rows(&delivered);
        rows.push(Row::new("memory of all services", memory(&lane), Unit::Megabytes));
        delivering.line(name, rows);
    }
    rig.restart().await?;
    let first = accepting.lines.first_mut().and_then(|line| line.rows.first_mut());
    if let Some(first) = first {
        first.beside.extend(floors);
    }
    section.grids.extend([accepting, delivering]);
    section.note(
        "each line has so many of each of the three services, the load spread over all. More of them on the same two cores \
         bring little more; what they cost is the price of being able to lose one.",
    );
    Ok(section)
}

fn accepted_rows(rounds: &[Seen]) -> Vec<Row> {
    let mut rows = vec![
        Row::of("accepted", Unit::PerSecond, rounds, |round| {
            round.tally.accepted_per_second()
        }),
        Row::of("p99", Unit::Milliseconds, rounds, |round| {
            round.tally.quantile_millis(0.99)
        }),
    ];
    rows.extend(cpu_rows(
        rounds,
        |round| &round.usage,
        |round| round.tally.accepted,
    ));
    rows
}

fn delivered_rows(rounds: &[Delivered]) -> Vec<Row> {
    let mut rows = vec![Row::of("delivered", Unit::PerSecond, rounds, |round| {
        round.per_second
    })];
    rows.extend(cpu_rows(rounds, |round| &round.usage, |round| round.sent));
    rows
}

/// The most that each service has ever had, all together.
fn memory(lane: &Lane) -> f64 {
    let services = lane
        .ingest
        .iter()
        .chain(&lane.dispatchers)
        .chain(&lane.retry_workers);
    services
        .filter_map(|service| memory_of(service.process.pid))
        .map(|memory| memory.peak)
        .sum()
}
