//! One turn of `gate`: a lane that is started afresh, and a round of each of the things that a change is most likely to make
//! worse. Short, so that the other program has its turn soon.

use std::time::Duration;

use anyhow::Result;

use super::flat_out::{BATCHES, Delivered, SINGLE, SUBSCRIPTIONS, deliver};
use super::rounds::{Seen, cpu_rows, loaded, times};
use super::{Bench, evenly};
use crate::load::Load;
use crate::receiver::Receiver;
use crate::report::markdown::with_unit;
use crate::report::{Grid, Row, Section, Target, Unit};
use crate::rig::{Lane, Setup, answering};
use crate::sizes::Sizes;

/// What was seen in one turn.
pub(crate) struct Turn {
    calm: evenly::Delivered,
    single: Delivered,
    batches: Delivered,
    pushes: Seen,
}

/// About how long one takes.
pub(crate) fn expected(sizes: &Sizes) -> Duration {
    const SETTLING: Duration = Duration::from_secs(2);
    const BEGINNING: Duration = Duration::from_secs(10);
    (sizes.round() + SETTLING) * 4 + BEGINNING
}

/// Takes a turn. Nothing is running before and afterwards.
pub(crate) async fn take(bench: &Bench<'_>, receiver: &Receiver, section: &mut Section) -> Result<Turn> {
    let rig = bench.rig;
    let lane = Lane::fresh(rig, &answering(receiver, SUBSCRIPTIONS), Setup::sending()).await?;
    let calm = evenly::deliver(bench, &lane, receiver, section).await?;
    let single = deliver(bench, &lane, receiver, &SINGLE, section).await?;
    let batches = deliver(bench, &lane, receiver, &BATCHES, section).await?;
    let connections = bench.sizes.connections;
    let pushes = loaded(bench, &lane.pushes(), |length| Load::at_once(connections, length)).await?;
    rig.expect_all_alive().await?;
    // Nothing of it is to be vacuumed during the turn of the other program.
    rig.restart().await?;
    Ok(Turn {
        calm,
        single,
        batches,
        pushes,
    })
}

/// What all turns of one program say.
pub(crate) fn summarize(turns: &[Turn], connections: usize, section: &mut Section) {
    let mut delivering = Grid::new("notifications as fast as they are delivered", "events by");
    /// What a turn says of one way to hand events in.
    type Of = fn(&Turn) -> &Delivered;
    let feeds: [(&str, Of); 2] = [
        (SINGLE.name, |turn| &turn.single),
        (BATCHES.name, |turn| &turn.batches),
    ];
    for (name, of) in feeds {
        let mut rows = vec![
            Row::of("delivered and recorded", Unit::PerSecond, turns, |turn| {
                of(turn).per_second
            }),
            refused(turns, |turn| of(turn).refused),
        ];
        rows.extend(cpu_rows(turns, |turn| &of(turn).usage, |turn| of(turn).sent));
        delivering.line(name, rows);
    }
    let mut calm = Grid::new("at even distances, from POST /events to arrival", "offered");
    let all: Vec<Vec<f64>> = turns.iter().map(|turn| turn.calm.times.clone()).collect();
    let mut rows: Vec<Row> = times(&all)
        .into_iter()
        .filter(|row| matches!(row.measure.as_str(), "p50" | "p99"))
        .collect();
    rows.push(refused(turns, |turn| turn.calm.refused));
    rows.extend(cpu_rows(
        turns,
        |turn| &turn.calm.usage,
        |turn| turn.calm.times.len() as u64,
    ));
    calm.line(with_unit(f64::from(evenly::RATE), Unit::PerSecond), rows);
    let mut accepting = Grid::new("pushes as fast as they are accepted", "connections");
    let mut rows = vec![
        Row::of("accepted", Unit::PerSecond, turns, |turn| {
            turn.pushes.tally.accepted_per_second()
        }),
        Row::of("p99", Unit::Milliseconds, turns, |turn| {
            turn.pushes.tally.quantile_millis(0.99)
        }),
        refused(turns, |turn| turn.pushes.tally.errors()),
    ];
    rows.extend(cpu_rows(
        turns,
        |turn| &turn.pushes.usage,
        |turn| turn.pushes.tally.accepted,
    ));
    accepting.line(connections.to_string(), rows);
    section.grids.extend([delivering, calm, accepting]);
    section.note(
        "the two programs take turns; each turn begins with empty tables and services that were just started, and has one round \
         of everything. The load generator is the same for both.",
    );
}

/// Requests of all turns that were not accepted.
fn refused(turns: &[Turn], of: impl Fn(&Turn) -> u64) -> Row {
    Row::count("not accepted", turns.iter().map(of).sum()).target(Target::AtMost(0.0))
}
