//! Who uses the CPU: seconds for 1,000 deliveries, by process, and how much of them in the kernel.

use std::time::Duration;

use anyhow::Result;

use super::flat_out::{BATCHES, Delivered, SINGLE, SUBSCRIPTIONS, deliver};
use super::rounds::{loaded, per_thousand, rounds};
use super::{Bench, Floor, evenly};
use crate::cpu::CpuTime;
use crate::load::Load;
use crate::receiver::Receiver;
use crate::report::{Grid, Number, Row, Section, Target, Unit};
use crate::rig::{Lane, Setup, Usage, answering};
use crate::sizes::Sizes;

const CONNECTIONS: usize = 64;
/// Half of the CPU seconds of the whole machine for 1,000 notifications before the lane was profiled, on the two cores of
/// docs/performance.md: 0.467 and 0.357.
const HALF_SINGLE: f64 = 0.467 / 2.0;
const HALF_BATCHES: f64 = 0.357 / 2.0;
/// Pushes a second that are sent: what Swrve takes.
const SENDS: u32 = 245;

/// A load of this length.
type LoadOf = Box<dyn Fn(Duration) -> Load>;

/// What was used, and for how many.
struct Used {
    usage: Usage,
    count: u64,
}

impl From<Delivered> for Used {
    fn from(delivered: Delivered) -> Self {
        Self {
            usage: delivered.usage,
            count: delivered.sent,
        }
    }
}

pub(super) fn expected(sizes: &Sizes) -> Duration {
    const SETTLING: Duration = Duration::from_secs(3);
    sizes.all_rounds(5) + SETTLING * 5
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("cpu");
    let receiver = Receiver::start()?;
    reseller(bench, &receiver, &mut section).await?;
    pushes(bench, &receiver, &mut section).await?;
    bench.rig.restart().await?;
    section.note(
        "PostgreSQL is all of its processes, RabbitMQ all of its threads; both, and the kernel, also do what other clients \
         of theirs ask for. At 245 pushes a second most of the time is what waiting precisely costs: it is the same when \
         fewer are sent.",
    );
    Ok(section)
}

async fn reseller(bench: &Bench<'_>, receiver: &Receiver, section: &mut Section) -> Result<()> {
    let floors = [Floor::Posts, Floor::EventRows, Floor::Relayed];
    let floors = bench.floors.cpu_beside(bench.rig, &floors).await?;
    for (feed, halved) in [(SINGLE, HALF_SINGLE), (BATCHES, HALF_BATCHES)] {
        let lane = start(bench, receiver, false).await?;
        let what = format!("cpu, {}", feed.name);
        let rounds = rounds(bench, &what, async || {
            let delivered = deliver(bench, &lane, receiver, &feed, section).await?;
            Ok(Used::from(delivered))
        })
        .await?;
        let name = format!("1,000 notifications as fast as they are delivered, {}", feed.name);
        let mut grid = grid(name, &rounds, &floors);
        if let Some(whole) = grid.lines.last_mut() {
            whole.rows[0] = whole.rows[0].clone().target(Target::AtMost(halved));
        }
        section.grids.push(grid);
    }
    let lane = start(bench, receiver, false).await?;
    let rounds = rounds(bench, "cpu, events at even distances", async || {
        let delivered = evenly::deliver(bench, &lane, receiver, section).await?;
        Ok(Used {
            usage: delivered.usage,
            count: delivered.times.len() as u64,
        })
    })
    .await?;
    let name = format!("1,000 notifications at {} a second, POST /events", evenly::RATE);
    section.grids.push(grid(name, &rounds, &floors));
    Ok(())
}

async fn pushes(bench: &Bench<'_>, receiver: &Receiver, section: &mut Section) -> Result<()> {
    let floors = [Floor::Requests, Floor::Rows, Floor::Publishes];
    let floors = bench.floors.cpu_beside(bench.rig, &floors).await?;
    let connections = bench.sizes.connections;
    let loads: [(String, LoadOf); 2] = [
        (
            format!("1,000 pushes accepted and sent, at {SENDS} a second"),
            Box::new(|length| Load::evenly(CONNECTIONS, SENDS, length)),
        ),
        (
            "1,000 pushes accepted as fast as they are answered".to_owned(),
            Box::new(move |length| Load::at_once(connections, length)),
        ),
    ];
    for (name, load) in loads {
        let target = start(bench, receiver, true).await?.pushes();
        let what = format!("cpu, {name}");
        let rounds = rounds(bench, &what, async || {
            let seen = loaded(bench, &target, &load).await?;
            Ok(Used {
                count: seen.tally.accepted,
                usage: seen.usage,
            })
        })
        .await?;
        section.grids.push(grid(name, &rounds, &floors));
    }
    Ok(())
}

async fn start(bench: &Bench<'_>, receiver: &Receiver, sending: bool) -> Result<Lane> {
    let setup = Setup {
        sending,
        ..Setup::default()
    };
    Lane::fresh(bench.rig, &answering(receiver, SUBSCRIPTIONS), setup).await
}

/// A line for everybody who used any.
fn grid(name: String, rounds: &[Used], floors: &[Number]) -> Grid {
    let mut grid = Grid::new(name, "process");
    let who = rounds.first().map_or(&[][..], |round| round.usage.entries());
    for (index, (who, _)) in who.iter().enumerate() {
        let row = |measure: &str, of: fn(CpuTime) -> f64| {
            Row::of(measure, Unit::CpuPerThousand, rounds, |round| {
                per_thousand(of(round.usage.of(who)), round.count)
            })
        };
        let mut rows = vec![
            row("CPU", CpuTime::total),
            row("of it in the kernel", |time| time.system),
        ];
        if index == 0 {
            rows[0] = rows[0].clone().beside(floors.iter().cloned());
        }
        grid.line(who.clone(), rows);
    }
    grid
}
