//! The change feed of a reseller: which of its notifications changed, for those who follow them.
//!
//! Changes are noted by a trigger, for resellers that listen: that is one who has asked within the last minutes. The cursor goes by
//! transactions, and stays behind the oldest that still writes: what commits late is not passed over, however late.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{Error, Store};

/// How far a follower has read. What it holds is for this database alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeCursor {
    /// The transaction.
    pub transaction: i64,
    /// The change in it.
    pub change: i64,
}

/// That a notification came or changed. What of it changed is for those to look up who want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// To which subscription it goes.
    pub subscription: Uuid,
    /// Which notification.
    pub notification: Uuid,
    /// When.
    pub at: DateTime<Utc>,
}

/// A part of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// In the order in which they are to be read. What changed several times is there several times.
    pub items: Vec<Change>,
    /// From where to read on.
    pub next: ChangeCursor,
    /// Since when changes are noted.
    pub since: DateTime<Utc>,
    /// Whether changes since the cursor are lost: its follower was away for too long.
    pub missed: bool,
    /// Whether nothing before `next` is still to come: what was written before changes were noted is committed. A follower that begins, or
    /// has missed some, waits for that before it reads its lists, which hold the rest then.
    pub whole: bool,
    /// Whether there are more at once.
    pub more: bool,
}

/// The feed as it is now.
struct Read {
    changes: Changes,
    /// Whether it is time to say that the reseller still listens.
    is_due: bool,
}

impl Store {
    /// What changed of a reseller's notifications after the cursor; without one, from now on. To ask is to listen, for the next minutes.
    pub async fn changes(
        &self,
        reseller: &str,
        after: Option<ChangeCursor>,
        limit: u32,
    ) -> Result<Changes, Error> {
        if let Some(read) = self.read_changes(reseller, after, limit).await? {
            // What was read is good whatever comes of this: the next question tries it again.
            if read.is_due
                && let Err(error) = self.go_on_listening(reseller).await
            {
                tracing::warn!(%error, reseller, "it could not be written down that changes are still followed");
            }
            return Ok(read.changes);
        }
        self.begin_to_listen(reseller).await?;
        let read = self.read_changes(reseller, after, limit).await?;
        Ok(read.ok_or(sqlx::Error::RowNotFound)?.changes)
    }

    /// `None` when the reseller does not listen. That it does and what there is are of one snapshot.
    async fn read_changes(
        &self,
        reseller: &str,
        after: Option<ChangeCursor>,
        limit: u32,
    ) -> Result<Option<Read>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT l.since, l.complete_from::text::bigint AS "complete_from!",
                   l.until < clock_timestamp() + interval '4 minutes' AS "is_due!",
                   s.settled::text::bigint AS "settled!", s.latest::text::bigint AS "latest!",
                   c.xid::text::bigint AS "xid?", c.id AS "id?", c.subscription_id AS "subscription?",
                   c.notification_id AS "notification?", c.at AS "at?"
            FROM (SELECT pg_snapshot_xmin(n) AS settled, pg_snapshot_xmax(n) AS latest FROM pg_current_snapshot() AS n) AS s
            JOIN change_listeners l ON l.reseller_id = $1
            LEFT JOIN LATERAL (
                SELECT n.* FROM notification_changes n
                WHERE n.reseller_id = $1 AND (n.xid, n.id) > ($2::text::xid8, $3) AND n.xid < s.settled
                ORDER BY n.xid, n.id LIMIT $4) AS c ON true
            -- The half minute is for the statement that says that it still listens to be committed within.
            WHERE l.until > clock_timestamp() + interval '30 seconds' AND l.complete_from IS NOT NULL
            ORDER BY c.xid, c.id
            "#,
            reseller,
            // Nothing is read without a cursor.
            after.map_or(i64::MAX, |after| after.transaction).to_string(),
            after.map_or(0, |after| after.change),
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        let Some(facts) = rows.first() else {
            return Ok(None);
        };
        let (since, complete_from, is_due) = (facts.since, facts.complete_from, facts.is_due);
        let (settled, latest) = (facts.settled, facts.latest);
        // Before changes are whole this is a cursor that has missed some.
        let mut next = ChangeCursor {
            transaction: settled,
            change: 0,
        };
        // One of the future is of another database, as after a restore.
        let missed =
            after.is_some_and(|after| after.transaction < complete_from || after.transaction > latest);
        let mut items = Vec::new();
        // Of changes of which some are lost, the others are of no use.
        for row in rows.iter().filter(|_| !missed) {
            let (Some(xid), Some(id), Some(subscription), Some(notification), Some(at)) =
                (row.xid, row.id, row.subscription, row.notification, row.at)
            else {
                continue;
            };
            items.push(Change {
                subscription,
                notification,
                at,
            });
            if items.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
                next = ChangeCursor {
                    transaction: xid,
                    change: id,
                };
            }
        }
        Ok(Some(Read {
            changes: Changes {
                more: next.change > 0,
                items,
                next,
                since,
                whole: settled >= complete_from,
                missed,
            },
            is_due,
        }))
    }

    /// Has changes noted from now on.
    async fn begin_to_listen(&self, reseller: &str) -> Result<(), Error> {
        sqlx::query!(
            r#"
            INSERT INTO change_listeners AS l (reseller_id, since, until)
            VALUES ($1, clock_timestamp(), clock_timestamp() + interval '5 minutes')
            ON CONFLICT (reseller_id) DO UPDATE
            SET since = excluded.since, complete_from = NULL, until = excluded.until
            WHERE l.until <= clock_timestamp() + interval '30 seconds'
            "#,
            reseller,
        )
        .execute(&self.pool)
        .await?;
        // Of a database before a restore, and never to be reached.
        sqlx::query!(
            "DELETE FROM notification_changes WHERE reseller_id = $1 AND xid >= pg_snapshot_xmax(pg_current_snapshot())",
            reseller,
        )
        .execute(&self.pool)
        .await?;
        // Only now that this is committed: each transaction that begins to write from here on sees it.
        sqlx::query!(
            r#"
            UPDATE change_listeners SET complete_from = pg_snapshot_xmax(pg_current_snapshot())
            WHERE reseller_id = $1 AND complete_from IS NULL
            "#,
            reseller,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Says that the reseller still listens, while it is certain that it does: the statement is over before the time is.
    async fn go_on_listening(&self, reseller: &str) -> Result<(), Error> {
        sqlx::query!(
            r#"
            UPDATE change_listeners SET until = clock_timestamp() + interval '5 minutes'
            WHERE reseller_id = $1 AND until > clock_timestamp() + interval '10 seconds'
            "#,
            reseller,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Forgets changes that have been there for ten minutes, of those who still listen; returns how many. About `limit` at once of each of
    /// them, and fewer than `limit` when there are no more.
    pub async fn forget_read_changes(&self, limit: u32) -> Result<u64, Error> {
        let listeners = sqlx::query_scalar!("SELECT reseller_id FROM change_listeners WHERE until > now()")
            .fetch_all(&self.pool)
            .await?;
        let mut most = 0;
        for reseller in listeners {
            let forgotten = sqlx::query_scalar!(
                r#"
                WITH forgotten AS (
                    DELETE FROM notification_changes n
                    WHERE n.reseller_id = $1 AND n.at < clock_timestamp() - interval '10 minutes'
                      -- Up to the last of so many, in their order.
                      AND n.xid <= coalesce((SELECT o.xid FROM notification_changes o WHERE o.reseller_id = $1
                                             ORDER BY o.xid, o.id OFFSET $2 LIMIT 1), '9223372036854775807'::xid8)
                    RETURNING n.xid),
                -- All of a transaction counts as forgotten when a part of it is.
                told AS (
                    UPDATE change_listeners l
                    SET complete_from = greatest(l.complete_from, (SELECT (max(f.xid::text::bigint) + 1)::text::xid8 FROM forgotten f))
                    WHERE l.reseller_id = $1 AND EXISTS (SELECT FROM forgotten))
                SELECT count(*) AS "count!" FROM forgotten
                "#,
                reseller,
                i64::from(limit),
            )
            .fetch_one(&self.pool)
            .await?;
            most = most.max(u64::try_from(forgotten).unwrap_or_default());
        }
        Ok(most)
    }
}
