//! What endpoints that hang do to those that answer.

use std::time::Duration;

use anyhow::Result;

use super::{Lane, answering};
use crate::args::Args;
use crate::load::{self, Load};
use crate::receiver::{Arrival, Receiver, quantile_millis};
use crate::report::{Row, Section, Target, Unit};
use crate::rig::{Overrides, Rig, Subscriber};
use crate::tell;

/// Subscriptions that answer; as many hang until the timeout of the defaults, 10 s.
const HEALTHY: usize = 100;
/// Events a second for those that answer; as many for those that hang.
const RATE: u32 = 200;
const CONNECTIONS: usize = 64;
/// So that hanging attempts have piled up and the first of them have become retries.
const PILING_UP: Duration = Duration::from_secs(15);
/// How much slower the healthy ones may get.
const SLOWER: f64 = 2.0;

pub(super) async fn measure(
    args: &Args,
    rig: &Rig,
    receiver: &Receiver,
    section: &mut Section,
) -> Result<()> {
    let mut subscribers = answering(receiver, HEALTHY);
    subscribers.extend((HEALTHY..2 * HEALTHY).map(|number| Subscriber {
        url: receiver.hanging_url(number),
        daily_quota: None,
    }));
    let lane = Lane::start(rig, &subscribers, 1, Overrides::new()).await?;
    let mut seen = Vec::new();
    for (name, resellers, rate) in [("without", HEALTHY, RATE), ("with", 2 * HEALTHY, 2 * RATE)] {
        tell(format_args!("reseller, neighbours: {name} those that hang"));
        let target = lane.events(resellers, None, None);
        load::put(at_rate(rate, PILING_UP), &target).await?;
        receiver.restart(None);
        let tally = load::put(at_rate(rate, args.sustained()), &target).await?;
        // Those that hang are not waited for; a healthy one that has not arrived by now is late enough to be told of.
        let expected = tally.accepted as usize * HEALTHY / resellers;
        let healthy = wait_for(receiver, expected).await;
        if healthy.len() + 1 < expected {
            section.broken.push(format!(
                "neighbours, {name} those that hang: {} of {expected} have arrived",
                healthy.len()
            ));
        }
        seen.push((name, healthy, tally.errors()));
        lane.expect_alive(rig).await?;
    }
    rig.stop_all().await;
    add_rows(section, &seen);
    Ok(())
}

fn at_rate(rate: u32, measured: Duration) -> Load {
    Load::Open {
        connections: CONNECTIONS,
        rate,
        warm_up: Duration::ZERO,
        measured,
    }
}

/// What has arrived at those that answer, once it is `expected` or a while has passed.
async fn wait_for(receiver: &Receiver, expected: usize) -> Vec<Arrival> {
    const POLL: Duration = Duration::from_millis(100);
    let mut healthy = Vec::new();
    for _ in 0..100 {
        healthy = receiver.arrivals();
        healthy.retain(|arrival| arrival.to < HEALTHY);
        if healthy.len() >= expected {
            break;
        }
        tokio::time::sleep(POLL).await;
    }
    healthy
}

fn add_rows(section: &mut Section, seen: &[(&str, Vec<Arrival>, u64)]) {
    let mut bound = None;
    for (name, healthy, errors) in seen {
        for (measure, quantile) in [("median", 0.5), ("p99", 0.99)] {
            let mut row = Row::new(
                format!("{measure} of {HEALTHY} healthy subscriptions, {name} {HEALTHY} that hang"),
                quantile_millis(healthy, quantile),
                Unit::Milliseconds,
            );
            if measure == "p99" {
                row = match bound {
                    Some(bound) => row.target(Target::AtMost(bound)),
                    None => row,
                };
                bound = Some(row.value * SLOWER);
            }
            section.row(row);
        }
        section.row(
            Row::new(
                format!("not accepted, {name} those that hang"),
                *errors as f64,
                Unit::Count,
            )
            .target(Target::AtMost(0.0)),
        );
    }
    section.note(format!(
        "neighbours: {RATE} events a second for the {HEALTHY} subscriptions that answer, and as many more for those that hang \
         until the default timeout of 10 s; the target is twice the p99 without them. Their retries run meanwhile."
    ));
}
