//! The outbox of e-mails. A mail is a row that was written by the statement that caused it; here it is claimed, and ends
//! or waits again. Nothing is held while a mail server is spoken to.
//!
//! Rows are not written here: the statements that complete deliveries, evaluate health and verify endpoints insert them
//! themselves. What the outbox holds, and how long, is in `outbox`. At most one
//! `RETRIES_EXHAUSTED` and one `DELIVERY_REFUSED` wait for each subscription; further occasions are counted in it. Of refusals the hour is kept for
//! each status, and five mails are sent in one: `codes` of their data are the statuses that a mail tells of.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::email::EmailKind;
use serde_json::Value;
use uuid::Uuid;

use super::addresses::Addresses;
use crate::read::{Count, Name};
use crate::text::storable;
use crate::{Error, Store, interval};

/// How often putting a mail back is tried again when another one for the same subscription comes to wait at the same moment.
const COLLISIONS: u32 = 5;

/// A mail that is ours to send.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedEmail {
    /// Its identifier.
    pub id: Uuid,
    /// Proves the claim when the mail ends or waits again.
    pub lease_token: Uuid,
    /// The occasion.
    pub kind: EmailKind,
    /// The subscription that it is about.
    pub subscription_id: Uuid,
    /// The address.
    pub recipient: String,
    /// What it tells, by its kind.
    pub data: Value,
    /// How many occasions it stands for.
    pub occurrences: u64,
    /// Attempts so far, this one included.
    pub attempts: u32,
    /// When the latest of what it tells happened.
    pub created_at: DateTime<Utc>,
}

/// What became of a mail that was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutBack {
    /// It waits for another attempt.
    Waiting,
    /// What it tells was added to another mail that waits.
    Merged,
    /// It was too old for another attempt.
    Failed,
    /// It was not ours any more.
    LeaseLost,
}

/// When a mail that was not sent is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Postponement {
    /// The present time.
    pub at: DateTime<Utc>,
    /// Until the next attempt.
    pub delay: Duration,
    /// A mail of this age is not tried again.
    pub max_age: Duration,
}

impl Store {
    /// Claims at most `limit` mails that were due at the time `at`, longest overdue first, for `lease` by the clock of
    /// the database. A mail about exhausted retries, refused or recovered deliveries that is due too soon after the one before it is
    /// put off instead; what is for an address that is not [`Addresses::Confirmed`] is left, see
    /// [`Store::hold_unconfirmed_emails`].
    pub async fn claim_emails(
        &self,
        at: DateTime<Utc>,
        limit: u32,
        lease: Duration,
        addresses: Addresses,
    ) -> Result<Vec<ClaimedEmail>, Error> {
        let lease_token = Uuid::now_v7();
        Ok(sqlx::query_file_as!(
            ClaimedEmail,
            "queries/webhook/claim_emails.sql",
            at,
            i64::from(limit),
            lease_token,
            interval(lease),
            addresses == Addresses::Trusted,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Ends a mail at the time `at`: sent, or failed for good with what was answered. `false` when it was not ours any
    /// more.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then it is rescued when its lease runs out, and sent again.
    pub async fn end_email(
        &self,
        id: Uuid,
        lease_token: Uuid,
        failure: Option<&str>,
        at: DateTime<Utc>,
    ) -> Result<bool, Error> {
        let failure = failure.map(storable);
        let ended = sqlx::query!(
            r#"
            UPDATE emails
            SET status = CASE WHEN $3::text IS NULL THEN 'SENT' ELSE 'FAILED' END, last_error = $3, finished_at = $4,
                lease_token = NULL, leased_until = NULL
            WHERE id = $1 AND status = 'SENDING' AND lease_token = $2
            "#,
            id,
            lease_token,
            failure.as_deref(),
            at,
        )
        .execute(&self.pool)
        .await?;
        Ok(ended.rows_affected() > 0)
    }

    /// Lets a mail wait again that could not be sent for the reason `error`.
    ///
    /// While it was being sent another mail may have begun to gather the same news about the same subscription; then
    /// this one is added to that one, and its row goes.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then it is rescued when its lease runs out.
    pub async fn put_email_back(
        &self,
        id: Uuid,
        lease_token: Uuid,
        error: &str,
        postponement: Postponement,
    ) -> Result<PutBack, Error> {
        let mut collisions = 0;
        loop {
            match self.try_to_put_back(id, lease_token, error, postponement).await {
                // Between the look and the change another one came to wait; the next look sees it.
                Err(error) if is_taken(&error) && collisions < COLLISIONS => collisions += 1,
                put_back => return put_back,
            }
        }
    }

    async fn try_to_put_back(
        &self,
        id: Uuid,
        lease_token: Uuid,
        error: &str,
        Postponement { at, delay, max_age }: Postponement,
    ) -> Result<PutBack, Error> {
        let span = |duration| TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX);
        let error = storable(error);
        let row = sqlx::query_file!(
            "queries/webhook/put_back_emails.sql",
            id,
            lease_token,
            &*error,
            at.checked_add_signed(span(delay)).unwrap_or(at),
            interval(max_age),
            at,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(match row.status.as_deref() {
            Some("PENDING") => PutBack::Waiting,
            Some(_) => PutBack::Failed,
            None if row.merged => PutBack::Merged,
            None => PutBack::LeaseLost,
        })
    }

    /// Lets mails wait again whose lease ran out, by the clock of the database: at most `limit`, and returns how many.
    /// The process that had one may have sent it.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; the rest is rescued later.
    pub async fn rescue_emails(&self, limit: u32, postponement: Postponement) -> Result<u64, Error> {
        let lost = sqlx::query!(
            r#"
            SELECT id, lease_token AS "lease_token!" FROM emails WHERE status = 'SENDING' AND leased_until < now()
            ORDER BY leased_until LIMIT $1
            "#,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        let mut rescued = 0;
        for mail in lost {
            let error = "the process that sent it was lost; it may have been sent";
            let put_back = self.put_email_back(mail.id, mail.lease_token, error, postponement);
            let put_back = put_back.await?;
            rescued += u64::from(put_back != PutBack::LeaseLost);
        }
        Ok(rescued)
    }
}

/// Whether there is a row already where one was to be.
fn is_taken(error: &Error) -> bool {
    matches!(error, Error::Refused(sqlx::Error::Database(error)) if error.is_unique_violation())
}
