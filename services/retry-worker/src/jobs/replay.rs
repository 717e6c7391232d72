//! Takes replays on: what subscriptions missed since a time is made due again, at the rate of each replay.
//!
//! Where a replay stands is in its row, and moves in the transaction that makes something due: a replica that comes after a crash
//! goes on where the last step ended. Sending is left to those who send.

use std::time::Duration;

use chrono::{DateTime, Utc};
use lifecycle::error_chain;
use telemetry::Metric;
use uuid::Uuid;

use crate::context::Context;
use crate::periodic::{Job, JobError};

/// Steps of one replay in an execution. One that finds much to pass over must not keep the others waiting.
const STEPS: u32 = 20;

pub(crate) struct Replay;

impl Job for Replay {
    const NAME: &'static str = "replay";
    const INTERVAL: Duration = Duration::from_millis(500);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let replays = context.store.running_replays().await?;
        if replays.is_empty() {
            return Ok(());
        }
        // A clock that is ahead would pass over events that are yet to come.
        let present = context.present().await?;
        for replay in replays {
            match take_on(context, replay, present).await {
                Err(error) if error.is_transient() => return Err(error.into()),
                Err(error) => {
                    tracing::error!(%replay, error = error_chain(&error), "failed to take a replay on");
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }
}

async fn take_on(context: &Context, replay: Uuid, present: DateTime<Utc>) -> Result<(), store::Error> {
    for _ in 0..STEPS {
        let step = context.store.advance_replay(replay, present).await?;
        if step.replayed > 0 {
            Metric::NotificationsReplayed.increment(step.replayed);
            tracing::debug!(%replay, replayed = step.replayed, "made missed notifications due");
        }
        if !step.more {
            break;
        }
    }
    Ok(())
}
