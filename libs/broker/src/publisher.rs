//! The handle through which messages are published. The channel behind it is driven by `pipeline`.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::envelope::together;
use crate::link::{Link, Links};
use crate::message::Message;
use crate::{Envelope, Kind, Queue};

/// What became of a row's message given to [`Publisher::publish`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Published {
    /// The server has it on disk.
    Confirmed,
    /// The server refused it: the queue is full. It is not in the queue.
    Rejected,
    /// No queue was bound for it. It is in no queue.
    Unroutable,
    /// No answer in time, or the connection broke before one: it may or may not be in the queue.
    Unconfirmed,
    /// There was no connection, or the server was taking no messages. It is not in the queue.
    NotSent,
}

impl Published {
    /// In a word why the message is not known to be in the queue; `None` when it is.
    pub fn failure(self) -> Option<&'static str> {
        match self {
            Self::Confirmed => None,
            Self::Rejected => Some("rejected"),
            Self::Unroutable => Some("unroutable"),
            Self::Unconfirmed => Some("unconfirmed"),
            Self::NotSent => Some("not_sent"),
        }
    }
}

/// Publishes with confirms. Cheap to clone; all clones share the connection and the limit of unanswered
/// messages.
#[derive(Clone)]
pub struct Publisher {
    inner: Arc<Inner>,
}

struct Inner {
    queue_prefix: String,
    confirm_timeout: Duration,
    permits: Arc<Semaphore>,
    jobs: mpsc::UnboundedSender<Job>,
    links: Links,
    /// Whether notifications that are published together share messages.
    sharing: AtomicBool,
}

/// A message for the pipeline. The permit that it holds bounds how many of them there are.
pub(crate) struct Job {
    pub(crate) message: Message,
    pub(crate) ticket: Ticket,
}

/// The way back to the caller that published a message. Frees its place among the unanswered ones when dropped.
pub(crate) struct Ticket {
    /// Places of the rows that it is about.
    places: Range<usize>,
    answers: mpsc::UnboundedSender<(Range<usize>, Published)>,
    _permit: OwnedSemaphorePermit,
}

impl Ticket {
    pub(crate) fn answer(self, outcome: Published) {
        // No caller listens any more when the call to `publish` was cancelled.
        let _ = self.answers.send((self.places, outcome));
    }
}

impl Publisher {
    pub(crate) fn new(
        queue_prefix: String,
        confirm_timeout: Duration,
        max_unconfirmed: u32,
        jobs: mpsc::UnboundedSender<Job>,
        links: Links,
    ) -> Self {
        let permits = usize::try_from(max_unconfirmed)
            .unwrap_or(usize::MAX)
            .clamp(1, Semaphore::MAX_PERMITS);
        let permits = Arc::new(Semaphore::new(permits));
        Self {
            inner: Arc::new(Inner {
                queue_prefix,
                confirm_timeout,
                permits,
                jobs,
                links,
                sharing: AtomicBool::new(false),
            }),
        }
    }

    pub(crate) fn share_messages(&self, sharing: bool) {
        self.inner.sharing.store(sharing, Ordering::Relaxed);
    }

    /// Publishes `envelopes` to `queue` and waits for the server's answer to each; the outcomes are in the
    /// same order. Notifications share messages where [`crate::Broker::share_messages`] allows it.
    ///
    /// Answers at once with [`Published::NotSent`] while there is no connection. Otherwise every message is
    /// answered within `confirm_timeout` of being published; before that it may wait for its place among the
    /// unanswered ones, and counts as not sent when none becomes free for `confirm_timeout`. A cancelled call
    /// leaves the messages that were published already on their way.
    pub async fn publish(&self, queue: Queue, envelopes: Vec<Envelope>) -> Vec<Published> {
        let mut outcomes = vec![Published::NotSent; envelopes.len()];
        let (answers, mut answered) = mpsc::unbounded_channel();
        for places in self.messages(&envelopes) {
            let Some(permit) = self.place().await else { break };
            let [envelope, others @ ..] = &envelopes[places.clone()] else {
                continue;
            };
            let message = Message::new(queue, &self.inner.queue_prefix, envelope, others);
            let ticket = Ticket {
                places: places.clone(),
                answers: answers.clone(),
                _permit: permit,
            };
            if self.inner.jobs.send(Job { message, ticket }).is_err() {
                break;
            }
            // What holds until an answer comes: the pipeline may have published it.
            outcomes[places].fill(Published::Unconfirmed);
        }
        drop(answers);
        while let Some((places, outcome)) = answered.recv().await {
            outcomes[places].fill(outcome);
        }
        outcomes
    }

    /// The places of what goes into each message. Pushes are counted in their queue, which is as long as what may wait for Swrve.
    fn messages(&self, envelopes: &[Envelope]) -> Vec<Range<usize>> {
        let sharing = self.inner.sharing.load(Ordering::Relaxed)
            && envelopes
                .iter()
                .all(|envelope| envelope.kind == Kind::Notification);
        if sharing {
            return together(envelopes);
        }
        (0..envelopes.len()).map(|place| place..place + 1).collect()
    }

    /// Whether messages would be taken now: connected, and not blocked by the server.
    pub fn takes_messages(&self) -> bool {
        self.inner
            .links
            .borrow()
            .as_ref()
            .is_some_and(Link::takes_messages)
    }

    /// Waits for a place among the unanswered messages; `None` when there is no use in waiting.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        if !self.takes_messages() {
            return None;
        }
        if let Ok(permit) = Arc::clone(&self.inner.permits).try_acquire_owned() {
            return Some(permit);
        }
        let place = Arc::clone(&self.inner.permits).acquire_owned();
        let permit = tokio::time::timeout(self.inner.confirm_timeout, place)
            .await
            .ok()?
            .ok()?;
        self.takes_messages().then_some(permit)
    }
}
