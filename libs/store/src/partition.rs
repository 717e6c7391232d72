//! Monthly partitions: made ahead, dropped when old and finished. The work is done by functions of the schema.

use domain::month::Month;

use crate::{Cutoff, Error, Store};

/// A month of one lane that is past its retention. Only [`Store::old_months`] finds one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldMonth(String);

impl OldMonth {
    /// The partition of its pushes or notifications, with which all that belongs to them goes.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Store {
    /// Makes the partitions of `months` months from `first` on that do not exist; returns how many tables were made.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails, or a lock was not to be had within 5 s.
    pub async fn create_partitions(&self, first: Month, months: u32) -> Result<i32, Error> {
        let months = i32::try_from(months).unwrap_or(i32::MAX);
        Ok(sqlx::query_scalar!(
            r#"SELECT create_month_partitions($1, $2) AS "created!""#,
            first.first_day(),
            months,
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// The months of both lanes that are past a retention of `kept` whole months before the `present` one, pushes before
    /// notifications, and the oldest of each first.
    pub async fn old_months(&self, present: Cutoff, kept: u32) -> Result<Vec<OldMonth>, Error> {
        let first_kept = Month::containing(present.before()).minus(kept);
        let names = sqlx::query_scalar!(
            r#"SELECT old_month_partitions($1) AS "partition!""#,
            first_kept.first_day()
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(names.into_iter().map(OldMonth).collect())
    }

    /// Drops a month with everything that belongs to it, if all in it has ended; tells whether it did.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails. It is transient when a lock was not to be had within 100 ms, as while a backup
    /// reads: waiting longer would hold up the lane.
    pub async fn drop_month(&self, month: &OldMonth) -> Result<bool, Error> {
        Ok(
            sqlx::query_scalar!(r#"SELECT drop_month_partition($1) AS "dropped!""#, month.name())
                .fetch_one(&self.pool)
                .await?,
        )
    }

    /// How many months after `current` have their partitions.
    pub async fn partitions_ahead(&self, current: Month) -> Result<i32, Error> {
        Ok(
            sqlx::query_scalar!(r#"SELECT months_ahead($1) AS "months!""#, current.first_day())
                .fetch_one(&self.pool)
                .await?,
        )
    }
}
