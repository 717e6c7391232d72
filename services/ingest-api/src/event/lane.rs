//! What the reseller lane stores and publishes: events, and the notifications that they become.

use std::sync::Arc;
use std::time::Duration;

use broker::{Envelope, Queue};
use chrono::{DateTime, Utc};
use domain::clock::Clock;
use domain::notification::{NotificationId, NotificationStatus};
use store::Store;
use store::webhook::{FannedOut, InsertedEvent, NewEvent, Sidelined};
use telemetry::traces::Statement;
use uuid::Uuid;

use crate::event::meters::Meters;
use crate::lane::{Handoff, Lane};

/// The lane of `POST /events`.
#[derive(Clone)]
pub(crate) struct EventLane {
    pub(crate) store: Store,
    /// How long a queued notification is left in peace.
    pub(crate) queue_lease: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) meters: Arc<Meters>,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// It is stored under this identifier.
    New(Uuid),
    /// The same request was stored before, as this event.
    Repeated(Uuid),
    /// The key at this place of its keys belongs to another request.
    KeyReused(usize),
}

impl Lane for EventLane {
    /// The events of one request: never none.
    type Item = Vec<NewEvent>;
    type Inserted = Vec<InsertedEvent>;
    type Answer = Vec<Stored>;

    const QUEUE: Queue = Queue::ResellerReady;
    const WHAT: &'static str = "events";
    const FAILED_STORING: &'static str = "store events";
    const FAILED_MARKING: &'static str = "mark notifications that did not get into the queue";
    const COMMIT: Statement = Statement {
        summary: "store events",
        operation: "INSERT",
        table: "events",
    };
    /// Room for the largest request at ten subscriptions, and a little more.
    const HANDOFFS: usize = 16_384;

    fn rows(events: &Vec<NewEvent>) -> usize {
        events.len()
    }

    fn traceparent(events: &Vec<NewEvent>) -> Option<&str> {
        events.first()?.traceparent.as_deref()
    }

    /// Several events of one request are stored together or not at all, whatever happens to their neighbours.
    fn is_alone(events: &Vec<NewEvent>) -> bool {
        events.len() > 1
    }

    async fn insert(
        &self,
        items: &mut [Vec<NewEvent>],
        queued: bool,
    ) -> Result<Vec<Vec<InsertedEvent>>, store::Error> {
        if let [events] = items
            && Self::is_alone(events)
        {
            let inserted = self
                .store
                .insert_events_together(events, queued, self.queue_lease)
                .await?;
            return Ok(vec![inserted]);
        }
        // Lent to the statement, since they are to be told apart again afterwards.
        let events: Vec<NewEvent> = items.iter_mut().flat_map(std::mem::take).collect();
        let inserted = self.store.insert_events(&events, queued, self.queue_lease).await;
        for (item, event) in items.iter_mut().zip(events) {
            item.push(event);
        }
        Ok(inserted?.into_iter().map(|inserted| vec![inserted]).collect())
    }

    fn settle(
        &self,
        events: Vec<NewEvent>,
        inserted: Vec<InsertedEvent>,
        handoffs: &mut Vec<Handoff>,
    ) -> Vec<Stored> {
        // Events of one request that are refused for one of them were not stored, whatever their notifications would be.
        let stored = !inserted
            .iter()
            .any(|inserted| matches!(inserted, InsertedEvent::KeyReused(_)));
        let mut answers = Vec::with_capacity(events.len());
        for (event, inserted) in events.into_iter().zip(inserted) {
            answers.push(match inserted {
                InsertedEvent::Repeated(first) => Stored::Repeated(first),
                InsertedEvent::KeyReused(place) => Stored::KeyReused(place),
                InsertedEvent::New(notifications) => {
                    if stored {
                        self.meters.stored(notifications.len());
                        hand_off(&notifications, event.traceparent.as_deref(), handoffs);
                    }
                    Stored::New(event.id)
                }
            });
        }
        answers
    }

    fn envelope(handoff: Handoff, at: DateTime<Utc>) -> Envelope {
        // Every handoff of this lane has a group; the fallback only makes it a group of its own.
        let group = handoff.group.unwrap_or(handoff.id);
        Envelope::notification(handoff.id, group, at, handoff.traceparent)
    }

    async fn take_back(&self, ids: &[Uuid]) -> Result<(), store::Error> {
        let ids: Vec<NotificationId> = ids.iter().copied().map(NotificationId::from).collect();
        self.store
            .sideline_notifications(&ids, Sidelined::NotEnqueued, self.clock.now())
            .await?;
        Ok(())
    }

    fn writes(&self, rows: usize) {
        self.meters.batch(rows);
    }

    fn failed(&self) {
        self.meters.store_failed();
    }
}

/// Adds the messages of those that were stored as handed to the broker.
fn hand_off(notifications: &[FannedOut], traceparent: Option<&str>, handoffs: &mut Vec<Handoff>) {
    let queued = notifications
        .iter()
        .filter(|fanned| fanned.status == NotificationStatus::InMemory);
    handoffs.extend(queued.map(|fanned| Handoff {
        id: fanned.id.uuid(),
        group: Some(fanned.subscription_id),
        traceparent: traceparent.map(str::to_owned),
    }));
}
