//! What the two promoting jobs have in common: waiting pushes go to the queue while there is room.

use std::ops::Range;
use std::time::SystemTime;

use broker::{Envelope, Published, Queue};
use domain::push::PushId;
use store::Lane;
use store::push::{Promoted, PromotionQueue};
use telemetry::Metric;
use telemetry::traces::{self, Publishing, Statement};

use crate::context::Context;
use crate::periodic::JobError;

/// Pushes promoted in one statement.
const BATCH: u32 = 500;
const PROMOTE: Statement = Statement {
    summary: "promote pushes",
    operation: "UPDATE",
    table: "push_notifications",
};

/// Promotes at most `portion` pushes of `queue`; ends early when the broker's queue is full. `job` is the label under which
/// they are counted.
pub(super) async fn promote(
    context: &Context,
    queue: PromotionQueue,
    portion: u32,
    job: &'static str,
) -> Result<(), JobError> {
    let broker = context.publishing.to(Queue::PushReady);
    if !context.may_promote(Lane::Push, Queue::PushReady).await? {
        // Promoting now would only mark rows that have to be marked back.
        return Ok(());
    }
    // Asked first, for the same reason. The broker has the last word: it refuses what does not fit.
    let depth = broker.depth(Queue::PushReady).await?.messages;
    let room = context.config.push.queue.capacity.saturating_sub(depth);
    let mut left = portion.min(if others_wait(context, queue).await? {
        room.div_ceil(2)
    } else {
        room
    });
    while left > 0 {
        let limit = left.min(BATCH);
        let started = SystemTime::now();
        let promoted = context
            .store
            .promote_pushes(queue, limit, context.queue_lease())
            .await
            .inspect_err(|_| {
                Metric::StoreErrors.increment_with(&[("operation", "promoting")], 1);
            })?;
        let traces = promoted.iter().map(|push| push.traceparent.as_deref());
        promoted_in_traces(PROMOTE, traces, started..SystemTime::now());
        let (count, exhausted) = (promoted.len(), promoted.len() < limit as usize);
        let refused = publish(context, &broker.publisher(), promoted, job).await?;
        Metric::PushPromoted.increment_with(&[("job", job)], (count - refused) as u64);
        if refused > 0 || exhausted {
            return Ok(());
        }
        left -= limit;
    }
    Ok(())
}

/// Shows a promotion in the traces of what it promoted.
pub(super) fn promoted_in_traces<'a>(
    statement: Statement,
    traces: impl ExactSizeIterator<Item = Option<&'a str>>,
    during: Range<SystemTime>,
) {
    let rows = traces.len();
    let members = traces.filter_map(traces::Context::recorded).collect();
    statement.executed(members, during.start, rows).end_at(during.end);
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
    job: &'static str,
) -> Result<usize, JobError> {
    let now = context.clock.now();
    let ids: Vec<PushId> = promoted.iter().map(|push| push.id).collect();
    let mut spans = Publishing::to(Queue::PushReady.name());
    let envelopes = promoted
        .into_iter()
        .map(|push| Envelope::push(push.id.uuid(), now, spans.begin(push.id, push.traceparent)))
        .collect();
    spans.note("postrider.job", job);
    let answers = publisher.publish(Queue::PushReady, envelopes).await;
    spans.end(|place| answers.get(place).and_then(|answer| answer.failure()));
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
