//! What a reseller can have sent on request: a notification once more, and a test event.

use chrono::{DateTime, NaiveDate, Utc};
use domain::notification::{NotificationId, NotificationStatus};
use domain::subscription::SubscriptionState;
use serde_json::json;
use uuid::Uuid;

use super::locked::subject;
use crate::resolution::resolve;
use crate::{Act, Error, Store, stored};

/// What came of asking for a notification to be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resent {
    /// It is due now.
    Done,
    /// It has not ended yet and is due or under way, so that it will be sent anyhow.
    Unfinished(NotificationStatus),
    /// An operator has cancelled it, which is final.
    Cancelled,
    /// Its subscription gets nothing.
    NotActive(SubscriptionState),
    /// The reseller has no such notification.
    Unknown,
}

/// A test event to be stored.
#[derive(Debug, Clone)]
pub struct NewTestEvent {
    /// Its identifier: a version 7 UUID.
    pub id: Uuid,
    /// The one subscription that gets it.
    pub subscription: Uuid,
    /// Its type.
    pub event_type: String,
    /// The bytes to send.
    pub body: String,
    /// The day whose quota it is taken for charged on, so that no place of it is used.
    pub today: NaiveDate,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// W3C trace context of the request.
    pub traceparent: Option<String>,
}

/// What came of asking for a test event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tested {
    /// It waits to be sent.
    Done(NotificationId),
    /// The subscription gets nothing.
    NotActive(SubscriptionState),
    /// The reseller has no such subscription.
    Unknown,
}

/// Who resolved a dead letter by having its notification sent again through the reseller API.
pub(super) fn sent_again_by(reseller: &str) -> String {
    format!("reseller {reseller}")
}

impl Store {
    /// Makes a notification that has ended due again, with all of its retries ahead of it, unless it was cancelled. It
    /// keeps its place in the quota, if it ever had one. The dead letters that are open about it are resolved. One that waits for a retry
    /// is due at once, which is no transition: the attempt is the next of those that it has left, and a claim of it goes first or comes after.
    pub async fn resend_notification(
        &self,
        reseller: &str,
        id: NotificationId,
        act: Act<'_>,
    ) -> Result<Resent, Error> {
        let mut transaction = self.pool.begin().await?;
        let row = sqlx::query!(
            r#"
            WITH found AS (
                SELECT n.id, n.status, s.state,
                       n.status = 'GIVEN_UP' AND n.reason IS NOT DISTINCT FROM 'CANCELLED' AS cancelled,
                       n.status = 'RETRY' AND n.next_attempt_at > $3 AS hastened
                FROM notifications n JOIN subscriptions s ON s.id = n.subscription_id AND s.deleted_at IS NULL
                WHERE n.id = $1 AND n.reseller_id = $2
                FOR UPDATE OF n),
            resent AS (
                UPDATE notifications n
                SET status = 'RETRY', next_attempt_at = $3,
                    resent_after = CASE WHEN f.hastened THEN n.resent_after ELSE n.attempts END,
                    resent_at = CASE WHEN f.hastened THEN n.resent_at ELSE $3 END,
                    finished_at = NULL, reason = CASE WHEN f.hastened THEN n.reason ELSE 'RESENT' END,
                    slot_at = NULL, updated_at = $3
                FROM found f
                WHERE n.id = f.id AND NOT f.cancelled
                  AND (f.status IN ('SENT', 'FAILED', 'GIVEN_UP') OR f.hastened)
                  AND f.state IN ('ACTIVE', 'DEGRADED')
                RETURNING n.id)
            SELECT status AS "status!", state AS "state!", cancelled AS "cancelled!",
                   EXISTS (SELECT FROM resent) AS "resent!"
            FROM found
            "#,
            id.uuid(),
            reseller,
            act.at,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else {
            return Ok(Resent::Unknown);
        };
        let status: NotificationStatus = stored("notification status", &row.status)?;
        if row.resent {
            let by = sent_again_by(reseller);
            let resolving = Act {
                by: &by,
                note: Some("sent again by its reseller"),
                at: act.at,
            };
            resolve(&mut transaction, &[id.uuid()], &resolving, None).await?;
            let details = json!({ "status": status.as_str() });
            let entry = act.entry("notification.resend", format!("notification/{id}"), details);
            entry.record(&mut transaction).await?;
            transaction.commit().await?;
            return Ok(Resent::Done);
        }
        transaction.rollback().await?;
        if row.cancelled {
            Ok(Resent::Cancelled)
        } else if status.is_terminal() {
            Ok(Resent::NotActive(stored("subscription state", &row.state)?))
        } else {
            Ok(Resent::Unfinished(status))
        }
    }

    /// Stores a test event with its one notification, if the subscription gets anything.
    pub async fn insert_test_event(
        &self,
        reseller: &str,
        test: &NewTestEvent,
        act: Act<'_>,
    ) -> Result<Tested, Error> {
        let mut transaction = self.pool.begin().await?;
        let row = sqlx::query!(
            r#"
            WITH found AS (
                SELECT id, reseller_id, state FROM subscriptions
                WHERE reseller_id = $1 AND id = $2 AND deleted_at IS NULL),
            event AS (
                INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at, traceparent,
                                    test_of)
                SELECT $3::uuid, ($3::uuid)::text, f.reseller_id, $4, $5, $7, $7, $8, f.id
                FROM found f WHERE f.state IN ('ACTIVE', 'DEGRADED')),
            notification AS (
                INSERT INTO notifications (id, event, subscription_id, reseller_id, event_type, status, charged_on,
                                           payload_bytes, created_at, updated_at)
                SELECT notification_id($3, f.id), $3, f.id, f.reseller_id, $4, 'PENDING', $6, octet_length($5), $7, $7
                FROM found f WHERE f.state IN ('ACTIVE', 'DEGRADED')
                RETURNING id)
            SELECT f.state AS "state!", (SELECT id FROM notification) AS notification FROM found f
            "#,
            reseller,
            test.subscription,
            test.id,
            test.event_type,
            test.body,
            test.today,
            test.created_at,
            test.traceparent,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else {
            return Ok(Tested::Unknown);
        };
        let Some(notification) = row.notification else {
            return Ok(Tested::NotActive(stored("subscription state", &row.state)?));
        };
        let details = json!({ "notification": notification });
        let entry = act.entry("subscription.test", subject(test.subscription), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(Tested::Done(notification.into()))
    }
}
