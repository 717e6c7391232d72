//! Puts notifications whose time has come into the queues: first attempts that wait for their subscription's share, and
//! everything that waits for a time.

use std::time::Duration;

use broker::{Envelope, Published, Queue};
use domain::notification::{NotificationId, QUEUE_LEASE};
use store::reseller::{PromotedNotification, Sidelined};
use telemetry::Metric;

use crate::context::Context;
use crate::periodic::{Job, JobError, Timing};

/// Notifications of one subscription that are put into a queue at once. Whoever gets them comes back for the rest.
const SHARE: u32 = 32;
/// Notifications promoted in one statement.
const BATCH: u32 = 1_000;

/// First attempts: as many of each subscription.
pub(crate) struct SendWaitingNotifications;

impl Job for SendWaitingNotifications {
    const NAME: &'static str = "send-waiting-notifications";

    fn timing(&self, _: &Context) -> Timing {
        every(Duration::from_secs(1))
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let limit = room(context, Queue::ResellerReady).await?;
        if limit == 0 {
            return Ok(());
        }
        let now = context.clock.now();
        let promoted = context
            .store
            .promote_first_attempts(now, SHARE, limit, QUEUE_LEASE)
            .await;
        publish(context, Queue::ResellerReady, promoted).await?;
        Ok(())
    }
}

/// Retries whose time has come: as many of each subscription.
pub(crate) struct SendRetries;

impl Job for SendRetries {
    const NAME: &'static str = "send-retries";

    fn timing(&self, _: &Context) -> Timing {
        every(Duration::from_millis(500))
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let limit = room(context, Queue::ResellerRetry).await?;
        if limit == 0 {
            return Ok(());
        }
        let now = context.clock.now();
        let promoted = context
            .store
            .promote_retries(now, SHARE, limit, QUEUE_LEASE)
            .await;
        publish(context, Queue::ResellerRetry, promoted).await?;
        Ok(())
    }
}

/// What was over its quota, and what has its place in the requests per second.
pub(crate) struct SendScheduledNotifications;

impl Job for SendScheduledNotifications {
    const NAME: &'static str = "send-scheduled-notifications";

    fn timing(&self, _: &Context) -> Timing {
        // Below the time by which places in the requests per second are promoted ahead.
        every(Duration::from_millis(500))
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        loop {
            let limit = room(context, Queue::ResellerReady).await?;
            if limit == 0 {
                return Ok(());
            }
            let now = context.clock.now();
            let promoted = context.store.promote_scheduled(now, limit, QUEUE_LEASE).await;
            if publish(context, Queue::ResellerReady, promoted).await? < BATCH as usize {
                return Ok(());
            }
        }
    }
}

fn every(repeat_interval: Duration) -> Timing {
    Timing {
        start_delay: Duration::ZERO,
        repeat_interval,
    }
}

/// How many notifications may be promoted at once: none while the broker takes no messages, which would only mark rows
/// that have to be marked back.
async fn room(context: &Context, queue: Queue) -> Result<u32, JobError> {
    if !context.broker.publisher().takes_messages() {
        return Ok(0);
    }
    let depth = context.broker.depth(queue).await?.messages;
    Ok(context
        .config
        .reseller
        .queue
        .capacity
        .saturating_sub(depth)
        .min(BATCH))
}

/// Publishes what was promoted; what the broker does not confirm waits again. Returns how many it took.
async fn publish(
    context: &Context,
    queue: Queue,
    promoted: Result<Vec<PromotedNotification>, store::Error>,
) -> Result<usize, JobError> {
    let promoted =
        promoted.inspect_err(|_| Metric::StoreErrors.increment_with(&[("operation", "promoting")], 1))?;
    if promoted.is_empty() {
        return Ok(0);
    }
    let now = context.clock.now();
    let envelopes = promoted
        .iter()
        .map(|one| Envelope::notification(one.id, one.subscription_id, now, None))
        .collect();
    let answers = context.broker.publisher().publish(queue, envelopes).await;
    let refused: Vec<NotificationId> = promoted
        .iter()
        .zip(answers)
        .filter(|(_, answer)| *answer != Published::Confirmed)
        .map(|(one, _)| one.id.into())
        .collect();
    let taken = promoted.len() - refused.len();
    Metric::NotificationsPromoted.increment_with(&[("queue", queue.name())], taken as u64);
    if !refused.is_empty() {
        context
            .store
            .sideline_notifications(&refused, Sidelined::NotEnqueued, context.clock.now())
            .await?;
    }
    Ok(taken)
}
