//! The time to accept a push when pushes come at a fixed rate, whatever happens to those before.

use anyhow::Result;

use super::floors::Floors;
use crate::args::Args;
use crate::load::{self, Load, Tally};
use crate::report::{Row, Section, Target, Unit};
use crate::rig::{Overrides, Rig};
use crate::table::with_unit;
use crate::tell;

/// Enough that a push finds a free connection even while others wait for a slow commit.
pub(crate) const CONNECTIONS: usize = 256;

pub(crate) async fn measure(args: &Args, rig: &Rig, floors: Option<&Floors>) -> Result<Section> {
    let mut section = Section::new("latency");
    for sending in [true, false] {
        let name = if sending {
            "whole lane running"
        } else {
            "ingest-api alone"
        };
        rig.empty().await?;
        let none = Overrides::new();
        let (_ingest, target) = rig.ingest(&none).await?;
        if sending {
            let swrve = rig.swrve().await?;
            rig.retry_worker(&none).await?;
            rig.dispatcher(&swrve, &none).await?;
        }
        let mut rounds = Vec::new();
        for number in 1..=args.rounds {
            tell(format_args!("latency, {name}: round {number} of {}", args.rounds));
            rounds.push(load::put(at_rate(args), &target).await?);
        }
        rig.stop_all().await;
        add_rows(&mut section, args, name, &rounds, floors);
    }
    section.note(format!(
        "open loop: pushes are due at even distances, and each is timed from the moment when it was due until its answer \
         has arrived, waiting for a free one of {CONNECTIONS} connections included."
    ));
    Ok(section)
}

pub(crate) fn at_rate(args: &Args) -> Load {
    Load::Open {
        connections: CONNECTIONS,
        rate: args.rate,
        warm_up: args.warm_up(),
        measured: args.measured(),
    }
}

fn add_rows(section: &mut Section, args: &Args, name: &str, rounds: &[Tally], floors: Option<&Floors>) {
    let rate = with_unit(f64::from(args.rate), Unit::PerSecond);
    for (measure, quantile) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
        let times: Vec<f64> = rounds
            .iter()
            .map(|tally| tally.quantile_millis(quantile))
            .collect();
        let mut row = Row::median(
            format!("{measure} of the answer at {rate}, {name}"),
            &times,
            Unit::Milliseconds,
        );
        if measure == "p99" {
            row = row.target(Target::Under(20.0));
        }
        if let (Some(floors), "p50") = (floors, measure) {
            row = row.floor(floors.of_ingest());
        }
        section.row(row);
    }
    let longest: Vec<f64> = rounds.iter().map(Tally::max_millis).collect();
    section.row(Row::median(
        format!("longest answer at {rate}, {name}"),
        &longest,
        Unit::Milliseconds,
    ));
    let errors: u64 = rounds.iter().map(Tally::errors).sum();
    section.row(
        Row::new(format!("not accepted, {name}"), errors as f64, Unit::Count).target(Target::AtMost(0.0)),
    );
}
