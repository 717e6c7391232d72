//! The group commit: whatever has arrived is stored in one transaction, and every caller is answered after it.
//!
//! One writer at a time: a second commit beside the first would halve both, and commits are what costs. Only when the first takes
//! long, as on a disk that hangs, another may begin.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http_api::Outage;
use runtime::error_chain;
use telemetry::traces::Span;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::lane::Lane;
use crate::lane::drain::Batches;
use crate::lane::gate::Gate;
use crate::lane::intake::{Entry, NotStored};
use crate::lane::outbox::Outbox;

type Answer<L> = oneshot::Sender<Result<<L as Lane>::Answer, NotStored>>;

/// How long the database may take for a batch before it counts as away.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// How long a batch is written alone.
const ALONE: Duration = Duration::from_millis(10);

/// One of the tasks that write.
#[derive(Clone)]
pub(crate) struct Writer<L: Lane> {
    pub(crate) entries: Batches<Entry<L>>,
    pub(crate) lane: L,
    pub(crate) gate: Arc<Gate>,
    pub(crate) outbox: Outbox<L>,
    pub(crate) batch_rows: usize,
    pub(crate) outage: Arc<Outage>,
}

/// What is written together, and who waits for it.
struct Batch<L: Lane> {
    items: Vec<L::Item>,
    answers: Vec<Answer<L>>,
    /// Of those whose traces are recorded.
    waits: Vec<Span>,
}

impl<L: Lane> Batch<L> {
    fn of(entries: Vec<Entry<L>>) -> Self {
        let mut batch = Self {
            items: Vec::with_capacity(entries.len()),
            answers: Vec::with_capacity(entries.len()),
            waits: Vec::new(),
        };
        for Entry { item, answer, wait } in entries {
            batch.items.push(item);
            batch.answers.push(answer);
            batch.waits.extend(wait.is_recorded().then_some(wait));
        }
        batch
    }

    /// The items are committed, or are known not to be: their waits are over, and refer to what they waited for.
    fn end_waits(&mut self, started: SystemTime, rows: usize, failed: bool) {
        let members = self.waits.iter().filter_map(Span::context).collect();
        let mut commit = L::COMMIT.executed(members, started, rows);
        if failed {
            commit.fail("database");
        }
        for mut wait in self.waits.drain(..) {
            if let Some(commit) = commit.context() {
                wait.link(commit);
            }
            if failed {
                wait.fail("not_stored");
            }
        }
    }
}

impl<L: Lane> Writer<L> {
    /// Runs until the channel is closed and everything in it is written.
    pub(crate) async fn run(self) {
        let mut taken = Vec::with_capacity(self.batch_rows);
        while let Some(turn) = self.entries.take(&mut taken, self.batch_rows).await {
            let mut writing = pin!(self.write_all(prepare(&mut taken)));
            if timeout(ALONE, &mut writing).await.is_err() {
                drop(turn);
                writing.await;
            }
        }
    }

    async fn write_all(&self, (together, alone): (Vec<Entry<L>>, Vec<Entry<L>>)) {
        if !together.is_empty() {
            self.write(Batch::of(together)).await;
        }
        for entry in alone {
            self.write(Batch::of(vec![entry])).await;
        }
    }

    async fn write(&self, mut batch: Batch<L>) {
        let rows = batch.items.iter().map(L::rows).sum();
        let queued = self.gate.is_open();
        self.lane.writes(rows);
        let started = SystemTime::now();
        let inserted = self.insert(&mut batch.items, queued).await;
        batch.end_waits(started, rows, inserted.is_err());
        match inserted {
            Ok(inserted) => {
                self.outage.worked();
                self.settle(batch, inserted).await;
            }
            Err(error) if error.is_transient() => {
                self.outage.failed(&error);
                for answer in batch.answers {
                    self.fail(answer, NotStored::Unavailable);
                }
            }
            Err(error) => {
                tracing::warn!(
                    error = error_chain(&error),
                    rows,
                    "a batch of {} was refused; trying them one by one",
                    L::WHAT
                );
                self.write_singly(batch, queued).await;
            }
        }
    }

    /// One item that the database refuses must not take its neighbours with it.
    async fn write_singly(&self, batch: Batch<L>, queued: bool) {
        for (mut item, answer) in batch.items.into_iter().zip(batch.answers) {
            match self.insert(std::slice::from_mut(&mut item), queued).await {
                Ok(inserted) => {
                    let single = Batch {
                        items: vec![item],
                        answers: vec![answer],
                        waits: Vec::new(),
                    };
                    self.settle(single, inserted).await;
                }
                Err(error) if error.is_transient() => {
                    self.outage.failed(&error);
                    self.fail(answer, NotStored::Unavailable);
                }
                Err(error) => {
                    tracing::error!(
                        error = error_chain(&error),
                        "the database refuses one of the {}",
                        L::WHAT
                    );
                    self.fail(answer, NotStored::Refused);
                }
            }
        }
    }

    async fn insert(&self, items: &mut [L::Item], queued: bool) -> Result<Vec<L::Inserted>, store::Error> {
        store::within(WRITE_LIMIT, self.lane.insert(items, queued)).await
    }

    /// Answers first, publishes then: from the commit on everything is safe whatever happens to the messages.
    async fn settle(&self, batch: Batch<L>, inserted: Vec<L::Inserted>) {
        let mut handoffs = Vec::with_capacity(batch.items.len());
        for ((item, answer), inserted) in batch.items.into_iter().zip(batch.answers).zip(inserted) {
            // A caller that has gone meanwhile does not change what is stored.
            let _ = answer.send(Ok(self.lane.settle(item, inserted, &mut handoffs)));
        }
        self.outbox.take(handoffs).await;
    }

    fn fail(&self, answer: Answer<L>, reason: NotStored) {
        self.lane.failed();
        let _ = answer.send(Err(reason));
    }
}

/// Leaves out entries whose callers wait no more: they were told that their item is not stored. What goes alone is apart.
fn prepare<L: Lane>(taken: &mut Vec<Entry<L>>) -> (Vec<Entry<L>>, Vec<Entry<L>>) {
    let awaited = taken.drain(..).filter(|entry| !entry.answer.is_closed());
    awaited.partition(|entry| !L::is_alone(&entry.item))
}
