//! From the commit to the queue: publishes what was stored as handed to the broker, and takes back what did not get there.
//!
//! It deliberately retries nothing. What is not in the queue is `PENDING` and the retry-worker's; what could not even be
//! marked is found by the rescuer when its lease runs out.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use broker::{Envelope, Published, Publisher};
use http_api::Outage;
use lifecycle::TaskGroup;
use telemetry::traces::Publishing;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::lane::Lane;
use crate::lane::gate::{Gate, Reason};

/// How long the database may take to mark what did not get into the queue.
const MARK_LIMIT: Duration = Duration::from_secs(10);
/// Most of them in one statement.
const MARKED_TOGETHER: usize = 1024;

/// Publishes what the writer has stored, beside it: a confirm takes as long as the broker's disk.
pub(crate) struct Outbox<L: Lane> {
    lane: Arc<L>,
    gate: Arc<Gate>,
    publisher: Publisher,
    /// For as many messages as may be on their way.
    room: Arc<Semaphore>,
    /// What did not get into the queue and is not marked yet.
    left: Mutex<Vec<Uuid>>,
    /// Held by the one that marks, for all: when a queue stops confirming, thousands of publishes fail in one moment, and their statements
    /// would take every connection.
    marking: tokio::sync::Mutex<()>,
    tasks: TaskGroup,
    outage: Outage,
}

impl<L: Lane> Outbox<L> {
    pub(crate) fn new(lane: Arc<L>, gate: Arc<Gate>, publisher: Publisher, tasks: TaskGroup) -> Arc<Self> {
        Arc::new(Self {
            lane,
            gate,
            publisher,
            room: Arc::new(Semaphore::new(L::UNPUBLISHED)),
            left: Mutex::default(),
            marking: tokio::sync::Mutex::default(),
            tasks,
            outage: Outage::of(L::FAILED_MARKING),
        })
    }

    /// Takes messages over. Those for which there is no room are `PENDING` when this returns.
    pub(crate) async fn publish(self: &Arc<Self>, mut messages: Vec<Envelope>) {
        let room = messages.len().min(self.room.available_permits());
        let permits = u32::try_from(room).unwrap_or(u32::MAX);
        let left = match Arc::clone(&self.room).try_acquire_many_owned(permits) {
            Ok(places) => {
                let left = messages.split_off(room);
                if !messages.is_empty() {
                    let outbox = Arc::clone(self);
                    self.tasks.spawn("publish", async move {
                        outbox.hand_over(messages).await;
                        drop(places);
                    });
                }
                left
            }
            // What there was has been taken in this very moment.
            Err(_) => messages,
        };
        if !left.is_empty() {
            let ids: Vec<Uuid> = left.iter().map(|message| message.id).collect();
            self.take_back(ids, Reason::PublisherBehind).await;
        }
    }

    async fn hand_over(&self, mut messages: Vec<Envelope>) {
        let mut spans = Publishing::to(L::QUEUE.name());
        for message in &mut messages {
            message.traceparent = spans.begin(message.id, message.traceparent.take());
        }
        let ids: Vec<Uuid> = messages.iter().map(|message| message.id).collect();
        let outcomes = self.publisher.publish(L::QUEUE, messages).await;
        spans.end(|place| outcomes.get(place).and_then(|outcome| outcome.failure()));
        let (left, reason) = not_enqueued(&ids, &outcomes);
        if let Some(reason) = reason {
            self.take_back(left, reason).await;
        }
    }

    /// Returns when these are marked, by this call or by the one before it.
    async fn take_back(&self, ids: Vec<Uuid>, reason: Reason) {
        // Closed first, so that what is stored meanwhile does not take the same detour.
        self.gate.close(reason);
        self.left().extend(ids);
        let _marking = self.marking.lock().await;
        let left = std::mem::take(&mut *self.left());
        for ids in left.chunks(MARKED_TOGETHER) {
            match store::within(MARK_LIMIT, self.lane.take_back(ids)).await {
                Ok(()) => self.outage.worked(),
                Err(error) => self.outage.failed(&error),
            }
        }
    }

    fn left(&self) -> std::sync::MutexGuard<'_, Vec<Uuid>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What did not get into the queue, as far as is known, and why the last of them did not.
fn not_enqueued(ids: &[Uuid], outcomes: &[Published]) -> (Vec<Uuid>, Option<Reason>) {
    let failed = ids.iter().zip(outcomes).filter_map(|(id, outcome)| {
        let reason = match outcome {
            Published::Confirmed => return None,
            Published::Rejected => Reason::QueueFull,
            Published::Unroutable => Reason::Unroutable,
            Published::Unconfirmed => Reason::Unconfirmed,
            Published::NotSent => Reason::BrokerAway,
        };
        Some((*id, reason))
    });
    failed.fold((Vec::new(), None), |(mut left, _), (id, reason)| {
        left.push(id);
        (left, Some(reason))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_a_confirmed_message_is_taken_back() {
        let outcomes = [
            Published::Confirmed,
            Published::Rejected,
            Published::Unroutable,
            Published::Unconfirmed,
            Published::NotSent,
            Published::Confirmed,
        ];
        let ids: Vec<Uuid> = outcomes.iter().map(|_| Uuid::now_v7()).collect();
        let (left, reason) = not_enqueued(&ids, &outcomes);
        assert_eq!(left, ids[1..5]);
        assert_eq!(reason, Some(Reason::BrokerAway));
        assert_eq!(not_enqueued(&ids[..1], &outcomes[..1]), (Vec::new(), None));
    }
}
