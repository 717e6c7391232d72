//! The group commit: whatever has arrived is stored in one transaction, and every caller is answered after it.
//!
//! One transaction at a time: a second commit beside the first would halve both, and commits are what costs. Only when the first
//! takes long, as on a disk that hangs, another may begin.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use broker::Publisher;
use config::Ingest;
use domain::linger::{Linger, Pace};
use http_api::Outage;
use lifecycle::TaskGroup;
use metrics::{Counter, Histogram};
use runtime::error_chain;
use telemetry::Metric;
use telemetry::traces::Span;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::lane::gate::Gate;
use crate::lane::outbox::Outbox;
use crate::lane::submission::{Entry, NotStored, Submission, Waiting};
use crate::lane::{Committed, Lane};

/// How long the database may take for a transaction before it counts as away.
const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// How long a transaction is alone.
const ALONE: Duration = Duration::from_millis(10);
/// Between the beginnings of two transactions when many rows a second come: what a transaction costs is then paid by several of them.
const PACES: &[Pace] = &[Pace {
    from: 500,
    interval: Duration::from_millis(2),
}];
/// Batches that may wait for each transaction under way: enough to keep the writer busy, and little enough to be answered in
/// time.
const BATCHES_WAITING: usize = 2;

/// Stores rows, and answers those who handed them in.
pub(crate) struct Writer<L: Lane> {
    pub(crate) lane: Arc<L>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) outbox: Arc<Outbox<L>>,
    pub(crate) tasks: TaskGroup,
    outage: Outage,
    batch_rows: Histogram,
    errors: Counter,
}

impl<L: Lane> Writer<L> {
    /// A writer whose gate is closed. What it begins belongs to `tasks`.
    pub(crate) fn new(lane: L, publisher: Publisher, tasks: &TaskGroup) -> Arc<Self> {
        let (lane, gate) = (Arc::new(lane), Arc::new(Gate::of(L::WHAT)));
        Arc::new(Self {
            outbox: Outbox::new(Arc::clone(&lane), Arc::clone(&gate), publisher, tasks.clone()),
            lane,
            gate,
            tasks: tasks.clone(),
            outage: Outage::of(L::COMMIT.summary),
            batch_rows: L::BATCH_ROWS.histogram(&[]),
            errors: Metric::StoreErrors.counter(&[("operation", "receiving")]),
        })
    }

    /// Starts the group commit. Its task ends when `closing` is cancelled and everything that had arrived is taken up.
    pub(crate) fn start(
        self: &Arc<Self>,
        ingest: &Ingest,
        closing: &CancellationToken,
    ) -> (Submission<L>, JoinHandle<()>) {
        let (submission, entries) = Submission::new(ingest.writers * ingest.batch_rows * BATCHES_WAITING);
        let limits = (ingest.writers, ingest.batch_rows);
        let running = Arc::clone(self).run(entries, limits, closing.clone());
        (submission, self.tasks.spawn("writer", running))
    }

    async fn run(
        self: Arc<Self>,
        mut entries: mpsc::Receiver<Entry<L>>,
        (writers, batch_rows): (usize, usize),
        closing: CancellationToken,
    ) {
        let writers = Arc::new(Semaphore::new(writers));
        let mut linger = Linger::new(PACES);
        while let Ok(turn) = Arc::clone(&writers).acquire_owned().await {
            let mut batch = take(&mut entries, batch_rows, &closing).await;
            if batch.is_empty() {
                return;
            }
            if let Some(until) = linger.wait(Instant::now()) {
                gather(&mut entries, &mut batch, batch_rows, until).await;
            }
            linger.begin(Instant::now(), batch.len());
            let mut writing = Box::pin(Arc::clone(&self).write(batch, turn));
            if timeout(ALONE, &mut writing).await.is_err() {
                self.tasks.spawn("write", writing);
            }
        }
    }

    /// Leaves out rows whose callers wait no more: they were told that theirs are not stored.
    async fn write(self: Arc<Self>, entries: Vec<Entry<L>>, _turn: OwnedSemaphorePermit) {
        let (mut rows, mut answers) = (
            Vec::with_capacity(entries.len()),
            Vec::with_capacity(entries.len()),
        );
        let (mut waits, mut places) = (Vec::new(), Vec::with_capacity(entries.len()));
        for Entry {
            row,
            answer,
            wait,
            place,
        } in entries
        {
            if !answer.is_closed() {
                rows.push(row);
                answers.push(answer);
                places.push(place);
                waits.extend(wait.is_recorded().then_some(wait));
            }
        }
        if rows.is_empty() {
            return;
        }
        let queued = self.gate.is_open();
        let inserting = self.lane.insert(&mut rows, queued);
        let committed = self.transaction(inserting, answers.len(), waits).await;
        drop(places);
        match committed {
            Ok(committed) => self.settle(answers, committed).await,
            Err(error) if error.is_transient() => {
                for answer in answers {
                    let _ = answer.send(Err(self.not_stored(&error)));
                }
            }
            Err(error) => {
                tracing::warn!(
                    error = error_chain(&error),
                    rows = rows.len(),
                    "a batch of {} was refused; trying them one by one",
                    L::WHAT
                );
                self.write_singly(rows, answers, queued).await;
            }
        }
    }

    /// One row that the database refuses must not take its neighbours with it.
    async fn write_singly(&self, rows: Vec<L::Row>, answers: Vec<Waiting<L::Answer>>, queued: bool) {
        for (mut row, answer) in rows.into_iter().zip(answers) {
            let inserting = self.lane.insert(std::slice::from_mut(&mut row), queued);
            match store::within(WRITE_LIMIT, inserting).await {
                Ok(committed) => self.settle(vec![answer], committed).await,
                Err(error) => {
                    let _ = answer.send(Err(self.not_stored(&error)));
                }
            }
        }
    }

    /// Waits for a transaction of so many rows, and has it in metrics and traces: the waits of those whose traces are recorded
    /// are over with it, and refer to what they waited for.
    pub(crate) async fn transaction(
        &self,
        inserting: impl Future<Output = Result<Committed<L::Answer>, store::Error>>,
        rows: usize,
        mut waits: Vec<Span>,
    ) -> Result<Committed<L::Answer>, store::Error> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a batch has a few thousand rows at most"
        )]
        self.batch_rows.record(rows as f64);
        let started = SystemTime::now();
        let committed = store::within(WRITE_LIMIT, inserting).await;
        let members = waits.iter().filter_map(Span::context).collect();
        let mut commit = L::COMMIT.executed(members, started, rows);
        for wait in &mut waits {
            if let Some(commit) = commit.context() {
                wait.link(commit);
            }
        }
        match committed {
            Ok(_) => self.outage.worked(),
            Err(_) => {
                commit.fail("database");
                waits.iter_mut().for_each(|wait| wait.fail("not_stored"));
            }
        }
        committed
    }

    /// Answers first, publishes then: from the commit on everything is safe whatever happens to the messages. A caller that has
    /// gone meanwhile does not change what is stored.
    async fn settle(&self, waiting: Vec<Waiting<L::Answer>>, committed: Committed<L::Answer>) {
        for (waiting, answer) in waiting.into_iter().zip(committed.answers) {
            let _ = waiting.send(Ok(answer));
        }
        self.outbox.publish(committed.messages).await;
    }

    /// What to answer for something that the database did not store.
    pub(crate) fn not_stored(&self, error: &store::Error) -> NotStored {
        self.errors.increment(1);
        if error.is_transient() {
            self.outage.failed(error);
            return NotStored::Unavailable;
        }
        tracing::error!(
            error = error_chain(error),
            "the database refuses one of the {}",
            L::WHAT
        );
        NotStored::Refused
    }
}

/// Waits for something and takes what is there, at most `limit`. Nothing when the channel is empty and closed, which it is from
/// `closing` on; what is in it then is still taken.
async fn take<T>(entries: &mut mpsc::Receiver<T>, limit: usize, closing: &CancellationToken) -> Vec<T> {
    let mut batch = Vec::new();
    if !closing.is_cancelled() {
        tokio::select! {
            biased;
            _ = entries.recv_many(&mut batch, limit) => {
                top_up(entries, &mut batch, limit).await;
                return batch;
            }
            () = closing.cancelled() => {}
        }
    }
    entries.close();
    entries.recv_many(&mut batch, limit).await;
    batch
}

/// Takes what else comes until then, and what fits. It sleeps meanwhile: to be woken by each row would cost each of them a wake-up.
async fn gather<T>(entries: &mut mpsc::Receiver<T>, batch: &mut Vec<T>, limit: usize, until: Instant) {
    take_ready(entries, batch, limit);
    if batch.len() < limit {
        sleep_until(until.into()).await;
        take_ready(entries, batch, limit);
    }
}

/// Lets the tasks that are ready to run go first, and takes what they have sent. The first row of a burst wakes the writer
/// before the rest is sent; without this every burst would begin with a batch of one.
async fn top_up<T>(entries: &mut mpsc::Receiver<T>, batch: &mut Vec<T>, limit: usize) {
    tokio::task::yield_now().await;
    take_ready(entries, batch, limit);
}

fn take_ready<T>(entries: &mut mpsc::Receiver<T>, batch: &mut Vec<T>, limit: usize) {
    while batch.len() < limit
        && let Ok(entry) = entries.try_recv()
    {
        batch.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_in_the_channel_when_it_closes_is_taken_and_nothing_enters_after() {
        let (sender, mut entries) = mpsc::channel(8);
        let closing = CancellationToken::new();
        for entry in 0..3 {
            sender.send(entry).await.unwrap();
        }
        closing.cancel();
        assert_eq!(take(&mut entries, 2, &closing).await, [0, 1]);
        assert!(sender.send(3).await.is_err());
        assert_eq!(take(&mut entries, 2, &closing).await, [2]);
        assert_eq!(take(&mut entries, 2, &closing).await, [] as [i32; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn rows_are_gathered_until_the_time_is_over_or_the_batch_is_full() {
        let (sender, mut entries) = mpsc::channel(8);
        for entry in 1..4 {
            sender.send(entry).await.unwrap();
        }
        let mut batch = vec![0];
        let until = Instant::now() + Duration::from_millis(2);
        gather(&mut entries, &mut batch, 3, until).await;
        assert_eq!(batch, [0, 1, 2]);
        let mut batch = Vec::new();
        gather(&mut entries, &mut batch, 3, until).await;
        assert_eq!(batch, [3]);
    }

    #[tokio::test]
    async fn a_waiting_writer_is_told_of_the_closing() {
        let (_sender, mut entries) = mpsc::channel::<u8>(1);
        let closing = CancellationToken::new();
        let told = closing.clone();
        let waiting = tokio::spawn(async move { take(&mut entries, 1, &told).await });
        closing.cancel();
        assert!(waiting.await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn what_is_sent_in_one_go_is_one_batch() {
        let (sender, mut entries) = mpsc::channel(8);
        let taking = tokio::spawn(async move { take(&mut entries, 3, &CancellationToken::new()).await });
        tokio::task::yield_now().await;
        for entry in 0..4 {
            let sender = sender.clone();
            tokio::spawn(async move { sender.send(entry).await });
        }
        assert_eq!(taking.await.unwrap(), [0, 1, 2]);
    }
}
