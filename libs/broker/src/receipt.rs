//! Settling a delivery: acknowledge, hand back, or refuse for good.

use std::sync::Arc;

use futures::future::join_all;
use lapin::Acker;
use lapin::options::{BasicAckOptions, BasicNackOptions};
use lapin::types::DeliveryTag;
use tokio_util::sync::CancellationToken;

use crate::ledger::{Ledger, WRITE_LIMIT};
use crate::part::{Part, Wish};

/// Deliveries of one channel, with the right to settle each.
type Entries = Vec<(DeliveryTag, Acker)>;

/// What came of settling a delivery. AMQP does not confirm acknowledgements, so neither says that the server
/// has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settlement {
    /// Written to the connection that the delivery came from; or noted, while other rows of the message are not settled.
    Sent,
    /// Not written, because that connection or channel is gone (or about to go: it takes nothing any more).
    /// The server hands the message out again, marked as redelivered.
    Stale,
}

/// The right to settle one delivery. Dropping it settles nothing: the message stays with this consumer until
/// the connection or the consumer is closed, and is then delivered again.
///
/// A message about several rows has one for each. It is settled when all of them are: handed back for all when one of them is
/// handed back, which costs the others a look at rows that have ended.
#[derive(Debug)]
#[must_use = "a delivery that is not settled comes again when the consumer is closed"]
pub struct Receipt {
    acker: Acker,
    tag: DeliveryTag,
    ledger: Arc<Ledger>,
    generation: u64,
    ended: CancellationToken,
    /// `None` when the message is about one row.
    part: Option<Part>,
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
            part: None,
        }
    }

    /// One for each of the `rows` of its message.
    pub(crate) fn parts(self, rows: usize) -> Vec<Self> {
        if rows == 1 {
            return vec![self];
        }
        let parts = Part::of(rows).map(|part| Self {
            acker: self.acker.clone(),
            tag: self.tag,
            ledger: Arc::clone(&self.ledger),
            generation: self.generation,
            ended: self.ended.clone(),
            part: Some(part),
        });
        parts.collect()
    }

    /// The connection that the delivery came from; see [`crate::ConnectionState`].
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The work is done: the server forgets the message.
    pub async fn ack(self) -> Settlement {
        self.wish(Wish::Ack).await
    }

    /// As [`Receipt::ack`], for many at once and in as few frames as possible: the server works for each frame, not for each
    /// message. Some may be written a moment later, with those that come then, or when the consumer is closed at the latest.
    pub async fn ack_all(receipts: Vec<Self>) {
        let mut channels: Vec<(Arc<Ledger>, Entries)> = Vec::new();
        let mut others = Vec::new();
        for mut receipt in receipts {
            if receipt.ended.is_cancelled() {
                continue;
            }
            match receipt.say(Wish::Ack) {
                Some(Wish::Ack) => {}
                Some(wish) => {
                    others.push(receipt.settle(wish));
                    continue;
                }
                None => continue,
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
        join_all(others).await;
    }

    /// The work is not done: the server delivers the message again, and counts that against its delivery
    /// limit.
    pub async fn requeue(self) -> Settlement {
        self.wish(Wish::Requeue).await
    }

    /// The message is of no use: the server moves it to the dead letters if the queue has any, or else
    /// forgets it.
    pub async fn reject(self) -> Settlement {
        self.wish(Wish::Reject).await
    }

    async fn wish(mut self, wish: Wish) -> Settlement {
        match self.say(wish) {
            Some(wish) => self.settle(wish).await,
            None => Settlement::Sent,
        }
    }

    /// What is to become of the message when this is said of its row; `None` while nothing was said of others.
    fn say(&mut self, wish: Wish) -> Option<Wish> {
        match self.part.take() {
            Some(part) => part.used(wish),
            None => Some(wish),
        }
    }

    async fn settle(self, wish: Wish) -> Settlement {
        // An old delivery tag may name another message on a new channel, so it must never be sent there. The
        // client keeps tags and channels together; the check spares it the attempt.
        if self.ended.is_cancelled() || wish == Wish::Keep {
            return Settlement::Stale;
        }
        let settlement = tokio::select! {
            () = self.ended.cancelled() => Settlement::Stale,
            sent = tokio::time::timeout(WRITE_LIMIT, self.send(wish)) => match sent {
                Ok(Ok(true)) => Settlement::Sent,
                Ok(Ok(false) | Err(_)) | Err(_) => Settlement::Stale,
            },
        };
        if settlement == Settlement::Sent {
            self.ledger.settled(self.tag);
        }
        settlement
    }

    async fn send(&self, wish: Wish) -> lapin::Result<bool> {
        let refusing = |requeue| BasicNackOptions {
            requeue,
            ..Default::default()
        };
        match wish {
            Wish::Ack => self.acker.ack(BasicAckOptions::default()).await,
            Wish::Reject => self.acker.nack(refusing(false)).await,
            Wish::Requeue => self.acker.nack(refusing(true)).await,
            Wish::Keep => Ok(false),
        }
    }
}
