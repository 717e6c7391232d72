//! The last stage: outcomes are recorded in batches, then their messages are settled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::notification::{NotificationId, NotificationStatus};
use lifecycle::error_chain;
use metrics::Histogram;
use store::webhook::{DeliveryCompletion, NotificationRelease};
use telemetry::Metric;
use telemetry::traces::Span;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::record::{record, until_answered};

use super::attempt::{Attempted, NotMade};
use super::message::Message;
use super::spans::{self, Batch};
use super::statistics::{self, Statistics};
use super::{Lane, Tools};
use crate::linger::Linger;

/// Outcomes recorded in one statement.
const BATCH: usize = 256;
/// Between two statements when there are [`BATCHING_RATE`]: no caller waits for an outcome to be recorded.
const BATCH_WINDOW: Duration = Duration::from_millis(20);
/// Outcomes a second from which on they are recorded in batches.
const BATCHING_RATE: u32 = 100;

/// What came of a claim.
pub(crate) struct Ending {
    pub(crate) made: Result<Attempted, NotMade>,
    pub(crate) work: Work,
}

/// What an attempt is made for; its span ends with it.
pub(crate) enum Work {
    /// A message.
    Message(Message),
    /// What waited in the database.
    Backlog(Span),
}

impl Work {
    pub(crate) fn span(&self) -> &Span {
        match self {
            Self::Message(Message { span, .. }) | Self::Backlog(span) => span,
        }
    }

    pub(crate) fn span_mut(&mut self) -> &mut Span {
        match self {
            Self::Message(Message { span, .. }) | Self::Backlog(span) => span,
        }
    }

    /// The message that is to be settled.
    pub(crate) fn into_message(self) -> Option<Message> {
        match self {
            Self::Message(message) => Some(message),
            Self::Backlog(_) => None,
        }
    }
}

pub(crate) struct Completer {
    pub(crate) lane: Lane,
    pub(crate) tools: Tools,
    pub(crate) statistics: Arc<Statistics>,
}

impl Completer {
    /// Records until every sender is gone. While the database is away it tries again: an outcome that is known must not
    /// be forgotten, and the bounded channel before it stops further attempts.
    pub(crate) async fn run(self, mut outbox: mpsc::Receiver<Ending>) {
        let ended = CancellationToken::new();
        // Apart from the outcomes, which must not wait for numbers.
        let flushing = tokio::spawn(flush(self.statistics.clone(), ended.clone()));
        let mut batch = Vec::with_capacity(BATCH);
        let mut linger = Linger::new(BATCH_WINDOW, BATCHING_RATE);
        while outbox.recv_many(&mut batch, BATCH).await > 0 {
            if let Some(until) = linger.wait(Instant::now()) {
                gather(&mut outbox, &mut batch, until).await;
            }
            linger.begin(Instant::now(), batch.len());
            let (mut attempted, mut not_made) = (Vec::new(), Vec::new());
            for Ending { made, work } in batch.drain(..) {
                match made {
                    Ok(one) => attempted.push((one, work)),
                    Err(one) => not_made.push((one, work)),
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

    async fn complete(&self, endings: Vec<(Attempted, Work)>) {
        if endings.is_empty() {
            return;
        }
        let response = Metric::DeliveryResponse.histogram(&[("lane", self.lane.label())]);
        let (attempted, work): (Vec<_>, Vec<_>) = endings.into_iter().unzip();
        let completions: Arc<[DeliveryCompletion]> = attempted.iter().map(|a| a.completion.clone()).collect();
        let span = Batch::to_complete(work.iter().map(Work::span));
        let Tools { store, clock, .. } = &self.tools;
        let write = |batch: Arc<[DeliveryCompletion]>| async move {
            store.complete_deliveries(&batch, clock.now()).await
        };
        let accepted = record(&completions, write).await;
        span.end();
        for attempted in &attempted {
            if accepted.contains(&attempted.completion.id) {
                count(attempted, &response);
                self.statistics.count(attempted);
            } else {
                lease_lost(attempted.completion.id);
            }
        }
        let settled = work
            .into_iter()
            .zip(completions.iter())
            .filter_map(|(mut work, completion)| {
                spans::completed(work.span_mut(), completion);
                work.into_message()
            });
        Message::ack_all(settled).await;
    }

    /// Hands back what was not attempted, as if it had never been claimed.
    async fn release(&self, endings: Vec<(NotMade, Work)>) {
        if endings.is_empty() {
            return;
        }
        let (not_made, work): (Vec<NotMade>, Vec<Work>) = endings.into_iter().unzip();
        self.note_faults(&not_made);
        let releases: Vec<NotificationRelease> = not_made.iter().map(|one| one.release).collect();
        let Tools { store, clock, .. } = &self.tools;
        let release = || store.release_notifications(&releases, clock.now());
        if let Err(error) = until_answered(releases.len(), release).await {
            tracing::error!(
                error = error_chain(&error),
                "notifications could not be handed back"
            );
        }
        let settled = work.into_iter().zip(&not_made).filter_map(|(mut work, one)| {
            spans::not_attempted(work.span_mut(), one.why);
            work.into_message()
        });
        Message::ack_all(settled).await;
    }

    fn note_faults(&self, not_made: &[NotMade]) {
        let mut faults = not_made.iter().filter_map(|one| one.fault.as_deref());
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

/// Takes what else comes until then, and what fits.
async fn gather(outbox: &mut mpsc::Receiver<Ending>, batch: &mut Vec<Ending>, until: Instant) {
    let taking =
        async { while batch.len() < BATCH && outbox.recv_many(batch, BATCH - batch.len()).await > 0 {} };
    // What was taken when the time is over stays taken.
    let _ = tokio::time::timeout_at(until.into(), taking).await;
}

/// Adds what was gathered to the database now and then, and once more at the end.
async fn flush(statistics: Arc<Statistics>, ended: CancellationToken) {
    while !ended.is_cancelled() {
        let _ = tokio::time::timeout(statistics::INTERVAL, ended.cancelled()).await;
        statistics.flush().await;
    }
}

fn lease_lost(id: NotificationId) {
    tracing::warn!(notification.id = %id, "the claim had run out when the outcome came; it may be delivered again");
    Metric::LeaseLosses.increment_with(&[("kind", "claim")], 1);
}

fn count(attempted: &Attempted, response: &Histogram) {
    let completion = &attempted.completion;
    let verdict = &completion.verdict;
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
            let reason = match verdict.response_status {
                Some(300..=399) => "redirect",
                Some(410) => "gone",
                Some(400..=499) => "client_error",
                _ => "other",
            };
            Metric::NotificationsFailed.increment_with(&[("reason", reason)], 1);
            Metric::DeadLetters.increment_with(&[("reason", "failed")], 1);
        }
    }
    if let Some(kind) = verdict.error_type {
        Metric::DeliveryErrors.increment_with(&[("type", kind.to_ascii_lowercase().as_str())], 1);
    }
    if let Some(status @ 400..=499) = verdict.response_status {
        Metric::DeliveryClientErrors.increment_with(&[("status", status.to_string().as_str())], 1);
    }
}
