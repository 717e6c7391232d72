//! Rescue: notifications whose lease ran out wait again. Their message was lost, or their sender died.

use chrono::{DateTime, Utc};
use domain::notification::RetryPolicy;

use crate::read::Count;
use crate::{Error, Rescued, Store};

impl Store {
    /// Rescues at most `limit` notifications whose lease ran out, by the clock of the database. The attempt of a claimed
    /// one ends as an error of unknown outcome; one that has had its retries, `max_retries` unless its subscription has another plan, is
    /// given up.
    pub async fn rescue_notifications(
        &self,
        at: DateTime<Utc>,
        limit: u32,
        max_retries: u32,
    ) -> Result<Rescued, Error> {
        Ok(sqlx::query_file_as!(
            Rescued,
            "queries/webhook/rescue_notifications.sql",
            i64::from(limit),
            i32::try_from(max_retries).unwrap_or(i32::MAX),
            at,
            i32::try_from(RetryPolicy::DAY_RETRIES).unwrap_or(i32::MAX),
        )
        .fetch_one(&self.pool)
        .await?)
    }
}
