//! Forgets idempotency keys that are older than their retention.

use std::time::Duration;

use chrono::TimeDelta;

use crate::context::Context;
use crate::periodic::{Job, JobError, Timing};

/// Keys forgotten in one statement.
const BATCH: u32 = 5_000;

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
        let retention =
            TimeDelta::from_std(context.config.push.idempotency.retention).unwrap_or(TimeDelta::MAX);
        let Some(before) = context.clock.now().checked_sub_signed(retention) else {
            return Ok(());
        };
        while context
            .store
            .forget_idempotency_keys(before, i64::from(BATCH))
            .await?
            == u64::from(BATCH)
        {}
        Ok(())
    }
}
