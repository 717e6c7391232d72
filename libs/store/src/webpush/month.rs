//! The months of Web Push: made ahead, dropped when they are old. The work is done by functions of the schema.

use domain::month::Month;

use crate::{Cutoff, Error, Store};

/// How many months before the present one are kept: a client that did not connect for as long has to register again.
const KEPT_MONTHS: u32 = 2;

impl Store {
    /// Makes the partitions of `months` months from `first` on that do not exist; returns how many tables were made.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails, or a lock was not to be had within 5 s.
    pub async fn create_webpush_partitions(&self, first: Month, months: u32) -> Result<i32, Error> {
        let months = i32::try_from(months).unwrap_or(i32::MAX);
        Ok(sqlx::query_scalar!(
            r#"SELECT create_webpush_partitions($1, $2) AS "created!""#,
            first.first_day(),
            months,
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// Drops the months that are more than two before the `present` one, with the clients that did not connect since; returns their
    /// names.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails. It is transient when a lock was not to be had within 100 ms.
    pub async fn drop_webpush_partitions(&self, present: Cutoff) -> Result<Vec<String>, Error> {
        let first_kept = Month::containing(present.before()).minus(KEPT_MONTHS);
        Ok(sqlx::query_scalar!(
            r#"SELECT drop_webpush_partitions($1) AS "month!""#,
            first_kept.first_day()
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// How many months after `current` have their partitions.
    pub async fn webpush_partitions_ahead(&self, current: Month) -> Result<i32, Error> {
        Ok(sqlx::query_scalar!(
            r#"SELECT webpush_months_ahead($1) AS "months!""#,
            current.first_day()
        )
        .fetch_one(&self.pool)
        .await?)
    }
}
