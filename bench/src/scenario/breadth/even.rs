//! Even traffic: as many events as are delivered, to each subscription as many.

use std::time::Duration;

use anyhow::Result;

use super::super::Bench;
use super::super::flat_out::{Delivered, deliver_for, fanned_out};
use super::super::rounds::{RATE_KEPT, cpu_rows, rounds};
use super::super::stored::{self, Since};
use super::{EACH, FEW, compared, name, subscribers};
use crate::load::{self, Load};
use crate::receiver::Receiver;
use crate::report::{Grid, Number, Row, Section, Target, Unit};
use crate::rig::{Lane, Setup};
use crate::sizes::Sizes;
use crate::tell;

/// A dispatcher writes the statistics of many subscriptions once in so long: each round has to hold that once.
const WHOLE: Duration = Duration::from_secs(20);
const CONNECTIONS: usize = 64;

fn length(sizes: &Sizes) -> Duration {
    sizes.measured.max(WHOLE)
}

pub(super) fn expected(sizes: &Sizes) -> Duration {
    const BEGINNING: Duration = Duration::from_secs(10);
    const BESIDES: Duration = Duration::from_secs(1);
    ((length(sizes) + sizes.warm_up + BESIDES) * sizes.rounds + BEGINNING) * 2
}

pub(super) async fn measure(
    bench: &Bench<'_>,
    receiver: &Receiver,
    floors: Vec<Number>,
    section: &mut Section,
) -> Result<()> {
    let measured = length(bench.sizes);
    let mut grid = Grid::new("even traffic, as fast as it is delivered", "subscriptions");
    let mut few = None;
    for subscriptions in [FEW, bench.sizes.subscriptions] {
        let lane = Lane::fresh(bench.rig, &subscribers(receiver, subscriptions), Setup::default()).await?;
        let resellers = (subscriptions / EACH) as usize;
        let what = format!("breadth, even traffic for {subscriptions} subscriptions");
        tell(format_args!("{what}: the first event of each"));
        begin(bench, &lane, resellers).await?;
        let feed = fanned_out(resellers, EACH);
        let rounds = rounds(bench, &what, async || {
            deliver_for(bench, &lane, receiver, &feed, measured, section).await
        })
        .await?;
        bench.rig.stop_all().await;
        let rows = rows(&rounds, few, &floors);
        few = few.or(rows[0].value);
        grid.line(name(subscriptions), rows);
    }
    section.grids.push(grid);
    section.note(format!(
        "even traffic: batches of 10 events over 8 connections, each event to {EACH} subscriptions, as many under way as the lane can use. \
         Every subscription has had a notification before, since the first one of a day costs more. \
         A round has at least {} s, in which the numbers of all subscriptions are written once.",
        WHOLE.as_secs()
    ));
    Ok(())
}

/// Gives every subscription its first notification: that is counted by the whole rule, and its endpoint is read.
async fn begin(bench: &Bench<'_>, lane: &Lane, resellers: usize) -> Result<()> {
    let since = Since::now()?;
    let load = Load::Exactly {
        connections: CONNECTIONS,
        pushes: resellers as u64,
    };
    load::put(load, &lane.events(0, resellers, None, None)).await?;
    stored::settled(&bench.rig.pool, since).await
}

fn rows(rounds: &[Delivered], few: Option<f64>, floors: &[Number]) -> Vec<Row> {
    let rates: Vec<f64> = rounds.iter().map(|round| round.per_second).collect();
    let refused = rounds.iter().map(|round| round.refused).sum();
    let mut rows = vec![
        Row::median("delivered and recorded", &rates, Unit::PerSecond),
        Row::count("not accepted", refused).target(Target::AtMost(0.0)),
    ];
    rows.extend(cpu_rows(rounds, |round| &round.usage, |round| round.sent));
    match few {
        None => rows[0].beside.extend(floors.iter().cloned()),
        Some(few) => {
            rows[0] = rows[0].clone().target(Target::AtLeast(few * RATE_KEPT));
            rows.push(compared(&rates, few));
        }
    }
    rows
}
