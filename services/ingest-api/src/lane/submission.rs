//! The way from a request to the group commit: a bounded channel, with an answer for each row.
//!
//! It deliberately holds nothing back to make batches larger: what has queued up while the writers were busy is a batch.

use std::sync::Arc;

use telemetry::traces::{Kind, Span};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::lane::Lane;
use crate::share::{Place, Share};

/// Why a row is not stored, or not known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotStored {
    /// More arrives than can be written.
    Busy,
    /// More of this caller's arrives than it may have waiting.
    Share,
    /// The service is about to stop.
    Stopping,
    /// The database is away.
    Unavailable,
    /// The writing took longer than the request may.
    Late,
    /// The database refuses this row.
    Refused,
}

/// Whom to answer, when what was handed in is committed or known not to be.
pub(crate) type Waiting<A> = oneshot::Sender<Result<A, NotStored>>;

/// A row on its way to the writer. Its caller has gone when `answer` is closed.
pub(crate) struct Entry<L: Lane> {
    pub(crate) row: L::Row,
    pub(crate) answer: Waiting<L::Answer>,
    /// The request's wait, until its row is committed.
    pub(crate) wait: Span,
    /// Counts until it is committed, or refused.
    pub(crate) place: Place,
}

/// The entrance.
pub(crate) struct Submission<L: Lane> {
    entries: mpsc::Sender<Entry<L>>,
}

impl<L: Lane> Submission<L> {
    /// An entrance before which at most `capacity` rows wait, and its other end.
    pub(crate) fn new(capacity: usize) -> (Self, mpsc::Receiver<Entry<L>>) {
        let (entries, receiver) = mpsc::channel(capacity);
        (Self { entries }, receiver)
    }

    /// Hands `row` to the writer and returns when it is committed.
    ///
    /// After [`NotStored::Late`] a row that the writer has not taken up yet is never written; one that is being written may
    /// be stored all the same, which only an idempotency key can tell the caller.
    pub(crate) async fn store(
        &self,
        row: L::Row,
        share: &Arc<Share>,
        deadline: Instant,
    ) -> Result<L::Answer, NotStored> {
        let place = share.enter(self.entries.capacity()).ok_or(NotStored::Share)?;
        let (answer, answered) = oneshot::channel();
        let wait = wait::<L>(L::traceparent(&row));
        self.entries
            .try_send(Entry {
                row,
                answer,
                wait,
                place,
            })
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => NotStored::Busy,
                mpsc::error::TrySendError::Closed(_) => NotStored::Stopping,
            })?;
        by(deadline, answered).await
    }
}

/// The span of a request's wait for its commit.
pub(crate) fn wait<L: Lane>(traceparent: Option<&str>) -> Span {
    Span::begin(Kind::Internal, ("wait to", L::COMMIT.summary), traceparent)
}

/// The answer, when it comes before `deadline`.
pub(crate) async fn by<A>(
    deadline: Instant,
    answered: oneshot::Receiver<Result<A, NotStored>>,
) -> Result<A, NotStored> {
    match timeout_at(deadline, answered).await {
        Ok(Ok(answer)) => answer,
        // The writer has gone with what it had; whether that was written before is not known.
        Ok(Err(_)) => Err(NotStored::Stopping),
        Err(_) => Err(NotStored::Late),
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use domain::push::{Platform, PushId, PushRequest, PushStatus};
    use store::push::NewPush;

    use super::*;
    use crate::push::lane::PushLane;

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

    fn share() -> Arc<Share> {
        Arc::new(Share::new(1, None))
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_channel_refuses_at_once_and_a_late_caller_is_seen_to_have_gone() {
        let (submission, mut entries) = Submission::<PushLane>::new(1);
        let share = share();
        let late = submission.store(push(), &share, Instant::now() + std::time::Duration::from_secs(5));
        assert_eq!(late.await, Err(NotStored::Late));
        let deadline = Instant::now() + std::time::Duration::from_secs(5);
        let busy = submission.store(push(), &share, deadline);
        assert_eq!(busy.await, Err(NotStored::Busy));
        // What its caller gave up counts as long as it takes room.
        assert_eq!(Arc::strong_count(&share), 2);
        assert!(entries.recv().await.is_some_and(|entry| entry.answer.is_closed()));
        assert_eq!(Arc::strong_count(&share), 1);
    }

    #[tokio::test]
    async fn a_closed_channel_says_that_the_service_stops() {
        let (submission, entries) = Submission::<PushLane>::new(1);
        drop(entries);
        assert_eq!(
            submission.store(push(), &share(), Instant::now()).await,
            Err(NotStored::Stopping)
        );
    }
}
