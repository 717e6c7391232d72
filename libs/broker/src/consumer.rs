//! Consuming envelopes. What cannot be read is refused here, so that callers only ever see what they can act
//! on.

use std::collections::VecDeque;

use crate::subscription::{Received, Subscription};
use crate::{Envelope, Queue, Receipt};

/// A row that a message names, for a consumer, to be settled with its receipt.
#[derive(Debug)]
pub struct Delivery {
    /// What the message says of it.
    pub envelope: Envelope,
    /// Whether the server has delivered it before, to whomever.
    pub redelivered: bool,
    /// The right to settle it.
    pub receipt: Receipt,
}

/// Consumes a queue for as long as the broker lives, across reconnects.
///
/// Dropping it stops consuming in the background; [`Consumer::close`] waits until that is done.
pub struct Consumer {
    subscription: Subscription,
    queue: Queue,
    malformed: u64,
    /// What has been read and not been asked for.
    read: VecDeque<Delivery>,
}

impl Consumer {
    pub(crate) fn new(subscription: Subscription, queue: Queue) -> Self {
        Self {
            subscription,
            queue,
            malformed: 0,
            read: VecDeque::new(),
        }
    }

    /// Waits for a message, then takes what else has arrived, up to `max` rows (at least 1) in all.
    ///
    /// `None` when the consumer is stopped or the broker closed. Messages that are no [`Envelope`] are
    /// rejected, which moves them to the dead letters, and are not returned. Cancel-safe: no message is lost
    /// when the future is dropped.
    pub async fn next_batch(&mut self, max: usize) -> Option<Vec<Delivery>> {
        while self.read.is_empty() {
            for received in self.subscription.next(max).await? {
                self.read(received);
            }
        }
        let count = self.read.len().min(max.max(1));
        Some(self.read.drain(..count).collect())
    }

    /// How many messages were rejected because they could not be read.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Takes no more messages and hands the prefetched ones back, while those already returned can still be
    /// settled.
    pub async fn stop(&mut self) {
        self.subscription.stop().await;
        for delivery in self.read.drain(..) {
            delivery.receipt.requeue().await;
        }
    }

    /// Stops, and closes the channel: what has not been settled by now goes back to the queue.
    pub async fn close(self) {
        self.subscription.close().await;
    }

    fn read(&mut self, Received { delivery, receipt }: Received) {
        match Envelope::decode(&delivery.data) {
            Ok(envelopes) => {
                let receipts = receipt.parts(envelopes.len());
                self.read.extend(
                    envelopes
                        .into_iter()
                        .zip(receipts)
                        .map(|(envelope, receipt)| Delivery {
                            envelope,
                            redelivered: delivery.redelivered,
                            receipt,
                        }),
                );
            }
            Err(error) => {
                self.malformed += 1;
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(queue = %self.queue, %error, cause, "rejecting a message that cannot be read");
                // In a task of its own, because the batch must not be lost when the caller stops waiting
                // here.
                tokio::spawn(receipt.reject());
            }
        }
    }
}
