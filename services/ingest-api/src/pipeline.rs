//! The tasks between a request and the queue: how many there are, and in which order they end.

use std::sync::Arc;

use broker::Publisher;
use config::Config;
use domain::clock::Clock;
use domain::push::queue_lease;
use store::Store;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::drain::Batches;
use crate::gate::Gate;
use crate::intake::Intake;
use crate::meters::Meters;
use crate::outage::Outage;
use crate::outbox::{Dispatch, Outbox, Returns};
use crate::writer::Writer;

/// Tasks that publish at the same time. A confirm takes as long as the broker's disk; several batches on their way hide
/// that.
const DISPATCHES: usize = 4;
/// Batches that may wait for every writer: enough to keep it busy, and little enough to be answered in time.
const BATCHES_WAITING: usize = 2;

/// What the tasks work with.
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) publisher: Publisher,
    pub(crate) gate: Arc<Gate>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) meters: Arc<Meters>,
}

/// The running tasks.
pub(crate) struct Pipeline {
    writers: JoinSet<()>,
    no_more_pushes: CancellationToken,
    dispatches: JoinSet<()>,
    no_more_handoffs: CancellationToken,
}

impl Pipeline {
    /// Starts the tasks; the result's other half is where pushes go in.
    pub(crate) fn start(config: &Config, parts: Parts) -> (Self, Intake) {
        let ingest = &config.ingest;
        let (no_more_pushes, no_more_handoffs) = (CancellationToken::new(), CancellationToken::new());
        let returns = Returns {
            store: parts.store.clone(),
            gate: Arc::clone(&parts.gate),
            meters: Arc::clone(&parts.meters),
            outage: Arc::new(Outage::of("mark pushes that did not get into the queue")),
        };
        let (outbox, handoffs) = Outbox::new(returns.clone());
        let (intake, entries) = Intake::new(ingest.writers * ingest.batch_rows * BATCHES_WAITING);
        let writer = Writer {
            entries: Batches::new(entries, no_more_pushes.clone()),
            store: parts.store,
            gate: parts.gate,
            outbox,
            queue_lease: queue_lease(config.push.queue.capacity, config.swrve.delay),
            batch_rows: ingest.batch_rows,
            meters: parts.meters,
            outage: Arc::new(Outage::of("store pushes")),
        };
        let dispatch = Dispatch {
            handoffs: Batches::new(handoffs, no_more_handoffs.clone()),
            publisher: parts.publisher,
            returns,
            clock: parts.clock,
        };
        let pipeline = Self {
            writers: (0..ingest.writers).map(|_| writer.clone().run()).collect(),
            no_more_pushes,
            dispatches: (0..DISPATCHES).map(|_| dispatch.clone().run()).collect(),
            no_more_handoffs,
        };
        (pipeline, intake)
    }

    /// Completes, with its name, when a task has ended although nothing was asked to.
    pub(crate) async fn ended(&mut self) -> &'static str {
        tokio::select! {
            _ = self.writers.join_next() => "writer",
            _ = self.dispatches.join_next() => "dispatch",
        }
    }

    /// Writes what has arrived, publishes what is written, and ends; by `deadline` at the latest. What is not published
    /// by then is stored and will be rescued.
    pub(crate) async fn finish(mut self, deadline: Instant) {
        self.no_more_pushes.cancel();
        finish(
            &mut self.writers,
            deadline,
            "not everything that had arrived was stored",
        )
        .await;
        self.no_more_handoffs.cancel();
        finish(
            &mut self.dispatches,
            deadline,
            "not everything that was stored was published",
        )
        .await;
    }
}

async fn finish(tasks: &mut JoinSet<()>, deadline: Instant, otherwise: &'static str) {
    let all = async { while tasks.join_next().await.is_some() {} };
    if timeout_at(deadline, all).await.is_err() {
        tracing::warn!("the grace period is over: {otherwise}");
    }
}
