//! The shape that scenarios share: a warm-up that does not count, rounds that do, everybody alive after each, and the rows
//! that come of them.

use std::time::Duration;

use anyhow::Result;

use super::Bench;
use crate::load::{self, Load, Tally, Target};
use crate::report::stats::quantile;
use crate::report::{Row, Unit};
use crate::rig::{MACHINE, Usage};
use crate::tell;

/// What was seen of one load.
pub(super) struct Seen {
    pub(super) tally: Tally,
    pub(super) usage: Usage,
    /// Pushes or events that were accepted before it, in its warm-up.
    pub(super) warmed: u64,
}

impl Seen {
    pub(super) fn accepted_in_all(&self) -> u64 {
        self.warmed + self.tally.accepted_in_all()
    }

    /// CPU seconds for 1,000 accepted requests.
    pub(super) fn cpu_of(&self, who: &str) -> f64 {
        per_thousand(self.usage.of(who).total(), self.tally.accepted)
    }
}

/// CPU seconds for each 1,000 of `count`.
pub(super) fn per_thousand(seconds: f64, count: u64) -> f64 {
    seconds * 1e3 / count as f64
}

/// Does `one` as often as the run has rounds.
pub(super) async fn rounds<T>(
    bench: &Bench<'_>,
    what: &str,
    mut one: impl AsyncFnMut() -> Result<T>,
) -> Result<Vec<T>> {
    let mut rounds = Vec::new();
    for number in 1..=bench.sizes.rounds {
        tell(format_args!("{what}: round {number} of {}", bench.sizes.rounds));
        rounds.push(one().await?);
        bench.rig.expect_all_alive().await?;
    }
    Ok(rounds)
}

/// A warm-up and a measured load, of the length of a round. The warm-up is a load of its own, so that the CPU time is that
/// of the measured part.
pub(super) async fn loaded(
    bench: &Bench<'_>,
    target: &Target,
    load: impl Fn(Duration) -> Load,
) -> Result<Seen> {
    let warmed = load::put(load(bench.sizes.warm_up), target).await?;
    bench.rig.analyze().await?;
    let before = bench.rig.usage();
    let tally = load::put(load(bench.sizes.measured), target).await?;
    Ok(Seen {
        tally,
        usage: bench.rig.usage().since(&before),
        warmed: warmed.accepted_in_all(),
    })
}

/// The quantiles that are told.
const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("longest", 1.0),
];

/// The times of the answers.
pub(super) fn answer_times(rounds: &[Seen]) -> Vec<Row> {
    let row = |(name, share): (&str, f64)| {
        Row::of(name, Unit::Milliseconds, rounds, |round| match share {
            1.0 => round.tally.max_millis(),
            share => round.tally.quantile_millis(share),
        })
    };
    QUANTILES.map(row).into()
}

/// Times in milliseconds, one list for each round.
pub(super) fn times(rounds: &[Vec<f64>]) -> Vec<Row> {
    let row = |(name, share): (&str, f64)| {
        Row::of(name, Unit::Milliseconds, rounds, |round| quantile(round, share))
    };
    QUANTILES.map(row).into()
}

/// CPU time for 1,000 of `count`, of those who matter most.
pub(super) fn cpu_rows<T>(rounds: &[T], usage: impl Fn(&T) -> &Usage, count: impl Fn(&T) -> u64) -> Vec<Row> {
    let row = |measure: &str, seconds: &dyn Fn(&Usage) -> f64| {
        Row::of(measure, Unit::CpuPerThousand, rounds, |round| {
            per_thousand(seconds(usage(round)), count(round))
        })
    };
    vec![
        row("CPU for 1,000: services", &|usage| usage.of_services().total()),
        row("PostgreSQL", &|usage| usage.of("PostgreSQL").total()),
        row("RabbitMQ", &|usage| usage.of("RabbitMQ").total()),
        row(MACHINE, &|usage| usage.of(MACHINE).total()),
    ]
}

/// Rates are judged with room for noise when they are to stay the same.
pub(super) const RATE_KEPT: f64 = 0.8;
/// And times.
pub(super) const TIME_KEPT: f64 = 1.5;
