//! The messages of one channel that the server has not answered yet.
//!
//! A return names no delivery tag, and the AMQP client attaches it to whichever confirm it resolves next,
//! which with pipelined publishes is often another message's. Each message therefore carries a key of its own
//! in the property `correlation_id`, and a return is matched by that key. Two more things are needed before a
//! confirm may be believed:
//!
//! * Returns that were attached to earlier confirms must have been seen. A task that polls many confirms may
//!   see them in any order, so they are not left to a general-purpose collection of futures. This one keeps
//!   the wake-ups itself and polls until none is left before it draws any conclusion: whatever the client had
//!   resolved before is then known.
//! * A confirm that carries another message's return says that the client has a queue of returns, which may
//!   hold the return of this very message. Each confirm takes one return off that queue, and the queue is
//!   never longer than the number of returned messages without a confirm. So when everything that is
//!   unanswered now has been answered, the return in question has been seen, or there is none. Until then the
//!   message is held.

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;
use lapin::message::BasicReturnMessage;
use lapin::options::BasicPublishOptions;
use lapin::{Channel, Confirmation};
use tokio::time::Instant;

use crate::Published;
use crate::message::Message;
use crate::publisher::Ticket;

type Answer = Pin<Box<dyn Future<Output = lapin::Result<Confirmation>> + Send>>;

/// Identifies one publish on its channel.
type Key = u64;

struct Slot {
    answer: Answer,
    waker: Waker,
    ticket: Option<Ticket>,
}

/// A message whose confirm carried the return of another.
struct Held {
    key: Key,
    /// The last message that was published by then.
    barrier: Key,
    ticket: Option<Ticket>,
}

/// What the client said about a message.
struct Finished {
    key: Key,
    ticket: Option<Ticket>,
    answer: lapin::Result<Confirmation>,
}

/// Published and unanswered messages of one channel.
pub(crate) struct Inflight {
    channel: Channel,
    slots: HashMap<Key, Slot>,
    /// Publishing times, oldest first. May hold keys that have been answered.
    published: VecDeque<(Instant, Key)>,
    /// Keys whose return has been seen and whose confirm has not.
    returned: HashSet<Key>,
    held: Vec<Held>,
    woken: Arc<Woken>,
    last_key: Key,
}

impl Inflight {
    pub(crate) fn new(channel: Channel) -> Self {
        Self {
            channel,
            slots: HashMap::new(),
            published: VecDeque::new(),
            returned: HashSet::new(),
            held: Vec::new(),
            woken: Arc::default(),
            last_key: 0,
        }
    }

    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Queues `message` for publishing. It is handed to the AMQP client by the next [`Self::poll_settle`].
    ///
    /// All publishes of a channel have to go through one task, because the client numbers a message and
    /// queues it in two steps, and a task in between would swap the numbers.
    pub(crate) fn publish(&mut self, message: Message, ticket: Ticket) {
        self.last_key += 1;
        let key = self.last_key;
        let channel = self.channel.clone();
        let answer = Box::pin(async move {
            let properties = message.properties.with_correlation_id(key.to_string().into());
            let options = BasicPublishOptions {
                mandatory: true,
                ..Default::default()
            };
            let exchange = message.exchange.as_str().into();
            let routing_key = message.routing_key.into();
            channel
                .basic_publish(exchange, routing_key, options, &message.body, properties)
                .await?
                .await
        });
        let waker = Waker::from(Arc::new(Wakeup {
            key,
            woken: Arc::clone(&self.woken),
        }));
        self.slots.insert(
            key,
            Slot {
                answer,
                waker,
                ticket: Some(ticket),
            },
        );
        self.published.push_back((Instant::now(), key));
        self.woken.add(key);
    }

    /// Answers what the server has answered. Ready when there was something, with the first error if there
    /// was one.
    pub(crate) fn poll_settle(&mut self, context: &Context<'_>) -> Poll<Option<lapin::Error>> {
        self.woken.task.register(context.waker());
        let mut finished = Vec::new();
        loop {
            let keys = self.woken.take();
            if keys.is_empty() {
                break;
            }
            for key in keys {
                let Some(slot) = self.slots.get_mut(&key) else {
                    continue;
                };
                if let Poll::Ready(answer) = slot.answer.as_mut().poll(&mut Context::from_waker(&slot.waker))
                {
                    let ticket = self.slots.remove(&key).and_then(|slot| slot.ticket);
                    finished.push(Finished { key, ticket, answer });
                }
            }
        }
        if finished.is_empty() {
            Poll::Pending
        } else {
            Poll::Ready(self.settle(finished))
        }
    }

    fn settle(&mut self, mut finished: Vec<Finished>) -> Option<lapin::Error> {
        let mut carriers = HashSet::new();
        for Finished { key, answer, .. } in &mut finished {
            let Ok(Confirmation::Ack(carried) | Confirmation::Nack(carried)) = answer else {
                continue;
            };
            if let Some(message) = carried.take() {
                carriers.insert(*key);
                self.returned.extend(returned_key(&message));
            }
        }
        let mut failure = None;
        for Finished { key, ticket, answer } in finished {
            let outcome = match answer {
                _ if self.returned.remove(&key) => Published::Unroutable,
                Ok(Confirmation::Ack(_)) if carriers.contains(&key) => {
                    self.held.push(Held {
                        key,
                        barrier: self.last_key,
                        ticket,
                    });
                    continue;
                }
                Ok(Confirmation::Ack(_)) => Published::Confirmed,
                Ok(Confirmation::Nack(_)) => Published::Rejected,
                Ok(Confirmation::NotRequested) => Published::Unconfirmed,
                Err(error) => {
                    failure.get_or_insert(error);
                    Published::Unconfirmed
                }
            };
            answer_with(ticket, outcome);
        }
        self.release_held(failure.is_some());
        failure
    }

    /// Answers the held messages that can be decided. With a failed channel, their returns may never be seen.
    fn release_held(&mut self, failed: bool) {
        if self.held.is_empty() {
            return;
        }
        let oldest = self.oldest_key();
        for Held { key, barrier, ticket } in std::mem::take(&mut self.held) {
            if self.returned.remove(&key) {
                answer_with(ticket, Published::Unroutable);
            } else if failed {
                answer_with(ticket, Published::Unconfirmed);
            } else if oldest.is_none_or(|oldest| oldest > barrier) {
                answer_with(ticket, Published::Confirmed);
            } else {
                self.held.push(Held { key, barrier, ticket });
            }
        }
    }

    /// When the oldest unanswered message was published.
    pub(crate) fn oldest(&mut self) -> Option<Instant> {
        self.oldest_key()?;
        self.published.front().map(|(at, _)| *at)
    }

    fn oldest_key(&mut self) -> Option<Key> {
        while let Some((_, key)) = self.published.front() {
            if self.slots.contains_key(key) {
                return Some(*key);
            }
            self.published.pop_front();
        }
        None
    }

    /// Answers everything as unconfirmed, without waiting for the server any longer.
    pub(crate) fn give_up(&mut self) {
        for slot in self.slots.values_mut() {
            answer_with(slot.ticket.take(), Published::Unconfirmed);
        }
        for held in self.held.drain(..) {
            answer_with(held.ticket, Published::Unconfirmed);
        }
    }
}

fn answer_with(ticket: Option<Ticket>, outcome: Published) {
    if let Some(ticket) = ticket {
        ticket.answer(outcome);
    }
}

fn returned_key(message: &BasicReturnMessage) -> Option<Key> {
    message
        .delivery
        .properties
        .correlation_id()
        .as_ref()?
        .as_str()
        .parse()
        .ok()
}

/// Keys whose future wants to be polled, and the task that polls them.
#[derive(Default)]
struct Woken {
    keys: Mutex<Vec<Key>>,
    task: AtomicWaker,
}

impl Woken {
    fn add(&self, key: Key) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).push(key);
        self.task.wake();
    }

    fn take(&self) -> Vec<Key> {
        std::mem::take(&mut *self.keys.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Wakeup {
    key: Key,
    woken: Arc<Woken>,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.woken.add(self.key);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.add(self.key);
    }
}
