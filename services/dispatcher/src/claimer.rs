//! The first stage: messages in, claimed pushes out.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use broker::{Consumer, Delivery, Receipt};
use domain::push::PushId;
use lifecycle::error_chain;
use store::{Claim, ClaimedPush, Lease, Store};
use telemetry::Metric;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::work::{MessageFate, Work};

/// Pause before a claim that failed is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(250);
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
    /// Claims until it is stopped, the consumer or the sender has ended, or the lease turns out to be another's. A batch
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
            let mut receipts = receipts_by_push(deliveries).await;
            let Some((claimed, send_before)) = self.claim(receipts.keys().copied().collect(), stop).await
            else {
                return settle_all(MessageFate::Requeue, receipts).await;
            };
            if claimed.is_empty() && !self.leads().await {
                // Nothing was taken because it was not ours to take: the messages are for the next leader.
                return settle_all(MessageFate::Requeue, receipts).await;
            }
            Metric::PushClaimed.increment(claimed.len() as u64);
            for push in claimed {
                let Some(receipt) = receipts.remove(&push.id) else {
                    continue;
                };
                if sender
                    .send(Work {
                        push,
                        receipt,
                        send_before,
                    })
                    .await
                    .is_err()
                {
                    return;
                }
            }
            // What could not be claimed has been dealt with, or will be without this message.
            settle_all(MessageFate::Ack, receipts).await;
        }
    }

    /// Whether the lease is still ours; then it was when the last claim was made. Asked only when a claim took nothing.
    async fn leads(&self) -> bool {
        let view = store::within(CLAIM_LIMIT, self.store.view_lease(&self.leader.name)).await;
        matches!(view, Ok(view) if view.holder == Some(self.leader.holder) && view.epoch == self.leader.epoch)
    }

    /// Claims, for as long as it takes: while the database is away there is nothing else to do. `None` when stopped.
    async fn claim(&self, ids: Vec<PushId>, stop: &CancellationToken) -> Option<(Vec<ClaimedPush>, Instant)> {
        loop {
            let asked = Instant::now();
            let claim = Claim {
                leader: self.leader,
                lease: self.lease,
            };
            tokio::select! {
                // A claim under way is given a moment, so that what it takes is not left to its lease.
                () = async { stop.cancelled().await; tokio::time::sleep(STOP_LIMIT).await } => return None,
                answer = store::within(CLAIM_LIMIT, self.store.claim_pushes(&ids, claim)) => match answer {
                    Ok(claimed) => return Some((claimed, asked + self.send_within)),
                    Err(error) => tracing::warn!(error = error_chain(&error), count = ids.len(), "could not claim pushes"),
                },
            }
            Metric::StoreErrors.increment_with(&[("operation", "reading_queue")], 1);
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(RETRY_PAUSE) => {}
            }
        }
    }
}

async fn settle_all(fate: MessageFate, receipts: HashMap<PushId, Receipt>) {
    for receipt in receipts.into_values() {
        fate.settle(receipt).await;
    }
}

/// One receipt for each push. Of two messages about the same push the second has nothing to add.
async fn receipts_by_push(deliveries: Vec<Delivery>) -> HashMap<PushId, Receipt> {
    let mut receipts = HashMap::with_capacity(deliveries.len());
    for Delivery {
        envelope, receipt, ..
    } in deliveries
    {
        if let Some(second) = receipts.insert(PushId::from(envelope.id), receipt) {
            MessageFate::Ack.settle(second).await;
        }
    }
    receipts
}
