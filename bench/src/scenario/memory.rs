//! What each service keeps in memory: at rest, under load, while many rows wait, and at most.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::Bench;
use super::flat_out::{BATCHES, deliver};
use super::growth;
use crate::cpu::{self, Memory};
use crate::load::{self, Load};
use crate::receiver::Receiver;
use crate::report::markdown::with_unit;
use crate::report::{Grid, Row, Section, Target, Unit};
use crate::rig::{Lane, Service, Setup, settings};
use crate::sizes::Sizes;
use crate::tell;

/// What a service may take.
const MOST: f64 = 100.0;
/// How long the services are left alone before they are looked at.
const REST: Duration = Duration::from_secs(10);
/// How often they are looked at under load.
const LOOKS: Duration = Duration::from_millis(250);

pub(super) fn expected(sizes: &Sizes) -> Duration {
    REST * 2 + sizes.round() * 5 + growth_time(sizes)
}

fn growth_time(sizes: &Sizes) -> Duration {
    Duration::from_secs(waiting(sizes) / 40_000 + 10)
}

/// A moderate backlog: what is kept in memory must not depend on it at all.
fn waiting(sizes: &Sizes) -> u64 {
    let waiting = sizes.waiting.get(1).or(sizes.waiting.last());
    waiting.copied().unwrap_or_default()
}

/// The services, each with what was seen of it.
struct Watched {
    services: Vec<(&'static str, Service)>,
    /// What was resident, by moment and service.
    seen: Vec<(String, Vec<f64>)>,
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let rig = bench.rig;
    let mut section = Section::new("memory");
    let receiver = Receiver::start()?;
    let mut lane = Lane::fresh(rig, &growth::subscribers(&receiver), Setup::sending()).await?;
    let mut watched = Watched {
        services: vec![
            ("ingest-api", lane.ingest.remove(0)),
            ("dispatcher", lane.dispatchers.remove(0)),
            ("retry-worker", lane.retry_workers.remove(0)),
            ("reseller-portal", rig.portal(&settings()).await?.0),
            ("operator-api", rig.operator_api().await?.0),
        ],
        seen: Vec::new(),
    };
    tell("memory: at rest");
    tokio::time::sleep(REST).await;
    watched.look("at rest");
    watched
        .under_load(bench, &lane, &receiver, "under load", &mut section)
        .await?;
    let waiting = waiting(bench.sizes);
    growth::fill(rig, 0, waiting).await?;
    let name = format!("under load, {} waiting", with_unit(waiting as f64, Unit::Count));
    watched
        .under_load(bench, &lane, &receiver, &name, &mut section)
        .await?;
    tell("memory: at rest again");
    tokio::time::sleep(REST).await;
    watched.look("at rest again");
    let grid = watched.grid()?;
    section.grids.push(grid);
    rig.restart().await?;
    section.note(
        "resident memory; under load the most that was seen four times a second. The load: pushes as fast as they are \
         accepted, then batches of events as fast as they are delivered. reseller-portal and operator-api have nothing to \
         do. \"Most ever\" is what Linux says of the whole life of the process.",
    );
    Ok(section)
}

impl Watched {
    fn now(&self) -> Vec<f64> {
        let memory = |service: &Service| cpu::memory_of(service.process.pid);
        let resident =
            |(_, service): &(&str, Service)| memory(service).map_or(f64::NAN, |memory| memory.resident);
        self.services.iter().map(resident).collect()
    }

    fn look(&mut self, when: &str) {
        let now = self.now();
        self.seen.push((when.to_owned(), now));
    }

    /// Both kinds of load, with the most that is seen of each service meanwhile.
    async fn under_load(
        &mut self,
        bench: &Bench<'_>,
        lane: &Lane,
        receiver: &Receiver,
        when: &str,
        section: &mut Section,
    ) -> Result<()> {
        tell(format_args!("memory: {when}"));
        let mut most = self.now();
        let pushes = lane.pushes();
        let loads = async {
            let at_once = Load::at_once(bench.sizes.connections, bench.sizes.round());
            load::put(at_once, &pushes).await?;
            deliver(bench, lane, receiver, &BATCHES, section).await
        };
        let mut loads = std::pin::pin!(loads);
        loop {
            tokio::select! {
                done = &mut loads => {
                    done?;
                    break;
                }
                () = tokio::time::sleep(LOOKS) => {
                    for (most, now) in most.iter_mut().zip(self.now()) {
                        *most = most.max(now);
                    }
                }
            }
        }
        bench.rig.expect_all_alive().await?;
        self.seen.push((when.to_owned(), most));
        Ok(())
    }

    fn grid(&self) -> Result<Grid> {
        let mut grid = Grid::new("resident", "service");
        for (index, (name, service)) in self.services.iter().enumerate() {
            let mut rows: Vec<Row> = self
                .seen
                .iter()
                .map(|(when, seen)| Row::new(when.clone(), seen[index], Unit::Megabytes))
                .collect();
            let memory: Option<Memory> = cpu::memory_of(service.process.pid);
            let peak = memory.with_context(|| format!("{name} is gone"))?.peak;
            rows.push(Row::new("most ever", peak, Unit::Megabytes).target(Target::AtMost(MOST)));
            grid.line(*name, rows);
        }
        Ok(grid)
    }
}
