//! The tasks between a request and the queue: how many there are, and in which order they end.

use std::sync::Arc;

use broker::Publisher;
use domain::clock::Clock;
use http_api::Outage;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::lane::Lane;
use crate::lane::drain::Batches;
use crate::lane::gate::Gate;
use crate::lane::intake::Intake;
use crate::lane::outbox::{Dispatch, Outbox, Returns};
use crate::lane::writer::Writer;

/// Tasks that publish at the same time. A confirm takes as long as the broker's disk; several batches on their way hide
/// that.
const DISPATCHES: usize = 4;
/// Batches that may wait for every writer: enough to keep it busy, and little enough to be answered in time.
const BATCHES_WAITING: usize = 2;

/// What the tasks work with.
pub(crate) struct Parts<L> {
    pub(crate) lane: L,
    pub(crate) gate: Arc<Gate>,
    pub(crate) publisher: Publisher,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The running tasks of one lane.
pub(crate) struct Pipeline {
    writers: JoinSet<()>,
    no_more_items: CancellationToken,
    dispatches: JoinSet<()>,
    no_more_handoffs: CancellationToken,
}

impl Pipeline {
    /// Starts the tasks; the result's other half is where items go in.
    pub(crate) fn start<L: Lane>(ingest: &config::Ingest, parts: Parts<L>) -> (Self, Intake<L>) {
        let (no_more_items, no_more_handoffs) = (CancellationToken::new(), CancellationToken::new());
        let returns = Returns {
            lane: parts.lane.clone(),
            gate: Arc::clone(&parts.gate),
            outage: Arc::new(Outage::of(L::FAILED_MARKING)),
        };
        let (outbox, handoffs) = Outbox::new(returns.clone());
        let (intake, entries) = Intake::new(ingest.writers * ingest.batch_rows * BATCHES_WAITING);
        let writer = Writer {
            entries: Batches::new(entries, no_more_items.clone()),
            lane: parts.lane,
            gate: parts.gate,
            outbox,
            batch_rows: ingest.batch_rows,
            outage: Arc::new(Outage::of(L::FAILED_STORING)),
        };
        let dispatch = Dispatch {
            handoffs: Batches::new(handoffs, no_more_handoffs.clone()),
            publisher: parts.publisher,
            returns,
            clock: parts.clock,
        };
        let pipeline = Self {
            writers: (0..ingest.writers).map(|_| writer.clone().run()).collect(),
            no_more_items,
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
        self.no_more_items.cancel();
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
