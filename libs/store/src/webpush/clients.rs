//! The clients one after the other, for those who look into a case.
//!
//! They are read along their identifiers, which is the one index that there is: where a client is connected changes with each connection, and
//! an index of that would have to be written each time. So a part looks at a bounded number of rows, and may be short although others follow.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Client, month_of};
use crate::{Error, Store};

/// Most rows that are looked at for one part.
const EXAMINED_MAX: u32 = 10_000;

/// Which clients; all by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientFilter {
    /// Connected to this node, when that was last noted.
    pub node: Option<String>,
    /// Whether they are connected, as it was last noted.
    pub connected: Option<bool>,
    /// Connected last at this time or later.
    pub since: Option<DateTime<Utc>>,
}

/// A part of the list of clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clients {
    /// What is in it, in the order of identifiers.
    pub items: Vec<Client>,
    /// How many rows were looked at for it.
    pub examined: u64,
    /// The identifier behind which the next part begins, if there may be more.
    pub next: Option<Uuid>,
}

impl Store {
    /// Clients that match, in the order of their identifiers, behind `after`.
    pub async fn webpush_clients(
        &self,
        filter: &ClientFilter,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Clients, Error> {
        let wanted = limit + 1;
        let depth = match *filter == ClientFilter::default() {
            true => wanted,
            false => EXAMINED_MAX.max(wanted),
        };
        let rows = sqlx::query!(
            r#"
            WITH looked AS MATERIALIZED (
                SELECT uaid, month, node, connected_at, router_type, channels, created_at
                FROM webpush_clients WHERE uaid > $1 ORDER BY uaid LIMIT $2)
            SELECT l.examined AS "examined!", l.last AS "last?", c.uaid AS "uaid?", c.month AS "month?", c.node AS "node?",
                   c.connected_at AS "connected_at?", c.router_type AS "router_type?", c.channels AS "channels?", c.created_at AS "created_at?"
            FROM (SELECT count(*) AS examined, (array_agg(uaid ORDER BY uaid DESC))[1] AS last FROM looked) AS l
            -- How far it was looked is told also where nothing matches.
            LEFT JOIN LATERAL (
                SELECT * FROM looked
                WHERE ($3::text IS NULL OR node = $3) AND ($4::boolean IS NULL OR (node IS NOT NULL) = $4)
                  AND ($5::timestamptz IS NULL OR connected_at >= $5)
                ORDER BY uaid LIMIT $6) AS c ON true
            ORDER BY c.uaid
            "#,
            after.unwrap_or(Uuid::nil()),
            i64::from(depth),
            filter.node.as_deref(),
            filter.connected,
            filter.since,
            i64::from(wanted),
        )
        .fetch_all(&self.pool)
        .await?;
        let looked = rows.first();
        let examined = looked.map_or(0, |row| row.examined.unsigned_abs());
        let last = looked.and_then(|row| row.last);
        let clients = rows.into_iter().filter_map(|row| {
            Some(Client {
                uaid: row.uaid?,
                month: month_of(row.month?),
                node: row.node,
                connected_at: row.connected_at?,
                router_type: row.router_type?,
                channels: row.channels?,
                created_at: row.created_at?,
            })
        });
        let mut items: Vec<Client> = clients.collect();
        let next = if items.len() > limit as usize {
            items.truncate(limit as usize);
            items.last().map(|client| client.uaid)
        } else {
            last.filter(|_| examined >= u64::from(depth))
        };
        Ok(Clients {
            items,
            examined,
            next,
        })
    }
}
