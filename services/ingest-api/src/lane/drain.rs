//! Taking batches from a bounded channel that several tasks share, and emptying it at the end.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

/// The receiving end of a channel, shared by its clones.
pub(crate) struct Batches<T> {
    receiver: Arc<Mutex<mpsc::Receiver<T>>>,
    closing: CancellationToken,
}

impl<T> Clone for Batches<T> {
    fn clone(&self) -> Self {
        Self {
            receiver: Arc::clone(&self.receiver),
            closing: self.closing.clone(),
        }
    }
}

impl<T> Batches<T> {
    /// After `closing` nothing more enters the channel; what is in it is still taken.
    pub(crate) fn new(receiver: mpsc::Receiver<T>, closing: CancellationToken) -> Self {
        Self {
            receiver: Arc::new(Mutex::new(receiver)),
            closing,
        }
    }

    /// Waits for something and puts what is there, at most `limit` items, into `batch`. Returns `false` when the channel
    /// is closed and empty.
    ///
    /// One task waits at the channel, the others behind it: that is what fills their batches while the first is busy.
    pub(crate) async fn take(&self, batch: &mut Vec<T>, limit: usize) -> bool {
        let mut receiver = self.receiver.lock().await;
        if !self.closing.is_cancelled() {
            tokio::select! {
                biased;
                taken = receiver.recv_many(batch, limit) => {
                    top_up(&mut receiver, batch, limit).await;
                    return taken > 0;
                }
                () = self.closing.cancelled() => {}
            }
        }
        receiver.close();
        receiver.recv_many(batch, limit).await > 0
    }
}

/// Lets the tasks that are ready to run go first, and takes what they have sent. The first item of a burst wakes its
/// taker before the rest is sent; without this every burst would begin with a batch of one.
async fn top_up<T>(receiver: &mut mpsc::Receiver<T>, batch: &mut Vec<T>, limit: usize) {
    tokio::task::yield_now().await;
    while batch.len() < limit
        && let Ok(item) = receiver.try_recv()
    {
        batch.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_in_the_channel_when_it_closes_is_taken_and_nothing_enters_after() {
        let (sender, receiver) = mpsc::channel(8);
        let closing = CancellationToken::new();
        let batches = Batches::new(receiver, closing.clone());
        for item in 0..3 {
            sender.send(item).await.unwrap();
        }
        closing.cancel();
        let mut batch = Vec::new();
        assert!(batches.take(&mut batch, 2).await);
        assert!(sender.send(3).await.is_err());
        assert!(batches.take(&mut batch, 2).await);
        assert!(!batches.clone().take(&mut batch, 2).await);
        assert_eq!(batch, [0, 1, 2]);
    }

    #[tokio::test]
    async fn a_waiting_task_is_told_of_the_closing() {
        let (_sender, receiver) = mpsc::channel::<u8>(1);
        let closing = CancellationToken::new();
        let batches = Batches::new(receiver, closing.clone());
        let waiting = tokio::spawn(async move { batches.take(&mut Vec::new(), 1).await });
        closing.cancel();
        assert!(!waiting.await.unwrap());
    }

    #[tokio::test]
    async fn what_is_sent_in_one_go_is_one_batch() {
        let (sender, receiver) = mpsc::channel(8);
        let batches = Batches::new(receiver, CancellationToken::new());
        let taking = tokio::spawn(async move {
            let mut batch = Vec::new();
            batches.take(&mut batch, 3).await;
            batch
        });
        tokio::task::yield_now().await;
        for item in 0..4 {
            let sender = sender.clone();
            tokio::spawn(async move { sender.send(item).await });
        }
        assert_eq!(taking.await.unwrap(), [0, 1, 2]);
    }
}
