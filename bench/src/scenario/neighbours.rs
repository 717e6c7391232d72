//! What subscriptions that flood, hang or fail do to those that are well.

use std::time::Duration;

use anyhow::Result;

use super::rounds::{rounds, times};
use super::{Bench, Floor};
use crate::load::{self, Load, Tally, Target};
use crate::receiver::{Arrival, Receiver};
use crate::report::{Grid, Row, Section, Target as Bound, Unit};
use crate::rig::{Lane, Setup, Subscriber, answering};
use crate::sizes::Sizes;
use crate::tell;

/// Subscriptions that are well.
const HEALTHY: usize = 100;
/// Events a second for those.
const RATE: u32 = 200;
const CONNECTIONS: usize = 64;
/// So that hanging attempts have piled up and the first of them have become retries.
const PILING_UP: Duration = Duration::from_secs(15);
/// How long healthy deliveries are waited for after the last event.
const LATEST: Duration = Duration::from_secs(10);
/// How much slower the healthy ones may get.
const SLOWER: f64 = 2.0;

/// What the others do.
#[derive(Clone, Copy)]
struct Noise {
    name: &'static str,
    /// How many others there are.
    subscriptions: usize,
    url: fn(&Receiver, usize) -> String,
    /// Requests a second for all of them together; none when zero.
    rate: u32,
    batch: Option<usize>,
}

const QUIET: Noise = Noise {
    name: "nothing",
    subscriptions: 0,
    url: Receiver::url,
    rate: 0,
    batch: None,
};

const NOISES: [Noise; 3] = [
    Noise {
        name: "1 that gets 3,000 events a second",
        subscriptions: 1,
        url: Receiver::url,
        rate: 30,
        batch: Some(100),
    },
    Noise {
        name: "100 that hang",
        subscriptions: 100,
        url: Receiver::hanging_url,
        rate: 200,
        batch: None,
    },
    Noise {
        name: "100 that fail",
        subscriptions: 100,
        url: Receiver::failing_url,
        rate: 200,
        batch: None,
    },
];

pub(super) fn expected(sizes: &Sizes) -> Duration {
    const BEGINNING: Duration = Duration::from_secs(5);
    let situations = 1 + NOISES.len();
    sizes.all_rounds(situations) + (PILING_UP + BEGINNING) * u32::try_from(situations).unwrap_or(u32::MAX)
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("neighbours");
    let floors = bench
        .beside(&[Floor::RequestTime, Floor::CommitTime, Floor::RelayTime])
        .await?;
    let receiver = Receiver::start()?;
    let mut grid = Grid::new(
        format!("{HEALTHY} healthy subscriptions with {RATE} events a second, from POST /events to arrival"),
        "beside",
    );
    let mut alone = None;
    for noise in [QUIET].iter().chain(&NOISES) {
        let rounds = situation(bench, &receiver, *noise, &mut section).await?;
        let mut rows = rows(&rounds, alone);
        if alone.is_none() {
            let p99 = rows.iter().find(|row| row.measure == "p99");
            alone = p99.and_then(|row| row.value);
            rows = rows.into_iter().map(|row| row.beside(floors.clone())).collect();
        }
        grid.line(noise.name, rows);
    }
    section.grids.push(grid);
    section.note(format!(
        "the target is {SLOWER:.0} times the p99 with nothing beside. 200 events a second go to those that hang until the \
         default timeout of 10 s, or answer 500 at once; their retries run meanwhile, too. Batches of 100 flood the one."
    ));
    Ok(section)
}

/// Healthy deliveries of a round, in milliseconds, and what was not accepted.
type Round = (Vec<f64>, u64);

async fn situation(
    bench: &Bench<'_>,
    receiver: &Receiver,
    noise: Noise,
    section: &mut Section,
) -> Result<Vec<Round>> {
    let mut subscribers = answering(receiver, HEALTHY);
    subscribers.extend((HEALTHY..HEALTHY + noise.subscriptions).map(|number| Subscriber {
        url: (noise.url)(receiver, number),
        ..Subscriber::default()
    }));
    let lane = Lane::fresh(bench.rig, &subscribers, Setup::default()).await?;
    let healthy = lane.events(0, HEALTHY, None, None);
    let noisy = (noise.rate > 0).then(|| lane.events(HEALTHY, noise.subscriptions, noise.batch, None));
    tell(format_args!("neighbours, beside {}: piling up", noise.name));
    both(&healthy, noisy.as_ref(), noise.rate, PILING_UP).await?;
    bench.rig.analyze().await?;
    let what = format!("neighbours, beside {}", noise.name);
    rounds(bench, &what, async || {
        receiver.restart(None);
        let [well, others] = both(&healthy, noisy.as_ref(), noise.rate, bench.sizes.measured).await?;
        let arrived = wait_for(receiver, well.accepted as usize).await;
        if (arrived.len() as u64) < well.accepted {
            section.broken(format!(
                "beside {}: {} of {} healthy deliveries have arrived {LATEST:?} after the last event",
                noise.name,
                arrived.len(),
                well.accepted
            ));
        }
        let refused = well.errors() + others.errors();
        Ok((arrived.iter().map(Arrival::millis).collect(), refused))
    })
    .await
}

/// Both loads at once: that of the healthy ones and that of the others.
async fn both(healthy: &Target, noisy: Option<&Target>, rate: u32, length: Duration) -> Result<[Tally; 2]> {
    let others = async {
        match noisy {
            Some(noisy) => load::put(Load::evenly(CONNECTIONS, rate, length), noisy).await,
            None => Ok(Tally::new()),
        }
    };
    let (well, others) = tokio::try_join!(
        load::put(Load::evenly(CONNECTIONS, RATE, length), healthy),
        others
    )?;
    Ok([well, others])
}

/// What has arrived at those that are well, once it is `expected` or a while has passed.
async fn wait_for(receiver: &Receiver, expected: usize) -> Vec<Arrival> {
    const POLL: Duration = Duration::from_millis(100);
    let give_up = tokio::time::Instant::now() + LATEST;
    loop {
        let mut healthy = receiver.arrivals();
        healthy.retain(|arrival| arrival.to < HEALTHY);
        if healthy.len() >= expected || tokio::time::Instant::now() > give_up {
            return healthy;
        }
        tokio::time::sleep(POLL).await;
    }
}

fn rows(rounds: &[Round], alone: Option<f64>) -> Vec<Row> {
    let arrived: Vec<Vec<f64>> = rounds.iter().map(|(times, _)| times.clone()).collect();
    let refused = rounds.iter().map(|(_, refused)| refused).sum();
    let mut rows = times(&arrived);
    if let Some(alone) = alone {
        rows = rows
            .into_iter()
            .map(|row| match row.measure.as_str() {
                "p99" => row.target(Bound::AtMost(alone * SLOWER)),
                _ => row,
            })
            .collect();
        let p99s: Vec<f64> = arrived
            .iter()
            .map(|times| crate::report::stats::quantile(times, 0.99) / alone)
            .collect();
        rows.push(Row::median(
            "p99 compared with nothing beside",
            &p99s,
            Unit::Times,
        ));
    }
    rows.push(Row::count("not accepted", refused).target(Bound::AtMost(0.0)));
    rows
}
