//! The other first stage: while Swrve is out of order, and until what waited meanwhile has been sent, pushes are read from the
//! database, the oldest first. The queue is left alone: its messages are hints, and have nothing more to say afterwards.

use std::time::Duration;

use domain::push::PushId;
use lifecycle::error_chain;
use store::Store;
use store::push::{ClaimedPush, SwrveHold};
use telemetry::Metric;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::claimer::Claimer;
use super::health_watch::{Answer, HealthWatch};
use super::spans;
use super::work::Work;
use crate::claim::RETRY_PAUSE;
use crate::message::Message;

/// From one probe to the next, at least.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Pushes that are probed with: mostly the oldest, and the others in turn, since one that Swrve never takes must not hold up the
/// others.
const PROBED: u32 = 64;
/// Pushes looked for at once when what waited is sent: about a second of sending, after which the oldest may be others.
const SIGHT: u32 = 256;
/// How long the database may take for an answer before it counts as away.
const LIMIT: Duration = Duration::from_secs(10);

pub(crate) struct Backlog<'a> {
    pub(crate) store: &'a Store,
    pub(crate) claimer: Claimer<'a>,
    pub(crate) health_watch: &'a HealthWatch,
}

/// Why sending what waited ended.
enum Ended {
    /// What waits is younger than the end of the outage.
    CaughtUp,
    /// Swrve is out of order again.
    Held,
    /// It was told to stop.
    Stopped,
}

impl Backlog<'_> {
    /// Probes until Swrve works, if it is not known to, then sends what has waited. Ends when all of that is sent, or when it
    /// is stopped.
    pub(crate) async fn run(&self, sender: mpsc::Sender<Work>, stop: &CancellationToken) {
        loop {
            if self.health_watch.holds() && !self.probe_until_answered(&sender, stop).await {
                return;
            }
            match self.catch_up(&sender, stop).await {
                Ended::Stopped => return,
                Ended::CaughtUp => {
                    tracing::info!("what waited for Swrve has been sent");
                    self.note(SwrveHold::End).await;
                    return;
                }
                Ended::Held => {
                    let answer = self.health_watch.last_words();
                    tracing::warn!(answer, "Swrve is out of order again; the push lane is held");
                    self.note(SwrveHold::Begin(&answer)).await;
                }
            }
        }
    }

    /// `false` when told to stop.
    async fn probe_until_answered(&self, sender: &mpsc::Sender<Work>, stop: &CancellationToken) -> bool {
        let mut turns = interval_at(Instant::now() + PROBE_INTERVAL, PROBE_INTERVAL);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for turn in 0_usize.. {
            tokio::select! {
                () = stop.cancelled() => return false,
                _ = turns.tick() => {}
            }
            let Some(answer) = self.probe(turn, sender, stop).await else {
                return false;
            };
            match answer {
                Some(Answer { works: true, .. }) => {
                    Metric::PushProbes.increment_with(&[("outcome", "answered")], 1);
                    tracing::info!("Swrve works again; what waited is sent, the oldest first");
                    self.note(SwrveHold::Answered).await;
                    self.health_watch.resume();
                    return true;
                }
                Some(Answer { words, .. }) => {
                    Metric::PushProbes.increment_with(&[("outcome", "failed")], 1);
                    self.note(SwrveHold::Probed(&words)).await;
                }
                None => {}
            }
        }
        false
    }

    /// Sends one push. The inner `None`: there was none, or it ended without being sent; the outer one: told to stop.
    async fn probe(
        &self,
        turn: usize,
        sender: &mpsc::Sender<Work>,
        stop: &CancellationToken,
    ) -> Option<Option<Answer>> {
        let ids = self.oldest(PROBED).await.unwrap_or_default();
        let Some(id) = ids.get(place(turn, ids.len())) else {
            return Some(None);
        };
        let (claimed, send_before) = self.claimer.claim(&[*id], stop).await?;
        let Some(push) = claimed.into_iter().next() else {
            return Some(None);
        };
        self.health_watch.forget();
        let under_way = TaskTracker::new();
        let mut work = unqueued(push, send_before, &under_way);
        work.is_probe = true;
        Metric::PushClaimed.increment(1);
        Metric::PushClaimsInFlight.gauge(&[]).increment(1.0);
        sender.send(work).await.ok()?;
        settled(&under_way).await;
        if stop.is_cancelled() {
            return None;
        }
        Some(self.health_watch.answer())
    }

    /// Sends what waits, the oldest first, until the oldest is younger than all that waited when this began.
    async fn catch_up(&self, sender: &mpsc::Sender<Work>, stop: &CancellationToken) -> Ended {
        let mut youngest = None;
        let under_way = TaskTracker::new();
        loop {
            if youngest.is_none() {
                youngest = store::within(LIMIT, self.store.youngest_waiting_push())
                    .await
                    .ok();
            }
            // Asked first: what is handed back meanwhile is in the list.
            let idle = under_way.is_empty();
            let oldest = self.oldest(SIGHT).await;
            let is_over = match (youngest, &oldest) {
                (Some(None), _) => true,
                (Some(Some(youngest)), Ok(ids)) => ids.first().is_none_or(|oldest| *oldest > youngest),
                _ => false,
            };
            if is_over && idle {
                return Ended::CaughtUp;
            }
            if is_over {
                // What fails now waits again.
                tokio::select! {
                    () = stop.cancelled() => return Ended::Stopped,
                    () = settled(&under_way) => {}
                }
                if self.health_watch.holds() {
                    return Ended::Held;
                }
                continue;
            }
            let mut any = false;
            for ids in oldest.unwrap_or_default().chunks(self.claimer.batch) {
                if self.health_watch.holds() {
                    return Ended::Held;
                }
                let Some(sent) = self.send(ids, sender, &under_way, stop).await else {
                    return Ended::Stopped;
                };
                any |= sent > 0;
            }
            if self.health_watch.holds() {
                return Ended::Held;
            }
            let pause = if any { Duration::ZERO } else { RETRY_PAUSE };
            if tokio::time::timeout(pause, stop.cancelled()).await.is_ok() {
                return Ended::Stopped;
            }
        }
    }

    /// Claims these and hands them to the sender; how many those were. `None` when told to stop.
    async fn send(
        &self,
        ids: &[PushId],
        sender: &mpsc::Sender<Work>,
        under_way: &TaskTracker,
        stop: &CancellationToken,
    ) -> Option<usize> {
        let (claimed, send_before) = self.claimer.claim(ids, stop).await?;
        let count = claimed.len();
        Metric::PushClaimed.increment(count as u64);
        Metric::PushClaimsInFlight.gauge(&[]).increment(count as f64);
        for push in claimed {
            sender.send(unqueued(push, send_before, under_way)).await.ok()?;
        }
        Some(count)
    }

    async fn oldest(&self, limit: u32) -> Result<Vec<PushId>, store::Error> {
        store::within(LIMIT, self.store.oldest_waiting_pushes(limit))
            .await
            .inspect_err(|error| {
                tracing::warn!(error = error_chain(error), "cannot look for the oldest pushes")
            })
    }

    /// What is shown of the hold. A change that is lost costs the next leader a few failures.
    async fn note(&self, change: SwrveHold<'_>) {
        let changed = store::within(LIMIT, self.store.change_swrve_hold(self.claimer.leader, change)).await;
        if let Err(error) = changed {
            tracing::warn!(error = error_chain(&error), "cannot note how Swrve does");
        }
    }
}

/// Which of `waiting` pushes is probed with: three times the oldest, then another one.
fn place(turn: usize, waiting: usize) -> usize {
    if turn % 4 == 3 {
        (turn / 4 + 1) % waiting.max(1)
    } else {
        0
    }
}

/// Waits until all that is under way has been recorded.
async fn settled(under_way: &TaskTracker) {
    under_way.close();
    under_way.wait().await;
    under_way.reopen();
}

/// A push that was claimed without a message.
fn unqueued(push: ClaimedPush, send_before: std::time::Instant, under_way: &TaskTracker) -> Work {
    let mut message = Message::none(spans::unqueued(&push));
    message.settled = Some(under_way.token());
    Work {
        push,
        message,
        send_before,
        is_probe: false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_oldest_is_probed_with_most_of_the_time_and_every_other_in_its_turn() {
        for waiting in 1..=PROBED as usize {
            let places: Vec<usize> = (0..4 * waiting).map(|turn| place(turn, waiting)).collect();
            assert!(places[..3].iter().all(|place| *place == 0));
            let oldest = places.iter().filter(|place| **place == 0).count();
            assert!(oldest >= 3 * waiting, "{oldest} of {waiting}");
            let seen: BTreeSet<usize> = places.into_iter().collect();
            assert_eq!(seen, (0..waiting).collect());
        }
        assert_eq!(place(3, 0), 0);
    }
}
