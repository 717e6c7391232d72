//! The outbox of e-mails as a whole: how much waits in it, what is in it, and sending it at once. Claims are in `emails`.

use chrono::{DateTime, Utc};
use domain::email::{EmailKind, EmailStatus};
use serde_json::json;
use uuid::Uuid;

use super::DueCursor;
use crate::examined::{Examined, Looked};
use crate::read::{Count, Name};
use crate::{Act, Error, Store};

/// Most mails that are looked at for one part, and that are tried again at once.
const EXAMINED_MAX: u32 = 10_000;

/// What the outbox holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outbox {
    /// Mails that are not sent yet.
    pub waiting: u64,
    /// When the longest overdue of them came due; it may lie ahead.
    pub oldest_due: Option<DateTime<Utc>>,
}

/// A mail in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailView {
    /// Its identifier.
    pub id: Uuid,
    /// The occasion.
    pub kind: EmailKind,
    /// Where it stands.
    pub status: EmailStatus,
    /// The subscription that it is about.
    pub subscription: Uuid,
    /// Whose that is.
    pub reseller: String,
    /// The address.
    pub recipient: String,
    /// How many occasions it stands for.
    pub occurrences: u64,
    /// Attempts so far.
    pub attempts: u32,
    /// When it is due, while it waits.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// Why it was not sent, when it last was not.
    pub last_error: Option<String>,
    /// When what it tells happened last.
    pub created_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
}

impl Store {
    /// Looks at what waits to be sent.
    pub async fn outbox(&self) -> Result<Outbox, Error> {
        Ok(sqlx::query_as!(
            Outbox,
            r#"
            SELECT (SELECT count(*) FROM emails WHERE status = 'PENDING')
                       + (SELECT count(*) FROM emails WHERE status = 'SENDING') AS "waiting!: Count",
                   (SELECT next_attempt_at FROM emails WHERE status = 'PENDING'
                    ORDER BY next_attempt_at, id LIMIT 1) AS oldest_due
            "#,
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// Mails in a status, of a subscription if one is given, after `after`: those that wait by when they are due, those that have ended the
    /// last one first.
    pub async fn list_emails(
        &self,
        status: EmailStatus,
        subscription: Option<Uuid>,
        after: Option<DueCursor>,
        limit: u32,
    ) -> Result<Examined<EmailView>, Error> {
        let depth = EXAMINED_MAX.max(limit + 1);
        let (at, id) = after.unzip();
        let looked = match status {
            EmailStatus::Pending => {
                sqlx::query_as!(
                    Looked,
                    r#"
                    SELECT next_attempt_at AS "at!", id, ($1::uuid IS NULL OR subscription_id = $1) AS "matches!" FROM emails
                    WHERE status = 'PENDING' AND (next_attempt_at, id) > ($2, $3) ORDER BY next_attempt_at, id LIMIT $4
                    "#,
                    subscription,
                    at.unwrap_or(DateTime::UNIX_EPOCH),
                    id.unwrap_or(Uuid::nil()),
                    i64::from(depth),
                )
                .fetch_all(&self.pool)
                .await?
            }
            EmailStatus::Sending => {
                sqlx::query_as!(
                    Looked,
                    r#"
                    SELECT leased_until AS "at!", id, ($1::uuid IS NULL OR subscription_id = $1) AS "matches!" FROM emails
                    WHERE status = 'SENDING' AND (leased_until, id) > ($2, $3) ORDER BY leased_until, id LIMIT $4
                    "#,
                    subscription,
                    at.unwrap_or(DateTime::UNIX_EPOCH),
                    id.unwrap_or(Uuid::nil()),
                    i64::from(depth),
                )
                .fetch_all(&self.pool)
                .await?
            }
            EmailStatus::Sent | EmailStatus::Failed => {
                sqlx::query_as!(
                    Looked,
                    r#"
                    SELECT finished_at AS "at!", id, (status = $5 AND ($1::uuid IS NULL OR subscription_id = $1)) AS "matches!"
                    FROM emails WHERE finished_at IS NOT NULL AND finished_at <= $2 AND (finished_at, id) < ($2, $3)
                    ORDER BY finished_at DESC, id DESC LIMIT $4
                    "#,
                    subscription,
                    at.unwrap_or(DateTime::<Utc>::MAX_UTC),
                    id.unwrap_or(Uuid::max()),
                    i64::from(depth),
                    status.as_str(),
                )
                .fetch_all(&self.pool)
                .await?
            }
        };
        let stretch = Examined::stretch(&looked, depth, limit);
        Ok(Examined {
            items: self.email_rows(&stretch.items).await?,
            examined: stretch.examined,
            next: stretch.next,
        })
    }

    /// These mails, in this order.
    async fn email_rows(&self, ids: &[Uuid]) -> Result<Vec<EmailView>, Error> {
        Ok(sqlx::query_as!(
            EmailView,
            r#"
            SELECT e.id, e.kind AS "kind: Name<_>", e.status AS "status: Name<_>", e.subscription_id AS subscription,
                   s.reseller_id AS reseller, e.recipient, e.occurrences AS "occurrences: Count", e.attempts AS "attempts: Count",
                   e.next_attempt_at, e.last_error, e.created_at, e.finished_at
            FROM UNNEST($1::uuid[]) WITH ORDINALITY AS i(id, place)
            JOIN emails e ON e.id = i.id JOIN subscriptions s ON s.id = e.subscription_id
            ORDER BY i.place
            "#,
            ids,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Makes mails due at once: those that wait, and those that failed since `failed_since`, if that is given; 10,000 of each at most. What
    /// is gathered in one mail an hour is not sent twice: mails that failed about exhausted retries and refused deliveries stay.
    pub async fn retry_emails(
        &self,
        failed_since: Option<DateTime<Utc>>,
        act: Act<'_>,
    ) -> Result<u64, Error> {
        let mut transaction = self.pool.begin().await?;
        let limit = i64::from(EXAMINED_MAX);
        let hurried = sqlx::query!(
            r#"
            UPDATE emails SET next_attempt_at = $1 WHERE id IN (
                SELECT id FROM emails WHERE status = 'PENDING' AND next_attempt_at > $1
                ORDER BY next_attempt_at, id LIMIT $2 FOR UPDATE SKIP LOCKED)
            "#,
            act.at,
            limit,
        )
        .execute(&mut *transaction)
        .await?
        .rows_affected();
        let revived = sqlx::query!(
            r#"
            UPDATE emails SET status = 'PENDING', next_attempt_at = $1, finished_at = NULL, created_at = $1 WHERE id IN (
                SELECT id FROM emails
                WHERE status = 'FAILED' AND finished_at >= $2 AND kind NOT IN ('RETRIES_EXHAUSTED', 'DELIVERY_REFUSED', 'DELIVERIES_RECOVERED')
                ORDER BY finished_at, id LIMIT $3 FOR UPDATE SKIP LOCKED)
            "#,
            act.at,
            failed_since.unwrap_or(DateTime::<Utc>::MAX_UTC),
            limit,
        )
        .execute(&mut *transaction)
        .await?
        .rows_affected();
        let number = hurried + revived;
        if number > 0 {
            let details = json!({"waited": hurried, "failed": revived, "failedSince": failed_since});
            act.entry("mails.retry", String::from("mails"), details)
                .record(&mut transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(number)
    }
}
