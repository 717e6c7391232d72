//! The last stage: outcomes are recorded in batches, then their messages are settled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::linger::{Linger, Pace};
use domain::notification::{NotificationId, NotificationStatus};
use lifecycle::error_chain;
use metrics::Histogram;
use telemetry::Metric;
use telemetry::traces::Span;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::message::Message;
use crate::record::{gather, record_all};

use super::attempt::{Attempted, NotMade};
use super::spans;
use super::statistics::{self, Statistics};
use super::{Lane, Tools};

/// Outcomes recorded in one statement.
const BATCH: usize = 256;
/// Between two statements when there are some outcomes a second: no caller waits for one to be recorded.
const PACES: &[Pace] = &[Pace {
    from: 100,
    interval: Duration::from_millis(20),
}];

/// What came of a claim. The message has none to settle when it waited in the database.
pub(crate) struct AttemptResult {
    pub(crate) made: Result<Attempted, NotMade>,
    pub(crate) message: Message,
}

pub(crate) struct Completer {
    pub(crate) lane: Lane,
    pub(crate) tools: Tools,
    pub(crate) statistics: Arc<Statistics>,
}

impl Completer {
    /// Records until every sender is gone. While the database is away it tries again: an outcome that is known must not
    /// be forgotten, and the bounded channel before it stops further attempts.
    pub(crate) async fn run(self, mut outbox: mpsc::Receiver<AttemptResult>) {
        let ended = CancellationToken::new();
        // Apart from the outcomes, which must not wait for numbers.
        let flushing = tokio::spawn(flush(self.statistics.clone(), ended.clone()));
        let mut batch = Vec::with_capacity(BATCH);
        let mut linger = Linger::new(PACES);
        while outbox.recv_many(&mut batch, BATCH).await > 0 {
            if let Some(until) = linger.wait(Instant::now()) {
                gather(&mut outbox, &mut batch, BATCH, until).await;
            }
            linger.begin(Instant::now(), batch.len());
            let (mut attempted, mut not_made) = (Vec::new(), Vec::new());
            for AttemptResult { made, message } in batch.drain(..) {
                match made {
                    Ok(one) => attempted.push((one, message)),
                    Err(one) => not_made.push((one, message)),
                }
            }
            self.complete(attempted).await;
            self.release(not_made).await;
        }
        ended.cancel();
        if let Err(error) = flushing.await {
            tracing::error!(error = error_chain(&error), "counting deliveries failed");
        }
    }

    async fn complete(&self, attempted: Vec<(Attempted, Message)>) {
        let response = Metric::DeliveryResponse.histogram(&[("lane", self.lane.label())]);
        let Tools { store, clock, .. } = &self.tools;
        let write = |batch: Arc<[Attempted]>| async move {
            let completions: Vec<_> = batch.iter().map(|one| one.completion.clone()).collect();
            store.complete_deliveries(&completions, clock.now()).await
        };
        let note = |attempted: &Attempted, message: &mut Message, accepted: bool| {
            spans::completed(&mut message.span, &attempted.completion);
            if accepted {
                count(attempted, &response);
                self.statistics.count(attempted);
            } else {
                lease_lost(attempted.completion.id, &message.span);
            }
        };
        let id = |attempted: &Attempted| attempted.completion.id;
        Message::ack_all(record_all(Some(spans::COMPLETE), attempted, id, write, note).await).await;
    }

    /// Hands back what was not attempted, as if it had never been claimed.
    async fn release(&self, not_made: Vec<(NotMade, Message)>) {
        self.note_faults(&not_made);
        let Tools { store, clock, .. } = &self.tools;
        let write = |batch: Arc<[NotMade]>| async move {
            let releases: Vec<_> = batch.iter().map(|one| one.release).collect();
            store.release_notifications(&releases, clock.now()).await
        };
        let note = |one: &NotMade, message: &mut Message, _| spans::not_attempted(&mut message.span, one.why);
        let id = |one: &NotMade| one.release.id;
        Message::ack_all(record_all(None, not_made, id, write, note).await).await;
    }

    fn note_faults(&self, not_made: &[(NotMade, Message)]) {
        let mut faults = not_made.iter().filter_map(|(one, _)| one.fault.as_deref());
        let Some(error) = faults.next() else { return };
        let count = 1 + faults.count();
        Metric::OwnFaults.increment_with(&[("lane", self.lane.label())], count as u64);
        tracing::warn!(
            error,
            count,
            "notifications could not be tried for want of something of our own; they are handed back and tried later"
        );
    }
}

/// Adds what was gathered to the database now and then, and once more at the end.
async fn flush(statistics: Arc<Statistics>, ended: CancellationToken) {
    let mut interval = statistics::INTERVAL;
    while !ended.is_cancelled() {
        let _ = tokio::time::timeout(interval, ended.cancelled()).await;
        interval = statistics.flush().await;
    }
}

fn lease_lost(id: NotificationId, span: &Span) {
    let trace_id = span.trace_id();
    tracing::warn!(notification.id = %id, trace_id, "the claim had run out when the outcome came; it may be delivered again");
    Metric::LeaseLosses.increment_with(&[("kind", "claim")], 1);
}

fn count(attempted: &Attempted, response: &Histogram) {
    let completion = &attempted.completion;
    let classification = &completion.classification;
    response.record(attempted.elapsed.as_secs_f64());
    Metric::DeliveryPayload.record(attempted.payload_bytes as f64);
    match completion.status {
        NotificationStatus::Sent => Metric::NotificationsDelivered.increment(1),
        NotificationStatus::Retry => Metric::NotificationsRetried.increment(1),
        NotificationStatus::GivenUp => {
            Metric::NotificationsGivenUp.increment(1);
            Metric::DeadLetters.increment_with(&[("reason", "given_up")], 1);
        }
        _ => {
            let reason = match classification.response_status {
                Some(300..=399) => "redirect",
                Some(410) => "gone",
                Some(400..=499) => "client_error",
                _ => "other",
            };
            Metric::NotificationsFailed.increment_with(&[("reason", reason)], 1);
            Metric::DeadLetters.increment_with(&[("reason", "failed")], 1);
        }
    }
    if let Some(kind) = classification.error_type {
        Metric::DeliveryErrors.increment_with(&[("type", kind.to_ascii_lowercase().as_str())], 1);
    }
    if let Some(status @ 400..=499) = classification.response_status {
        Metric::DeliveryClientErrors.increment_with(&[("status", status.to_string().as_str())], 1);
    }
}
