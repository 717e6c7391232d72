//! Rescue: pushes whose lease ran out are due again. Their message was lost, or their sender died.

use crate::read::Count;
use crate::{Error, Rescued, Store};

impl Store {
    /// Rescues at most `limit` pushes whose lease ran out, by the clock of the database. The attempt of a claimed one
    /// ends as an error of unknown outcome; one that has had `max_attempts` since it was accepted
    /// or replayed last is given up.
    pub async fn rescue_pushes(&self, limit: u32, max_attempts: u32) -> Result<Rescued, Error> {
        Ok(sqlx::query_file_as!(
            Rescued,
            "queries/push/rescue_pushes.sql",
            i64::from(limit),
            i32::try_from(max_attempts).unwrap_or(i32::MAX),
        )
        .fetch_one(&self.pool)
        .await?)
    }
}
