//! What both lanes share: the way from a request to the group commit, and from the commit to the queue.
//!
//! `intake` queues what a request brings, a `writer` stores it together with whatever else has arrived and answers,
//! `outbox` publishes it; `pipeline` holds these tasks together. The `gate` spares the broker what it would refuse, and
//! `watch` opens it again. What is stored, how, and which messages follow from it is told by the [`Lane`]; each lane has
//! its own tasks, channels and gate, so that one that is full or slow is not felt in the other.

mod drain;
pub(crate) mod gate;
pub(crate) mod intake;
mod outbox;
pub(crate) mod pipeline;
pub(crate) mod watch;
mod writer;

use broker::{Envelope, Queue};
use chrono::{DateTime, Utc};
use telemetry::traces::Statement;
use uuid::Uuid;

/// What a lane takes in, and what becomes of it.
pub(crate) trait Lane: Clone + Send + Sync + 'static {
    /// What one request brings: stored as a whole or not at all.
    type Item: Send + 'static;
    /// What the database says of an item.
    type Inserted: Send;
    /// What the request is told of its item.
    type Answer: Send + 'static;

    /// The queue that what is stored is published to.
    const QUEUE: Queue;
    /// What is taken in, for the log: "pushes".
    const WHAT: &'static str;
    /// Completes "failed to …" when items cannot be stored.
    const FAILED_STORING: &'static str;
    /// The same, when what did not get into the queue cannot be marked.
    const FAILED_MARKING: &'static str;
    /// The group commit, in traces.
    const COMMIT: Statement;
    /// Most messages that wait to be published.
    const HANDOFFS: usize;

    /// Rows that an item is stored as.
    fn rows(_item: &Self::Item) -> usize {
        1
    }

    /// The trace that an item belongs to.
    fn traceparent(item: &Self::Item) -> Option<&str>;

    /// Whether an item gets a transaction of its own.
    fn is_alone(_item: &Self::Item) -> bool {
        false
    }

    /// Stores items in one transaction; the answers are in their order. `queued` tells whether their messages will be
    /// published at once.
    fn insert(
        &self,
        items: &mut [Self::Item],
        queued: bool,
    ) -> impl Future<Output = Result<Vec<Self::Inserted>, store::Error>> + Send;

    /// What to answer for an item; adds the messages that are to be published now.
    fn settle(&self, item: Self::Item, inserted: Self::Inserted, handoffs: &mut Vec<Handoff>)
    -> Self::Answer;

    /// The message of a handoff.
    fn envelope(handoff: Handoff, at: DateTime<Utc>) -> Envelope;

    /// Marks what did not get into the queue: it waits in the database.
    fn take_back(&self, ids: &[Uuid]) -> impl Future<Output = Result<(), store::Error>> + Send;

    /// A transaction with this many rows is about to be written.
    fn writes(&self, rows: usize);

    /// The database failed to store an item.
    fn failed(&self);
}

/// A row that was stored as handed to the broker, and has to get into the queue.
pub(crate) struct Handoff {
    pub(crate) id: Uuid,
    /// What its message must not crowd out the others of.
    pub(crate) group: Option<Uuid>,
    pub(crate) traceparent: Option<String>,
}
