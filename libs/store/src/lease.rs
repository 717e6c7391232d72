//! Leases: who may do what only one replica may do at a time.
//!
//! A holder renews its row; a watcher that has seen the row unchanged for one time-to-live of its own monotonic clock
//! may take it over, naming exactly what it saw. The time-to-live itself is kept by the watchers and holders: no
//! wall clock takes part, so a clock that jumps can neither end a lease early nor keep it alive.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::{Error, Store};

/// A lease that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What it is for.
    pub name: String,
    /// Who holds it.
    pub holder: Uuid,
    /// Grows with every change of holder.
    pub epoch: i64,
}

/// What a watcher sees of a lease. Two equal views mean that the holder did nothing in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseView {
    /// Who holds it; no process after a release.
    pub holder: Option<Uuid>,
    /// The epoch of the holder.
    pub epoch: i64,
    /// How often it was renewed, over all epochs.
    pub renewals: i64,
}

impl Store {
    /// Looks at a lease, making it if it does not exist yet.
    pub async fn view_lease(&self, name: &str) -> Result<LeaseView, Error> {
        let select = |executor| select_lease(executor, name);
        if let Some(view) = select(&self.leases).await? {
            return Ok(view);
        }
        sqlx::query!(
            "INSERT INTO leases (name) VALUES ($1) ON CONFLICT DO NOTHING",
            name
        )
        .execute(&self.leases)
        .await?;
        Ok(select(&self.leases).await?.unwrap_or(LeaseView {
            holder: None,
            epoch: 0,
            renewals: 0,
        }))
    }

    /// Takes a lease that still is as `seen`; `None` when another process was faster or the holder lives.
    pub async fn take_lease(
        &self,
        name: &str,
        seen: LeaseView,
        holder: Uuid,
    ) -> Result<Option<Lease>, Error> {
        let epoch = sqlx::query_scalar!(
            r#"
            UPDATE leases SET holder = $4, epoch = epoch + 1, renewals = renewals + 1, renewed_at = now(),
                              taken_at = now()
            WHERE name = $1 AND epoch = $2 AND renewals = $3
            RETURNING epoch
            "#,
            name,
            seen.epoch,
            seen.renewals,
            holder,
        )
        .fetch_optional(&self.leases)
        .await?;
        Ok(epoch.map(|epoch| Lease {
            name: name.to_owned(),
            holder,
            epoch,
        }))
    }

    /// Renews a lease; `false` when it is no longer ours.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; whether the lease was renewed is then unknown.
    pub async fn renew_lease(&self, lease: &Lease) -> Result<bool, Error> {
        let renewed = sqlx::query!(
            r#"
            UPDATE leases SET renewals = renewals + 1, renewed_at = now()
            WHERE name = $1 AND holder = $2 AND epoch = $3
            "#,
            lease.name,
            lease.holder,
            lease.epoch,
        )
        .execute(&self.leases)
        .await?;
        Ok(renewed.rows_affected() == 1)
    }

    /// Gives a lease up, so that a successor need not wait; `false` when it was no longer ours.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; a successor then waits.
    pub async fn release_lease(&self, lease: &Lease) -> Result<bool, Error> {
        let released = sqlx::query!(
            r#"
            UPDATE leases SET holder = NULL, renewals = renewals + 1, renewed_at = now()
            WHERE name = $1 AND holder = $2 AND epoch = $3
            "#,
            lease.name,
            lease.holder,
            lease.epoch,
        )
        .execute(&self.leases)
        .await?;
        Ok(released.rows_affected() == 1)
    }
}

async fn select_lease(executor: impl PgExecutor<'_>, name: &str) -> Result<Option<LeaseView>, Error> {
    Ok(sqlx::query_as!(
        LeaseView,
        "SELECT holder, epoch, renewals FROM leases WHERE name = $1",
        name
    )
    .fetch_optional(executor)
    .await?)
}
