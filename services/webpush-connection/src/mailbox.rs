//! What waits to be taken by the task of one connection: notifications up to a bound, and wake-ups that need no place because one
//! stands for all.
//!
//! A channel of the runtime would take a kilobyte for each connection, whether anything waits or not.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::webpush::Newer;
use telemetry::traces::Span;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::connection::Close;

/// For how long a client that let a wait for its acknowledgement run out is not waited for as long again.
const LATE: Duration = Duration::from_secs(60);

/// A notification on its way to a client.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) version: Box<str>,
    /// As it is sent.
    pub(crate) text: String,
    /// Whether it has TTL left after it was sent.
    pub(crate) is_kept: bool,
    /// Of which topic it is the newer message.
    pub(crate) newer: Option<Box<Newer>>,
    pub(crate) receipt: Receipt,
    /// From its arrival until it was sent.
    pub(crate) span: Span,
}

/// Tells the sender of a notification that the client has it. Dropped, it tells that the client may not have it.
#[derive(Debug)]
pub(crate) struct Receipt(oneshot::Sender<()>);

impl Receipt {
    /// A receipt, and what it is awaited by.
    pub(crate) fn new() -> (Self, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }

    /// Whether the sender still waits.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.0.is_closed()
    }

    /// The client has it; `false` when the sender waits no more, and so has stored it or is about to.
    pub(crate) fn settle(self) -> bool {
        self.0.send(()).is_ok()
    }
}

/// Why a notification was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// As many wait as may.
    Full,
    /// The connection has ended.
    Ended,
}

/// What the connection's task takes out.
#[derive(Debug)]
pub(crate) enum Letter {
    End(Close),
    Stored,
    Broadcasts,
    Delivery(Delivery),
}

/// The mailbox of a connection.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    inner: Mutex<Inner>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    deliveries: VecDeque<Delivery>,
    end: Option<Close>,
    stored: bool,
    broadcasts: bool,
    has_ended: bool,
    late_until: Option<Instant>,
}

impl Mailbox {
    /// Puts a notification in, unless `capacity` of them wait.
    pub(crate) fn deliver(&self, delivery: Delivery, capacity: usize) -> Result<(), Refused> {
        self.put(|inner| {
            if inner.deliveries.len() >= capacity {
                return Err(Refused::Full);
            }
            inner.deliveries.push_back(delivery);
            Ok(())
        })
    }

    /// Says that something was stored for the client.
    pub(crate) fn tell_stored(&self) -> Result<(), Refused> {
        self.put(|inner| {
            inner.stored = true;
            Ok(())
        })
    }

    /// Says that broadcasts have changed.
    pub(crate) fn tell_broadcasts(&self) {
        // A connection that has ended does not mind.
        let _ = self.put(|inner| {
            inner.broadcasts = true;
            Ok(())
        });
    }

    /// Asks the connection to end.
    pub(crate) fn end(&self, close: Close) {
        let _ = self.put(|inner| {
            inner.end.get_or_insert(close);
            Ok(())
        });
    }

    fn put(&self, change: impl FnOnce(&mut Inner) -> Result<(), Refused>) -> Result<(), Refused> {
        let mut inner = self.lock();
        if inner.has_ended {
            return Err(Refused::Ended);
        }
        change(&mut inner)?;
        drop(inner);
        self.wake.notify_one();
        Ok(())
    }

    /// Waits for the next letter; notifications only if they are wanted. Nothing is lost when the wait is given up.
    pub(crate) async fn next(&self, wants_deliveries: bool) -> Letter {
        loop {
            if let Some(letter) = self.lock().take(wants_deliveries) {
                return letter;
            }
            self.wake.notified().await;
        }
    }

    /// Takes nothing any more; what waits is dropped, which tells its senders.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.has_ended = true;
        let left = std::mem::take(&mut inner.deliveries);
        drop(inner);
        drop(left);
    }

    /// Whether the client acknowledges at once, as far as is known.
    pub(crate) fn is_prompt(&self, now: Instant) -> bool {
        self.lock().late_until.is_none_or(|until| until <= now)
    }

    /// Notes that a wait for an acknowledgement has run out.
    pub(crate) fn was_late(&self, now: Instant) {
        self.lock().late_until = Some(now + LATE);
    }

    /// Whether the connection has been asked to end.
    #[cfg(test)]
    pub(crate) fn is_asked_to_end(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Whether it takes nothing any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Plain values cannot be left half-written by a panicking holder.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn take(&mut self, wants_deliveries: bool) -> Option<Letter> {
        if let Some(close) = self.end.take() {
            return Some(Letter::End(close));
        }
        if std::mem::take(&mut self.stored) {
            return Some(Letter::Stored);
        }
        if std::mem::take(&mut self.broadcasts) {
            return Some(Letter::Broadcasts);
        }
        if !wants_deliveries {
            return None;
        }
        // What its sender does not wait for any more is stored, and comes from there: it must not come twice.
        let delivery = loop {
            let delivery = self.deliveries.pop_front()?;
            if !delivery.is_kept || delivery.receipt.is_awaited() {
                break delivery;
            }
        };
        if self.deliveries.is_empty() {
            // An idle connection holds no place for what may come.
            self.deliveries = VecDeque::new();
        }
        Some(Letter::Delivery(delivery))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(version: &str) -> (Delivery, oneshot::Receiver<()>) {
        let (receipt, settled) = Receipt::new();
        let delivery = Delivery {
            version: version.into(),
            text: String::new(),
            is_kept: true,
            newer: None,
            receipt,
            span: Span::none(),
        };
        (delivery, settled)
    }

    #[tokio::test]
    async fn a_full_mailbox_takes_wake_ups_and_no_notification() {
        let mailbox = Mailbox::default();
        let (first, _settled) = delivery("1");
        mailbox.deliver(first, 1).unwrap();
        assert_eq!(mailbox.deliver(delivery("2").0, 1), Err(Refused::Full));
        mailbox.tell_stored().unwrap();
        mailbox.tell_stored().unwrap();
        assert!(matches!(mailbox.next(true).await, Letter::Stored));
        assert!(matches!(mailbox.next(true).await, Letter::Delivery(_)));
    }

    #[tokio::test]
    async fn what_its_sender_has_given_up_is_not_delivered() {
        let mailbox = Mailbox::default();
        let ((given_up, settled), (awaited, _settled)) = (delivery("1"), delivery("2"));
        mailbox.deliver(given_up, 2).unwrap();
        mailbox.deliver(awaited, 2).unwrap();
        drop(settled);
        assert!(matches!(mailbox.next(true).await, Letter::Delivery(delivery) if *delivery.version == *"2"));
    }

    #[tokio::test]
    async fn the_sender_of_what_waits_learns_that_the_connection_has_ended() {
        let mailbox = Mailbox::default();
        let (waiting, settled) = delivery("1");
        mailbox.deliver(waiting, 1).unwrap();
        mailbox.close();
        settled.await.unwrap_err();
        assert_eq!(mailbox.deliver(delivery("2").0, 1), Err(Refused::Ended));
        assert_eq!(mailbox.tell_stored(), Err(Refused::Ended));
    }
}
