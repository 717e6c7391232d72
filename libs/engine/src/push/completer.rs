//! The last stage: outcomes are recorded in batches, then their messages are settled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::lifecycle::Event;
use domain::linger::{Linger, Pace};
use domain::push::{ErrorType, PushId};
use lifecycle::error_chain;
use store::Store;
use store::push::{Completion, Release};
use telemetry::Metric;
use telemetry::traces::Span;
use tokio::sync::mpsc;

use crate::message::Message;
use crate::record::{RECORD_LIMIT, gather, record_all};

use super::spans;
use super::work::{AttemptResult, dead_letter_reason};

/// Outcomes recorded in one statement.
const BATCH: usize = 256;
/// Between two statements when there are some outcomes a second: no caller waits for one to be recorded, and at the pace of sends each would
/// have a statement of its own.
const PACES: &[Pace] = &[Pace {
    from: 100,
    interval: Duration::from_millis(40),
}];
/// How long a push is put off that could not be tried for want of something of our own.
const POSTPONEMENT: Duration = Duration::from_secs(5);

pub(crate) struct Completer {
    pub(crate) store: Store,
    pub(crate) queue_lease: Duration,
}

impl Completer {
    /// Records until every sender is gone. While the database is away it tries again: an outcome that is known must not
    /// be forgotten, and the bounded channel before it stops further sends.
    pub(crate) async fn run(self, mut outbox: mpsc::Receiver<AttemptResult>) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut linger = Linger::new(PACES);
        while outbox.recv_many(&mut batch, BATCH).await > 0 {
            if let Some(until) = linger.wait(Instant::now()) {
                gather(&mut outbox, &mut batch, BATCH, until).await;
            }
            linger.begin(Instant::now(), batch.len());
            let (mut completed, mut released, mut put_off) = (Vec::new(), Vec::new(), Vec::new());
            for result in batch.drain(..) {
                match result {
                    AttemptResult::Completed(completion, message) => completed.push((completion, message)),
                    AttemptResult::Released(release, message) => released.push((release, message)),
                    AttemptResult::PutOff(release, message) => put_off.push((release, message)),
                }
            }
            let ended = completed.len() + released.len() + put_off.len();
            self.complete(completed).await;
            self.release(released, self.queue_lease, false).await;
            // Without its message: the rescuer makes it wait again when the time is over.
            self.release(put_off, POSTPONEMENT, true).await;
            Metric::PushClaimsInFlight.gauge(&[]).decrement(ended as f64);
        }
    }

    async fn complete(&self, completed: Vec<(Completion, Message)>) {
        let write = |batch: Arc<[Completion]>| async move { self.store.complete_pushes(&batch).await };
        let note = |completion: &Completion, message: &mut Message, accepted: bool| {
            spans::completed(message, completion);
            if accepted {
                count(completion);
            } else {
                lease_lost(completion.id, &message.span);
            }
        };
        let id = |completion: &Completion| completion.id;
        Message::ack_all(record_all(Some(spans::COMPLETE), completed, id, write, note).await).await;
    }

    /// Their messages go back to the queue, save those of pushes that are deferred, or all of them when it is `for_later`.
    async fn release(&self, released: Vec<(Release, Message)>, queue_lease: Duration, for_later: bool) {
        let write =
            |batch: Arc<[Release]>| async move { self.store.release_pushes(&batch, queue_lease).await };
        let (mut deferred, mut unqueued) = (Vec::new(), Vec::new());
        let note = |release: &Release, message: &mut Message, accepted: bool| {
            spans::released(message, release);
            deferred.push(release.deferred_to.is_some());
            if !accepted {
                lease_lost(release.id, &message.span);
            } else if release.deferred_to.is_some() {
                Metric::PushDeferred.increment(1);
            } else if message.receipt.is_none() {
                unqueued.push(release.id);
            }
        };
        let id = |release: &Release| release.id;
        let messages = record_all(Some(spans::RELEASE), released, id, write, note).await;
        self.take_out_of_queue(&unqueued).await;
        for (message, deferred) in messages.into_iter().zip(deferred) {
            if deferred || for_later {
                message.ack().await;
            } else {
                message.requeue().await;
            }
        }
    }

    /// What was claimed without a message has none in the queue: it waits in the database. If that is not noted, it is
    /// found by its lease.
    async fn take_out_of_queue(&self, unqueued: &[PushId]) {
        if unqueued.is_empty() {
            return;
        }
        let marked = store::within(RECORD_LIMIT, self.store.mark_not_enqueued(unqueued)).await;
        if let Err(error) = marked {
            tracing::warn!(
                error = error_chain(&error),
                "could not note that pushes wait in the database"
            );
        }
    }
}

fn lease_lost(id: PushId, span: &Span) {
    let trace_id = span.trace_id();
    tracing::warn!(push.id = %id, trace_id, "the claim had run out when the outcome came; the push may be sent again");
    Metric::LeaseLosses.increment_with(&[("kind", "claim")], 1);
}

fn count(completion: &Completion) {
    match completion.classification.event {
        Event::Succeed => Metric::PushSent.increment(1),
        Event::FailRetryable => Metric::PushAttemptsRetryable.increment(1),
        _ => Metric::PushFailed.increment(1),
    }
    if let Some(error_type) = completion.classification.error_type {
        let label = match error_type {
            ErrorType::Swrve => "swrve",
            ErrorType::MessagePrototypeKey => "message_prototype_key",
            ErrorType::Other => "other",
        };
        Metric::PushErrors.increment_with(&[("type", label)], 1);
    }
    if completion.status == domain::push::PushStatus::GivenUp {
        Metric::PushGivenUp.increment(1);
    }
    if let Some(reason) = dead_letter_reason(completion.status) {
        Metric::DeadLetters.increment_with(&[("reason", reason)], 1);
    }
}
