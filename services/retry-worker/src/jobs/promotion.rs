//! What the two promoting jobs have in common: waiting pushes go to the queue while there is room.

use broker::{Envelope, Published, Queue};
use domain::push::PushId;
use store::{Promoted, PromotionQueue};
use telemetry::Metric;

use crate::context::Context;
use crate::periodic::JobError;

/// Pushes promoted in one statement.
const BATCH: u32 = 500;

/// Promotes at most `portion` pushes of `queue`; ends early when the broker's queue is full. `job` is the label under which
/// they are counted.
pub(super) async fn promote(
    context: &Context,
    queue: PromotionQueue,
    portion: u32,
    job: &'static str,
) -> Result<(), JobError> {
    let publisher = context.broker.publisher();
    if !publisher.takes_messages() {
        // Promoting now would only mark rows that have to be marked back.
        return Ok(());
    }
    // Asked first, for the same reason. The broker has the last word: it refuses what does not fit.
    let depth = context.broker.depth(Queue::PushReady).await?.messages;
    let room = context.config.push.queue.capacity.saturating_sub(depth);
    let mut left = portion.min(if others_wait(context, queue).await? {
        room.div_ceil(2)
    } else {
        room
    });
    while left > 0 {
        let limit = left.min(BATCH);
        let promoted = context
            .store
            .promote_pushes(queue, limit, context.queue_lease())
            .await
            .inspect_err(|_| {
                Metric::StoreErrors.increment_with(&[("operation", "promoting")], 1);
            })?;
        let (count, exhausted) = (promoted.len(), promoted.len() < limit as usize);
        let refused = publish(context, &publisher, promoted).await?;
        Metric::PushPromoted.increment_with(&[("job", job)], (count - refused) as u64);
        if refused > 0 || exhausted {
            return Ok(());
        }
        left -= limit;
    }
    Ok(())
}

/// Whether the other job has work as well. Each then leaves half of the room: otherwise the one that runs just after the
/// other would find none, every time.
async fn others_wait(context: &Context, queue: PromotionQueue) -> Result<bool, JobError> {
    let backlog = context.store.backlog().await?;
    Ok(match queue {
        PromotionQueue::Pending => backlog.oldest_due.is_some_and(|due| due <= context.clock.now()),
        PromotionQueue::Due(_) => backlog.oldest_pending.is_some(),
    })
}

/// Publishes what was promoted; what the broker did not confirm waits again. Returns how many those are.
async fn publish(
    context: &Context,
    publisher: &broker::Publisher,
    promoted: Vec<Promoted>,
) -> Result<usize, JobError> {
    let now = context.clock.now();
    let ids: Vec<PushId> = promoted.iter().map(|push| push.id).collect();
    let envelopes = promoted
        .into_iter()
        .map(|push| Envelope::push(push.id.uuid(), now, push.traceparent))
        .collect();
    let answers = publisher.publish(Queue::PushReady, envelopes).await;
    let refused: Vec<PushId> = ids
        .into_iter()
        .zip(answers)
        .filter(|(_, answer)| *answer != Published::Confirmed)
        .map(|(id, _)| id)
        .collect();
    if !refused.is_empty() {
        context.store.mark_not_enqueued(&refused).await?;
    }
    Ok(refused.len())
}
