//! Connections that rest between two batches of the statements that run all the time: storing, claiming and recording, and of Web Push looking
//! user agents up. A connection that goes back to the pool is asked twice whether it still answers, by us and by sqlx; one that rests until the
//! next batch is not.
//!
//! It is no second pool. A connection rests only for a moment, only while the pool has an idle one for other statements, and
//! goes back at least as often as the pool wants to hear from it. Statements that are rare have no use for it.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool, Postgres};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::connections::idle_in;
use crate::{Error, IDLE_LIMIT};

/// How long a connection rests before it goes back to the pool; at most twice as long. More than the longest pause between two batches of a
/// busy lane, the 40 ms between outcomes of pushes: for one with fewer batches the pool's questions are no cost that matters.
const REST: Duration = Duration::from_millis(50);

/// The connections of a pool that rest.
#[derive(Debug)]
pub(crate) struct Resting {
    pool: PgPool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last came last, and is taken first: those that are not needed go back.
    connections: Vec<Rested>,
    /// Gives back what has rested for long enough, until nothing rests.
    returning: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Rested {
    connection: PoolConnection<Postgres>,
    from_pool_at: Instant,
    since: Instant,
}

/// A connection for one batch. When it is dropped it goes back to the pool, which finds out whether it can still be used: after an error, or
/// a statement that was given up.
pub(crate) struct Lent<'a> {
    resting: &'a Arc<Resting>,
    connection: PoolConnection<Postgres>,
    from_pool_at: Instant,
}

impl Resting {
    pub(crate) fn new(pool: PgPool) -> Arc<Self> {
        Arc::new(Self {
            pool,
            state: Mutex::default(),
        })
    }

    /// The connection that has rested for the shortest time, or else one of the pool.
    pub(crate) async fn take(self: &Arc<Self>) -> Result<Lent<'_>, Error> {
        let rested = self.state().connections.pop();
        let (connection, from_pool_at) = match rested {
            Some(rested) => (rested.connection, rested.from_pool_at),
            None => (self.pool.acquire().await?, Instant::now()),
        };
        Ok(Lent {
            resting: self,
            connection,
            from_pool_at,
        })
    }

    /// How many rest at this moment.
    pub(crate) fn count(&self) -> usize {
        self.state().connections.len()
    }

    /// Gives all back. To be called when the pool is closed: then none comes to rest any more.
    pub(crate) fn end(&self) {
        self.state().connections.clear();
    }

    /// Gives back what has rested for long enough; says whether anything still rests.
    fn return_rested(&self) -> bool {
        let mut state = self.state();
        state.connections.retain(|one| one.since.elapsed() < REST);
        let any = !state.connections.is_empty();
        if !any {
            state.returning = None;
        }
        any
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Resting {
    fn drop(&mut self) {
        // Going back to the pool takes a runtime. Where there is none, what rests ends as what is in the pool does.
        if Handle::try_current().is_err() {
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            for rested in state.connections.drain(..) {
                drop(rested.connection.detach());
            }
        }
    }
}

impl Lent<'_> {
    /// Has it rest for the next batch, or go back. Only after a statement or a transaction that has succeeded: after any other the connection
    /// may be broken, or in the middle of something.
    pub(crate) fn rest(self) {
        let Self {
            resting,
            connection,
            from_pool_at,
        } = self;
        let now = Instant::now();
        let mut state = resting.state();
        // Where others are out of connections, or cannot open any, they must not wait for one that does nothing.
        let others_have_one = idle_in(&resting.pool) > 0;
        let is_known_well = now.duration_since(from_pool_at) < IDLE_LIMIT;
        if resting.pool.is_closed() || !others_have_one || !is_known_well {
            return;
        }
        state.connections.push(Rested {
            connection,
            from_pool_at,
            since: now,
        });
        // One that has ended without being asked to belonged to a runtime that has.
        if state.returning.as_ref().is_none_or(JoinHandle::is_finished) {
            state.returning = Some(tokio::spawn(return_rested(Arc::downgrade(resting))));
        }
    }
}

impl Deref for Lent<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

async fn return_rested(resting: Weak<Resting>) {
    tokio::time::sleep(REST).await;
    while resting.upgrade().is_some_and(|resting| resting.return_rested()) {
        tokio::time::sleep(REST).await;
    }
}
