//! Recording what came of attempts, however long the database is away: an outcome that is known must not be forgotten.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use lifecycle::error_chain;
use telemetry::Metric;
use telemetry::traces::{Context, Span, Statement};
use tokio::sync::mpsc;

use crate::claim::RETRY_PAUSE;
use crate::message::Message;

/// How long the database may take for a batch before it counts as away.
pub(crate) const RECORD_LIMIT: Duration = Duration::from_secs(10);

/// A statement about many rows, for those of them whose traces are recorded.
pub(crate) struct Batch {
    statement: Statement,
    members: Vec<Context>,
    rows: usize,
    started: SystemTime,
}

impl Batch {
    pub(crate) fn begin<'a>(statement: Statement, spans: impl ExactSizeIterator<Item = &'a Span>) -> Self {
        Self {
            statement,
            rows: spans.len(),
            members: spans.filter_map(Span::context).collect(),
            started: SystemTime::now(),
        }
    }

    /// The statement is through.
    pub(crate) fn end(self) {
        drop(self.statement.executed(self.members, self.started, self.rows));
    }
}

/// Takes what else comes until then, up to `most` in all. It sleeps meanwhile: there is nothing to do for an outcome before that, and to be woken
/// by each wakes a thread of the runtime when the load is moderate. Where none can come any more it does not wait.
pub(crate) async fn gather<T>(
    outbox: &mut mpsc::Receiver<T>,
    batch: &mut Vec<T>,
    most: usize,
    until: Instant,
) {
    take(outbox, batch, most);
    if batch.len() < most && !outbox.is_closed() {
        tokio::time::sleep_until(until.into()).await;
        take(outbox, batch, most);
    }
}

fn take<T>(outbox: &mut mpsc::Receiver<T>, batch: &mut Vec<T>, most: usize) {
    while batch.len() < most
        && let Ok(one) = outbox.try_recv()
    {
        batch.push(one);
    }
}

/// Writes outcomes, tells `note` of each whether it was accepted, and returns their messages, which may be settled now.
pub(crate) async fn record_all<T, R, I, F>(
    statement: Option<Statement>,
    endings: Vec<(T, Message<R>)>,
    id: impl Fn(&T) -> I,
    write: impl Fn(Arc<[T]>) -> F,
    mut note: impl FnMut(&T, &mut Message<R>, bool),
) -> Vec<Message<R>>
where
    T: Clone,
    I: Eq + Hash,
    F: Future<Output = Result<HashSet<I>, store::Error>>,
{
    let (outcomes, mut messages): (Vec<T>, Vec<Message<R>>) = endings.into_iter().unzip();
    let spans = messages.iter().map(|message| &message.span);
    let batch = statement.map(|statement| Batch::begin(statement, spans));
    let outcomes = Arc::from(outcomes);
    let accepted = record(&outcomes, write).await;
    if let Some(batch) = batch {
        batch.end();
    }
    for (outcome, message) in outcomes.iter().zip(&mut messages) {
        note(outcome, message, accepted.contains(&id(outcome)));
    }
    messages
}

/// Writes a batch; returns what `write` says was accepted. What the database refuses is written one by one, so that a row that
/// cannot be stored does not take others with it; that row is found by its lease.
async fn record<T, I, F>(batch: &Arc<[T]>, write: impl Fn(Arc<[T]>) -> F) -> HashSet<I>
where
    T: Clone,
    I: Eq + Hash,
    F: Future<Output = Result<HashSet<I>, store::Error>>,
{
    if batch.is_empty() {
        return HashSet::new();
    }
    let refused = match until_answered(batch.len(), || write(batch.clone())).await {
        Ok(accepted) => return accepted,
        Err(error) => error,
    };
    if batch.len() == 1 {
        not_recorded(&refused);
        return HashSet::new();
    }
    let mut accepted = HashSet::new();
    for one in batch.iter() {
        match until_answered(1, || write(Arc::from([one.clone()]))).await {
            Ok(recorded) => accepted.extend(recorded),
            Err(error) => not_recorded(&error),
        }
    }
    accepted
}

fn not_recorded(error: &store::Error) {
    tracing::error!(error = error_chain(error), "an outcome could not be recorded");
}

/// Tries to write so many outcomes for as long as the database is away.
async fn until_answered<T, F>(count: usize, write: impl Fn() -> F) -> Result<T, store::Error>
where
    F: Future<Output = Result<T, store::Error>>,
{
    loop {
        let error = match store::within(RECORD_LIMIT, write()).await {
            Ok(written) => return Ok(written),
            Err(error) => error,
        };
        Metric::StoreErrors.increment_with(&[("operation", "attempt")], 1);
        if !error.is_transient() {
            return Err(error);
        }
        tracing::warn!(error = error_chain(&error), count, "could not record outcomes");
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}
