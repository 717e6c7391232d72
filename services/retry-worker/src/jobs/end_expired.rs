//! Ends notifications that have waited for too long, whatever for: a subscription that stays paused or is never verified,
//! a quota that is far too small. Otherwise what they are about would keep everybody's month from being dropped.

use std::time::Duration;

use store::Cutoff;
use telemetry::Metric;
use uuid::Uuid;

use crate::context::Context;
use crate::periodic::{Job, JobError};

/// Notifications ended in one statement, in each of the ways to wait.
const BATCH: u32 = 500;

pub(crate) struct Expire;

impl Job for Expire {
    const NAME: &'static str = "expired";
    const INTERVAL: Duration = Duration::from_secs(60);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let cutoff = context.cutoff(context.config.reseller.delivery.max_age).await?;
        let mut after = Uuid::nil();
        loop {
            let walk = context.store.expired_with_waiting(after, cutoff).await?;
            for subscription in walk.found {
                let ended = end(context, subscription, cutoff).await?;
                if ended > 0 {
                    tracing::info!(subscription.id = %subscription, notifications = ended, "ended what waited for too long");
                }
            }
            match walk.next {
                Some(next) => after = next,
                None => return Ok(()),
            }
        }
    }
}

async fn end(context: &Context, subscription: Uuid, cutoff: Cutoff) -> Result<u64, JobError> {
    let mut ended = 0;
    loop {
        let now = context.clock.now();
        let batch = context
            .store
            .end_expired(subscription, cutoff, BATCH, now)
            .await?;
        ended += batch.count;
        Metric::NotificationsGivenUp.increment(batch.given_up);
        if batch.count == 0 {
            return Ok(ended);
        }
    }
}
