//! How far behind the reseller lane is; cheap with any backlog, as that of the push lane.

use crate::{Backlog, Error, Store};

impl Store {
    /// Looks at what has waited longest among notifications. Those of a suspended subscription wait because its reseller or an operator wants
    /// that; they do not count. A PENDING one waits since when [`Store::notifications_waiting`] says.
    pub async fn notification_backlog(&self) -> Result<Backlog, Error> {
        Ok(
            sqlx::query_file_as!(Backlog, "queries/webhook/notification_backlog.sql")
                .fetch_one(&self.pool)
                .await?,
        )
    }
}
