//! What waits in each lane, and for how long.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::counted;
use crate::read::{Age, Count, Nullable};
use crate::{Error, Store};

/// How many rows of a lane are in each state, counted up to one more than [`super::COUNTED_MAX`]. Of pushes, SCHEDULED
/// and RETRY are counted together up to there, the first due ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depths {
    /// Waiting for a time.
    pub scheduled: u64,
    /// Waiting for room in the queue.
    pub pending: u64,
    /// In the queue.
    pub queued: u64,
    /// For how long the first of these has been there.
    pub queued_for: Option<Duration>,
    /// Being sent.
    pub sending: u64,
    /// Waiting to be tried again.
    pub retry: u64,
    /// IN_MEMORY with a lease that ran out.
    pub lost: u64,
    /// How long ago the first of these leases ran out.
    pub lost_for: Option<Duration>,
}

impl Depths {
    /// What waits for nothing but its turn.
    pub fn backlog(&self) -> u64 {
        self.pending + self.queued
    }
}

/// What is due and has not been put into the queue. What is paused, not verified or not yet due does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overdue {
    /// For how long the first of the PENDING ones has been so.
    pub pending_for: Option<Duration>,
    /// When the first of the SCHEDULED and RETRY ones came due; it may lie ahead.
    pub due_at: Option<DateTime<Utc>>,
}

/// What of the reseller lane is due, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waiting {
    /// Over all subscriptions.
    pub overdue: Overdue,
    /// How many subscriptions have something PENDING that could be sent.
    pub subscriptions: u64,
    /// The subscription whose PENDING notifications have waited longest.
    pub worst: Option<Uuid>,
}

impl Store {
    /// What the push lane holds.
    pub async fn push_depths(&self) -> Result<Depths, Error> {
        Ok(sqlx::query_as!(
            Depths,
            r#"
            SELECT (SELECT count(*) FROM (SELECT FROM push_notifications WHERE status = 'PENDING' LIMIT $1) AS p)
                       AS "pending!: Count",
                   d.scheduled AS "scheduled!: Count", d.retry AS "retry!: Count", m.queued AS "queued!: Count",
                   m.sending AS "sending!: Count", m.lost AS "lost!: Count", m.lost_for AS "lost_for!: Nullable<Age>",
                   m.queued_for AS "queued_for!: Nullable<Age>"
            FROM (SELECT count(*) FILTER (WHERE status = 'SCHEDULED') AS scheduled,
                         count(*) FILTER (WHERE status = 'RETRY') AS retry
                  FROM (SELECT status FROM push_notifications WHERE status IN ('SCHEDULED', 'RETRY')
                        ORDER BY next_attempt_at, id LIMIT $1) AS first_due) AS d
            CROSS JOIN (
                SELECT count(*) FILTER (WHERE lease_token IS NULL) AS queued,
                       count(*) FILTER (WHERE lease_token IS NOT NULL) AS sending,
                       count(*) FILTER (WHERE leased_until < now()) AS lost,
                       extract(epoch FROM max(now() - leased_until) FILTER (WHERE leased_until < now()))::float8 AS lost_for,
                       extract(epoch FROM now() - min(updated_at) FILTER (WHERE lease_token IS NULL))::float8 AS queued_for
                FROM (SELECT lease_token, leased_until, updated_at FROM push_notifications WHERE status = 'IN_MEMORY'
                      ORDER BY leased_until LIMIT $1) AS first_leased) AS m
            "#,
            counted(),
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// What of the push lane is due. A push that waits for its first attempt since it was accepted does so however often it came into the
    /// queue meanwhile. Of one that has a sending window, was tried or was replayed nothing tells when it came due: it waits since it
    /// last changed.
    pub async fn push_overdue(&self) -> Result<Overdue, Error> {
        Ok(sqlx::query_as!(
            Overdue,
            r#"
            SELECT (SELECT extract(epoch FROM now() - CASE WHEN cron_expression IS NULL AND attempts = 0 AND reason IS NULL
                                                           THEN created_at ELSE updated_at END)::float8
                    FROM push_notifications WHERE status = 'PENDING'
                    ORDER BY id LIMIT 1) AS "pending_for!: Nullable<Age>",
                   (SELECT next_attempt_at FROM push_notifications WHERE status IN ('SCHEDULED', 'RETRY')
                    ORDER BY next_attempt_at, id LIMIT 1) AS due_at
            "#,
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// What the reseller lane holds.
    pub async fn notification_depths(&self) -> Result<Depths, Error> {
        Ok(sqlx::query_as!(
            Depths,
            r#"
            SELECT (SELECT count(*) FROM (SELECT FROM notifications WHERE status = 'PENDING' LIMIT $1) AS p)
                       AS "pending!: Count",
                   (SELECT count(*) FROM (SELECT FROM notifications WHERE status = 'SCHEDULED' LIMIT $1) AS s)
                       AS "scheduled!: Count",
                   (SELECT count(*) FROM (SELECT FROM notifications WHERE status = 'RETRY' LIMIT $1) AS r) AS "retry!: Count",
                   m.queued AS "queued!: Count", m.sending AS "sending!: Count", m.lost AS "lost!: Count",
                   m.lost_for AS "lost_for!: Nullable<Age>",
                   m.queued_for AS "queued_for!: Nullable<Age>"
            FROM (SELECT count(*) FILTER (WHERE lease_token IS NULL) AS queued,
                         count(*) FILTER (WHERE lease_token IS NOT NULL) AS sending,
                         count(*) FILTER (WHERE leased_until < now()) AS lost,
                         extract(epoch FROM max(now() - leased_until) FILTER (WHERE leased_until < now()))::float8
                             AS lost_for,
                         extract(epoch FROM now() - min(updated_at) FILTER (WHERE lease_token IS NULL))::float8 AS queued_for
                  FROM (SELECT lease_token, leased_until, updated_at FROM notifications WHERE status = 'IN_MEMORY'
                        ORDER BY leased_until LIMIT $1) AS first_leased) AS m
            "#,
            counted(),
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// What of the reseller lane is due and could be sent: its subscription is active or degraded, and neither its
    /// reseller nor an operator has paused it. Of what is in line for quota or rate, it is when the line is to be looked at. What is PENDING was
    /// never tried, and waits since it was made, however often it came into the queue meanwhile.
    pub async fn notifications_waiting(&self) -> Result<Waiting, Error> {
        let row = sqlx::query_file!("queries/status/notifications_waiting.sql",)
            .fetch_one(&self.pool)
            .await?;
        Ok(Waiting {
            overdue: Overdue {
                pending_for: row.pending_for.map(Duration::from),
                due_at: row.due_at,
            },
            subscriptions: row.subscriptions.into(),
            worst: row.worst,
        })
    }
}
