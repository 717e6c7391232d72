//! From the commit to the queue: publishes what was stored as handed to the broker, and takes back what did not get there.
//!
//! It deliberately retries nothing. What is not in the queue is `PENDING` and the retry-worker's; what could not even be
//! marked is found by the rescuer when its lease runs out.

use std::sync::Arc;
use std::time::Duration;

use broker::{Published, Publisher};
use domain::clock::Clock;
use http_api::Outage;
use telemetry::traces::Publishing;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::lane::drain::Batches;
use crate::lane::gate::{Gate, Reason};
use crate::lane::{Handoff, Lane};

/// Most messages in one call to the publisher.
const BATCH: usize = 512;

/// How long the database may take to mark what did not get into the queue.
const MARK_LIMIT: Duration = Duration::from_secs(10);

/// The entrance, for the writers. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Outbox<L: Lane> {
    handoffs: mpsc::Sender<Handoff>,
    returns: Returns<L>,
}

/// Marks what did not get into the queue.
#[derive(Clone)]
pub(crate) struct Returns<L: Lane> {
    pub(crate) lane: L,
    pub(crate) gate: Arc<Gate>,
    pub(crate) outage: Arc<Outage>,
}

impl<L: Lane> Outbox<L> {
    /// An entrance, and the other end for [`Dispatch`].
    pub(crate) fn new(returns: Returns<L>) -> (Self, mpsc::Receiver<Handoff>) {
        let (handoffs, receiver) = mpsc::channel(L::HANDOFFS);
        (Self { handoffs, returns }, receiver)
    }

    /// Takes handoffs over. Those for which there is no room are `PENDING` when this returns.
    pub(crate) async fn take(&self, handoffs: Vec<Handoff>) {
        let left: Vec<Uuid> = handoffs
            .into_iter()
            .filter_map(|handoff| self.handoffs.try_send(handoff).err())
            .map(|error| error.into_inner().id)
            .collect();
        if !left.is_empty() {
            self.returns.take_back(&left, Reason::PublisherBehind).await;
        }
    }
}

impl<L: Lane> Returns<L> {
    async fn take_back(&self, ids: &[Uuid], reason: Reason) {
        // Closed first, so that what is stored meanwhile does not take the same detour.
        self.gate.close(reason);
        match store::within(MARK_LIMIT, self.lane.take_back(ids)).await {
            Ok(()) => self.outage.worked(),
            Err(error) => self.outage.failed(&error),
        }
    }
}

/// One of the tasks that publish.
#[derive(Clone)]
pub(crate) struct Dispatch<L: Lane> {
    pub(crate) handoffs: Batches<Handoff>,
    pub(crate) publisher: Publisher,
    pub(crate) returns: Returns<L>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl<L: Lane> Dispatch<L> {
    /// Runs until the channel is closed and everything in it is published.
    pub(crate) async fn run(self) {
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(turn) = self.handoffs.take(&mut batch, BATCH).await {
            drop(turn);
            let ids: Vec<Uuid> = batch.iter().map(|handoff| handoff.id).collect();
            let now = self.clock.now();
            let mut spans = Publishing::to(L::QUEUE.name());
            let envelopes = batch
                .drain(..)
                .map(|mut handoff| {
                    handoff.traceparent = spans.begin(handoff.id, handoff.traceparent);
                    L::envelope(handoff, now)
                })
                .collect();
            let outcomes = self.publisher.publish(L::QUEUE, envelopes).await;
            spans.end(|place| outcomes.get(place).and_then(|outcome| outcome.failure()));
            let (left, reason) = not_enqueued(&ids, &outcomes);
            if let Some(reason) = reason {
                self.returns.take_back(&left, reason).await;
            }
        }
    }
}

/// What did not get into the queue, as far as is known, and why the last of them did not.
fn not_enqueued(ids: &[Uuid], outcomes: &[Published]) -> (Vec<Uuid>, Option<Reason>) {
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
        let ids: Vec<Uuid> = outcomes.iter().map(|_| Uuid::now_v7()).collect();
        let (left, reason) = not_enqueued(&ids, &outcomes);
        assert_eq!(left, ids[1..5]);
        assert_eq!(reason, Some(Reason::BrokerAway));
        assert_eq!(not_enqueued(&ids[..1], &outcomes[..1]), (Vec::new(), None));
    }
}
