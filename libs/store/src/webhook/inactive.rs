//! Notifications that wait in vain end: those of a subscription which gets nothing any more, and those that have become
//! too old. They end as `GIVEN_UP`, with the reason and a dead letter, in one statement; one that had been delivered and was to be sent again stays
//! delivered. What they are about stays stored.
//!
//! The dead letter of one that became too old is open: a quota, a pause or a backlog let it wait in vain, and it can be
//! replayed. That of one whose subscription ended is discarded from the beginning: no engineer on call has to mend that, and
//! a subscription that is switched off with all of its backlog must not call anybody. Its reseller's replay sends it.
//!
//! Those that are being sent or are in a queue are left to the engines that claim them.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::listing::first_id_at;
use crate::{Cutoff, Error, Store};

/// How many subscriptions with waiting notifications are looked at in one statement.
const PAGE: i32 = 200;

/// Where a walk over the subscriptions with waiting notifications stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InactiveWalk {
    /// Those on this stretch that were looked for.
    pub found: Vec<Uuid>,
    /// Where to go on; `None` at the end.
    pub next: Option<Uuid>,
}

/// How many notifications have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// All of them.
    pub count: u64,
    /// Those that were given up. The others had been delivered before they were to be sent again, and stay so.
    pub given_up: u64,
}

impl Store {
    /// Looks for subscriptions that get nothing any more and have notifications waiting, on a stretch that begins after
    /// `after`.
    ///
    /// It hops from one subscription to the next over the indexes of what waits, so its cost depends on how many have
    /// something waiting, not on how much waits, nor on how many there are or ever were.
    pub async fn inactive_with_waiting(&self, after: Uuid) -> Result<InactiveWalk, Error> {
        let rows = sqlx::query!(
            r#"
            WITH RECURSIVE hop (id, number) AS (
                SELECT $1::uuid, 0
                UNION ALL
                SELECT least((SELECT n.subscription_id FROM notifications n
                              WHERE n.status = 'PENDING' AND n.subscription_id > h.id
                              ORDER BY n.subscription_id LIMIT 1),
                             (SELECT n.subscription_id FROM notifications n
                              WHERE n.status = 'SCHEDULED' AND n.subscription_id > h.id
                              ORDER BY n.subscription_id LIMIT 1),
                             (SELECT n.subscription_id FROM notifications n
                              WHERE n.status = 'RETRY' AND n.subscription_id > h.id
                              ORDER BY n.subscription_id LIMIT 1)),
                       h.number + 1
                FROM hop h WHERE h.id IS NOT NULL AND h.number < $2)
            SELECT h.id, coalesce(s.state = 'DEACTIVATED' OR s.deleted_at IS NOT NULL, false) AS "found!",
                   h.number = $2 AS "last!"
            FROM hop h LEFT JOIN subscriptions s ON s.id = h.id
            WHERE h.number > 0
            "#,
            after,
            PAGE,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(walk(rows.into_iter().map(|row| (row.id, row.found, row.last))))
    }

    /// Looks for subscriptions, active or not, that have notifications waiting whose events are from before the cutoff, on
    /// a stretch that begins after `after`. It hops as the other walk does; of what waits, only the partitions of old
    /// months are read.
    pub async fn expired_with_waiting(&self, after: Uuid, cutoff: Cutoff) -> Result<InactiveWalk, Error> {
        let rows = sqlx::query!(
            r#"
            WITH RECURSIVE hop (id, number) AS (
                SELECT $1::uuid, 0
                UNION ALL
                SELECT least((SELECT n.subscription_id FROM notifications n
                              WHERE n.status = 'PENDING' AND n.subscription_id > h.id AND n.id < $3
                              ORDER BY n.subscription_id LIMIT 1),
                             (SELECT n.subscription_id FROM notifications n
                              WHERE n.status = 'SCHEDULED' AND n.subscription_id > h.id AND n.id < $3
                              ORDER BY n.subscription_id LIMIT 1),
                             (SELECT n.subscription_id FROM notifications n
                              WHERE n.status = 'RETRY' AND n.subscription_id > h.id AND n.id < $3
                              ORDER BY n.subscription_id LIMIT 1)),
                       h.number + 1
                FROM hop h WHERE h.id IS NOT NULL AND h.number < $2)
            SELECT h.id, h.id IS NOT NULL AS "found!", h.number = $2 AS "last!"
            FROM hop h
            WHERE h.number > 0
            "#,
            after,
            PAGE,
            first_id_at(cutoff.before()),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(walk(rows.into_iter().map(|row| (row.id, row.found, row.last))))
    }

    /// Ends at most `limit` notifications of a subscription in each of the three ways to wait, the oldest first, if it
    /// really gets nothing any more.
    pub async fn end_inactive(
        &self,
        subscription: Uuid,
        limit: u32,
        at: DateTime<Utc>,
    ) -> Result<Ended, Error> {
        let ended = sqlx::query_file!(
            "queries/webhook/end_inactive.sql",
            subscription,
            i64::from(limit),
            at,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(Ended {
            count: ended.count.unsigned_abs(),
            given_up: ended.given_up.unsigned_abs(),
        })
    }

    /// Ends at most `limit` notifications of a subscription in each of the three ways to wait that have waited for too
    /// long: their events are from before the cutoff, and so is the last request to send them again.
    pub async fn end_expired(
        &self,
        subscription: Uuid,
        cutoff: Cutoff,
        limit: u32,
        at: DateTime<Utc>,
    ) -> Result<Ended, Error> {
        // The condition on the id leaves young months alone. That on the times spares what a replay has made of an old
        // event lately, and what a reseller or an operator had sent again.
        let ended = sqlx::query_file!(
            "queries/webhook/end_expired.sql",
            subscription,
            first_id_at(cutoff.before()),
            cutoff.before(),
            i64::from(limit),
            at,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(Ended {
            count: ended.count.unsigned_abs(),
            given_up: ended.given_up.unsigned_abs(),
        })
    }
}

/// What a stretch says: of each hop the subscription, whether it was looked for, and whether the stretch ends there.
fn walk(hops: impl Iterator<Item = (Option<Uuid>, bool, bool)>) -> InactiveWalk {
    let (mut found, mut next) = (Vec::new(), None);
    for (id, looked_for, last) in hops {
        found.extend(id.filter(|_| looked_for));
        next = next.or(id.filter(|_| last));
    }
    InactiveWalk { found, next }
}
