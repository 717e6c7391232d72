//! How long the operations take that take waiting pushes up: promoting a portion, claiming a batch.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use domain::push::PushId;
use store::{Claim, PromotionQueue, Settings, Store};
use uuid::Uuid;

use crate::rig::Rig;

const ROUNDS: usize = 40;
/// The default portion of the job that promotes.
const PORTION: u32 = 249;
/// The dispatcher's batch.
const CLAIMED: usize = 64;
const LEASE: Duration = Duration::from_secs(3_600);

/// Pushes that must wait before the times can be taken.
pub(crate) const NEEDED: u64 = (ROUNDS as u64 + 1) * PORTION as u64;

/// Milliseconds of every round.
pub(crate) struct StoreTimes {
    pub(crate) promote: Vec<f64>,
    pub(crate) claim: Vec<f64>,
}

/// Promotes and claims what waits. No service may be running: what is claimed here is never sent.
pub(crate) async fn measure(rig: &Rig) -> Result<StoreTimes> {
    let store = Store::open(&Settings {
        url: rig.database_url.clone(),
        max_connections: 2,
        acquire_timeout: Duration::from_secs(5),
        application_name: "bench".to_owned(),
    })?;
    let name = "bench";
    let seen = store.view_lease(name).await?;
    let leader = store.take_lease(name, seen, Uuid::now_v7()).await?;
    let leader = leader.ok_or_else(|| anyhow::anyhow!("somebody else uses the database of this run"))?;
    let claim = Claim {
        leader: &leader,
        lease: LEASE,
    };
    let mut times = StoreTimes {
        promote: Vec::with_capacity(ROUNDS),
        claim: Vec::with_capacity(ROUNDS),
    };
    // The first round opens the connection and prepares the statements.
    for round in 0..=ROUNDS {
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
        if round > 0 {
            times.promote.push(promoting.as_secs_f64() * 1e3);
            times.claim.push(claiming.as_secs_f64() * 1e3);
        }
    }
    store.close().await;
    Ok(times)
}
