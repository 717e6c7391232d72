//! Cancelling a push that has not been sent yet.

use domain::push::{PushId, PushStatus};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::PushFilter;
use crate::cancel::{self, Cancellation, Found, PART, ToCancel};
use crate::{Act, Error, Store};

impl Store {
    /// What waits and matches, as far as it is cancelled at once; `None` when it needs an index that is still being made.
    pub async fn pushes_to_cancel(&self, filter: &PushFilter) -> Result<Option<ToCancel>, Error> {
        let mut found = ToCancel::default();
        for status in PushStatus::WAITING {
            let is_wanted = filter.statuses.is_empty() || filter.statuses.contains(&status);
            if found.at_least || !is_wanted {
                continue;
            }
            let list = PushFilter {
                statuses: vec![status],
                ..filter.clone()
            };
            let mut after = None;
            loop {
                let Some(part) = self.list_pushes(&list, after, PART).await? else {
                    return Ok(None);
                };
                for push in part.items.iter().filter(|push| !push.claimed) {
                    found.add(push.id.uuid(), status.as_str(), push.created_at);
                }
                after = part.next;
                if !found.goes_on(after.is_some()) {
                    break;
                }
            }
        }
        Ok(Some(found))
    }

    /// Cancels a push that waits or is queued.
    pub async fn cancel_push(&self, id: PushId, act: Act<'_>) -> Result<Cancellation<PushStatus>, Error> {
        let mut transaction = self.pool.begin().await?;
        let found = cancel_all(&mut transaction, &[id.uuid()], None, act).await?;
        cancel::commit(transaction, found.into_iter().next(), "push", id, act).await
    }

    /// Cancels those of these pushes that wait or are queued, all or those in one `status`, with one entry in the audit log that says how
    /// they were `chosen`. Returns how many those were.
    pub async fn cancel_pushes(
        &self,
        ids: &[Uuid],
        status: Option<&str>,
        chosen: Value,
        act: Act<'_>,
    ) -> Result<u64, Error> {
        let mut transaction = self.pool.begin().await?;
        let found = cancel_all(&mut transaction, ids, status, act).await?;
        let about = ("push", "lane/push".to_owned());
        let details = json!({ "filter": chosen });
        Ok(cancel::commit_all(transaction, &found, about, details, act)
            .await?
            .cancelled)
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
                SELECT id, status, lease_token IS NOT NULL AS claimed,
                       CASE WHEN status = 'GIVEN_UP' AND reason = 'CANCELLED' THEN finished_at END AS cancelled_at
                FROM push_notifications WHERE id = ANY ($1) ORDER BY id FOR UPDATE),
            cancelled AS (
                UPDATE push_notifications p
                SET status = 'GIVEN_UP', reason = 'CANCELLED', next_attempt_at = NULL, leased_until = NULL,
                    finished_at = $2, updated_at = $2
                FROM found f
                WHERE p.id = f.id AND NOT f.claimed AND f.status IN ('SCHEDULED', 'PENDING', 'IN_MEMORY', 'RETRY')
                  AND ($5::text IS NULL OR f.status = $5)
                RETURNING p.id, p.attempts, p.message_prototype_key),
            letter AS (
                INSERT INTO dead_letters (lane, reason, fingerprint, push_id, prototype, attempts, detail, state,
                                          resolved_at, resolved_by, note)
                SELECT 'push', 'GIVEN_UP', 'other/cancelled', c.id, left(c.message_prototype_key, 200), c.attempts,
                       'cancelled by ' || $3, 'DISCARDED', $2, $3, coalesce(nullif(btrim($4), ''), 'cancelled')
                FROM cancelled c)
            SELECT f.status AS "status!", f.claimed AS "claimed!", c.id IS NOT NULL AS "cancelled!",
                   false AS "delivered!", f.cancelled_at AS "cancelled_at?",
                   CASE WHEN f.cancelled_at IS NOT NULL THEN (
                       SELECT resolved_by FROM dead_letters WHERE push_id = f.id AND fingerprint = 'other/cancelled' LIMIT 1)
                   END AS "cancelled_by?"
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
