//! The first stage: messages in, claimed pushes out.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use broker::{Consumer, Delivery};
use domain::push::PushId;
use store::push::{Claim, ClaimedPush};
use store::{Lease, Store};
use telemetry::Metric;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::claim::{Claiming, claim};
use crate::message::Message;
use crate::record::Batch;

use super::spans;
use super::work::Work;

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
            let span = Batch::begin(spans::CLAIM, messages.values().map(|message| &message.span));
            let Some((claimed, send_before)) = self
                .claim(&messages.keys().copied().collect::<Vec<_>>(), stop)
                .await
            else {
                for message in messages.into_values() {
                    message.requeue().await;
                }
                return;
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
            for message in messages.into_values() {
                message.ack().await;
            }
        }
    }

    /// Claims, for as long as it takes, and says until when a send may start. `None` when stopped, or when the pushes are not ours to take,
    /// or no replica's: the messages are for the next leader.
    pub(crate) async fn claim(
        &self,
        ids: &[PushId],
        stop: &CancellationToken,
    ) -> Option<(Vec<ClaimedPush>, Instant)> {
        let (claimed, asked) = claim(self, ids, stop).await?;
        Some((claimed, asked + self.send_within))
    }
}

impl Claiming for Claimer<'_> {
    const WHAT: &'static str = "pushes";
    const LIMIT: Duration = Duration::from_secs(10);
    type Id = PushId;
    type Claimed = Vec<ClaimedPush>;

    async fn claim_together(&self, ids: &[PushId]) -> Result<Vec<ClaimedPush>, store::Error> {
        let terms = Claim {
            leader: self.leader,
            lease: self.lease,
        };
        self.store.claim_pushes(ids, terms).await
    }

    fn took_nothing(claimed: &Vec<ClaimedPush>) -> bool {
        claimed.is_empty()
    }

    async fn any_waits(&self, ids: &[PushId]) -> Result<bool, store::Error> {
        self.store.any_push_waits(ids).await
    }

    /// Whether the lease is still ours, and the lane is not paused.
    async fn may_claim(&self) -> Result<bool, store::Error> {
        let view = self.store.view_lease(&self.leader.name).await?;
        let ours = view.holder == Some(self.leader.holder) && view.epoch == self.leader.epoch;
        Ok(ours && !self.store.lane_is_paused(store::Lane::Push).await?)
    }

    fn sum(claims: Vec<Vec<ClaimedPush>>) -> Vec<ClaimedPush> {
        claims.concat()
    }
}

/// One message for each push. Of two about the same push the second has nothing to add.
async fn messages_by_push(deliveries: Vec<Delivery>) -> HashMap<PushId, Message> {
    let mut messages = HashMap::with_capacity(deliveries.len());
    for delivery in deliveries {
        let id = PushId::from(delivery.envelope.id);
        let span = spans::message(&delivery);
        let message = Message::new(delivery.receipt, span);
        if let Some(second) = messages.insert(id, message) {
            second.ack().await;
        }
    }
    messages
}
