//! Moves what the broker gave up from the dead-letter queues into the database, where people look.

use std::sync::Arc;
use std::time::Duration;

use broker::{DeadLetter, Envelope, Kind, Queue};
use domain::dead_letter::fingerprint_part;
use lifecycle::{Shutdown, error_chain};
use serde_json::json;
use store::{BrokerDeadLetter, DeadLetterLane};
use telemetry::Metric;

use crate::context::Context;

const PREFETCH: u16 = 50;
/// The part of a body that is kept; ours are far smaller.
const BODY_LIMIT: usize = 16 * 1024;
/// Pause before a dead letter that could not be archived is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How long the database may take for a dead letter before it counts as away.
const ARCHIVE_LIMIT: Duration = Duration::from_secs(10);

pub(crate) struct Archiver {
    context: Arc<Context>,
    lane: DeadLetterLane,
}

impl Archiver {
    /// One for the dead letters of a lane.
    pub(crate) fn new(context: Arc<Context>, lane: DeadLetterLane) -> Self {
        Self { context, lane }
    }

    /// Archives until shutdown. A dead letter is acknowledged once it is stored; one that was stored just before a crash is
    /// stored again, since keeping it twice beats losing it.
    pub(crate) async fn run(self, shutdown: Shutdown) {
        let queue = match self.lane {
            DeadLetterLane::Push => Queue::PushDead,
            DeadLetterLane::Reseller => Queue::ResellerDead,
        };
        let mut consumer = self.context.broker.consume_dead(queue, PREFETCH);
        loop {
            let letters = tokio::select! {
                () = shutdown.cancelled() => break,
                letters = consumer.next_batch(usize::from(PREFETCH)) => letters,
            };
            let Some(letters) = letters else { break };
            for letter in letters {
                if !self.archive(letter, &shutdown).await {
                    break;
                }
            }
        }
        consumer.close().await;
    }

    /// Stores one dead letter, however long the database is away; `false` when there is no more time for that.
    async fn archive(&self, letter: DeadLetter, shutdown: &Shutdown) -> bool {
        for record in records_of(&letter, self.lane) {
            while !self.store(&record).await {
                tokio::select! {
                    () = shutdown.cancelled() => return false,
                    () = tokio::time::sleep(RETRY_PAUSE) => {}
                }
            }
        }
        let _ = letter.receipt.ack().await;
        true
    }

    async fn store(&self, record: &BrokerDeadLetter) -> bool {
        match store::within(ARCHIVE_LIMIT, self.context.store.archive_dead_letter(record)).await {
            Ok(requeued) => {
                tracing::warn!(id = ?record.id, detail = record.detail, requeued, "archived a dead letter");
                let reason = if record.id.is_some() {
                    "rejected"
                } else {
                    "malformed"
                };
                Metric::DeadLetters.increment_with(&[("reason", reason)], 1);
                true
            }
            Err(error) => {
                tracing::warn!(error = error_chain(&error), "could not archive a dead letter");
                false
            }
        }
    }
}

/// One for each row that the message is about.
fn records_of(letter: &DeadLetter, lane: DeadLetterLane) -> Vec<BrokerDeadLetter> {
    let reason = letter.reason.as_deref().unwrap_or("unknown");
    let expected = match lane {
        DeadLetterLane::Push => Kind::Push,
        DeadLetterLane::Reseller => Kind::Notification,
    };
    let (ids, detail, kind) = match Envelope::decode(&letter.body) {
        Ok(envelopes) => match envelopes.iter().find(|envelope| envelope.kind != expected) {
            Some(envelope) => (
                vec![None],
                format!("a message about a {} in a queue for another kind", envelope.kind),
                "malformed",
            ),
            None => (
                envelopes.iter().map(|envelope| Some(envelope.id)).collect(),
                format!("the broker gave the message up: {reason}"),
                reason,
            ),
        },
        Err(error) => (
            vec![None],
            format!("the message cannot be read: {error}"),
            "malformed",
        ),
    };
    let shown = &letter.body[..letter.body.len().min(BODY_LIMIT)];
    let record = |id| BrokerDeadLetter {
        lane,
        id,
        detail: detail.clone(),
        fingerprint: format!("broker/{}", fingerprint_part(kind)),
        message: json!({
            // PostgreSQL's JSON cannot hold U+0000.
            "body": String::from_utf8_lossy(shown).replace('\0', "\u{fffd}"),
            "bodyBytes": letter.body.len(),
            "messageId": letter.message_id,
            "reason": letter.reason,
            "queue": letter.first_queue,
            "count": letter.count,
            "headers": letter.headers,
        }),
    };
    ids.into_iter().map(record).collect()
}
