//! Cancelling a notification that has not been sent yet.

use domain::notification::{NotificationId, NotificationStatus};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::locked::subject;
use super::{NotificationSearch, NotificationsOf};
use crate::cancel::{self, Cancellation, Found, PART, ToCancel};
use crate::{Act, Error, Store};

impl Store {
    /// What waits and matches, as far as it is cancelled at once.
    pub async fn notifications_to_cancel(&self, search: &NotificationSearch) -> Result<ToCancel, Error> {
        let mut found = ToCancel::default();
        for status in NotificationStatus::WAITING {
            if found.more || search.status.is_some_and(|wanted| wanted != status) {
                continue;
            }
            let list = NotificationSearch {
                status: Some(status),
                ..search.clone()
            };
            let mut after = None;
            loop {
                let part = self.search_notifications(&list, after, PART).await?;
                for notification in part.items.iter().filter(|notification| !notification.claimed) {
                    found.add(notification.id.uuid(), status.as_str(), notification.accepted_at);
                }
                after = part.next;
                if !found.goes_on(after.is_some()) {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Cancels a notification that waits or is queued. A place in a quota that it has is used up.
    pub async fn cancel_notification(
        &self,
        id: NotificationId,
        act: Act<'_>,
    ) -> Result<Cancellation<NotificationStatus>, Error> {
        let mut transaction = self.pool.begin().await?;
        let found = cancel_all(&mut transaction, &[id.uuid()], None, act).await?;
        cancel::commit(transaction, found.into_iter().next(), "notification", id, act).await
    }

    /// Cancels those of these notifications of `of` that wait or are queued, all or those in one `status`, with one entry in the audit log that
    /// says how they were `chosen`: about their subscription or their reseller, where those of one were asked for, and else about the lane.
    /// Returns how many those were.
    pub async fn cancel_notifications(
        &self,
        ids: &[Uuid],
        (of, status): (&NotificationsOf, Option<&str>),
        chosen: Value,
        act: Act<'_>,
    ) -> Result<u64, Error> {
        let mut transaction = self.pool.begin().await?;
        let found = cancel_all(&mut transaction, ids, status, act).await?;
        let about = match of {
            NotificationsOf::All => "lane/reseller".to_owned(),
            NotificationsOf::Reseller(reseller) => format!("reseller/{reseller}"),
            NotificationsOf::Subscription(id) => subject(*id),
        };
        cancel::commit_all(transaction, &found, ("notification", about), chosen, act).await
    }
}

async fn cancel_all(
    connection: &mut PgConnection,
    ids: &[Uuid],
    status: Option<&str>,
    act: Act<'_>,
) -> Result<Vec<Found>, Error> {
    Ok(sqlx::query_as!(
            Found,
            r#"
            WITH found AS (
                SELECT id, status, lease_token IS NOT NULL AS claimed FROM notifications WHERE id = ANY ($1)
                ORDER BY id FOR UPDATE),
            cancelled AS (
                UPDATE notifications n
                SET status = 'GIVEN_UP', reason = 'CANCELLED', next_attempt_at = NULL, leased_until = NULL,
                    slot_at = NULL, finished_at = $2, updated_at = $2
                FROM found f
                WHERE n.id = f.id AND NOT f.claimed AND f.status IN ('SCHEDULED', 'PENDING', 'IN_MEMORY', 'RETRY')
                  AND ($5::text IS NULL OR f.status = $5)
                RETURNING n.id, n.subscription_id, n.reseller_id, n.event_type, n.attempts),
            letter AS (
                INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, subscription_id, reseller_id,
                                          event_type, target, attempts, detail, state, resolved_at, resolved_by, note)
                SELECT 'reseller', 'GIVEN_UP', 'delivery/cancelled', c.id, c.subscription_id, c.reseller_id,
                       c.event_type, coalesce(endpoint_of(s.url), ''), c.attempts, 'cancelled by ' || $3, 'DISCARDED',
                       $2, $3, coalesce(nullif(btrim($4), ''), 'cancelled')
                FROM cancelled c LEFT JOIN subscriptions s ON s.id = c.subscription_id)
            SELECT f.status AS "status!", f.claimed AS "claimed!", c.id IS NOT NULL AS "cancelled!"
            FROM found f LEFT JOIN cancelled c ON c.id = f.id
            "#,
            ids,
            act.at,
            act.by,
            act.note,
            status,
        )
        .fetch_all(connection)
        .await?)
}
