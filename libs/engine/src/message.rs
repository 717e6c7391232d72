//! A message until it is settled.

use broker::Receipt;
use telemetry::traces::Span;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The right to settle a message, and the span of its time here.
pub(crate) struct Message<R = Receipt> {
    /// `None` for what was claimed in the database, without a message.
    pub(crate) receipt: Option<R>,
    pub(crate) span: Span,
    /// Dropped when it is settled.
    pub(crate) settled: Option<TaskTrackerToken>,
}

impl<R> Message<R> {
    pub(crate) fn new(receipt: R, span: Span) -> Self {
        Self {
            receipt: Some(receipt),
            span,
            settled: None,
        }
    }

    /// What takes the place of a message for something that none brought.
    pub(crate) fn none(span: Span) -> Self {
        Self {
            receipt: None,
            span,
            settled: None,
        }
    }
}

/// Whether the connection still takes it does not matter: a message that comes again finds its row ended, or waiting.
impl Message {
    /// It has nothing more to say.
    pub(crate) async fn ack(self) {
        if let Some(receipt) = self.receipt {
            let _ = receipt.ack().await;
        }
    }

    /// The same for many, in as few frames as possible.
    pub(crate) async fn ack_all(messages: impl IntoIterator<Item = Self>) {
        // Their spans end here.
        let receipts = messages
            .into_iter()
            .filter_map(|message| message.receipt)
            .collect();
        Receipt::ack_all(receipts).await;
    }

    /// It goes back to the queue.
    pub(crate) async fn requeue(self) {
        if let Some(receipt) = self.receipt {
            let _ = receipt.requeue().await;
        }
    }
}
