//! The way of a push from its request to the group commit: a bounded channel, with an answer for each push.
//!
//! It deliberately holds no push back to make batches larger: what has queued up while the writers were busy is a
//! batch.

use domain::push::PushId;
use store::NewPush;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

/// What became of a push that is stored, now or earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// It is stored under its own identifier.
    New,
    /// The same request was stored before, as this push.
    Repeated(PushId),
}

/// Why a push is not stored, or not known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotStored {
    /// The idempotency key belongs to another request.
    KeyReused,
    /// More pushes arrive than can be written.
    Busy,
    /// The service is about to stop.
    Stopping,
    /// The database is away.
    Unavailable,
    /// The writing took longer than the request may.
    Late,
    /// The database refuses this push.
    Refused,
}

/// A push on its way to a writer. Its caller has gone when `answer` is closed.
pub(crate) struct Entry {
    pub(crate) push: NewPush,
    pub(crate) answer: oneshot::Sender<Result<Stored, NotStored>>,
}

/// The entrance. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Intake {
    entries: mpsc::Sender<Entry>,
}

impl Intake {
    /// An entrance before which at most `capacity` pushes wait, and its other end.
    pub(crate) fn new(capacity: usize) -> (Self, mpsc::Receiver<Entry>) {
        let (entries, receiver) = mpsc::channel(capacity);
        (Self { entries }, receiver)
    }

    /// Hands `push` to the writers and returns when it is committed.
    ///
    /// After [`NotStored::Late`] a push that no writer has taken up yet is never written; one that is being written may
    /// be stored all the same, which only an idempotency key can tell the caller.
    pub(crate) async fn store(&self, push: NewPush, deadline: Instant) -> Result<Stored, NotStored> {
        let (answer, answered) = oneshot::channel();
        self.entries
            .try_send(Entry { push, answer })
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => NotStored::Busy,
                mpsc::error::TrySendError::Closed(_) => NotStored::Stopping,
            })?;
        match timeout_at(deadline, answered).await {
            Ok(Ok(answer)) => answer,
            // The writer has gone with the entry; whether it was written before is not known.
            Ok(Err(_)) => Err(NotStored::Stopping),
            Err(_) => Err(NotStored::Late),
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use domain::push::{Platform, PushRequest, PushStatus};

    use super::*;

    fn push() -> NewPush {
        NewPush {
            id: PushId::at(DateTime::UNIX_EPOCH),
            request: PushRequest {
                platform: Platform::Ios,
                message_prototype_key: None,
                push_key: "device".to_owned(),
                message: "text".to_owned(),
                cron_expression: None,
                first_window: None,
            },
            status: PushStatus::InMemory,
            created_at: DateTime::UNIX_EPOCH,
            traceparent: None,
            idempotency: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_channel_refuses_at_once_and_a_late_caller_is_seen_to_have_gone() {
        let (intake, mut entries) = Intake::new(1);
        let late = intake.store(push(), Instant::now() + std::time::Duration::from_secs(5));
        assert_eq!(late.await, Err(NotStored::Late));
        let deadline = Instant::now() + std::time::Duration::from_secs(5);
        assert_eq!(intake.store(push(), deadline).await, Err(NotStored::Busy));
        assert!(entries.recv().await.is_some_and(|entry| entry.answer.is_closed()));
    }

    #[tokio::test]
    async fn a_closed_channel_says_that_the_service_stops() {
        let (intake, entries) = Intake::new(1);
        drop(entries);
        assert_eq!(
            intake.store(push(), Instant::now()).await,
            Err(NotStored::Stopping)
        );
    }
}
