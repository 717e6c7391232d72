//! How long the operations take that take waiting rows up: promoting a portion, claiming a batch.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use domain::clock::{Clock as _, SystemClock};
use domain::notification::NotificationId;
use domain::push::PushId;
use sqlx::Executor as _;
use store::push::{Claim, PromotionQueue};
use store::webhook::ClaimTerms;
use store::{Lease, Store};
use uuid::Uuid;

use crate::rig::Rig;

const ROUNDS: usize = 40;
/// The default portion of the job that promotes pushes.
const PORTION: u32 = 249;
/// The batch of the one that promotes notifications, and the share of each subscription.
const BATCH: u32 = 500;
const SHARE: u32 = 100;
/// A batch of the dispatcher.
const CLAIMED: usize = 64;
const LEASE: Duration = Duration::from_secs(3_600);

/// Waiting rows of each lane that are used up; twice as many as are promoted, since half of the notifications is scheduled.
pub(super) const NEEDED: u64 = (ROUNDS as u64 + 1) * BATCH as u64 * 2;

/// Milliseconds of every round.
#[derive(Default)]
pub(super) struct StoreTimes {
    pub(super) promote_pushes: Vec<f64>,
    pub(super) claim_pushes: Vec<f64>,
    pub(super) promote_notifications: Vec<f64>,
    pub(super) claim_notifications: Vec<f64>,
}

/// Promotes and claims what waits. No service may be running: what is claimed here is never sent.
pub(super) async fn measure(rig: &Rig) -> Result<StoreTimes> {
    let store = rig.store()?;
    let mut times = StoreTimes::default();
    let name = "bench";
    let seen = store.view_lease(name).await?;
    let leader = store.take_lease(name, seen, Uuid::now_v7()).await?;
    let leader = leader.context("another process uses the database of this run")?;
    // The first round opens the connection and prepares the statements.
    for round in 0..=ROUNDS {
        pushes(&store, &leader, round > 0, &mut times).await?;
    }
    rig.pool
        .execute("DELETE FROM leases WHERE name = 'bench'")
        .await?;
    rig.pool
        .execute("CREATE TABLE bench_paused AS SELECT id FROM subscriptions WHERE paused_at IS NOT NULL")
        .await?;
    rig.pool
        .execute("UPDATE subscriptions SET paused_at = NULL")
        .await?;
    for round in 0..=ROUNDS {
        notifications(&store, round > 0, &mut times).await?;
    }
    rig.pool
        .execute("UPDATE subscriptions SET paused_at = now() WHERE id IN (SELECT id FROM bench_paused)")
        .await?;
    rig.pool.execute("DROP TABLE bench_paused").await?;
    store.close().await;
    Ok(times)
}

async fn pushes(store: &Store, leader: &Lease, counts: bool, times: &mut StoreTimes) -> Result<()> {
    let claim = Claim { leader, lease: LEASE };
    let start = Instant::now();
    let promoted = store
        .promote_pushes(PromotionQueue::Pending, PORTION, LEASE)
        .await?;
    let promoting = start.elapsed();
    ensure!(
        promoted.len() == PORTION as usize,
        "fewer pushes wait than were stored"
    );
    let ids: Vec<PushId> = promoted.iter().take(CLAIMED).map(|push| push.id).collect();
    let start = Instant::now();
    let claimed = store.claim_pushes(&ids, claim).await?;
    let claiming = start.elapsed();
    ensure!(claimed.len() == CLAIMED, "pushes could not be claimed");
    if counts {
        times.promote_pushes.push(millis(promoting));
        times.claim_pushes.push(millis(claiming));
    }
    Ok(())
}

async fn notifications(store: &Store, counts: bool, times: &mut StoreTimes) -> Result<()> {
    let start = Instant::now();
    let promoted = store
        .promote_first_attempts(SystemClock.now(), None, &[], SHARE, BATCH, LEASE)
        .await?
        .notifications;
    let promoting = start.elapsed();
    ensure!(
        promoted.len() == BATCH as usize,
        "fewer notifications wait than were stored: {} of {BATCH}",
        promoted.len()
    );
    let ids: Vec<NotificationId> = promoted
        .iter()
        .take(CLAIMED)
        .map(|notification| notification.id.into())
        .collect();
    let terms = ClaimTerms {
        at: SystemClock.now(),
        lease: LEASE,
        daily_quota: 1_000_000,
        requests_per_second: None,
        zone: chrono_tz::UTC,
        horizon: Duration::from_secs(1),
    };
    let start = Instant::now();
    let claims = store.claim_notifications(&ids, &terms).await?;
    let claiming = start.elapsed();
    ensure!(
        claims.claimed.len() == CLAIMED,
        "notifications could not be claimed: {claims:?}"
    );
    if counts {
        times.promote_notifications.push(millis(promoting));
        times.claim_notifications.push(millis(claiming));
    }
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
