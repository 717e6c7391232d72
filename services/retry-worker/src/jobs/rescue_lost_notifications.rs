//! Finds notifications whose lease ran out.

use std::time::Duration;

use telemetry::Metric;

use crate::context::Context;
use crate::periodic::{Job, JobError, Timing};

/// Notifications rescued in one statement.
const BATCH: u32 = 500;

pub(crate) struct RescueLostNotifications;

impl Job for RescueLostNotifications {
    const NAME: &'static str = "rescue-notifications";

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
                .rescue_notifications(
                    context.clock.now(),
                    BATCH,
                    context.config.reseller.retry.max_retries,
                )
                .await?;
            let count = rescued.pending + rescued.retry + rescued.given_up;
            if count > 0 {
                tracing::warn!(
                    pending = rescued.pending,
                    retry = rescued.retry,
                    given_up = rescued.given_up,
                    "rescued lost notifications"
                );
                Metric::NotificationsRescued.increment(count);
                Metric::NotificationsGivenUp.increment(rescued.given_up);
                Metric::DeadLetters.increment_with(&[("reason", "given_up")], rescued.given_up);
            }
            if count < u64::from(BATCH) {
                return Ok(());
            }
        }
    }
}
