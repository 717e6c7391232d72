//! Finds what has lost its lease in either lane, so that no operator has to restart anything.

use store::Rescued;
use telemetry::Metric;

use crate::context::Context;
use crate::periodic::{Job, JobError, Timing};

/// Rows rescued in one statement.
const BATCH: u32 = 500;

/// Rescues pushes.
pub(crate) struct RescuePushes;

impl Job for RescuePushes {
    const NAME: &'static str = "rescue";

    fn timing(&self, context: &Context) -> Timing {
        Timing::every(context.config.push.rescue.repeat_interval)
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let max_attempts = context.config.push.retry.max_attempts;
        let rescue = || context.store.rescue_pushes(BATCH, max_attempts);
        until_none_is_left("pushes", rescue, Metric::PushRescued, Metric::PushGivenUp).await
    }
}

/// Rescues notifications.
pub(crate) struct RescueNotifications;

impl Job for RescueNotifications {
    const NAME: &'static str = "rescue-notifications";

    fn timing(&self, context: &Context) -> Timing {
        Timing::every(context.config.push.rescue.repeat_interval)
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let max_retries = context.config.reseller.retry.max_retries;
        let rescue = || {
            let now = context.clock.now();
            context.store.rescue_notifications(now, BATCH, max_retries)
        };
        let (rescued, given_up) = (Metric::NotificationsRescued, Metric::NotificationsGivenUp);
        until_none_is_left("notifications", rescue, rescued, given_up).await
    }
}

async fn until_none_is_left<F>(
    what: &'static str,
    rescue: impl Fn() -> F,
    rescued_metric: Metric,
    given_up_metric: Metric,
) -> Result<(), JobError>
where
    F: Future<Output = Result<Rescued, store::Error>>,
{
    loop {
        let rescued = rescue().await?;
        if rescued.count() > 0 {
            let Rescued {
                pending,
                retry,
                given_up,
            } = rescued;
            tracing::warn!(what, pending, retry, given_up, "rescued what had lost its lease");
            rescued_metric.increment(rescued.count());
            given_up_metric.increment(given_up);
            Metric::DeadLetters.increment_with(&[("reason", "given_up")], given_up);
        }
        if rescued.count() < u64::from(BATCH) {
            return Ok(());
        }
    }
}
