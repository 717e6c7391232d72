//! The group commit: whatever has arrived is stored in one transaction, and every caller is answered after it.

use std::sync::Arc;
use std::time::Duration;

use bootstrap::error_chain;
use domain::push::PushStatus;
use store::{Inserted, NewPush, Store};
use tokio::sync::oneshot;

use crate::drain::Batches;
use crate::gate::Gate;
use crate::intake::{Entry, NotStored, Stored};
use crate::meters::Meters;
use crate::outage::Outage;
use crate::outbox::{Handoff, Outbox};

type Answer = oneshot::Sender<Result<Stored, NotStored>>;

/// How long the database may take for a batch before it counts as away.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// One of the tasks that write.
#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) entries: Batches<Entry>,
    pub(crate) store: Store,
    pub(crate) gate: Arc<Gate>,
    pub(crate) outbox: Outbox,
    pub(crate) queue_lease: Duration,
    pub(crate) batch_rows: usize,
    pub(crate) meters: Arc<Meters>,
    pub(crate) outage: Arc<Outage>,
}

impl Writer {
    /// Runs until the channel is closed and everything in it is written.
    pub(crate) async fn run(self) {
        let mut batch = Vec::with_capacity(self.batch_rows);
        while self.entries.take(&mut batch, self.batch_rows).await {
            let (pushes, answers) = self.prepare(&mut batch);
            if !pushes.is_empty() {
                self.write(pushes, answers).await;
            }
        }
    }

    /// Leaves out whom nobody waits for any more: they were told that their push is not stored.
    fn prepare(&self, batch: &mut Vec<Entry>) -> (Vec<NewPush>, Vec<Answer>) {
        let open = self.gate.is_open();
        batch
            .drain(..)
            .filter(|entry| !entry.answer.is_closed())
            .map(|mut entry| {
                if !open && entry.push.status == PushStatus::InMemory {
                    entry.push.status = PushStatus::Pending;
                }
                (entry.push, entry.answer)
            })
            .unzip()
    }

    async fn write(&self, pushes: Vec<NewPush>, answers: Vec<Answer>) {
        self.meters.batch(pushes.len());
        match self.insert(&pushes).await {
            Ok(inserted) => {
                self.outage.worked();
                self.settle(pushes, answers, inserted).await;
            }
            Err(error) if error.is_transient() => {
                self.outage.failed(&error);
                for answer in answers {
                    self.fail(answer, NotStored::Unavailable);
                }
            }
            Err(error) => {
                tracing::warn!(
                    error = error_chain(&error),
                    rows = pushes.len(),
                    "a batch was refused; trying its pushes one by one"
                );
                self.write_singly(pushes, answers).await;
            }
        }
    }

    /// One push that the database refuses must not take its neighbours with it.
    async fn write_singly(&self, pushes: Vec<NewPush>, answers: Vec<Answer>) {
        for (push, answer) in pushes.into_iter().zip(answers) {
            match self.insert(std::slice::from_ref(&push)).await {
                Ok(inserted) => self.settle(vec![push], vec![answer], inserted).await,
                Err(error) if error.is_transient() => {
                    self.outage.failed(&error);
                    self.fail(answer, NotStored::Unavailable);
                }
                Err(error) => {
                    tracing::error!(error = error_chain(&error), id = %push.id, "the database refuses a push");
                    self.fail(answer, NotStored::Refused);
                }
            }
        }
    }

    async fn insert(&self, pushes: &[NewPush]) -> Result<Vec<Inserted>, store::Error> {
        store::within(WRITE_LIMIT, self.store.insert_pushes(pushes, self.queue_lease)).await
    }

    /// Answers first, publishes then: from the commit on the push is safe whatever happens to the message.
    async fn settle(&self, pushes: Vec<NewPush>, answers: Vec<Answer>, inserted: Vec<Inserted>) {
        let mut handoffs = Vec::with_capacity(pushes.len());
        for ((push, answer), inserted) in pushes.into_iter().zip(answers).zip(inserted) {
            // A caller that has gone meanwhile does not change what is stored.
            let _ = answer.send(match inserted {
                Inserted::New => Ok(Stored::New),
                Inserted::Repeated(first) => Ok(Stored::Repeated(first)),
                Inserted::KeyReused => Err(NotStored::KeyReused),
            });
            if inserted != Inserted::New {
                continue;
            }
            self.meters.stored(push.status);
            if push.status == PushStatus::InMemory {
                handoffs.push(Handoff {
                    id: push.id,
                    traceparent: push.traceparent,
                });
            }
        }
        self.outbox.take(handoffs).await;
    }

    fn fail(&self, answer: Answer, reason: NotStored) {
        self.meters.store_failed();
        let _ = answer.send(Err(reason));
    }
}
