//! Everything besides the lanes' own rows: the sender's lease, dead letters, subscriptions, mails, months, jobs.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::dead_letter_job::{JobAction, JobPause, JobStatus};
use domain::month::Month;
use domain::subscription::SubscriptionState;
use uuid::Uuid;

use super::counted;
use crate::read::{Age, Count, Name, Nullable};
use crate::{Error, Store};

/// Most things of a kind that are listed.
const LISTED_MAX: i64 = 100;
/// Most dead letters of the last time that are looked at.
const RECENT_MAX: i64 = 10_000;
/// How far back a deactivation is news.
const NEWS: TimeDelta = TimeDelta::days(1);

/// Who holds a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leadership {
    /// Who; no process when `None`.
    pub holder: Option<Uuid>,
    /// Grows with every change of holder.
    pub epoch: i64,
    /// Since when.
    pub taken_at: Option<DateTime<Utc>>,
    /// How long ago it was renewed.
    pub renewed: Duration,
}

/// Dead letters of a lane that are neither replayed nor discarded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deaths {
    /// Open ones.
    pub open: u64,
    /// When the oldest of them was made.
    pub oldest: Option<DateTime<Utc>>,
    /// When the newest of them was made.
    pub newest: Option<DateTime<Utc>>,
    /// Those of the last time, counted up to 10,000 for each reason.
    pub recent: u64,
    /// The fingerprint that most of the recent ones have.
    pub fingerprint: Option<String>,
}

/// How many subscriptions are in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionCount {
    /// The state.
    pub state: SubscriptionState,
    /// How many.
    pub count: u64,
    /// How many of them are paused, by whomever.
    pub paused: u64,
    /// How many of them their resellers have paused.
    pub paused_by_reseller: u64,
}

/// A subscription that is in trouble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionInTrouble {
    /// Which.
    pub id: Uuid,
    /// Whose.
    pub reseller: String,
    /// Its endpoint.
    pub url: String,
    /// Its state.
    pub state: SubscriptionState,
    /// Why it has the state, as it is stored: it is only shown.
    pub reason: String,
    /// Since when it has the state.
    pub since: DateTime<Utc>,
    /// Since when every attempt has failed.
    pub failing_since: Option<DateTime<Utc>>,
}

/// Subscriptions that were deactivated by what their endpoints did, and not lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deactivated {
    /// How many.
    pub count: u64,
    /// The one that was first.
    pub oldest: SubscriptionInTrouble,
}

/// Mails that do not get out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MailsInTrouble {
    /// Given up within the last day.
    pub failed: u64,
    /// Waiting after two attempts or more.
    pub retried: u64,
    /// Why, of the one that is due first.
    pub last_error: Option<String>,
}

/// A bulk job on dead letters that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobInProgress {
    /// Which.
    pub id: Uuid,
    /// What it does.
    pub action: JobAction,
    /// Where it stands.
    pub status: JobStatus,
    /// Why it has paused itself, if it did so itself.
    pub paused_because: Option<JobPause>,
    /// Dead letters that it is about.
    pub matching: u64,
    /// How many of them it has looked at.
    pub examined: u64,
    /// Who began it.
    pub by: String,
    /// How long ago it did something.
    pub idle: Duration,
}

impl Store {
    /// Who holds the lease `name`; `None` when no process has ever asked for it.
    pub async fn leadership(&self, name: &str) -> Result<Option<Leadership>, Error> {
        Ok(sqlx::query_as!(
            Leadership,
            r#"
            SELECT holder, epoch, taken_at, extract(epoch FROM now() - renewed_at)::float8 AS "renewed!: Age"
            FROM leases WHERE name = $1
            "#,
            name,
        )
        .fetch_optional(&self.pool)
        .await?)
    }

    /// How many subscriptions are in each state.
    pub async fn subscription_states(&self) -> Result<Vec<SubscriptionCount>, Error> {
        Ok(sqlx::query_as!(
            SubscriptionCount,
            r#"
            SELECT state AS "state: Name<_>", count(*) AS "count!: Count", count(*) FILTER (WHERE suspended) AS "paused!: Count",
                   count(paused_at) AS "paused_by_reseller!: Count"
            FROM subscriptions WHERE deleted_at IS NULL GROUP BY state ORDER BY state
            "#,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// The subscriptions that are in trouble at `now`, the worst first, at most 100: deactivated within the last day by
    /// what their endpoint did, degraded, or failing. What is paused is not tried, and so fails no more.
    pub async fn subscriptions_in_trouble(
        &self,
        now: DateTime<Utc>,
    ) -> Result<Vec<SubscriptionInTrouble>, Error> {
        Ok(sqlx::query_as!(
            SubscriptionInTrouble,
            r#"
            SELECT id, reseller_id AS reseller, url, state AS "state: Name<_>",
                   state_reason AS reason, state_changed_at AS since, failing_since
            FROM subscriptions
            WHERE deleted_at IS NULL
              AND (NOT suspended AND (state = 'DEGRADED' OR state = 'ACTIVE' AND failing_since IS NOT NULL)
                   OR state = 'DEACTIVATED' AND state_changed_at > $1
                      AND state_reason IN ('FAILING', 'REDIRECTED', 'GONE'))
            ORDER BY CASE state WHEN 'DEACTIVATED' THEN 0 WHEN 'DEGRADED' THEN 1 ELSE 2 END,
                     coalesce(failing_since, state_changed_at), id
            LIMIT $2
            "#,
            now - NEWS,
            LISTED_MAX,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// The subscriptions that were deactivated by what their endpoint did, before those that are in trouble at `now`, and since a time; none where
    /// there is none.
    pub async fn subscriptions_deactivated(
        &self,
        now: DateTime<Utc>,
        since: DateTime<Utc>,
    ) -> Result<Option<Deactivated>, Error> {
        let oldest = sqlx::query!(
            r#"
            SELECT id, reseller_id AS reseller, url, state AS "state: Name<SubscriptionState>", state_reason AS reason,
                   state_changed_at AS since, failing_since, count(*) OVER () AS "count!: Count"
            FROM subscriptions
            WHERE deleted_at IS NULL AND state = 'DEACTIVATED' AND state_changed_at BETWEEN $2 AND $1
              AND state_reason IN ('FAILING', 'REDIRECTED', 'GONE')
            ORDER BY state_changed_at, id LIMIT 1
            "#,
            now - NEWS,
            since,
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(oldest.map(|row| Deactivated {
            count: row.count.into(),
            oldest: SubscriptionInTrouble {
                id: row.id,
                reseller: row.reseller,
                url: row.url,
                state: row.state.into(),
                reason: row.reason,
                since: row.since,
                failing_since: row.failing_since,
            },
        }))
    }

    /// Mails that were given up within the last day before `now`, and those that were tried in vain more than once.
    pub async fn mails_in_trouble(&self, now: DateTime<Utc>) -> Result<MailsInTrouble, Error> {
        Ok(sqlx::query_as!(
            MailsInTrouble,
            r#"
            SELECT (SELECT count(*) FILTER (WHERE status = 'FAILED')
                    FROM (SELECT status FROM emails WHERE finished_at > $1 ORDER BY finished_at LIMIT $2) AS ended)
                       AS "failed!: Count",
                   count(*) FILTER (WHERE attempts > 1) AS "retried!: Count",
                   (array_agg(last_error) FILTER (WHERE attempts > 1))[1] AS last_error
            FROM (SELECT attempts, last_error FROM emails WHERE status = 'PENDING'
                  ORDER BY next_attempt_at, id LIMIT $2) AS waiting
            "#,
            now - NEWS,
            counted(),
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// Whether every table that is cut by months has a part for `month`.
    pub async fn has_partitions(&self, month: Month) -> Result<bool, Error> {
        Ok(sqlx::query_scalar!(
            r#"
            SELECT bool_and(to_regclass(parent || to_char($1::date, '"_y"YYYY"m"MM')) IS NOT NULL) AS "complete!"
            FROM UNNEST(ARRAY ['push_notifications', 'send_attempts', 'events', 'notifications', 'delivery_attempts'])
                AS t(parent)
            "#,
            month.first_day(),
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// The bulk jobs on dead letters that persons have made and that have not ended, the oldest first; at most 100. Recoveries may
    /// wait for their endpoint as long as they like.
    pub async fn jobs_in_progress(&self, now: DateTime<Utc>) -> Result<Vec<JobInProgress>, Error> {
        Ok(sqlx::query_as!(
            JobInProgress,
            r#"
            SELECT id, action AS "action: Name<_>", status AS "status: Name<_>",
                   paused_because AS "paused_because!: Nullable<Name<_>>", matching AS "matching: Count", examined AS "examined: Count", created_by AS "by",
                   extract(epoch FROM $2::timestamptz - updated_at)::float8 AS "idle!: Age"
            FROM dead_letter_jobs
            WHERE finished_at IS NULL AND recovers IS NULL ORDER BY id LIMIT $1
            "#,
            LISTED_MAX,
            now,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// The dead letters of a lane that are open, and what came after `since`.
    pub async fn deaths(&self, lane: &str, since: DateTime<Utc>) -> Result<Deaths, Error> {
        Ok(sqlx::query_as!(
            Deaths,
            r#"
            SELECT (SELECT greatest(0, coalesce(sum(letters), 0))::bigint FROM dead_letter_totals
                    WHERE state = 'OPEN' AND lane = $1) AS "open!: Count",
                   (SELECT min(head.created_at) FROM UNNEST(ARRAY ['FAILED', 'GIVEN_UP', 'REJECTED', 'MALFORMED']) AS r(reason)
                    CROSS JOIN LATERAL (
                        SELECT d.created_at FROM dead_letters d
                        WHERE d.state = 'OPEN' AND d.lane = $1 AND d.reason = r.reason
                        ORDER BY d.created_at, d.id LIMIT 1) AS head) AS oldest,
                   (SELECT max(head.created_at) FROM UNNEST(ARRAY ['FAILED', 'GIVEN_UP', 'REJECTED', 'MALFORMED']) AS r(reason)
                    CROSS JOIN LATERAL (
                        SELECT d.created_at FROM dead_letters d
                        WHERE d.state = 'OPEN' AND d.lane = $1 AND d.reason = r.reason
                        ORDER BY d.created_at DESC, d.id DESC LIMIT 1) AS head) AS newest,
                   count(*) AS "recent!: Count", mode() WITHIN GROUP (ORDER BY late.fingerprint) AS fingerprint
            FROM UNNEST(ARRAY ['FAILED', 'GIVEN_UP', 'REJECTED', 'MALFORMED']) AS r(reason)
            CROSS JOIN LATERAL (
                SELECT d.fingerprint FROM dead_letters d
                WHERE d.state = 'OPEN' AND d.lane = $1 AND d.reason = r.reason AND d.created_at > $2
                ORDER BY d.created_at DESC, d.id DESC LIMIT $3) AS late
            "#,
            lane,
            since,
            RECENT_MAX,
        )
        .fetch_one(&self.pool)
        .await?)
    }
}
