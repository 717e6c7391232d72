//! A message until it is settled.

use broker::Receipt;
use telemetry::traces::Span;

/// The right to settle a message, and the span of its time here.
pub(crate) struct Message {
    pub(crate) receipt: Receipt,
    pub(crate) span: Span,
}

impl Message {
    /// The messages have nothing more to say. Whether the connection still took it does not matter: one that comes again
    /// finds its row ended.
    pub(crate) async fn ack_all(messages: impl IntoIterator<Item = Self>) {
        // Their spans end here.
        let receipts = messages.into_iter().map(|message| message.receipt).collect();
        Receipt::ack_all(receipts).await;
    }

    /// It goes back to the queue.
    pub(crate) async fn requeue(self) {
        let _ = self.receipt.requeue().await;
    }
}
