//! Reading one push with its attempts.

use chrono::{DateTime, Utc};
use domain::push::{AttemptStatus, ErrorType, Platform, PushId, PushStatus};
use domain::reason::PushReason;
use uuid::Uuid;

use crate::read::{Count, Name, Nullable};
use crate::{Error, Store, stored, stored_if};

/// A push as it stands.
#[derive(Debug, Clone)]
pub struct PushView {
    /// Its identifier.
    pub id: PushId,
    /// Where it stands.
    pub status: PushStatus,
    /// Whether a dispatcher has claimed it.
    pub claimed: bool,
    /// The device's platform.
    pub platform: Platform,
    /// Names the Swrve campaign.
    pub message_prototype_key: Option<String>,
    /// When it may be sent.
    pub cron_expression: Option<String>,
    /// Attempts so far.
    pub attempts: u32,
    /// Of them, before it was replayed last: those do not count against the retries.
    pub replayed_after: u32,
    /// Why an operator has moved it by hand.
    pub reason: Option<PushReason>,
    /// When it is due, for `SCHEDULED` and `RETRY`.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// When it is taken for lost, for `IN_MEMORY`.
    pub leased_until: Option<DateTime<Utc>>,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// When its status last changed.
    pub updated_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// Its attempts, the first one first.
    pub history: Vec<AttemptView>,
}

/// One attempt to send a push.
#[derive(Debug, Clone)]
pub struct AttemptView {
    /// Counts from 1.
    pub number: u32,
    /// How far it came.
    pub status: AttemptStatus,
    /// When it was claimed.
    pub started_at: DateTime<Utc>,
    /// How long the request took, in milliseconds.
    pub millis: Option<i64>,
    /// Whose fault a failure was.
    pub error_type: Option<ErrorType>,
    /// The HTTP status of Swrve's answer; missing where there was none, and of an attempt that did not record it.
    pub response_status: Option<u16>,
    /// Swrve's own code, else the HTTP status.
    pub swrve_error_code: Option<i64>,
    /// Swrve's message.
    pub swrve_error_message: Option<String>,
    /// The error chain of a failure of ours.
    pub other_error: Option<String>,
}

/// Pushes that are sent before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// How many there are, or were counted.
    pub pushes: u64,
    /// Whether these are all.
    pub are_all: bool,
}

impl Store {
    /// The push with this identifier.
    pub async fn find_push(&self, id: PushId) -> Result<Option<PushView>, Error> {
        let row = sqlx::query!(
            r#"
            SELECT status, lease_token IS NOT NULL AS "claimed!", platform, message_prototype_key, cron_expression,
                   attempts, replayed_after, reason, next_attempt_at, leased_until, created_at, updated_at, finished_at
            FROM push_notifications WHERE id = $1
            "#,
            id.uuid(),
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(PushView {
            id,
            status: stored("status", &row.status)?,
            claimed: row.claimed,
            platform: stored("platform", &row.platform)?,
            message_prototype_key: row.message_prototype_key,
            cron_expression: row.cron_expression,
            attempts: row.attempts.unsigned_abs(),
            replayed_after: row.replayed_after.unsigned_abs(),
            reason: stored_if("reason of a push", row.reason.as_deref())?,
            next_attempt_at: row.next_attempt_at,
            leased_until: row.leased_until,
            created_at: row.created_at,
            updated_at: row.updated_at,
            finished_at: row.finished_at,
            history: self.attempts_of(id).await?,
        }))
    }

    /// How many pushes are sent before one that waits for room in the queue or is in it, counted up to `most`. None of one that does not wait
    /// so.
    ///
    /// What is in the queue was put there in the order in which its leases end.
    pub async fn pushes_ahead(&self, push: &PushView, most: u32) -> Result<Option<Ahead>, Error> {
        let (pending_before, queued_before) = match push.status {
            PushStatus::Pending => (push.id.uuid(), None),
            PushStatus::InMemory if !push.claimed => (Uuid::nil(), push.leased_until),
            _ => return Ok(None),
        };
        let ahead = sqlx::query_scalar!(
            r#"
            SELECT (SELECT count(*) FROM (SELECT FROM push_notifications WHERE status = 'PENDING' AND id < $1 LIMIT $3) AS pending)
                   + (SELECT count(*) FROM (
                          SELECT FROM push_notifications
                          WHERE status = 'IN_MEMORY' AND lease_token IS NULL AND leased_until < coalesce($2::timestamptz, 'infinity')
                          LIMIT $3) AS queued) AS "ahead!"
            "#,
            pending_before,
            queued_before,
            i64::from(most) + 1,
        )
        .fetch_one(&self.pool)
        .await?;
        let (counted, most) = (ahead.unsigned_abs(), u64::from(most));
        Ok(Some(Ahead {
            pushes: counted.min(most),
            are_all: counted <= most,
        }))
    }

    async fn attempts_of(&self, id: PushId) -> Result<Vec<AttemptView>, Error> {
        Ok(sqlx::query_as!(
            AttemptView,
            r#"
            SELECT number AS "number: Count", status AS "status: Name<_>", started_at, millis,
                   error_type AS "error_type!: Nullable<Name<_>>", response_status AS "response_status!: Nullable<Count>",
                   swrve_error_code, swrve_error_message, other_error_stack_trace AS other_error
            FROM send_attempts WHERE push_notification_id = $1 ORDER BY number
            "#,
            id.uuid(),
        )
        .fetch_all(&self.pool)
        .await?)
    }
}
