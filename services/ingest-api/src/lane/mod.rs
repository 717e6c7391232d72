//! What both lanes share: the way from a request to the group commit, and from the commit to the queue.
//!
//! `submission` queues the rows that requests bring, the `writer` stores what has arrived in one transaction and answers, the
//! `outbox` publishes it. The `gate` spares the broker what it would refuse, and `watch` opens it again. What is stored,
//! how, and which messages follow from it is told by the [`Lane`]; each lane has its own writer, queue and gate, so that one
//! that is full or slow is not felt in the other.

pub(crate) mod gate;
pub(crate) mod outbox;
pub(crate) mod submission;
pub(crate) mod watch;
pub(crate) mod writer;

use broker::{Envelope, Queue};
use telemetry::Metric;
use telemetry::traces::Statement;
use uuid::Uuid;

/// What a lane takes in, and what becomes of it.
pub(crate) trait Lane: Send + Sync + 'static {
    /// What is stored as one row, with what follows from it.
    type Row: Send + Sync + 'static;
    /// What the request is told of its row.
    type Answer: Send + 'static;

    /// The queue that what is stored is published to.
    const QUEUE: Queue;
    /// What is taken in, for the log: "pushes".
    const WHAT: &'static str;
    /// The group commit, in traces; its summary completes "failed to …".
    const COMMIT: Statement;
    /// The rows of a transaction.
    const BATCH_ROWS: Metric;
    /// Completes "failed to …" when what did not get into the queue cannot be marked.
    const FAILED_MARKING: &'static str;
    /// Most messages that are stored and not published yet.
    const UNPUBLISHED: usize;

    /// The trace that a row belongs to.
    fn traceparent(row: &Self::Row) -> Option<&str>;

    /// Stores rows in one transaction. `queued` tells whether their messages will be published at once.
    fn insert(
        &self,
        rows: &mut [Self::Row],
        queued: bool,
    ) -> impl Future<Output = Result<Committed<Self::Answer>, store::Error>> + Send;

    /// Marks what did not get into the queue: it waits in the database.
    fn take_back(&self, ids: &[Uuid]) -> impl Future<Output = Result<(), store::Error>> + Send;
}

/// What a transaction has stored.
pub(crate) struct Committed<A> {
    /// What to answer for each row, in their order.
    pub(crate) answers: Vec<A>,
    /// The messages of what was stored as handed to the broker.
    pub(crate) messages: Vec<Envelope>,
}
