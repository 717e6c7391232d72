//! Taking batches from a bounded channel that several tasks share, and emptying it at the end.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard, mpsc};
use tokio_util::sync::CancellationToken;

/// Keeps the other tasks from taking, until it is dropped.
pub(crate) struct Turn<T>(
    #[expect(dead_code, reason = "it is there to be dropped")] OwnedMutexGuard<mpsc::Receiver<T>>,
);

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

    /// Waits for something and puts what is there, at most `limit` items, into `batch`. Returns `None` when the channel is
    /// closed and empty, and otherwise the turn: for as long as it is kept, what comes gathers for the next batch.
    pub(crate) async fn take(&self, batch: &mut Vec<T>, limit: usize) -> Option<Turn<T>> {
        let mut receiver = Arc::clone(&self.receiver).lock_owned().await;
        if !self.closing.is_cancelled() {
            tokio::select! {
                biased;
                taken = receiver.recv_many(batch, limit) => {
                    top_up(&mut receiver, batch, limit).await;
                    return (taken > 0).then_some(Turn(receiver));
                }
                () = self.closing.cancelled() => {}
            }
        }
        receiver.close();
        (receiver.recv_many(batch, limit).await > 0).then_some(Turn(receiver))
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
        assert!(batches.take(&mut batch, 2).await.is_some());
        assert!(sender.send(3).await.is_err());
        assert!(batches.take(&mut batch, 2).await.is_some());
        assert!(batches.clone().take(&mut batch, 2).await.is_none());
        assert_eq!(batch, [0, 1, 2]);
    }

    #[tokio::test]
    async fn a_waiting_task_is_told_of_the_closing() {
        let (_sender, receiver) = mpsc::channel::<u8>(1);
        let closing = CancellationToken::new();
        let batches = Batches::new(receiver, closing.clone());
        let waiting = tokio::spawn(async move { batches.take(&mut Vec::new(), 1).await.is_some() });
        closing.cancel();
        assert!(!waiting.await.unwrap());
    }

    #[tokio::test]
    async fn what_comes_while_the_turn_is_kept_is_the_next_batch() {
        let (sender, receiver) = mpsc::channel(8);
        let batches = Batches::new(receiver, CancellationToken::new());
        sender.send(0).await.unwrap();
        let turn = batches.take(&mut Vec::new(), 8).await;
        let other = batches.clone();
        let waiting = tokio::spawn(async move {
            let mut batch = Vec::new();
            other.take(&mut batch, 8).await;
            batch
        });
        for item in 1..4 {
            sender.send(item).await.unwrap();
            tokio::task::yield_now().await;
        }
        drop(turn);
        assert_eq!(waiting.await.unwrap(), [1, 2, 3]);
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
