//! What a consumer was given and has not settled yet, so that many messages can be acknowledged in one frame.
//!
//! An acknowledgement of several covers every message up to the one that it names. It is only sent when all of them are
//! done, and from then on none of them may be acknowledged again: the server would take that for an error and close the
//! channel. What is done while something older is not waits for it, [`HOLD`] at most, and is then acknowledged singly.

mod entries;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use lapin::Acker;
use lapin::options::BasicAckOptions;
use lapin::types::DeliveryTag;
use tokio_util::sync::CancellationToken;

use entries::Entries;

/// How long an acknowledgement may wait for those before it. The work is recorded by then: a crash meanwhile only means that
/// the message comes again and finds that.
const HOLD: Duration = Duration::from_millis(100);
/// How long to wait for an acknowledgement to be written to the socket.
pub(crate) const WRITE_LIMIT: Duration = Duration::from_secs(5);

/// The ledger of one channel.
#[derive(Debug)]
pub(crate) struct Ledger {
    ended: CancellationToken,
    entries: Mutex<Entries<Acker>>,
    /// Taken by the task that acknowledges several: the frames must not overtake each other.
    turn: tokio::sync::Mutex<()>,
}

impl Ledger {
    pub(crate) fn new(ended: CancellationToken) -> Self {
        Self {
            ended,
            entries: Mutex::new(Entries::default()),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Given to a caller. Tags come in their order.
    pub(crate) fn given(&self, tag: DeliveryTag) {
        self.entries().given(tag);
    }

    /// Settled on its own: that is written.
    pub(crate) fn settled(&self, tag: DeliveryTag) {
        self.entries().settled(tag);
    }

    /// Acknowledges these: what can be in one frame at once, the rest within [`HOLD`].
    pub(crate) async fn acknowledge(self: &Arc<Self>, done: Vec<(DeliveryTag, Acker)>) {
        let waits = {
            let mut entries = self.entries();
            for (tag, acker) in done {
                entries.done(tag, acker);
            }
            entries.hold()
        };
        self.settle_prefix().await;
        if waits {
            let ledger = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(HOLD).await;
                ledger.flush().await;
            });
        }
    }

    /// Acknowledges everything that is done.
    pub(crate) async fn flush(&self) {
        self.settle_prefix().await;
        let singly = self.entries().take_scattered();
        let acknowledged = singly.iter().map(|(_, acker)| self.send(acker, false));
        join_all(acknowledged).await;
        for (tag, _) in singly {
            self.settled(tag);
        }
    }

    /// Acknowledges what is done up to the first that is not.
    async fn settle_prefix(&self) {
        let _turn = self.turn.lock().await;
        let last = self.entries().take_prefix();
        if let Some(acker) = last {
            self.send(&acker, true).await;
        }
    }

    /// What is not written because the channel is gone comes again.
    async fn send(&self, acker: &Acker, multiple: bool) {
        let writing = acker.ack(BasicAckOptions { multiple });
        tokio::select! {
            () = self.ended.cancelled() => {}
            _ = tokio::time::timeout(WRITE_LIMIT, writing) => {}
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries<Acker>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
