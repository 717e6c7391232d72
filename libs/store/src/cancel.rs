//! Cancelling what has not been sent yet. That is final: no resend and no replay sends it. Its dead letter is discarded
//! from the beginning, with the operator's note, since there is nothing to mend: it is in the lists, and waits for no
//! operator.

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
    /// It is being sent: the database cannot tell whether it still could be stopped.
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
                RETURNING p.id, p.attempts, p.message_prototype_key),
            letter AS (
                INSERT INTO dead_letters (lane, reason, fingerprint, push_id, prototype, attempts, detail, state,
                                          resolved_at, resolved_by, note)
                SELECT 'push', 'GIVEN_UP', 'other/cancelled', c.id, left(c.message_prototype_key, 200), c.attempts,
                       'cancelled by ' || $3, 'DISCARDED', $2, $3, coalesce(nullif(btrim($4), ''), 'cancelled')
                FROM cancelled c)
            SELECT status AS "status!", claimed AS "claimed!", EXISTS (SELECT FROM cancelled) AS "cancelled!" FROM found
            "#,
            id.uuid(),
            act.at,
            act.by,
            act.note,
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
                RETURNING n.id, n.subscription_id, n.reseller_id, n.event_type, n.attempts),
            letter AS (
                INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, subscription_id, reseller_id,
                                          event_type, target, attempts, detail, state, resolved_at, resolved_by, note)
                SELECT 'reseller', 'GIVEN_UP', 'delivery/cancelled', c.id, c.subscription_id, c.reseller_id,
                       c.event_type, coalesce(endpoint_of(s.url), ''), c.attempts, 'cancelled by ' || $3, 'DISCARDED',
                       $2, $3, coalesce(nullif(btrim($4), ''), 'cancelled')
                FROM cancelled c LEFT JOIN subscriptions s ON s.id = c.subscription_id)
            SELECT status AS "status!", claimed AS "claimed!", EXISTS (SELECT FROM cancelled) AS "cancelled!" FROM found
            "#,
            id.uuid(),
            act.at,
            act.by,
            act.note,
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
