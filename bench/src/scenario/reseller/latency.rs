//! The time from `POST /events` to the arrival at the receiver, when events come at a fixed rate.

use anyhow::Result;

use super::{Lane, STRAGGLERS, answering, stored};
use crate::args::Args;
use crate::load::{self, Load};
use crate::receiver::{Receiver, quantile_millis};
use crate::report::{Row, Section, Target, Unit};
use crate::rig::{Overrides, Rig};
use crate::tell;

const RATE: u32 = 200;
const CONNECTIONS: usize = 32;
const SUBSCRIPTIONS: usize = 50;

pub(super) async fn measure(
    args: &Args,
    rig: &Rig,
    receiver: &Receiver,
    section: &mut Section,
) -> Result<()> {
    let lane = Lane::start(rig, &answering(receiver, SUBSCRIPTIONS), 1, Overrides::new()).await?;
    let target = lane.events(SUBSCRIPTIONS, None, None);
    let (mut rounds, mut answers) = (Vec::new(), Vec::new());
    for number in 1..=args.rounds {
        tell(format_args!(
            "reseller, latency: round {number} of {}",
            args.rounds
        ));
        // The warm-up is a load of its own, so that what arrives afterwards was measured.
        load::put(at_rate(args.warm_up()), &target).await?;
        stored::settled(&rig.pool, STRAGGLERS).await?;
        receiver.restart(None);
        let tally = load::put(at_rate(args.sustained()), &target).await?;
        stored::settled(&rig.pool, STRAGGLERS).await?;
        let arrivals = receiver.arrivals();
        if (arrivals.len() as u64) < tally.accepted {
            section.broken.push(format!(
                "latency: {} events were accepted, {} have arrived",
                tally.accepted,
                arrivals.len()
            ));
        }
        rounds.push(arrivals);
        answers.push(tally);
        lane.expect_alive(rig).await?;
    }
    rig.stop_all().await;
    for (measure, quantile, target) in [
        ("median", 0.5, Some(10.0)),
        ("p99", 0.99, Some(40.0)),
        ("longest", 1.0, None),
    ] {
        let times: Vec<f64> = rounds
            .iter()
            .map(|round| quantile_millis(round, quantile))
            .collect();
        let mut row = Row::median(
            format!("{measure} from POST /events to arrival at {RATE}/s"),
            &times,
            Unit::Milliseconds,
        );
        if let Some(bound) = target {
            row = row.target(Target::Under(bound));
        }
        section.row(row);
    }
    let answered: Vec<f64> = answers.iter().map(|tally| tally.quantile_millis(0.5)).collect();
    section.row(Row::median(
        format!("median of the answer to POST /events at {RATE}/s"),
        &answered,
        Unit::Milliseconds,
    ));
    let errors: u64 = answers.iter().map(load::Tally::errors).sum();
    section.row(
        Row::new(format!("not accepted at {RATE}/s"), errors as f64, Unit::Count).target(Target::AtMost(0.0)),
    );
    Ok(())
}

fn at_rate(measured: std::time::Duration) -> Load {
    Load::Open {
        connections: CONNECTIONS,
        rate: RATE,
        warm_up: std::time::Duration::ZERO,
        measured,
    }
}
