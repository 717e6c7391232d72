//! Settling a delivery: acknowledge, hand back, or refuse for good.

use std::sync::Arc;

use lapin::Acker;
use lapin::options::{BasicAckOptions, BasicNackOptions};
use lapin::types::DeliveryTag;
use tokio_util::sync::CancellationToken;

use crate::ledger::{Ledger, WRITE_LIMIT};

/// Deliveries of one channel, with the right to settle each.
type Entries = Vec<(DeliveryTag, Acker)>;

/// What came of settling a delivery. AMQP does not confirm acknowledgements, so neither says that the server
/// has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settlement {
    /// Written to the connection that the delivery came from.
    Sent,
    /// Not written, because that connection or channel is gone (or about to go: it takes nothing any more).
    /// The server hands the message out again, marked as redelivered.
    Stale,
}

/// The right to settle one delivery. Dropping it settles nothing: the message stays with this consumer until
/// the connection or the consumer is closed, and is then delivered again.
#[derive(Debug)]
#[must_use = "a delivery that is not settled comes again when the consumer is closed"]
pub struct Receipt {
    acker: Acker,
    tag: DeliveryTag,
    ledger: Arc<Ledger>,
    generation: u64,
    ended: CancellationToken,
}

impl Receipt {
    pub(crate) fn new(
        (tag, acker): (DeliveryTag, Acker),
        ledger: Arc<Ledger>,
        generation: u64,
        ended: CancellationToken,
    ) -> Self {
        ledger.given(tag);
        Self {
            acker,
            tag,
            ledger,
            generation,
            ended,
        }
    }

    /// The connection that the delivery came from; see [`crate::ConnectionState`].
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The work is done: the server forgets the message.
    pub async fn ack(self) -> Settlement {
        self.settle(self.acker.ack(BasicAckOptions::default())).await
    }

    /// As [`Receipt::ack`], for many at once and in as few frames as possible: the server works for each frame, not for each
    /// message. Some may be written a moment later, with those that come then, or when the consumer is closed at the latest.
    pub async fn ack_all(receipts: Vec<Self>) {
        let mut channels: Vec<(Arc<Ledger>, Entries)> = Vec::new();
        for receipt in receipts {
            if receipt.ended.is_cancelled() {
                continue;
            }
            let entry = (receipt.tag, receipt.acker);
            // There is more than one only around a reconnect.
            match channels
                .iter_mut()
                .find(|(ledger, _)| Arc::ptr_eq(ledger, &receipt.ledger))
            {
                Some((_, done)) => done.push(entry),
                None => channels.push((receipt.ledger, vec![entry])),
            }
        }
        for (ledger, done) in channels {
            ledger.acknowledge(done).await;
        }
    }

    /// The work is not done: the server delivers the message again, and counts that against its delivery
    /// limit.
    pub async fn requeue(self) -> Settlement {
        self.settle(self.acker.nack(BasicNackOptions {
            requeue: true,
            ..Default::default()
        }))
        .await
    }

    /// The message is of no use: the server moves it to the dead letters if the queue has any, or else
    /// forgets it.
    pub async fn reject(self) -> Settlement {
        self.settle(self.acker.nack(BasicNackOptions {
            requeue: false,
            ..Default::default()
        }))
        .await
    }

    async fn settle(&self, sending: impl Future<Output = lapin::Result<bool>>) -> Settlement {
        // An old delivery tag may name another message on a new channel, so it must never be sent there. The
        // client keeps tags and channels together; the check spares it the attempt.
        if self.ended.is_cancelled() {
            return Settlement::Stale;
        }
        let settlement = tokio::select! {
            () = self.ended.cancelled() => Settlement::Stale,
            sent = tokio::time::timeout(WRITE_LIMIT, sending) => match sent {
                Ok(Ok(true)) => Settlement::Sent,
                Ok(Ok(false) | Err(_)) | Err(_) => Settlement::Stale,
            },
        };
        if settlement == Settlement::Sent {
            self.ledger.settled(self.tag);
        }
        settlement
    }
}
