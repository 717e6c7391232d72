//! Tasks that are waited for, up to a limit, before the process ends.
//!
//! It deliberately does not restart a task that ended or panicked: a supervisor knows what that means, a task group does not.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Shutdown;

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Drained {
    /// Every task has ended by itself.
    Complete,
    /// The grace period was over first; this many tasks were dropped at the point where they were waiting.
    Abandoned(usize),
}

/// A set of tasks that end together. Clones are the same set.
#[derive(Clone, Debug, Default)]
pub struct TaskGroup {
    tracker: TaskTracker,
    abandon: CancellationToken,
    shutdown: Shutdown,
    running: Running,
}

impl TaskGroup {
    /// An empty group whose drain only the grace period limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty group whose drain also ends when `shutdown` is hurried, that is at a second signal.
    pub fn under(shutdown: &Shutdown) -> Self {
        Self {
            shutdown: shutdown.clone(),
            ..Self::default()
        }
    }

    /// Runs `future` as a task of the group. The name is for logs. A panic is logged and ends this task alone; the handle
    /// tells its holder.
    pub fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let abandon = self.abandon.clone();
        let entry = self.running.enter(name);
        self.tracker.spawn(async move {
            let _entry = entry;
            tokio::select! {
                biased;
                () = future => {}
                () = abandon.cancelled() => {}
            }
        })
    }

    /// How many tasks have not ended yet.
    pub fn len(&self) -> usize {
        self.tracker.len()
    }

    /// Whether no task is running.
    pub fn is_empty(&self) -> bool {
        self.tracker.is_empty()
    }

    /// Waits until every task has ended, for `grace` at most; what is left then is dropped at its next await point.
    ///
    /// Asking the tasks to end is up to the caller: the group does not know who has to finish before whom.
    pub async fn drain(&self, grace: Duration) -> Drained {
        self.tracker.close();
        tokio::select! {
            biased;
            () = self.tracker.wait() => return Drained::Complete,
            () = tokio::time::sleep(grace) => {}
            () = self.shutdown.hurried() => {}
        }
        let left = self.tracker.len();
        tracing::warn!(tasks = ?self.running.names(), "the grace period is over; abandoning the tasks that are left");
        self.abandon.cancel();
        Drained::Abandoned(left)
    }
}

/// The names of the tasks that run, so that a drain that takes too long can say whom it waited for.
#[derive(Clone, Debug, Default)]
struct Running {
    by_name: Arc<Mutex<BTreeMap<&'static str, usize>>>,
}

impl Running {
    fn enter(&self, name: &'static str) -> Entry {
        *self.lock().entry(name).or_default() += 1;
        Entry {
            name,
            running: self.clone(),
        }
    }

    fn names(&self) -> BTreeMap<&'static str, usize> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, usize>> {
        // Counters cannot be left half-written by a panicking holder.
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Entry {
    name: &'static str,
    running: Running,
}

impl Drop for Entry {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(task = self.name, "a task panicked");
        }
        let mut running = self.running.lock();
        if let Some(count) = running.get_mut(self.name) {
            *count -= 1;
            if *count == 0 {
                running.remove(self.name);
            }
        }
    }
}
