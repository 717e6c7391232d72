//! Forgets the keys of pushes and of events that are older than their retention.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::context::Context;
use crate::periodic::{Job, JobError, Timing};

/// Keys forgotten in one statement.
const BATCH: i64 = 5_000;

pub(crate) struct ForgetIdempotencyKeys;

impl Job for ForgetIdempotencyKeys {
    const NAME: &'static str = "idempotency-keys";

    fn timing(&self, _: &Context) -> Timing {
        Timing {
            start_delay: Duration::ZERO,
            repeat_interval: Duration::from_secs(60),
        }
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let (store, config) = (&context.store, &context.config);
        if let Some(before) = recorded_before(context, config.push.idempotency.retention) {
            while store.forget_idempotency_keys(before, BATCH).await? == BATCH.unsigned_abs() {}
        }
        if let Some(before) = recorded_before(context, config.reseller.event.key_retention) {
            while store.forget_event_keys(before, BATCH).await? == BATCH.unsigned_abs() {}
        }
        Ok(())
    }
}

/// Keys from before this time are past their retention; `None` when time does not go back that far.
fn recorded_before(context: &Context, retention: Duration) -> Option<DateTime<Utc>> {
    let retention = TimeDelta::from_std(retention).unwrap_or(TimeDelta::MAX);
    context.clock.now().checked_sub_signed(retention)
}
