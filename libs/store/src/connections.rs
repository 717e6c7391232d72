//! What the pool of connections is doing, for metrics. It asks the pool, not the database.

use sqlx::postgres::PgPool;

use crate::Store;

/// The connections of a pool at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connections {
    /// Whose they are: [`Store::service_name`].
    pub service: String,
    /// Those that something is being done with.
    pub busy: u32,
    /// Those that are open and wait for work, in the pool or between two batches.
    pub idle: u32,
    /// Most that may be open.
    pub most: u32,
}

impl Store {
    /// Counts the connections. The numbers are taken one after the other, so they may be off by what changes meanwhile.
    pub fn connections(&self) -> Connections {
        let idle = u32::try_from(idle_in(&self.pool) + self.resting.count()).unwrap_or(u32::MAX);
        Connections {
            service: self.service_name(),
            busy: self.pool.size().saturating_sub(idle),
            idle,
            most: self.pool.options().get_max_connections(),
        }
    }
}

/// How many connections wait in a pool for work.
///
/// The pool counts one that comes back only after it can be taken. One that is taken in between is subtracted first, and for that moment the
/// count may be below zero, which is the greatest number there is.
pub(crate) fn idle_in(pool: &PgPool) -> usize {
    let idle = pool.num_idle();
    if idle > pool.size() as usize { 0 } else { idle }
}
