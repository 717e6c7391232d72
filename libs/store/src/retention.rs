//! Forgetting: everything that is written has an end, and here is the list. Months are dropped by `partition`, processes that fell
//! silent by `processes`; docs/configuration.md says of every table how long it keeps what.
//!
//! Each call is one bounded statement that takes rows by the order of an index and passes over those that are locked, so that
//! it holds nothing up and two at once forget different rows. How old is old enough is for the caller to say, by a [`Cutoff`].

use sqlx::query_file;

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
    /// Mails that wait and that nothing sends, where no mail server is configured: they end as `FAILED`, and are forgotten later.
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
    /// Changes that were noted for resellers that do not follow them any more.
    Changes,
    /// Outages that are over.
    Holds,
    /// The audit log.
    Audit,
    /// Visits to the console.
    Visits,
    /// Links that open the dashboard of a reseller.
    PortalLinks,
    /// Visits to the dashboard of a reseller.
    PortalVisits,
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
            Self::Changes => "noted changes",
            Self::Holds => "past holds",
            Self::Audit => "audit entries",
            Self::Visits => "visits to the console",
            Self::PortalLinks => "links to dashboards",
            Self::PortalVisits => "visits to dashboards",
        }
    }
}

impl Store {
    /// Forgets about `limit` rows that are older than the cutoff; returns how many. Fewer than `limit` are all that could be had.
    pub async fn forget(&self, kept: Kept, cutoff: Cutoff, limit: u32) -> Result<u64, Error> {
        let (before, limit) = (cutoff.before(), i64::from(limit));
        // What is named by a UUIDv7 is read in the order of its making.
        let first_kept = first_id_at(before);
        let statement = match kept {
            Kept::PushKeys => query_file!("queries/retention/push_keys.sql", before, limit),
            Kept::EventKeys => query_file!("queries/retention/event_keys.sql", before, limit),
            Kept::Mails => query_file!("queries/retention/mails.sql", before, limit),
            Kept::UnsentMails => query_file!("queries/retention/unsent_mails.sql", before, limit),
            Kept::ResolvedDeadLetters => {
                query_file!("queries/retention/resolved_dead_letters.sql", before, limit)
            }
            Kept::OpenDeadLetters => query_file!("queries/retention/open_dead_letters.sql", before, limit),
            Kept::DeadLetterJobs => query_file!("queries/retention/dead_letter_jobs.sql", before),
            Kept::Statistics => query_file!("queries/retention/statistics.sql", before, limit),
            Kept::Replays => query_file!("queries/retention/replays.sql", first_kept, before, limit),
            Kept::QuotaRequests => {
                query_file!("queries/retention/quota_requests.sql", first_kept, before, limit)
            }
            Kept::Secrets => query_file!("queries/retention/secrets.sql", before, limit),
            Kept::Subscriptions => query_file!("queries/retention/subscriptions.sql", before, limit),
            Kept::Addresses => query_file!("queries/retention/addresses.sql", before, limit),
            Kept::Changes => query_file!("queries/retention/changes.sql", before, limit),
            Kept::Holds => query_file!("queries/retention/holds.sql", before, limit),
            Kept::Audit => query_file!("queries/retention/audit.sql", first_kept, before, limit),
            Kept::Visits => query_file!("queries/retention/visits.sql", before, limit),
            Kept::PortalLinks => query_file!("queries/retention/portal_links.sql", before, limit),
            Kept::PortalVisits => query_file!("queries/retention/portal_visits.sql", before, limit),
        };
        Ok(statement.execute(&self.pool).await?.rows_affected())
    }

    /// Makes one tally of several of the same kind and hour, and one total of several of the same kind, which concurrent changes leave behind, and none of those that
    /// sum up to nothing. What another transaction is changing is left for another time; no count changes.
    pub async fn fold_dead_letter_tallies(&self) -> Result<(), Error> {
        sqlx::query!(
            r#"
            WITH several AS (
                SELECT state, lane, reason, fingerprint, target, hour FROM dead_letter_tallies
                GROUP BY state, lane, reason, fingerprint, target, hour HAVING count(*) > 1
                LIMIT 10000),
            taken AS (
                SELECT t.id FROM dead_letter_tallies t
                JOIN several USING (state, lane, reason, fingerprint, target, hour)
                FOR UPDATE OF t SKIP LOCKED),
            folded AS (
                DELETE FROM dead_letter_tallies t USING taken WHERE t.id = taken.id
                RETURNING t.state, t.lane, t.reason, t.fingerprint, t.target, t.hour, t.letters)
            INSERT INTO dead_letter_tallies (state, lane, reason, fingerprint, target, hour, letters)
            SELECT state, lane, reason, fingerprint, target, hour, sum(letters) FROM folded
            GROUP BY state, lane, reason, fingerprint, target, hour HAVING sum(letters) <> 0
            "#
        )
        .execute(&self.pool)
        .await?;
        sqlx::query!(
            r#"
            WITH several AS (
                SELECT state, lane, reason, fingerprint, target FROM dead_letter_totals
                GROUP BY state, lane, reason, fingerprint, target HAVING count(*) > 1
                LIMIT 10000),
            taken AS (
                SELECT t.id FROM dead_letter_totals t
                JOIN several USING (state, lane, reason, fingerprint, target)
                FOR UPDATE OF t SKIP LOCKED),
            folded AS (
                DELETE FROM dead_letter_totals t USING taken WHERE t.id = taken.id
                RETURNING t.state, t.lane, t.reason, t.fingerprint, t.target, t.letters)
            INSERT INTO dead_letter_totals (state, lane, reason, fingerprint, target, letters)
            SELECT state, lane, reason, fingerprint, target, sum(letters) FROM folded
            GROUP BY state, lane, reason, fingerprint, target HAVING sum(letters) <> 0
            "#
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}
