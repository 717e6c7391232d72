//! Verification: which endpoints are to be challenged, and what follows from their answers.
//!
//! A challenge that is under way is a `verification_due_at` that lies a lease ahead. Whoever was lost with a challenge is
//! replaced when that time comes; and since every change that starts a verification over sets another time, an answer to
//! a challenge of before finds that it is not waited for any more.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use crate::text::storable;
use crate::{Error, Store};

/// An endpoint that is ours to challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueVerification {
    /// The subscription.
    pub subscription_id: Uuid,
    /// Proves the claim when the answer is recorded.
    pub lease: DateTime<Utc>,
    /// Challenges before this one.
    pub attempts: u32,
}

/// What follows a challenge that was not answered as it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// Another one at this time.
    TryAgain(DateTime<Utc>),
    /// None: the reseller is told by e-mail.
    Stop,
}

impl Store {
    /// Claims at most `limit` endpoints whose challenge was due at the time `at`, longest overdue first. One whose
    /// answer is not recorded within `lease` is claimed again.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then nothing is claimed.
    pub async fn claim_verifications(
        &self,
        at: DateTime<Utc>,
        limit: u32,
        lease: Duration,
    ) -> Result<Vec<DueVerification>, Error> {
        let until = TimeDelta::from_std(lease)
            .ok()
            .and_then(|lease| at.checked_add_signed(lease))
            .unwrap_or(at);
        let rows = sqlx::query!(
            r#"
            WITH due AS (
                SELECT id FROM subscriptions
                WHERE verification_due_at <= $1 AND deleted_at IS NULL AND state = 'PENDING_VERIFICATION'
                ORDER BY verification_due_at LIMIT $2 FOR UPDATE SKIP LOCKED)
            UPDATE subscriptions s SET verification_due_at = $3 FROM due d WHERE s.id = d.id
            RETURNING s.id, s.verification_due_at AS "lease!", s.verification_attempts AS attempts
            "#,
            at,
            i64::from(limit),
            until,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| DueVerification {
                subscription_id: row.id,
                lease: row.lease,
                attempts: row.attempts.unsigned_abs(),
            })
            .collect())
    }

    /// Activates a subscription whose endpoint `url` has answered its challenge, and tells so by e-mail; `false` when
    /// that answer is not waited for any more.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then it is challenged again.
    pub async fn pass_verification(
        &self,
        challenged: &DueVerification,
        url: &str,
        at: DateTime<Utc>,
    ) -> Result<bool, Error> {
        let passed = sqlx::query!(
            r#"
            WITH changed AS (
                UPDATE subscriptions
                SET state = 'ACTIVE', state_reason = 'VERIFIED', state_changed_at = $4, updated_at = $4, verified_at = $4,
                    verification_due_at = NULL, verification_error = NULL, failing_since = NULL, last_failure_at = NULL
                WHERE id = $1 AND url = $2 AND verification_due_at = $3 AND state = 'PENDING_VERIFICATION'
                  AND deleted_at IS NULL
                RETURNING id, email, url, description, reseller_id)
            INSERT INTO emails (id, kind, subscription_id, recipient, data, next_attempt_at, created_at)
            SELECT gen_random_uuid(), 'STATE_CHANGED', c.id, c.email,
                   jsonb_build_object('state', 'ACTIVE', 'previous', 'PENDING_VERIFICATION', 'reason', 'VERIFIED',
                                      'url', c.url, 'description', c.description, 'resellerId', c.reseller_id),
                   $4, $4
            FROM changed c
            "#,
            challenged.subscription_id,
            url,
            challenged.lease,
            at,
        )
        .execute(&self.pool)
        .await?;
        Ok(passed.rows_affected() > 0)
    }

    /// Records that the endpoint `url` did not answer its challenge as it must; `false` when that answer is not waited
    /// for any more.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then it is challenged again.
    pub async fn fail_verification(
        &self,
        challenged: &DueVerification,
        url: &str,
        error: &str,
        after: AfterFailure,
        at: DateTime<Utc>,
    ) -> Result<bool, Error> {
        let next = match after {
            AfterFailure::TryAgain(next) => Some(next),
            AfterFailure::Stop => None,
        };
        let error = storable(error);
        let failed = sqlx::query_scalar!(
            r#"
            WITH changed AS (
                UPDATE subscriptions
                SET verification_due_at = $5, verification_error = $4, updated_at = $6,
                    verification_attempts = verification_attempts + 1
                WHERE id = $1 AND url = $2 AND verification_due_at = $3 AND state = 'PENDING_VERIFICATION'
                  AND deleted_at IS NULL
                RETURNING id, email, url, description, reseller_id, verification_attempts),
            mail AS (
                INSERT INTO emails (id, kind, subscription_id, recipient, data, next_attempt_at, created_at)
                SELECT gen_random_uuid(), 'VERIFICATION_FAILED', c.id, c.email,
                       jsonb_build_object('url', c.url, 'description', c.description, 'resellerId', c.reseller_id,
                                          'error', $4::text, 'attempts', c.verification_attempts),
                       $6, $6
                FROM changed c WHERE $5::timestamptz IS NULL)
            SELECT count(*) AS "count!" FROM changed
            "#,
            challenged.subscription_id,
            url,
            challenged.lease,
            &*error,
            next,
            at,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(failed > 0)
    }
}
