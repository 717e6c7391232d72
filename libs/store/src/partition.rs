//! Monthly partitions: made ahead, dropped when old and finished. The work is done by functions of the schema.

use domain::month::Month;

use crate::{Error, Store};

impl Store {
    /// Makes the partitions of `months` months from `first` on that do not exist; returns how many tables were made.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails, or a lock was not to be had within 5 s.
    pub async fn create_partitions(&self, first: Month, months: u32) -> Result<i32, Error> {
        let months = i32::try_from(months).unwrap_or(i32::MAX);
        let created = sqlx::query_scalar!(
            r#"SELECT create_month_partitions($1, $2) AS "created!""#,
            first.first_day(),
            months,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(created)
    }

    /// Drops the months before `before` in which everything has ended, each lane by itself; returns the names of the
    /// partitions of pushes and of notifications, with which all that belongs to them went.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails, or a lock was not to be had within 2 s.
    pub async fn drop_partitions(&self, before: Month) -> Result<Vec<String>, Error> {
        let dropped = sqlx::query_scalar!(
            r#"SELECT drop_month_partitions($1) AS "partition!""#,
            before.first_day()
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(dropped)
    }

    /// How many months after `current` have their partitions.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails.
    pub async fn partitions_ahead(&self, current: Month) -> Result<i32, Error> {
        let months = sqlx::query_scalar!(r#"SELECT months_ahead($1) AS "months!""#, current.first_day())
            .fetch_one(&self.pool)
            .await?;
        Ok(months)
    }
}
