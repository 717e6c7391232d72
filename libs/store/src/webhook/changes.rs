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
            if read.is_due {
                self.go_on_listening(reseller).await?;
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
        let mut next = ChangeCursor {
            transaction: settled.max(complete_from),
            change: 0,
        };
        let mut items = Vec::new();
        for row in &rows {
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
                // One of the future is of another database, as after a restore.
                missed: after
                    .is_some_and(|after| after.transaction < complete_from || after.transaction > latest),
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

    /// Says that the reseller still listens, and forgets what has been there for ten minutes. Once a minute of each.
    async fn go_on_listening(&self, reseller: &str) -> Result<(), Error> {
        sqlx::query!(
            r#"
            WITH listening AS (
                -- Another one that is at it does it all.
                SELECT reseller_id FROM change_listeners
                WHERE reseller_id = $1 AND until < clock_timestamp() + interval '4 minutes'
                FOR UPDATE SKIP LOCKED),
            forgotten AS (
                DELETE FROM notification_changes n USING listening l
                WHERE n.reseller_id = l.reseller_id AND (n.xid, n.id) IN (
                    SELECT o.xid, o.id FROM notification_changes o
                    WHERE o.reseller_id = $1 AND o.at < clock_timestamp() - interval '10 minutes'
                    ORDER BY o.xid, o.id LIMIT 500000)
                RETURNING n.xid)
            UPDATE change_listeners l
            SET until = clock_timestamp() + interval '5 minutes',
                -- All of a transaction counts as forgotten when a part of it is.
                complete_from = greatest(l.complete_from, (SELECT (max(f.xid::text::bigint) + 1)::text::xid8 FROM forgotten f))
            FROM listening WHERE l.reseller_id = listening.reseller_id
            "#,
            reseller,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}
