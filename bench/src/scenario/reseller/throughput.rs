//! Events a second that go all the way: accepted, delivered, answered, recorded.

use anyhow::Result;

use super::super::Bench;
use super::super::flat_out::{BATCHES, Delivered, SINGLE, SUBSCRIPTIONS, deliver};
use super::super::rounds::{cpu_rows, rounds};
use crate::receiver::Receiver;
use crate::report::{Grid, Number, Row, Section, Target, Unit};
use crate::rig::{Lane, Setup, answering};

/// What the lane is to reach.
const WANTED: f64 = 5_000.0;

pub(super) async fn measure(
    bench: &Bench<'_>,
    receiver: &Receiver,
    floors: Vec<Number>,
    section: &mut Section,
) -> Result<()> {
    let mut grid = Grid::new("as fast as they are delivered", "events by");
    for feed in [SINGLE, BATCHES] {
        let lane = Lane::fresh(bench.rig, &answering(receiver, SUBSCRIPTIONS), Setup::default()).await?;
        let what = format!("reseller, {}", feed.name);
        let rounds = rounds(bench, &what, async || {
            deliver(bench, &lane, receiver, &feed, section).await
        })
        .await?;
        grid.line(
            format!("{}, {} connections", feed.name, feed.connections),
            rows(&rounds, floors.clone()),
        );
    }
    section.grids.push(grid);
    section.note(
        "throughput: a notification counts when its row is SENT and its attempt recorded, by the time of its end. So many \
         events are kept under way that the lane never waits for work: 1,024 of single ones, 2,000 of batches.",
    );
    Ok(())
}

fn rows(rounds: &[Delivered], floors: Vec<Number>) -> Vec<Row> {
    let mut rows = vec![
        Row::of("delivered and recorded", Unit::PerSecond, rounds, |round| {
            round.per_second
        })
        .target(Target::AtLeast(WANTED))
        .beside(floors),
        Row::count("not accepted", rounds.iter().map(|round| round.refused).sum())
            .target(Target::AtMost(0.0)),
        Row::count(
            "delivered again",
            rounds.iter().map(|round| round.repeated as u64).sum(),
        ),
    ];
    rows.extend(cpu_rows(rounds, |round| &round.usage, |round| round.sent));
    rows
}
