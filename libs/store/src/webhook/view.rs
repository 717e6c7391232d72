//! One notification with everything that happened to it, as its reseller sees it.

use chrono::{DateTime, Utc};
use domain::notification::NotificationId;
use domain::push::AttemptStatus;
use uuid::Uuid;

use super::listing::NotificationRow;
use crate::read::{Count, Name, Nullable};
use crate::timeline::NotificationTimeline;
use crate::{Error, Store, stored, stored_if};

/// Attempts that are shown, the latest ones: a reseller who resends in a loop makes a history without end.
const ATTEMPTS_SHOWN: i64 = 100;

/// A notification with everything that happened to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationView {
    /// As in a list.
    pub row: NotificationRow,
    /// To whom it goes.
    pub subscription: Uuid,
    /// The bytes that are sent.
    pub body: String,
    /// Its attempts, the first one first.
    pub history: Vec<DeliveryAttemptView>,
}

/// One attempt to deliver a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryAttemptView {
    /// Counts from 1.
    pub number: u32,
    /// How far it came.
    pub status: AttemptStatus,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// How long it took, in milliseconds.
    pub millis: Option<i64>,
    /// Where it went.
    pub url: String,
    /// The status code of the answer.
    pub response_status: Option<u16>,
    /// The first bytes of the answer.
    pub response_body: Option<String>,
    /// What kind of failure it was.
    pub error_type: Option<String>,
    /// The failure in words.
    pub error: Option<String>,
}

impl Store {
    /// A reseller's notification with its attempts.
    pub async fn find_notification(
        &self,
        reseller: &str,
        id: NotificationId,
    ) -> Result<Option<NotificationView>, Error> {
        let row = sqlx::query!(
            r#"
            SELECT n.subscription_id, e.event_id, n.event_type, n.status, n.lease_token IS NOT NULL AS "claimed!",
                   n.reason, n.attempts, n.next_attempt_at, n.payload_bytes, e.created_at AS accepted_at, n.updated_at, n.finished_at, e.body
            FROM notifications n
            JOIN events e ON e.id = n.event
            JOIN subscriptions s ON s.id = n.subscription_id AND s.deleted_at IS NULL
            WHERE n.id = $1 AND n.reseller_id = $2
            "#,
            id.uuid(),
            reseller,
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let status = stored("notification status", &row.status)?;
        let due = self
            .turn_of(row.subscription_id, id.uuid(), status, row.next_attempt_at)
            .await?;
        Ok(Some(NotificationView {
            row: NotificationRow {
                id,
                event_id: row.event_id,
                event_type: row.event_type,
                status,
                claimed: row.claimed,
                reason: stored_if("reason of a notification", row.reason.as_deref())?,
                attempts: row.attempts.unsigned_abs(),
                next_attempt_at: due,
                payload_bytes: row.payload_bytes.unsigned_abs(),
                accepted_at: row.accepted_at,
                updated_at: row.updated_at,
                finished_at: row.finished_at,
            },
            subscription: row.subscription_id,
            body: row.body,
            history: self.delivery_attempts(id).await?,
        }))
    }

    /// The notification with this history, for those who have read that; `None` when its event is not stored any more.
    pub async fn notification_with_history(
        &self,
        history: &NotificationTimeline,
    ) -> Result<Option<NotificationView>, Error> {
        let event = sqlx::query!(
            "SELECT event_id, created_at, body FROM events WHERE id = $1",
            history.event,
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(event.map(|event| NotificationView {
            row: NotificationRow {
                id: history.id,
                event_id: event.event_id,
                event_type: history.event_type.clone(),
                status: history.status,
                claimed: history.claimed,
                reason: history.reason.clone(),
                attempts: history.attempts,
                next_attempt_at: history.next_attempt_at,
                payload_bytes: history.payload_bytes,
                accepted_at: event.created_at,
                updated_at: history.updated_at,
                finished_at: history.finished_at,
            },
            subscription: history.subscription.id,
            body: event.body,
            history: history.history.clone(),
        }))
    }

    pub(crate) async fn delivery_attempts(
        &self,
        id: NotificationId,
    ) -> Result<Vec<DeliveryAttemptView>, Error> {
        let mut attempts = sqlx::query_as!(
            DeliveryAttemptView,
            r#"
            SELECT number AS "number: Count", status AS "status: Name<_>", started_at, millis, url,
                   response_status AS "response_status!: Nullable<Count>", response_body, error_type, error
            FROM delivery_attempts WHERE notification_id = $1 ORDER BY number DESC LIMIT $2
            "#,
            id.uuid(),
            ATTEMPTS_SHOWN,
        )
        .fetch_all(&self.pool)
        .await?;
        attempts.reverse();
        Ok(attempts)
    }
}
