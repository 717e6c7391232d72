//! A bound on what is under way behind the answers: how many events may be accepted and not delivered yet.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;

/// Lets an event in for each one that has come out.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    free: Arc<Semaphore>,
    /// Deliveries of one event.
    each: u32,
}

impl Gate {
    pub(crate) fn new(width: usize) -> Self {
        Self::fanning_out(width, 1)
    }

    /// As wide as so many deliveries, of which every event makes `each`.
    pub(crate) fn fanning_out(width: usize, each: u32) -> Self {
        Self {
            free: Arc::new(Semaphore::new(width)),
            each,
        }
    }

    /// Waits until `count` more events may be under way; `false` when that does not happen before `deadline`.
    pub(super) async fn enter(&self, count: u32, deadline: Option<Instant>) -> bool {
        let entering = self.free.acquire_many(count * self.each);
        let entered = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline.into(), entering).await.ok(),
            None => Some(entering.await),
        };
        match entered {
            Some(Ok(places)) => {
                places.forget();
                true
            }
            _ => false,
        }
    }

    /// So many deliveries have come out.
    pub(crate) fn leave(&self, count: usize) {
        self.free.add_permits(count);
    }

    /// So many events that had entered will never come out.
    pub(super) fn give_back(&self, count: u32) {
        self.leave((count * self.each) as usize);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn nothing_enters_a_full_gate_until_something_leaves() {
        let gate = Gate::new(2);
        let soon = || Some(Instant::now() + Duration::from_millis(5));
        assert!(gate.enter(2, soon()).await);
        assert!(!gate.enter(1, soon()).await);
        gate.leave(1);
        assert!(gate.enter(1, soon()).await);
    }

    #[tokio::test]
    async fn an_event_takes_the_room_of_all_its_deliveries() {
        let gate = Gate::fanning_out(6, 3);
        let soon = || Some(Instant::now() + Duration::from_millis(5));
        assert!(gate.enter(2, soon()).await);
        gate.leave(2);
        assert!(!gate.enter(1, soon()).await, "one of its deliveries is under way");
        gate.leave(1);
        assert!(gate.enter(1, soon()).await);
        gate.give_back(1);
        assert!(gate.enter(1, soon()).await);
    }
}
