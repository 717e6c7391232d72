//! Cancelling what has not been sent yet. Somebody wants it so: it ends without a dead letter, since there is nothing to
//! mend.

use domain::notification::{NotificationId, NotificationStatus};
use domain::push::{PushId, PushStatus};
use serde_json::json;

use crate::audit::{self, Act};
use crate::{Error, Store, stored};

/// What came of cancelling a push or a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancellation<S> {
    /// It was in this status, and will not be sent.
    Done(S),
    /// It is being sent: nobody can tell whether it still could be stopped.
    BeingSent,
    /// It has ended before.
    Ended(S),
    /// There is no such thing.
    Unknown,
}

impl Store {
    /// Cancels a push that waits or is queued.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then nothing is changed.
    pub async fn cancel_push(&self, id: PushId, act: Act<'_>) -> Result<Cancellation<PushStatus>, Error> {
        let mut transaction = self.pool.begin().await?;
        let row = sqlx::query!(
            r#"
            WITH found AS (
                SELECT id, status, lease_token IS NOT NULL AS claimed FROM push_notifications WHERE id = $1 FOR UPDATE),
            cancelled AS (
                UPDATE push_notifications p
                SET status = 'GIVEN_UP', reason = 'CANCELLED', next_attempt_at = NULL, leased_until = NULL,
                    finished_at = $2, updated_at = $2
                FROM found f
                WHERE p.id = f.id AND NOT f.claimed AND f.status IN ('SCHEDULED', 'PENDING', 'IN_MEMORY', 'RETRY')
                RETURNING p.id)
            SELECT status AS "status!", claimed AS "claimed!", EXISTS (SELECT FROM cancelled) AS "cancelled!" FROM found
            "#,
            id.uuid(),
            act.at,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else {
            return Ok(Cancellation::Unknown);
        };
        let status: PushStatus = stored("push status", &row.status)?;
        if !row.cancelled {
            return Ok(refused(row.claimed, status));
        }
        let details = json!({"status": status.as_str()});
        let entry = act.entry("push.cancel", format!("push/{id}"), details);
        audit::record(&mut transaction, &entry).await?;
        transaction.commit().await?;
        Ok(Cancellation::Done(status))
    }

    /// Cancels a notification that waits or is queued. A place in a quota that it has is used up.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then nothing is changed.
    pub async fn cancel_notification(
        &self,
        id: NotificationId,
        act: Act<'_>,
    ) -> Result<Cancellation<NotificationStatus>, Error> {
        let mut transaction = self.pool.begin().await?;
        let row = sqlx::query!(
            r#"
            WITH found AS (
                SELECT id, status, lease_token IS NOT NULL AS claimed FROM notifications WHERE id = $1 FOR UPDATE),
            cancelled AS (
                UPDATE notifications n
                SET status = 'GIVEN_UP', reason = 'CANCELLED', next_attempt_at = NULL, leased_until = NULL,
                    slot_at = NULL, finished_at = $2, updated_at = $2
                FROM found f
                WHERE n.id = f.id AND NOT f.claimed AND f.status IN ('SCHEDULED', 'PENDING', 'IN_MEMORY', 'RETRY')
                RETURNING n.id)
            SELECT status AS "status!", claimed AS "claimed!", EXISTS (SELECT FROM cancelled) AS "cancelled!" FROM found
            "#,
            id.uuid(),
            act.at,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else {
            return Ok(Cancellation::Unknown);
        };
        let status: NotificationStatus = stored("notification status", &row.status)?;
        if !row.cancelled {
            return Ok(refused(row.claimed, status));
        }
        let details = json!({"status": status.as_str()});
        let entry = act.entry("notification.cancel", format!("notification/{id}"), details);
        audit::record(&mut transaction, &entry).await?;
        transaction.commit().await?;
        Ok(Cancellation::Done(status))
    }
}

fn refused<S>(claimed: bool, status: S) -> Cancellation<S> {
    if claimed {
        Cancellation::BeingSent
    } else {
        Cancellation::Ended(status)
    }
}
