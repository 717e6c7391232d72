//! A bound on what is under way behind the answers: how many events may be accepted and not delivered yet.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;

/// Lets an event in for each one that has come out.
#[derive(Debug, Clone)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    pub(crate) fn new(width: usize) -> Self {
        Self(Arc::new(Semaphore::new(width)))
    }

    /// Waits until `count` more may be under way; `false` when that does not happen before `deadline`.
    pub(super) async fn enter(&self, count: u32, deadline: Option<Instant>) -> bool {
        let entering = self.0.acquire_many(count);
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

    /// So many have come out.
    pub(crate) fn leave(&self, count: usize) {
        self.0.add_permits(count);
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
}
