//! Forgetting: everything that is written has an end, and here is the list. Months are dropped by `partition`, processes that fell
//! silent by `processes`; docs/configuration.md says of every table how long it keeps what.
//!
//! Each call is one bounded statement that takes rows by the order of an index and passes over those that are locked, so that
//! it holds nothing up and two at once forget different rows. How old is old enough is for the caller to say, by a [`Cutoff`].

use crate::webhook::first_id_at;
use crate::{Cutoff, Error, Store};

/// What is forgotten when it is past its retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kept {
    /// Idempotency keys of pushes.
    PushKeys,
    /// Event ids, and idempotency keys of events.
    EventKeys,
    /// Mails that ended, sent or not.
    Mails,
    /// Mails that wait and that nothing sends: they end as `FAILED`, and are forgotten later.
    UnsentMails,
    /// Dead letters that were replayed or discarded.
    ResolvedDeadLetters,
    /// Dead letters that are still open; what they are about is as old.
    OpenDeadLetters,
    /// Jobs on dead letters that ended.
    DeadLetterJobs,
    /// The numbers of deliveries, by the hour.
    Statistics,
    /// Replays that ended.
    Replays,
    /// Quota requests that were decided.
    QuotaRequests,
    /// Signing secrets that expired or were revoked, and those of deleted subscriptions.
    Secrets,
    /// Deleted subscriptions with all that belongs to them, as soon as none of their notifications is stored any more.
    Subscriptions,
    /// Confirmed addresses that no subscription of their reseller names any more.
    Addresses,
    /// The audit log.
    Audit,
}

impl Kept {
    /// As it is named in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::PushKeys => "idempotency keys",
            Self::EventKeys => "event keys",
            Self::Mails => "mails",
            Self::UnsentMails => "mails without a mail server",
            Self::ResolvedDeadLetters => "resolved dead letters",
            Self::OpenDeadLetters => "open dead letters",
            Self::DeadLetterJobs => "dead letter jobs",
            Self::Statistics => "delivery statistics",
            Self::Replays => "replays",
            Self::QuotaRequests => "quota requests",
            Self::Secrets => "signing secrets",
            Self::Subscriptions => "deleted subscriptions",
            Self::Addresses => "addresses",
            Self::Audit => "audit entries",
        }
    }
}

impl Store {
    /// Forgets about `limit` rows that are older than the cutoff; returns how many. Fewer than `limit` are all that could be had.
    pub async fn forget(&self, kept: Kept, cutoff: Cutoff, limit: u32) -> Result<u64, Error> {
        match kept {
            Kept::PushKeys => self.forget_idempotency_keys(cutoff, i64::from(limit)).await,
            Kept::EventKeys => self.forget_event_keys(cutoff, i64::from(limit)).await,
            Kept::Mails => self.forget_emails(cutoff, limit).await,
            Kept::UnsentMails => self.end_unsent_emails(cutoff, limit).await,
            Kept::ResolvedDeadLetters => self.forget_resolved_dead_letters(cutoff, limit).await,
            Kept::OpenDeadLetters => self.forget_open_dead_letters(cutoff, limit).await,
            Kept::DeadLetterJobs => self.forget_dead_letter_jobs(cutoff).await,
            Kept::Statistics => self.forget_statistics(cutoff, limit).await,
            Kept::Replays => self.forget_replays(cutoff, limit).await,
            Kept::QuotaRequests => self.forget_quota_requests(cutoff, limit).await,
            Kept::Secrets => self.forget_secrets(cutoff, limit).await,
            Kept::Subscriptions => self.forget_subscriptions(cutoff, limit).await,
            Kept::Addresses => self.forget_addresses(cutoff, limit).await,
            Kept::Audit => self.forget_audit_entries(cutoff, limit).await,
        }
    }

    /// Hops from one subscription to the next over the primary key: an index by hour would cost every delivery.
    async fn forget_statistics(&self, cutoff: Cutoff, limit: u32) -> Result<u64, Error> {
        let forgotten = sqlx::query!(
            r#"
            WITH RECURSIVE hop (id) AS (
                (SELECT subscription_id FROM delivery_statistics ORDER BY subscription_id LIMIT 1)
                UNION ALL
                SELECT (SELECT s.subscription_id FROM delivery_statistics s WHERE s.subscription_id > h.id
                        ORDER BY s.subscription_id LIMIT 1)
                FROM hop h WHERE h.id IS NOT NULL),
            old AS (
                SELECT o.subscription_id, o.hour FROM hop h
                CROSS JOIN LATERAL (
                    SELECT s.subscription_id, s.hour FROM delivery_statistics s
                    WHERE s.subscription_id = h.id AND s.hour < $1 ORDER BY s.hour LIMIT $2) o
                LIMIT $2)
            DELETE FROM delivery_statistics s USING old o
            WHERE s.subscription_id = o.subscription_id AND s.hour = o.hour
            "#,
            cutoff.before(),
            i64::from(limit),
        )
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }

    async fn forget_replays(&self, cutoff: Cutoff, limit: u32) -> Result<u64, Error> {
        let forgotten = sqlx::query!(
            r#"
            DELETE FROM replays WHERE id IN (
                SELECT id FROM replays WHERE id < $1 AND finished_at < $2
                ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED)
            "#,
            first_id_at(cutoff.before()),
            cutoff.before(),
            i64::from(limit),
        )
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }

    async fn forget_quota_requests(&self, cutoff: Cutoff, limit: u32) -> Result<u64, Error> {
        let forgotten = sqlx::query!(
            r#"
            DELETE FROM quota_requests WHERE id IN (
                SELECT id FROM quota_requests WHERE id < $1 AND decided_at < $2
                ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED)
            "#,
            first_id_at(cutoff.before()),
            cutoff.before(),
            i64::from(limit),
        )
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }

    async fn forget_secrets(&self, cutoff: Cutoff, limit: u32) -> Result<u64, Error> {
        let forgotten = sqlx::query!(
            r#"
            WITH ended AS (
                SELECT id FROM signing_secrets
                WHERE least(expires_at, revoked_at) < $1 AND (expires_at IS NOT NULL OR revoked_at IS NOT NULL)
                ORDER BY least(expires_at, revoked_at) LIMIT $2),
            of_deleted AS (
                SELECT k.id FROM subscriptions s JOIN signing_secrets k ON k.subscription_id = s.id
                WHERE s.deleted_at < $1 LIMIT $2)
            DELETE FROM signing_secrets WHERE id IN (SELECT id FROM ended UNION SELECT id FROM of_deleted)
            "#,
            cutoff.before(),
            i64::from(limit),
        )
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }

    async fn forget_subscriptions(&self, cutoff: Cutoff, limit: u32) -> Result<u64, Error> {
        // The references are looked at when the statement ends, so the order among these does not matter.
        let forgotten = sqlx::query!(
            r#"
            WITH gone AS (
                SELECT s.id FROM subscriptions s
                WHERE s.deleted_at < $1
                  AND NOT EXISTS (SELECT FROM notifications n WHERE n.subscription_id = s.id AND n.reseller_id <> '')
                ORDER BY s.deleted_at LIMIT $2 FOR UPDATE OF s SKIP LOCKED),
            secrets AS (DELETE FROM signing_secrets c USING gone g WHERE c.subscription_id = g.id),
            budgets AS (DELETE FROM subscription_budgets c USING gone g WHERE c.subscription_id = g.id),
            paces AS (DELETE FROM subscription_paces c USING gone g WHERE c.subscription_id = g.id),
            sidelines AS (DELETE FROM subscription_sidelines c USING gone g WHERE c.subscription_id = g.id),
            requests AS (DELETE FROM quota_requests c USING gone g WHERE c.subscription_id = g.id),
            replays AS (DELETE FROM replays c USING gone g WHERE c.subscription_id = g.id),
            mails AS (DELETE FROM emails c USING gone g WHERE c.subscription_id = g.id),
            held AS (DELETE FROM pauses c USING gone g WHERE c.scope = 'subscription' AND c.key = g.id::text)
            DELETE FROM subscriptions s USING gone g WHERE s.id = g.id
            "#,
            cutoff.before(),
            i64::from(limit),
        )
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }

    /// One that is named again in this moment is asked to be confirmed again, when its first mail waits.
    async fn forget_addresses(&self, cutoff: Cutoff, limit: u32) -> Result<u64, Error> {
        let forgotten = sqlx::query!(
            r#"
            DELETE FROM email_addresses WHERE (reseller_id, address) IN (
                SELECT a.reseller_id, a.address FROM email_addresses a
                WHERE a.created_at < $1
                  AND NOT EXISTS (SELECT FROM subscriptions s
                                  WHERE s.reseller_id = a.reseller_id AND lower(s.email) = a.address AND s.deleted_at IS NULL)
                  -- Its last mails may wait.
                  AND NOT EXISTS (SELECT FROM subscriptions s
                                  WHERE s.reseller_id = a.reseller_id AND lower(s.email) = a.address
                                    AND s.deleted_at > $1::timestamptz)
                  -- It is told of changes until the address after it is confirmed.
                  AND NOT EXISTS (SELECT FROM subscriptions s
                                  WHERE s.reseller_id = a.reseller_id AND lower(s.previous_email) = a.address
                                    AND s.deleted_at IS NULL
                                    AND NOT EXISTS (SELECT FROM email_addresses n
                                                    WHERE n.reseller_id = s.reseller_id AND n.address = lower(s.email)
                                                      AND n.confirmed_at IS NOT NULL))
                LIMIT $2 FOR UPDATE SKIP LOCKED)
            "#,
            cutoff.before(),
            i64::from(limit),
        )
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }

    async fn forget_audit_entries(&self, cutoff: Cutoff, limit: u32) -> Result<u64, Error> {
        let forgotten = sqlx::query!(
            r#"
            DELETE FROM audit_log WHERE id IN (
                SELECT id FROM audit_log WHERE id < $1 AND at < $2 ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED)
            "#,
            first_id_at(cutoff.before()),
            cutoff.before(),
            i64::from(limit),
        )
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }
}
