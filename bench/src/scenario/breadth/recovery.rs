//! All that waits becomes due at once: the subscriptions were paused, and go on.

use std::time::{Duration, Instant};

use anyhow::Result;
use sqlx::Executor as _;

use super::super::Bench;
use super::super::rounds::{RATE_KEPT, cpu_rows};
use super::super::stored;
use super::super::waiting::{self, Waits};
use super::{FEW, compared, name, subscribers};
use crate::receiver::Receiver;
use crate::report::markdown::with_unit;
use crate::report::{Grid, Row, Section, Target, Unit};
use crate::rig::{Lane, Rig, Setup, Usage};
use crate::sizes::Sizes;
use crate::tell;

/// Deliveries a second that are reckoned with.
const PER_SECOND: u64 = 2_500;
/// Fewer than these a second are not waited for.
const SLOWEST: u64 = 250;
const LOOKS: Duration = Duration::from_millis(100);

/// What was seen of one number of subscriptions.
struct Recovered {
    /// Until the last one was delivered and recorded; `None` when that took too long.
    took: Option<Duration>,
    count: u64,
    arrived: usize,
    usage: Usage,
}

impl Recovered {
    fn per_second(&self) -> f64 {
        self.took
            .map_or(f64::NAN, |took| self.count as f64 / took.as_secs_f64())
    }
}

pub(super) fn expected(sizes: &Sizes) -> Duration {
    const BEGINNING: Duration = Duration::from_secs(8);
    let seconds = sizes.recovering / PER_SECOND + sizes.recovering / waiting::PER_SECOND;
    (Duration::from_secs(seconds) + BEGINNING) * 2
}

pub(super) async fn measure(bench: &Bench<'_>, receiver: &Receiver, section: &mut Section) -> Result<()> {
    let mut grid = Grid::new("what waits becomes due at once", "subscriptions");
    let mut few = None;
    for subscriptions in [FEW, bench.sizes.subscriptions] {
        let recovered = recover(bench, receiver, subscriptions).await?;
        if (recovered.arrived as u64) < recovered.count {
            section.broken(format!(
                "recovery of {subscriptions} subscriptions: {} notifications waited, {} have arrived",
                recovered.count, recovered.arrived
            ));
        }
        let rate = recovered.per_second();
        let took = recovered.took.map_or(f64::NAN, |took| took.as_secs_f64());
        let mut delivered = Row::new("delivered and recorded", rate, Unit::PerSecond);
        if let Some(few) = few {
            delivered = delivered.target(Target::AtLeast(few * RATE_KEPT));
        }
        let mut rows = vec![
            Row::count("waiting", recovered.count),
            Row::new("until all are delivered", took, Unit::Seconds),
            delivered,
        ];
        let measured = [recovered];
        rows.extend(cpu_rows(&measured, |one| &one.usage, |one| one.count));
        if let Some(few) = few {
            rows.push(compared(&[rate], few));
        }
        few = few.or(rate.is_finite().then_some(rate));
        grid.line(name(subscriptions), rows);
    }
    section.grids.push(grid);
    section.note(format!(
        "due at once: {} notifications over all subscriptions, PENDING and inserted by the server itself while these are paused, \
         with the services running; then the pauses end in one statement. It is over when every row is in a terminal state.",
        with_unit(bench.sizes.recovering as f64, Unit::Count)
    ));
    Ok(())
}

async fn recover(bench: &Bench<'_>, receiver: &Receiver, subscriptions: u32) -> Result<Recovered> {
    let rig = bench.rig;
    let mut paused = subscribers(receiver, subscriptions);
    for subscriber in &mut paused {
        subscriber.paused = true;
    }
    rig.restart().await?;
    rig.subscribe(&paused).await?;
    let each = (bench.sizes.recovering / u64::from(subscriptions)).max(1);
    let count = each * u64::from(subscriptions);
    let what = format!("breadth, {count} due at once for {subscriptions} subscriptions");
    tell(format_args!("{what}: inserting them"));
    waiting::insert(&rig.pool, Waits::First, each).await?;
    rig.analyze().await?;
    Lane::start(rig, Setup::default()).await?;
    receiver.restart(None);
    tell(what);
    let before = rig.usage();
    let start = Instant::now();
    rig.pool
        .execute("UPDATE subscriptions SET paused_at = NULL")
        .await?;
    let took = finished(rig, start, Duration::from_secs(60 + count / SLOWEST)).await?;
    let usage = rig.usage().since(&before);
    rig.expect_all_alive().await?;
    rig.stop_all().await;
    Ok(Recovered {
        took,
        count,
        arrived: receiver.count(),
        usage,
    })
}

/// How long after `start` everything had ended; `None` when that had not happened within `limit`.
async fn finished(rig: &Rig, start: Instant, limit: Duration) -> Result<Option<Duration>> {
    while start.elapsed() < limit {
        if stored::notifications_are_finished(&rig.pool).await? {
            return Ok(Some(start.elapsed()));
        }
        tokio::time::sleep(LOOKS).await;
    }
    Ok(None)
}
