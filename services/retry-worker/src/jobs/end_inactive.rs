//! Ends notifications that wait for subscriptions which get nothing any more, because they are deactivated or deleted.
//!
//! What is on its way at that moment, or was fanned out by a transaction that had not seen the change yet, is found by a
//! later execution.

use std::time::Duration;

use telemetry::Metric;
use uuid::Uuid;

use crate::context::Context;
use crate::periodic::{Job, JobError};

/// Notifications ended in one statement.
const BATCH: u32 = 500;

pub(crate) struct EndInactive;

impl Job for EndInactive {
    const NAME: &'static str = "inactive";
    const INTERVAL: Duration = Duration::from_secs(2);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let mut after = Uuid::nil();
        loop {
            let walk = context.store.inactive_with_waiting(after).await?;
            for subscription in walk.found {
                let ended = end(context, subscription).await?;
                tracing::info!(subscription.id = %subscription, notifications = ended, "ended what waited in vain");
            }
            match walk.next {
                Some(next) => after = next,
                None => return Ok(()),
            }
        }
    }
}

async fn end(context: &Context, subscription: Uuid) -> Result<u64, JobError> {
    let mut ended = 0;
    loop {
        let batch = context
            .store
            .end_inactive(subscription, BATCH, context.clock.now())
            .await?;
        ended += batch.count;
        Metric::NotificationsGivenUp.increment(batch.given_up);
        if batch.count == 0 {
            return Ok(ended);
        }
    }
}
