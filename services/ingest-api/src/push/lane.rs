//! What the push lane stores and publishes.

use std::sync::Arc;
use std::time::Duration;

use broker::{Envelope, Queue};
use domain::clock::Clock;
use domain::push::{PushId, PushStatus};
use store::Store;
use store::push::{Inserted, NewPush};
use telemetry::Metric;
use telemetry::traces::Statement;
use uuid::Uuid;

use crate::lane::{Committed, Lane};
use crate::metrics::Metrics;

/// The lane of `POST /push`.
pub(crate) struct PushLane {
    pub(crate) store: Store,
    /// How long a queued push is left in peace.
    pub(crate) queue_lease: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Lane for PushLane {
    type Row = NewPush;
    type Answer = Inserted;

    const QUEUE: Queue = Queue::PushReady;
    const WHAT: &'static str = "pushes";
    const COMMIT: Statement = Statement {
        summary: "store pushes",
        operation: "INSERT",
        table: "push_notifications",
    };
    const BATCH_ROWS: Metric = Metric::IngestBatchRows;
    const FAILED_MARKING: &'static str = "mark pushes that did not get into the queue";
    const UNPUBLISHED: usize = 8192;

    fn traceparent(push: &NewPush) -> Option<&str> {
        push.traceparent.as_deref()
    }

    async fn insert(
        &self,
        pushes: &mut [NewPush],
        queued: bool,
    ) -> Result<Committed<Inserted>, store::Error> {
        for push in &mut *pushes {
            push.status = match push.request.cron_expression {
                Some(_) => PushStatus::Scheduled,
                None if queued => PushStatus::InMemory,
                None => PushStatus::Pending,
            };
        }
        let answers = self.store.insert_pushes(pushes, self.queue_lease).await?;
        let now = self.clock.now();
        let mut messages = Vec::with_capacity(pushes.len());
        for (push, answer) in pushes.iter_mut().zip(&answers) {
            if *answer == Inserted::New {
                self.metrics.push(push.status);
                if push.status == PushStatus::InMemory {
                    messages.push(Envelope::push(push.id.uuid(), now, push.traceparent.take()));
                }
            }
        }
        Ok(Committed { answers, messages })
    }

    async fn take_back(&self, ids: &[Uuid]) -> Result<(), store::Error> {
        let ids: Vec<PushId> = ids.iter().copied().map(PushId::from).collect();
        let marked = self.store.mark_not_enqueued(&ids).await?;
        self.metrics.went_pending(marked);
        Ok(())
    }
}
