//! The first stage: messages in, claimed pushes out.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use broker::{Consumer, Delivery};
use domain::push::PushId;
use lifecycle::error_chain;
use store::push::{Claim, ClaimedPush};
use store::{Lease, Store};
use telemetry::Metric;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::claim;

use super::spans::{self, Batch};
use super::work::{Message, MessageFate, Work};

/// How long the database may take for a claim before it counts as away.
const CLAIM_LIMIT: Duration = Duration::from_secs(10);

/// How long a claim under way may still take after a stop.
const STOP_LIMIT: Duration = Duration::from_secs(2);

pub(crate) struct Claimer<'a> {
    pub(crate) store: &'a Store,
    pub(crate) leader: &'a Lease,
    /// How long a claim holds.
    pub(crate) lease: Duration,
    /// How long after the claim a send may still start.
    pub(crate) send_within: Duration,
    /// Pushes claimed at once.
    pub(crate) batch: usize,
}

impl Claimer<'_> {
    /// Claims until it is stopped, the consumer or the sender has ended, the lease turns out to be another's, or the lane paused. A batch
    /// that was begun is passed on whole: the sender hands back what it may not start any more.
    pub(crate) async fn run(
        &self,
        consumer: &mut Consumer,
        sender: mpsc::Sender<Work>,
        stop: &CancellationToken,
    ) {
        loop {
            let deliveries = tokio::select! {
                () = stop.cancelled() => return,
                deliveries = consumer.next_batch(self.batch) => deliveries,
            };
            let Some(deliveries) = deliveries else { return };
            let mut messages = messages_by_push(deliveries).await;
            let span = Batch::to_claim(messages.values());
            let Some((claimed, send_before)) = self
                .claim(&messages.keys().copied().collect::<Vec<_>>(), stop)
                .await
            else {
                return settle_all(MessageFate::Requeue, messages).await;
            };
            span.end();
            Metric::PushClaimed.increment(claimed.len() as u64);
            Metric::PushClaimsInFlight
                .gauge(&[])
                .increment(claimed.len() as f64);
            for push in claimed {
                let Some(message) = messages.remove(&push.id) else {
                    continue;
                };
                if sender
                    .send(Work {
                        push,
                        message,
                        send_before,
                        is_probe: false,
                    })
                    .await
                    .is_err()
                {
                    return;
                }
            }
            messages.values_mut().for_each(spans::not_claimed);
            // What could not be claimed has been dealt with, or will be without this message.
            settle_all(MessageFate::Ack, messages).await;
        }
    }

    /// Whether a claim that took nothing was not to take anything: then some of the pushes still wait. What the lease and
    /// the pause are by now does not tell; a pause may have ended meanwhile.
    async fn was_refused(&self, ids: &[PushId]) -> bool {
        let waits = store::within(CLAIM_LIMIT, self.store.any_push_waits(ids)).await;
        waits.unwrap_or(true)
    }

    /// Whether the lease is still ours, and the lane is not paused.
    async fn may_claim(&self) -> bool {
        let view = store::within(CLAIM_LIMIT, self.store.view_lease(&self.leader.name)).await;
        let paused = store::within(CLAIM_LIMIT, self.store.lane_is_paused(store::Lane::Push)).await;
        matches!(view, Ok(view) if view.holder == Some(self.leader.holder) && view.epoch == self.leader.epoch)
            && matches!(paused, Ok(false))
    }

    /// Claims, for as long as it takes. `None` when stopped, or when the pushes are not ours to take, or no replica's: the messages
    /// are for the next leader.
    pub(crate) async fn claim(
        &self,
        ids: &[PushId],
        stop: &CancellationToken,
    ) -> Option<(Vec<ClaimedPush>, Instant)> {
        let together = || async move {
            tokio::select! {
                // A claim under way, with what is asked about it, is given a moment, so that what it takes is not left to its lease.
                () = async { stop.cancelled().await; tokio::time::sleep(STOP_LIMIT).await } => Ok(None),
                claimed = self.claim_together(ids) => claimed,
            }
        };
        let singly = || async move {
            let asked = Instant::now();
            (self.claim_singly(ids).await, asked + self.send_within)
        };
        claim::claim(stop, "pushes", ids.len(), together, singly).await
    }

    async fn claim_together(
        &self,
        ids: &[PushId],
    ) -> Result<Option<(Vec<ClaimedPush>, Instant)>, store::Error> {
        loop {
            let asked = Instant::now();
            let claimed = store::within(CLAIM_LIMIT, self.store.claim_pushes(ids, self.terms())).await?;
            if !claimed.is_empty() || !self.was_refused(ids).await {
                return Ok(Some((claimed, asked + self.send_within)));
            }
            if !self.may_claim().await {
                return Ok(None);
            }
            // The lane was paused and is open again: what was refused is there for the asking.
        }
    }

    /// Claims each push by itself, so that one that the database refuses for good holds up no other. It is found again when its
    /// place in the queue has run out.
    async fn claim_singly(&self, ids: &[PushId]) -> Vec<ClaimedPush> {
        let claim_one = |id| async move { self.store.claim_pushes(&[id], self.terms()).await };
        let claimed = store::singly(CLAIM_LIMIT, ids, claim_one, |id, error| {
            tracing::error!(push = %id, error = error_chain(&error), "passed over a push that could not be claimed");
            Metric::StoreErrors.increment_with(&[("operation", "reading_queue")], 1);
        });
        claimed.await.into_iter().flatten().collect()
    }

    fn terms(&self) -> Claim<'_> {
        Claim {
            leader: self.leader,
            lease: self.lease,
        }
    }
}

async fn settle_all(fate: MessageFate, messages: HashMap<PushId, Message>) {
    for message in messages.into_values() {
        fate.settle(message).await;
    }
}

/// One message for each push. Of two about the same push the second has nothing to add.
async fn messages_by_push(deliveries: Vec<Delivery>) -> HashMap<PushId, Message> {
    let mut messages = HashMap::with_capacity(deliveries.len());
    for delivery in deliveries {
        let id = PushId::from(delivery.envelope.id);
        let message = Message {
            span: spans::message(&delivery),
            receipt: Some(delivery.receipt),
            settled: None,
        };
        if let Some(second) = messages.insert(id, message) {
            MessageFate::Ack.settle(second).await;
        }
    }
    messages
}
