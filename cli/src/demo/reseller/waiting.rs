//! Waiting until every notification is where it should be. What counts is where it is, not which way it took there.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use tokio::time::Instant;
use uuid::Uuid;

use super::case::{Ended, Expected, Posted};
use super::subscriptions::Subscriptions;
use crate::ingest::{Answer, Event, Ingest};
use crate::progress::Progress;

/// How often one event is looked at.
const POLL: Duration = Duration::from_millis(100);
/// Events looked at in turn.
const AT_ONCE: usize = 8;

/// Looks at events, and of each only at what became of it at these subscriptions: the reseller may have others.
pub(super) struct Watch<'a> {
    ingest: &'a Ingest,
    subscriptions: &'a Subscriptions,
    deadline: Instant,
    progress: Progress,
}

impl<'a> Watch<'a> {
    pub(super) fn new(ingest: &'a Ingest, subscriptions: &'a Subscriptions, deadline: Instant) -> Self {
        Self {
            ingest,
            subscriptions,
            deadline,
            progress: Progress::of("events"),
        }
    }

    /// Waits for all cases until the deadline.
    pub(super) async fn all(&self, posted: Vec<Posted>) -> Vec<Ended> {
        let accepted = posted.iter().filter(|posted| posted.case.expected.is_accepted());
        let total = accepted.map(|posted| ids(&posted.answers).len() as u64).sum();
        self.progress.show(0, total, "");
        let mut ended = Vec::with_capacity(posted.len());
        for posted in posted {
            let (mut events, mut unseen) = (Vec::new(), Vec::new());
            let expected = posted.case.expected;
            let ids = if expected.is_accepted() {
                ids(&posted.answers)
            } else {
                BTreeSet::new()
            };
            let mut seen = stream::iter(ids)
                .map(|id| self.until(id, expected))
                .buffered(AT_ONCE);
            while let Some(found) = seen.next().await {
                self.progress.step();
                match found {
                    Ok(event) => events.push(event),
                    Err(error) => unseen.push(format!("{error:#}")),
                }
            }
            drop(seen);
            ended.push(Ended {
                posted,
                events,
                unseen,
            });
        }
        ended
    }

    /// The event once it is settled, or time is up.
    async fn until(&self, id: Uuid, expected: Expected) -> anyhow::Result<Event> {
        loop {
            let found = self.ingest.find_event(id).await.map(|event| self.ours(event));
            let late = Instant::now() >= self.deadline;
            match found {
                Ok(event) if late || expected.is_settled(&event) => return Ok(event),
                Ok(event) => self.note(&event),
                Err(error) if late => return Err(error),
                Err(_) => {}
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn ours(&self, mut event: Event) -> Event {
        let is_ours = |id| self.subscriptions.contains(id);
        event
            .notifications
            .retain(|notification| is_ours(notification.subscription_id));
        event
    }

    fn note(&self, event: &Event) {
        if let Some(waiting) = event.notifications.iter().find(|it| !it.status.is_terminal()) {
            self.progress.say(&waiting.explanation);
        }
    }
}

fn ids(answers: &[Answer]) -> BTreeSet<Uuid> {
    let id = |answer: &Answer| match answer {
        Answer::Accepted { id, .. } => Some(*id),
        Answer::Refused { .. } => None,
    };
    answers.iter().filter_map(id).collect()
}
