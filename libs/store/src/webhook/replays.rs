//! Replays: what a subscription missed since a time, sent again by a job that survives crashes. This is their book-keeping;
//! a step of one is in `replay_step`.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::subscription::ReplayStatus;
use serde_json::json;
use uuid::Uuid;

use super::locked::subject;
use crate::read::{Count, Name};
use crate::{Act, Error, Store};

/// A replay as its reseller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayView {
    /// Its identifier.
    pub id: Uuid,
    /// For which subscription.
    pub subscription: Uuid,
    /// Where it stands.
    pub status: ReplayStatus,
    /// Of events from here on.
    pub since: DateTime<Utc>,
    /// Of events before this.
    pub until: DateTime<Utc>,
    /// Most notifications a second.
    pub per_second: u32,
    /// Of these event types alone; of all that the subscription gets when `None`.
    pub event_types: Option<Vec<String>>,
    /// Of what was missed in these ways alone; of all when `None`.
    pub statuses: Option<Vec<String>>,
    /// The last event that was looked at.
    pub cursor: Option<Uuid>,
    /// Events that were examined.
    pub examined: u64,
    /// Notifications that were made or made due again.
    pub replayed: u64,
    /// Notifications that were left alone because an operator has cancelled them.
    pub cancelled: u64,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// When it last got on.
    pub updated_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// The key or the person that cancelled it.
    pub cancelled_by: Option<String>,
}

/// A replay to be stored.
#[derive(Debug, Clone)]
pub struct NewReplay {
    /// Its identifier.
    pub id: Uuid,
    /// For which subscription.
    pub subscription: Uuid,
    /// Of events from here on.
    pub since: DateTime<Utc>,
    /// Of events before this.
    pub until: DateTime<Utc>,
    /// Most notifications a second.
    pub per_second: u32,
    /// Of which event types, and of what was missed in which way.
    pub missed: Missed,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
}

/// Which part of what a subscription missed is sent again. An empty list stands for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missed {
    /// Of these event types.
    pub event_types: Vec<String>,
    /// `FAILED`, `GIVEN_UP`, or `MISSED` for events that it has no notification of.
    pub statuses: Vec<String>,
}

/// What a replay would send again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayCount {
    /// Events that were examined.
    pub examined: u64,
    /// Whether these are all of the time.
    pub is_whole: bool,
    /// What it would make or make due again, by how it was missed.
    pub by_status: BTreeMap<&'static str, u64>,
    /// The same by event type.
    pub by_event_type: BTreeMap<String, u64>,
    /// What it would leave alone because it was cancelled.
    pub cancelled: u64,
}

/// What came of asking for a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayRequested {
    /// It runs.
    Done,
    /// Another one of the subscription does.
    Running,
    /// The reseller has no such subscription.
    Unknown,
}

/// What came of cancelling a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It has ended, now or by an earlier cancellation.
    Done,
    /// It had been through already.
    Completed,
    /// The subscription has no such replay.
    Unknown,
}

impl Store {
    /// Stores a replay for a reseller's subscription, unless one is running.
    pub async fn insert_replay(
        &self,
        reseller: &str,
        new: &NewReplay,
        act: Act<'_>,
    ) -> Result<ReplayRequested, Error> {
        let mut transaction = self.pool.begin().await?;
        let row = sqlx::query!(
            r#"
            WITH owned AS (
                SELECT id FROM subscriptions WHERE reseller_id = $1 AND id = $2 AND deleted_at IS NULL
                FOR NO KEY UPDATE),
            inserted AS (
                INSERT INTO replays (id, subscription_id, reseller_id, since, until, per_second, created_at, updated_at,
                                     event_types, statuses)
                SELECT $3, o.id, $1, $4, $5, $6, $7, $7, nullif($8::text[], '{}'), nullif($9::text[], '{}') FROM owned o
                ON CONFLICT (subscription_id) WHERE status = 'RUNNING' DO NOTHING
                RETURNING id)
            SELECT EXISTS (SELECT FROM owned) AS "owned!", EXISTS (SELECT FROM inserted) AS "inserted!"
            "#,
            reseller,
            new.subscription,
            new.id,
            new.since,
            new.until,
            i32::try_from(new.per_second).unwrap_or(i32::MAX),
            new.created_at,
            &new.missed.event_types,
            &new.missed.statuses,
        )
        .fetch_one(&mut *transaction)
        .await?;
        if row.inserted {
            let details = json!({ "replay": new.id, "since": new.since, "until": new.until });
            let entry = act.entry("replay.create", subject(new.subscription), details);
            entry.record(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(match (row.owned, row.inserted) {
            (false, _) => ReplayRequested::Unknown,
            (true, false) => ReplayRequested::Running,
            (true, true) => ReplayRequested::Done,
        })
    }

    /// The replays of a subscription, of one status or of any, the newest first, or the one with an identifier. Whose the subscription is, is for
    /// the caller to know.
    pub async fn list_replays(
        &self,
        subscription: Uuid,
        id: Option<Uuid>,
        status: Option<ReplayStatus>,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<ReplayView>, Error> {
        Ok(sqlx::query_as!(
            ReplayView,
            r#"
            SELECT id, subscription_id AS subscription, status AS "status: Name<_>", since, until,
                   per_second AS "per_second: Count", event_types, statuses, cursor, examined AS "examined: Count", replayed AS "replayed: Count",
                   cancelled AS "cancelled: Count", created_at, updated_at, finished_at, cancelled_by
            FROM replays
            -- Ranges, so that one plan serves all of these questions from the index, whatever other subscriptions have.
            WHERE subscription_id = $1 AND id >= coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid)
              AND id <= coalesce($2, $3, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) AND ($3::uuid IS NULL OR id < $3)
              AND ($5::text IS NULL OR status = $5)
            ORDER BY subscription_id, id DESC LIMIT $4
            "#,
            subscription,
            id,
            before,
            i64::from(limit),
            status.map(ReplayStatus::as_str),
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Stops a replay; what it has made due already is still sent.
    pub async fn cancel_replay(
        &self,
        subscription: Uuid,
        id: Uuid,
        act: Act<'_>,
    ) -> Result<Cancelled, Error> {
        let mut transaction = self.pool.begin().await?;
        let cancelled = sqlx::query!(
            r#"
            UPDATE replays SET status = 'CANCELLED', finished_at = $3, updated_at = $3, cancelled_by = $4
            WHERE subscription_id = $1 AND id = $2 AND status = 'RUNNING'
            "#,
            subscription,
            id,
            act.at,
            act.by,
        )
        .execute(&mut *transaction)
        .await?;
        if cancelled.rows_affected() > 0 {
            let entry = act.entry("replay.cancel", subject(subscription), json!({ "replay": id }));
            entry.record(&mut transaction).await?;
        }
        transaction.commit().await?;
        let found = self
            .list_replays(subscription, Some(id), None, None, 1)
            .await?
            .pop();
        Ok(match found.map(|replay| replay.status) {
            None => Cancelled::Unknown,
            Some(ReplayStatus::Completed) => Cancelled::Completed,
            Some(_) => Cancelled::Done,
        })
    }

    /// The replays that can get on: those that run, and whose subscription gets something.
    pub async fn running_replays(&self) -> Result<Vec<Uuid>, Error> {
        Ok(sqlx::query_scalar!(
            r#"
            SELECT r.id FROM replays r JOIN subscriptions s ON s.id = r.subscription_id
            WHERE r.status = 'RUNNING' AND s.state IN ('ACTIVE', 'DEGRADED') AND NOT s.suspended
              AND s.deleted_at IS NULL
            ORDER BY r.id
            "#,
        )
        .fetch_all(&self.pool)
        .await?)
    }
}
