//! Dead letters that come from the broker. Those of pushes and notifications that ended badly are written where these
//! end.

use domain::named;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::filter::DeadLetterReason;
use crate::text::{storable, storable_json};
use crate::{Error, Store};

/// Which lane a dead letter is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DeadLetterLane {
    /// Pushes.
    Push,
    /// Notifications.
    Reseller,
}

named!(DeadLetterLane, "lane");

/// A message that the broker gave up.
#[derive(Debug, Clone)]
pub struct BrokerDeadLetter {
    /// Whose queue it was in.
    pub lane: DeadLetterLane,
    /// The push or notification that the message was about, when it could be read.
    pub id: Option<Uuid>,
    /// Why the broker gave it up, as it says itself.
    pub detail: String,
    /// Failures of one kind share it.
    pub fingerprint: String,
    /// Body, headers, queue and count.
    pub message: Value,
}

impl Store {
    /// Archives a message that the broker gave up, in one transaction with its consequence: what it was about waits for
    /// the queue again, since a lost message says nothing about the push or notification itself. Returns whether it does.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then the message must not be acknowledged.
    pub async fn archive_dead_letter(&self, letter: &BrokerDeadLetter) -> Result<bool, Error> {
        let reason = if letter.id.is_some() {
            DeadLetterReason::Rejected
        } else {
            DeadLetterReason::Malformed
        };
        let requeued = sqlx::query_file_scalar!(
            "queries/dead_letters/archive_dead_letter.sql",
            letter.id,
            reason.as_str(),
            &*storable(&letter.fingerprint),
            &*storable(&letter.detail),
            storable_json(&letter.message),
            letter.lane.as_str(),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(requeued > 0)
    }
}
