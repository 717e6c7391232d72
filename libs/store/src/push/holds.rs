//! What is held back because what it goes to is out of order: the push lane, while Swrve is. Written by the leader, and by
//! no other process: every change asks for its lease. What engines of the reseller lane hold is in `reseller/outages`.
//!
//! It stops nothing by itself. The leader looks here when its term begins; operators see it. What is over is kept by a trigger: `past_holds`.

use chrono::{DateTime, Utc};
use domain::push::PushId;

use crate::text::storable;
use crate::webhook::HOLD_LEASE;
use crate::{Error, Lane, Lease, Store, column, interval};

/// Most queued pushes that are looked at to find the oldest, those first that were queued first. With more messages in the queue the
/// others' leases run out, and they are found as PENDING.
const QUEUED_MAX: i64 = 50_000;

/// Most outages that are told, the newest ones.
const TOLD_MAX: i64 = 100;

/// Outages that ended last, one of which was the last to be answered: more than there are classes.
const LAST_ENDED: i64 = 10;

/// The class of the hold of the push lane.
pub const SWRVE: &str = "SWRVE";

/// An outage that is in force, or being caught up with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldView {
    /// What is out of order: `SWRVE`, or the class in which most endpoints fail.
    pub class: String,
    /// Since when.
    pub since: DateTime<Utc>,
    /// How often it was probed.
    pub probes: i64,
    /// The last time.
    pub probed_at: Option<DateTime<Utc>>,
    /// What it answered last, in words.
    pub last_answer: String,
    /// When a probe succeeded; since then what waited is sent.
    pub answered_at: Option<DateTime<Utc>>,
}

/// An outage, whether it is over or goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldPeriod {
    /// What was out of order, as in [`HoldView`].
    pub class: String,
    /// Since when.
    pub since: DateTime<Utc>,
    /// When a probe succeeded; since then what had waited was sent.
    pub answered_at: Option<DateTime<Utc>>,
    /// When that was done, or no engine held the class any more; `None` while it goes on.
    pub ended_at: Option<DateTime<Utc>>,
    /// How often it was probed.
    pub probes: i64,
    /// The last failure, in words.
    pub last_answer: String,
}

/// What happens to the hold of the push lane.
#[derive(Debug, Clone, Copy)]
pub enum SwrveHold<'a> {
    /// Swrve is out of order, and said this last. One that was over begins again, as the same outage.
    Begin(&'a str),
    /// A probe failed with this.
    Probed(&'a str),
    /// A probe succeeded.
    Answered,
    /// What had waited has been sent.
    End,
}

impl Store {
    /// Changes the hold of the push lane, in the name of its leader; `false` when that is another by now.
    pub async fn change_swrve_hold(&self, leader: &Lease, change: SwrveHold<'_>) -> Result<bool, Error> {
        let (name, holder, epoch) = (&leader.name, leader.holder, leader.epoch);
        let statement = match change {
            SwrveHold::Begin(answer) => sqlx::query!(
                r#"
                INSERT INTO holds AS h (class, last_answer)
                SELECT 'SWRVE', left($4, 500) FROM leases l WHERE l.name = $1 AND l.holder = $2 AND l.epoch = $3
                ON CONFLICT (class) DO UPDATE SET answered_at = NULL, last_answer = excluded.last_answer
                "#,
                name,
                holder,
                epoch,
                &*storable(answer),
            ),
            SwrveHold::Probed(answer) => sqlx::query!(
                r#"
                UPDATE holds SET probes = probes + 1, probed_at = now(), last_answer = left($4, 500)
                WHERE class = 'SWRVE'
                  AND EXISTS (SELECT FROM leases l WHERE l.name = $1 AND l.holder = $2 AND l.epoch = $3)
                "#,
                name,
                holder,
                epoch,
                &*storable(answer),
            ),
            SwrveHold::Answered => sqlx::query!(
                r#"
                UPDATE holds SET probes = probes + 1, probed_at = now(), answered_at = now()
                WHERE class = 'SWRVE'
                  AND EXISTS (SELECT FROM leases l WHERE l.name = $1 AND l.holder = $2 AND l.epoch = $3)
                "#,
                name,
                holder,
                epoch,
            ),
            SwrveHold::End => sqlx::query!(
                r#"
                DELETE FROM holds
                WHERE class = 'SWRVE'
                  AND EXISTS (SELECT FROM leases l WHERE l.name = $1 AND l.holder = $2 AND l.epoch = $3)
                "#,
                name,
                holder,
                epoch,
            ),
        };
        Ok(statement.execute(&self.pool).await?.rows_affected() > 0)
    }

    /// Every outage that is in force or being caught up with, the longest first.
    pub async fn list_holds(&self) -> Result<Vec<HoldView>, Error> {
        Ok(sqlx::query_as!(
            HoldView,
            r#"
            SELECT class, since, probes, probed_at, last_answer, answered_at FROM holds
            WHERE leased_until IS NULL OR leased_until BETWEEN now() AND now() + $1::interval
            ORDER BY since, class
            "#,
            interval(HOLD_LEASE),
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// When the last outage of either lane was over: of the push lane when Swrve worked again, although what had waited may still be sent.
    pub async fn last_hold_end(&self) -> Result<Option<DateTime<Utc>>, Error> {
        Ok(sqlx::query_scalar!(
            r#"
            SELECT max(at) FROM (
                SELECT coalesce(answered_at, ended_at) AS at
                FROM (SELECT answered_at, ended_at FROM past_holds ORDER BY ended_at DESC LIMIT $1) AS p
                UNION ALL
                SELECT coalesce(answered_at, leased_until) FROM holds WHERE answered_at IS NOT NULL OR leased_until < now()) AS h
            "#,
            LAST_ENDED,
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// The outages that a lane was held for and that go on or ended at `since` or later, the first one first; of what has ended, those that began
    /// before.
    pub async fn holds_since(
        &self,
        lane: Lane,
        since: DateTime<Utc>,
        ended_at: Option<DateTime<Utc>>,
    ) -> Result<Vec<HoldPeriod>, Error> {
        let mut periods = sqlx::query_as!(
            HoldPeriod,
            r#"
            SELECT class AS "class!", since AS "since!", answered_at, ended_at, probes AS "probes!", last_answer AS "last_answer!"
            FROM (SELECT class, since, answered_at, ended_at, probes, last_answer FROM past_holds WHERE ended_at >= $2
                  UNION ALL
                  -- What no engine renewed has ended, and is in here until the class is held again.
                  SELECT class, since, answered_at, CASE WHEN leased_until < now() THEN leased_until END, probes, last_answer
                  FROM holds WHERE leased_until IS NULL OR leased_until <= now() + $3::interval) AS h
            WHERE (class = 'SWRVE') = $1 AND (ended_at IS NULL OR ended_at >= $2)
              AND ($5::timestamptz IS NULL OR since < $5)
            ORDER BY since DESC LIMIT $4
            "#,
            lane == Lane::Push,
            since,
            interval(HOLD_LEASE),
            TOLD_MAX,
            ended_at,
        )
        .fetch_all(&self.pool)
        .await?;
        periods.reverse();
        Ok(periods)
    }

    /// The oldest pushes that could be claimed, whether their messages are in the queue or they wait in the database.
    pub async fn oldest_waiting_pushes(&self, limit: u32) -> Result<Vec<PushId>, Error> {
        let ids = sqlx::query_scalar!(
            r#"
            -- Apart, so that no plan walks through all pushes by their ids to find those few.
            WITH queued AS MATERIALIZED (
                SELECT id FROM push_notifications WHERE status = 'IN_MEMORY' AND lease_token IS NULL
                ORDER BY leased_until LIMIT $2)
            SELECT id AS "id!" FROM (
                (SELECT id FROM push_notifications WHERE status = 'PENDING' ORDER BY id LIMIT $1)
                UNION ALL
                (SELECT id FROM queued ORDER BY id LIMIT $1)) AS w
            ORDER BY id LIMIT $1
            "#,
            i64::from(limit),
            QUEUED_MAX,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(ids.into_iter().map(PushId::from).collect())
    }

    /// The youngest push that could be claimed.
    pub async fn youngest_waiting_push(&self) -> Result<Option<PushId>, Error> {
        let id = sqlx::query_scalar!(
            r#"
            WITH queued AS MATERIALIZED (
                SELECT id FROM push_notifications WHERE status = 'IN_MEMORY' AND lease_token IS NULL
                ORDER BY leased_until LIMIT $1)
            SELECT id AS "id!" FROM (
                (SELECT id FROM push_notifications WHERE status = 'PENDING' ORDER BY id DESC LIMIT 1)
                UNION ALL
                (SELECT id FROM queued ORDER BY id DESC LIMIT 1)) AS w
            ORDER BY id DESC LIMIT 1
            "#,
            QUEUED_MAX,
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(id.map(PushId::from))
    }

    /// Gives those of `ids` that still wait all of their attempts again, and makes those due that wait for a time: it has turned out
    /// that the fault was not theirs. What was tried stays on record. Returns how many.
    pub async fn forgive_attempts(&self, ids: &[PushId], at: DateTime<Utc>) -> Result<u64, Error> {
        let forgiven = sqlx::query!(
            r#"
            WITH accused AS (
                SELECT p.id FROM UNNEST($1::uuid[]) AS i(id) JOIN push_notifications p ON p.id = i.id
                WHERE p.finished_at IS NULL AND p.lease_token IS NULL AND p.replayed_after < p.attempts
                ORDER BY p.id FOR UPDATE OF p)
            UPDATE push_notifications p
            SET replayed_after = p.attempts, updated_at = now(),
                next_attempt_at = CASE WHEN p.next_attempt_at IS NOT NULL THEN least(p.next_attempt_at, $2) END
            FROM accused WHERE p.id = accused.id
            "#,
            &column(ids, |id| id.uuid()),
            at,
        )
        .execute(&self.pool)
        .await?;
        Ok(forgiven.rows_affected())
    }
}
