//! How long each call takes that promotes, when every subscription has something waiting. No service runs beside it.

use std::time::{Duration, Instant};

use anyhow::Result;
use domain::clock::{Clock as _, SystemClock};
use store::Store;
use store::webhook::{LineTerms, Promoted};
use uuid::Uuid;

use super::super::Bench;
use super::super::waiting::{self, Waits};
use super::{name, subscribers};
use crate::receiver::Receiver;
use crate::report::stats::quantile;
use crate::report::{Grid, Row, Section, Target, Unit};
use crate::sizes::Sizes;
use crate::tell;

/// Notifications that wait for each subscription, of each kind.
const WAITING: u64 = 3;
/// What one call may take, in milliseconds.
const MOST: f64 = 50.0;
/// As the jobs ask.
const BATCH: u32 = 500;
const SHARE: u32 = 32;
const LINE_SHARE: u32 = 250;
/// What the database allows a statement, in milliseconds.
const FIND_LIMIT: f64 = 8_000.0;
const LEASE: Duration = Duration::from_secs(3_600);

/// What the calls of one kind took.
#[derive(Default)]
struct Calls {
    millis: Vec<f64>,
    promoted: usize,
    failed: u64,
}

impl Calls {
    /// Notes what began at `start`; `None` when it failed.
    fn note<T>(&mut self, start: Instant, outcome: Result<T, store::Error>) -> Option<T> {
        self.millis.push(start.elapsed().as_secs_f64() * 1e3);
        outcome
            .inspect_err(|error| {
                self.failed += 1;
                tell(format_args!("breadth: promoting failed: {error}"));
            })
            .ok()
    }

    fn rows(&self) -> Vec<Row> {
        let time =
            |measure: &str, share| Row::new(measure, quantile(&self.millis, share), Unit::Milliseconds);
        vec![
            Row::count("calls", self.millis.len() as u64),
            Row::count("promoted", self.promoted as u64),
            time("median", 0.5),
            time("longest", 1.0).target(Target::Under(MOST)),
            Row::count("failed or timed out", self.failed).target(Target::AtMost(0.0)),
        ]
    }
}

pub(super) fn expected(sizes: &Sizes) -> Duration {
    const CALLS: Duration = Duration::from_secs(5);
    let rows = 3 * WAITING * u64::from(sizes.subscriptions);
    CALLS + Duration::from_secs(rows / waiting::PER_SECOND)
}

pub(super) async fn measure(bench: &Bench<'_>, receiver: &Receiver, section: &mut Section) -> Result<()> {
    let (rig, subscriptions) = (bench.rig, bench.sizes.subscriptions);
    rig.restart().await?;
    rig.subscribe(&subscribers(receiver, subscriptions)).await?;
    tell(format_args!(
        "breadth, something waiting for {subscriptions} subscriptions"
    ));
    for waits in [Waits::First, Waits::Again, Waits::InLine] {
        waiting::insert(&rig.pool, waits, WAITING).await?;
    }
    let store = rig.store()?;
    let first = around(async |after| {
        let now = SystemClock.now();
        store
            .promote_first_attempts(now, after, &[], SHARE, BATCH, LEASE)
            .await
    })
    .await;
    let retries = around(async |after| {
        let now = SystemClock.now();
        store.promote_retries(now, after, &[], SHARE, BATCH, LEASE).await
    })
    .await;
    let (found, lines) = lines(&store).await;
    store.close().await;
    let mut grid = Grid::new(
        format!(
            "promoting {WAITING} notifications of each kind for {} subscriptions",
            name(subscriptions)
        ),
        "call for",
    );
    for (kind, calls) in [("first attempts", first), ("retries", retries), ("lines", lines)] {
        if calls.failed == 0 && calls.promoted < subscriptions as usize {
            section.broken(format!(
                "{kind}: {} notifications were promoted, and {subscriptions} subscriptions have some waiting",
                calls.promoted
            ));
        }
        grid.line(kind, calls.rows());
    }
    section.grids.push(grid);
    section.row(
        Row::new(
            format!("finding {} lines that nothing has noted", name(subscriptions)),
            found.unwrap_or(f64::NAN),
            Unit::Milliseconds,
        )
        .target(Target::Under(FIND_LIMIT)),
    );
    section.note(
        "promoting: each call around the store, as the jobs make them, from the first subscription to the last: 500 notifications of \
         500 subscriptions at a time, 100 lines. Nothing else runs.",
    );
    Ok(())
}

/// Promotes for every subscription once.
async fn around(promote: impl AsyncFn(Option<Uuid>) -> Result<Promoted, store::Error>) -> Calls {
    let mut calls = Calls::default();
    // Opens the connection and prepares the statement: the last is followed by none.
    let _ = promote(Some(Uuid::max())).await;
    let mut after = None;
    loop {
        let start = Instant::now();
        let Some(promoted) = calls.note(start, promote(after).await) else {
            break;
        };
        calls.promoted += promoted.notifications.len();
        after = promoted.next;
        if after.is_none() {
            break;
        }
    }
    calls
}

/// Finds the lines, and has all of them looked at; also returns how long finding them took, in milliseconds.
async fn lines(store: &Store) -> (Option<f64>, Calls) {
    let terms = LineTerms::default();
    let (mut finding, mut calls) = (Calls::default(), Calls::default());
    let start = Instant::now();
    let found = finding.note(start, store.find_lines(SystemClock.now(), &terms).await);
    let mut more = found.is_some();
    while more {
        let start = Instant::now();
        let looked = store.release_lines(SystemClock.now(), &terms, LINE_SHARE, BATCH, LEASE);
        let released = calls.note(start, looked.await).unwrap_or_default();
        calls.promoted += released.promoted.len();
        more = released.more;
    }
    (found.and(finding.millis.first().copied()), calls)
}
