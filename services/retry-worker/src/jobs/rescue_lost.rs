//! Finds pushes whose lease ran out, without anybody having to restart anything.

use std::time::Duration;

use telemetry::Metric;

use crate::context::Context;
use crate::periodic::{Job, JobError, Timing};

/// Pushes rescued in one statement.
const BATCH: u32 = 500;

pub(crate) struct RescueLost;

impl Job for RescueLost {
    const NAME: &'static str = "rescue";

    fn timing(&self, context: &Context) -> Timing {
        Timing {
            start_delay: Duration::ZERO,
            repeat_interval: context.config.push.rescue.repeat_interval,
        }
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        loop {
            let rescued = context
                .store
                .rescue_pushes(BATCH, context.config.push.retry.max_attempts)
                .await?;
            let count = rescued.pending + rescued.given_up;
            if count > 0 {
                tracing::warn!(
                    pending = rescued.pending,
                    given_up = rescued.given_up,
                    "rescued lost pushes"
                );
                Metric::PushRescued.increment(count);
                Metric::PushGivenUp.increment(rescued.given_up);
                Metric::DeadLetters.increment_with(&[("reason", "given_up")], rescued.given_up);
            }
            if count < u64::from(BATCH) {
                return Ok(());
            }
        }
    }
}
