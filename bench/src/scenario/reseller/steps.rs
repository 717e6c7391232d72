//! The time from `POST /events` to the arrival at the receiver, when events come at even distances: steps up to
//! saturation, and the first one past it.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::Bench;
use super::super::flat_out::SUBSCRIPTIONS;
use super::super::rounds::{rounds, times};
use super::super::stored::{self, Since};
use crate::epoch;
use crate::load::{self, Load, Tally};
use crate::receiver::{Arrival, Receiver};
use crate::report::markdown::with_unit;
use crate::report::stats::{Step, knee, quantile};
use crate::report::{Grid, Number, Row, Section, Target, Unit};
use crate::rig::{Lane, Setup, answering};
use crate::tell;

const CONNECTIONS: usize = 128;
/// The times that are promised, and at which rate.
const MEDIAN: f64 = 10.0;
const P99: f64 = 40.0;
const PROMISED_AT: u32 = 200;
/// How long what is due may wait for a connection at the end of a step.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was seen in one round.
struct Round {
    tally: Tally,
    /// Deliveries that arrived while events came, a second.
    delivered: f64,
    /// Milliseconds of every delivery.
    times: Vec<f64>,
}

pub(super) async fn measure(
    bench: &Bench<'_>,
    receiver: &Receiver,
    floors: Vec<Number>,
    section: &mut Section,
) -> Result<()> {
    let mut grid = Grid::new("at even distances, from POST /events to arrival", "offered");
    let mut steps: Vec<Step> = Vec::new();
    for rate in &bench.sizes.event_rates {
        let lane = Lane::fresh(bench.rig, &answering(receiver, SUBSCRIPTIONS), Setup::default()).await?;
        let what = format!("reseller, {rate} a second");
        let rounds = rounds(bench, &what, async || {
            round(bench, &lane, receiver, *rate, section).await
        })
        .await?;
        steps.push(Step::of(
            *rate,
            &rounds,
            |round| round.delivered,
            |round| quantile(&round.times, 0.99),
        ));
        grid.line(with_unit(f64::from(*rate), Unit::PerSecond), rows(*rate, &rounds));
        if steps.last().is_some_and(|step| !step.keeps_up()) {
            tell("reseller: past saturation");
            break;
        }
    }
    section.grids.push(grid);
    let most = knee(&steps, P99).map_or(f64::NAN, |step| step.offered);
    section.row(
        Row::new(
            format!("highest step with all delivered and a p99 of at most {P99:.0} ms"),
            most,
            Unit::PerSecond,
        )
        .target(Target::AtLeast(f64::from(PROMISED_AT)))
        .beside(floors),
    );
    section.note(format!(
        "steps: each event is timed from the moment when its POST was due, waiting for a free one of {CONNECTIONS} connections \
         included, until the head of its delivery has been read. Delivered are those that arrived while events came; the \
         times are of all of them, late ones included."
    ));
    Ok(())
}

async fn round(
    bench: &Bench<'_>,
    lane: &Lane,
    receiver: &Receiver,
    rate: u32,
    section: &mut Section,
) -> Result<Round> {
    let (rig, since) = (bench.rig, Since::now()?);
    let target = lane.events(0, SUBSCRIPTIONS, None, None);
    let load = |length| Load::Open {
        connections: CONNECTIONS,
        rate,
        measured: length,
        patience: PATIENCE,
    };
    // The warm-up is a load of its own, so that what arrives afterwards was measured.
    load::put(load(bench.sizes.warm_up), &target).await?;
    rig.analyze().await?;
    stored::settled(&rig.pool, since).await?;
    receiver.restart(None);
    let from = epoch::nanos(Instant::now());
    let tally = load::put(load(bench.sizes.measured), &target).await?;
    stored::settled(&rig.pool, since).await?;
    let arrivals = receiver.arrivals();
    let distinct: HashSet<u64> = arrivals.iter().map(|arrival| arrival.number).collect();
    if (distinct.len() as u64) < tally.accepted {
        section.broken(format!(
            "{rate} a second: {} events were accepted, {} have arrived",
            tally.accepted,
            distinct.len()
        ));
    }
    let to = from + u64::try_from(bench.sizes.measured.as_nanos())?;
    let in_time = arrivals.iter().filter(|arrival| arrival.arrived < to).count();
    Ok(Round {
        delivered: in_time as f64 / bench.sizes.measured.as_secs_f64(),
        times: arrivals.iter().map(Arrival::millis).collect(),
        tally,
    })
}

fn rows(rate: u32, rounds: &[Round]) -> Vec<Row> {
    let sum = |of: &dyn Fn(&Round) -> u64| rounds.iter().map(of).sum::<u64>();
    let all: Vec<Vec<f64>> = rounds.iter().map(|round| round.times.clone()).collect();
    let mut rows = vec![
        Row::of("delivered", Unit::PerSecond, rounds, |round| round.delivered),
        Row::count("refused", sum(&|round| round.tally.errors())),
        Row::count("not sent", sum(&|round| round.tally.unsent)),
    ];
    rows.extend(times(&all).into_iter().map(|row| match row.measure.as_str() {
        "p50" if rate == PROMISED_AT => row.target(Target::Under(MEDIAN)),
        "p99" if rate == PROMISED_AT => row.target(Target::Under(P99)),
        _ => row,
    }));
    rows.push(Row::of(
        "p50 of the answer",
        Unit::Milliseconds,
        rounds,
        |round| round.tally.quantile_millis(0.5),
    ));
    rows
}
