//! Whether a lane may be served now: operators can pause it.
//!
//! It looks about once a second, which bounds how soon a replica stops and begins again. That nothing is claimed meanwhile
//! does not rest on it: the claiming statements ask for themselves.

use std::time::Duration;

use lifecycle::{Shutdown, error_chain};
use store::{Lane, Store};

/// How often it looks.
const POLL: Duration = Duration::from_secs(1);
/// How long the database may take to answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Looks after the pauses of a lane.
#[derive(Debug, Clone)]
pub struct LaneWatch {
    store: Store,
    lane: Lane,
}

impl LaneWatch {
    /// A watch on `lane`.
    pub fn new(store: Store, lane: Lane) -> Self {
        Self { store, lane }
    }

    /// Waits until the lane is not paused, also while the database is away; `false` when it is to shut down instead.
    pub async fn opened(&self, shutdown: &Shutdown) -> bool {
        let mut told = false;
        while !shutdown.is_cancelled() {
            match self.is_paused().await {
                Some(false) => return true,
                Some(true) if !told => {
                    tracing::info!(lane = %self.lane, "the lane is paused");
                    told = true;
                }
                Some(true) | None => {}
            }
            let _ = tokio::time::timeout(POLL, shutdown.cancelled()).await;
        }
        false
    }

    /// Completes when the lane is paused.
    pub async fn paused(&self) {
        while self.is_paused().await != Some(true) {
            tokio::time::sleep(POLL).await;
        }
    }

    async fn is_paused(&self) -> Option<bool> {
        match store::within(LIMIT, self.store.lane_is_paused(self.lane)).await {
            Ok(paused) => Some(paused),
            Err(error) => {
                tracing::debug!(lane = %self.lane, error = error_chain(&error), "cannot look for pauses");
                None
            }
        }
    }
}
