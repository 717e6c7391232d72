//! What the push lane stores and publishes.

use std::sync::Arc;
use std::time::Duration;

use broker::{Envelope, Queue};
use chrono::{DateTime, Utc};
use domain::push::{PushId, PushStatus};
use store::Store;
use store::push::{Inserted, NewPush};
use telemetry::traces::Statement;
use uuid::Uuid;

use crate::lane::{Handoff, Lane};
use crate::push::meters::Meters;

/// The lane of `POST /push`.
#[derive(Clone)]
pub(crate) struct PushLane {
    pub(crate) store: Store,
    pub(crate) queue_lease: Duration,
    pub(crate) meters: Arc<Meters>,
}

impl Lane for PushLane {
    type Item = NewPush;
    type Inserted = Inserted;
    type Answer = Inserted;

    const QUEUE: Queue = Queue::PushReady;
    const WHAT: &'static str = "pushes";
    const FAILED_STORING: &'static str = "store pushes";
    const FAILED_MARKING: &'static str = "mark pushes that did not get into the queue";
    const COMMIT: Statement = Statement {
        summary: "store pushes",
        operation: "INSERT",
        table: "push_notifications",
    };
    const HANDOFFS: usize = 8192;

    fn traceparent(push: &NewPush) -> Option<&str> {
        push.traceparent.as_deref()
    }

    async fn insert(&self, pushes: &mut [NewPush], queued: bool) -> Result<Vec<Inserted>, store::Error> {
        if !queued {
            for push in pushes
                .iter_mut()
                .filter(|push| push.status == PushStatus::InMemory)
            {
                push.status = PushStatus::Pending;
            }
        }
        self.store.insert_pushes(pushes, self.queue_lease).await
    }

    fn settle(&self, push: NewPush, inserted: Inserted, handoffs: &mut Vec<Handoff>) -> Inserted {
        if inserted == Inserted::New {
            self.meters.stored(push.status);
            if push.status == PushStatus::InMemory {
                handoffs.push(Handoff {
                    id: push.id.uuid(),
                    group: None,
                    traceparent: push.traceparent,
                });
            }
        }
        inserted
    }

    fn envelope(handoff: Handoff, at: DateTime<Utc>) -> Envelope {
        Envelope::push(handoff.id, at, handoff.traceparent)
    }

    async fn take_back(&self, ids: &[Uuid]) -> Result<(), store::Error> {
        let ids: Vec<PushId> = ids.iter().copied().map(PushId::from).collect();
        let marked = self.store.mark_not_enqueued(&ids).await?;
        self.meters.went_pending(marked);
        Ok(())
    }

    fn writes(&self, rows: usize) {
        self.meters.batch(rows);
    }

    fn failed(&self) {
        self.meters.store_failed();
    }
}
