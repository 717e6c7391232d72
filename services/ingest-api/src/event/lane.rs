//! What the reseller lane stores and publishes: events, and the notifications that they become.

use std::sync::Arc;
use std::time::Duration;

use broker::{Envelope, Queue};
use domain::clock::Clock;
use domain::notification::{NotificationId, NotificationStatus};
use http_api::ProblemKind;
use store::Store;
use store::webhook::{FannedOut, InsertedEvent, NewEvent, SpillReason};
use telemetry::Metric;
use telemetry::traces::Statement;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use crate::event::idempotency;
use crate::lane::submission::{self, NotStored};
use crate::lane::writer::Writer;
use crate::lane::{Committed, Lane};
use crate::metrics::Metrics;

/// The lane of `POST /events`.
pub(crate) struct EventLane {
    pub(crate) store: Store,
    /// How long a queued notification is left in peace.
    pub(crate) queue_lease: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Arc<Metrics>,
    /// For as many batches of events as may be in a transaction at once.
    pub(crate) together: Semaphore,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// It is stored under this identifier.
    New(Uuid),
    /// The same request was stored before, as this event.
    Repeated(Uuid),
    /// One of its keys belongs to another request: this problem says which.
    KeyReused(ProblemKind),
}

impl Lane for EventLane {
    type Row = NewEvent;
    type Answer = Stored;

    const QUEUE: Queue = Queue::ResellerReady;
    const WHAT: &'static str = "events";
    const COMMIT: Statement = Statement {
        summary: "store events",
        operation: "INSERT",
        table: "events",
    };
    const BATCH_ROWS: Metric = Metric::EventBatchRows;
    const FAILED_MARKING: &'static str = "mark notifications that did not get into the queue";
    /// Room for the largest request at ten subscriptions, and a little more.
    const UNPUBLISHED: usize = 16_384;

    fn traceparent(event: &NewEvent) -> Option<&str> {
        event.traceparent.as_deref()
    }

    async fn insert(&self, events: &mut [NewEvent], queued: bool) -> Result<Committed<Stored>, store::Error> {
        let inserted = self.store.insert_events(events, queued, self.queue_lease).await?;
        Ok(self.committed(events, inserted, true))
    }

    async fn take_back(&self, ids: &[Uuid]) -> Result<(), store::Error> {
        let ids: Vec<NotificationId> = ids.iter().copied().map(NotificationId::from).collect();
        self.store
            .spill_notifications(&ids, SpillReason::NotEnqueued, self.clock.now())
            .await?;
        Ok(())
    }
}

impl EventLane {
    /// Stores the events of one request: all of them or, when one cannot be, none.
    async fn insert_together(
        &self,
        events: &[NewEvent],
        queued: bool,
    ) -> Result<Committed<Stored>, store::Error> {
        let inserting = self
            .store
            .insert_events_together(events, queued, self.queue_lease);
        let inserted = inserting.await?;
        let stored = !inserted
            .iter()
            .any(|inserted| matches!(inserted, InsertedEvent::KeyReused(_)));
        Ok(self.committed(events, inserted, stored))
    }

    /// The answers, and the messages of the notifications that were stored as handed to the broker. Events of one request that
    /// were refused for one of them were not `stored`, whatever their notifications would be.
    fn committed(
        &self,
        events: &[NewEvent],
        inserted: Vec<InsertedEvent>,
        stored: bool,
    ) -> Committed<Stored> {
        let now = self.clock.now();
        let mut messages = Vec::new();
        let answers = events
            .iter()
            .zip(inserted)
            .map(|(event, inserted)| match inserted {
                InsertedEvent::Repeated(first) => Stored::Repeated(first),
                InsertedEvent::KeyReused(place) => Stored::KeyReused(idempotency::reused(&event.keys, place)),
                InsertedEvent::New(notifications) => {
                    if stored {
                        self.metrics.event(notifications.len());
                        let queued = |fanned: &&FannedOut| fanned.status == NotificationStatus::InMemory;
                        messages.extend(notifications.iter().filter(queued).map(|fanned| {
                            let (id, group) = (fanned.id.uuid(), fanned.subscription_id);
                            Envelope::notification(id, group, now, event.traceparent.clone())
                        }));
                    }
                    Stored::New(event.id)
                }
            });
        Committed {
            answers: answers.collect(),
            messages,
        }
    }
}

impl Writer<EventLane> {
    /// Stores the events of one request in a transaction of their own, beside the group commit, and returns when it is
    /// committed. It goes on without its caller, and keeps `place` meanwhile.
    pub(crate) async fn store_together(
        self: &Arc<Self>,
        events: Vec<NewEvent>,
        place: OwnedSemaphorePermit,
        deadline: Instant,
    ) -> Result<Vec<Stored>, NotStored> {
        let wait = submission::wait::<EventLane>(events.first().and_then(EventLane::traceparent));
        let (answer, answered) = oneshot::channel();
        let writer = Arc::clone(self);
        self.tasks.spawn("batch", async move {
            let _place = place;
            let Ok(_turn) = writer.lane.together.acquire().await else {
                return;
            };
            // A caller that waits no more was told that nothing is stored.
            if answer.is_closed() {
                return;
            }
            let inserting = writer.lane.insert_together(&events, writer.gate.is_open());
            let committed = writer.transaction(inserting, events.len(), vec![wait]).await;
            match committed {
                Ok(Committed { answers, messages }) => {
                    let _ = answer.send(Ok(answers));
                    writer.outbox.publish(messages).await;
                }
                Err(error) => {
                    let _ = answer.send(Err(writer.not_stored(&error)));
                }
            }
        });
        submission::by(deadline, answered).await
    }
}
