//! From the commit to the queue: publishes what was stored as `IN_MEMORY`, and takes back what did not get there.
//!
//! It deliberately retries nothing. A push that is not in the queue is `PENDING` and the retry-worker's; one whose
//! marking failed as well is found by the rescuer when its lease runs out.

use std::sync::Arc;
use std::time::Duration;

use broker::{Envelope, Published, Publisher, Queue};
use domain::clock::Clock;
use domain::push::PushId;
use store::Store;
use tokio::sync::mpsc;

use crate::drain::Batches;
use crate::gate::{Gate, Reason};
use crate::meters::Meters;
use crate::outage::Outage;

/// Most committed pushes that wait to be published.
const WAITING: usize = 8192;
/// Most messages in one call to the publisher.
const BATCH: usize = 512;

/// How long the database may take to mark what did not get into the queue.
const MARK_LIMIT: Duration = Duration::from_secs(10);

/// A push that was stored as `IN_MEMORY` and has to get into the queue.
pub(crate) struct Handoff {
    pub(crate) id: PushId,
    pub(crate) traceparent: Option<String>,
}

/// The entrance, for the writers. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Outbox {
    handoffs: mpsc::Sender<Handoff>,
    returns: Returns,
}

/// Marks pushes that did not get into the queue.
#[derive(Clone)]
pub(crate) struct Returns {
    pub(crate) store: Store,
    pub(crate) gate: Arc<Gate>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) outage: Arc<Outage>,
}

impl Outbox {
    /// An entrance, and the other end for [`Dispatch`].
    pub(crate) fn new(returns: Returns) -> (Self, mpsc::Receiver<Handoff>) {
        let (handoffs, receiver) = mpsc::channel(WAITING);
        (Self { handoffs, returns }, receiver)
    }

    /// Takes pushes over. Those for which there is no room are `PENDING` when this returns.
    pub(crate) async fn take(&self, handoffs: Vec<Handoff>) {
        let left: Vec<PushId> = handoffs
            .into_iter()
            .filter_map(|handoff| self.handoffs.try_send(handoff).err())
            .map(|error| error.into_inner().id)
            .collect();
        if !left.is_empty() {
            self.returns.take_back(&left, Reason::PublisherBehind).await;
        }
    }
}

impl Returns {
    async fn take_back(&self, ids: &[PushId], reason: Reason) {
        // Closed first, so that the pushes stored meanwhile do not take the same detour.
        self.gate.close(reason);
        match store::within(MARK_LIMIT, self.store.mark_not_enqueued(ids)).await {
            Ok(marked) => {
                self.outage.worked();
                self.meters.went_pending(marked);
            }
            Err(error) => self.outage.failed(&error),
        }
    }
}

/// One of the tasks that publish.
#[derive(Clone)]
pub(crate) struct Dispatch {
    pub(crate) handoffs: Batches<Handoff>,
    pub(crate) publisher: Publisher,
    pub(crate) returns: Returns,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Dispatch {
    /// Runs until the channel is closed and everything in it is published.
    pub(crate) async fn run(self) {
        let mut batch = Vec::with_capacity(BATCH);
        while self.handoffs.take(&mut batch, BATCH).await {
            let ids: Vec<PushId> = batch.iter().map(|handoff| handoff.id).collect();
            let now = self.clock.now();
            let envelopes = batch
                .drain(..)
                .map(|handoff| Envelope::push(handoff.id.uuid(), now, handoff.traceparent))
                .collect();
            let outcomes = self.publisher.publish(Queue::PushReady, envelopes).await;
            let (left, reason) = not_enqueued(&ids, &outcomes);
            if let Some(reason) = reason {
                self.returns.take_back(&left, reason).await;
            }
        }
    }
}

/// The pushes that did not get into the queue, as far as is known, and why the last of them did not.
fn not_enqueued(ids: &[PushId], outcomes: &[Published]) -> (Vec<PushId>, Option<Reason>) {
    let failed = ids.iter().zip(outcomes).filter_map(|(id, outcome)| {
        let reason = match outcome {
            Published::Confirmed => return None,
            Published::Rejected => Reason::QueueFull,
            Published::Unroutable => Reason::Unroutable,
            Published::Unconfirmed => Reason::Unconfirmed,
            Published::NotSent => Reason::BrokerAway,
        };
        Some((*id, reason))
    });
    failed.fold((Vec::new(), None), |(mut left, _), (id, reason)| {
        left.push(id);
        (left, Some(reason))
    })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn everything_but_a_confirmed_message_is_taken_back() {
        let outcomes = [
            Published::Confirmed,
            Published::Rejected,
            Published::Unroutable,
            Published::Unconfirmed,
            Published::NotSent,
            Published::Confirmed,
        ];
        let ids: Vec<PushId> = outcomes
            .iter()
            .map(|_| PushId::at(DateTime::UNIX_EPOCH))
            .collect();
        let (left, reason) = not_enqueued(&ids, &outcomes);
        assert_eq!(left, ids[1..5]);
        assert_eq!(reason, Some(Reason::BrokerAway));
        assert_eq!(not_enqueued(&ids[..1], &outcomes[..1]), (Vec::new(), None));
    }
}
