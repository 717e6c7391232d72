//! The line in which the requests of an open loop wait for a free connection.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Instant;

use tokio::sync::Notify;

/// When the requests were due that no connection has taken up yet.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    due: RefCell<VecDeque<Instant>>,
    closed: Cell<bool>,
    changed: Notify,
}

impl Backlog {
    pub(super) fn add(&self, due: Instant) {
        self.due.borrow_mut().push_back(due);
        self.changed.notify_one();
    }

    pub(super) fn close(&self) {
        self.closed.set(true);
        self.changed.notify_waiters();
    }

    /// What no connection has taken up.
    pub(super) fn clear(&self) -> VecDeque<Instant> {
        std::mem::take(&mut self.due.borrow_mut())
    }

    /// `None` when it is closed and empty.
    pub(super) async fn take(&self) -> Option<Instant> {
        loop {
            let changed = self.changed.notified();
            if let Some(due) = self.due.borrow_mut().pop_front() {
                return Some(due);
            }
            if self.closed.get() {
                return None;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_leave_in_their_order_until_the_line_is_closed_and_empty() {
        let backlog = Backlog::default();
        let first = Instant::now();
        let second = Instant::now();
        backlog.add(first);
        backlog.add(second);
        backlog.close();
        assert_eq!(backlog.take().await, Some(first));
        assert_eq!(backlog.take().await, Some(second));
        assert_eq!(backlog.take().await, None);
    }

    #[tokio::test]
    async fn what_is_cleared_is_not_taken() {
        let backlog = Backlog::default();
        let due = Instant::now();
        backlog.add(due);
        assert_eq!(backlog.clear(), [due]);
        backlog.close();
        assert_eq!(backlog.take().await, None);
    }
}
