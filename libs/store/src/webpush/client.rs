//! The rows of clients: where each is connected, what it has registered, and the month that it reads.

use chrono::{DateTime, NaiveDate, Utc};
use domain::month::Month;
use sqlx::{PgExecutor, query_file_as};
use uuid::Uuid;

use super::{Client, Route, again, month_of};
use crate::{Error, Store, column};

/// What became of a channel that was to be registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registered {
    /// The client has it, now or for some time.
    Yes {
        /// The month that the client reads. It is the one given only where the row was made.
        month: Month,
    },
    /// The client has as many as it may have.
    Full,
}

struct Row {
    uaid: Uuid,
    month: NaiveDate,
    node: Option<String>,
    connected_at: DateTime<Utc>,
    router_type: String,
    channels: Vec<Uuid>,
    created_at: DateTime<Utc>,
}

impl From<Row> for Client {
    fn from(row: Row) -> Self {
        Self {
            uaid: row.uaid,
            month: month_of(row.month),
            node: row.node,
            connected_at: row.connected_at,
            router_type: row.router_type,
            channels: row.channels,
            created_at: row.created_at,
        }
    }
}

impl Store {
    /// Reads a client.
    pub async fn webpush_client(&self, uaid: Uuid) -> Result<Option<Client>, Error> {
        let row = query_file_as!(Row, "queries/webpush/client.sql", uaid)
            .fetch_optional(&self.pool)
            .await?;
        Ok(row.map(Client::from))
    }

    /// Reads for each pair of a client and a channel what a sender has to know; `None` for a client that is unknown.
    pub async fn webpush_routes(&self, wanted: &[(Uuid, Uuid)]) -> Result<Vec<Option<Route>>, Error> {
        let mut routes = vec![None; wanted.len()];
        let mut connection = self.resting.take().await?;
        let rows = sqlx::query!(
            r#"
            SELECT w.place AS "place!", c.node, c.connected_at, c.router_type, w.channel = ANY (c.channels) AS "subscribed!"
            FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS w(uaid, channel, place)
            JOIN webpush_clients c ON c.uaid = w.uaid
            "#,
            &column(wanted, |(uaid, _)| *uaid),
            &column(wanted, |(_, channel)| *channel),
        )
        .fetch_all(&mut *connection)
        .await?;
        connection.rest();
        for row in rows {
            let place = usize::try_from(row.place - 1).ok();
            if let Some(route) = place.and_then(|place| routes.get_mut(place)) {
                *route = Some(Route {
                    node: row.node,
                    connected_at: row.connected_at,
                    router_type: row.router_type,
                    subscribed: row.subscribed,
                });
            }
        }
        Ok(routes)
    }

    /// Notes where a client is connected, unless it has connected elsewhere later; returns the client as it is then. When its node or
    /// time is not the one given, another node noted a later connection, which may be one whose clock is ahead: a node that still
    /// has the client notes it once more, with a time after the one it read.
    pub async fn webpush_connect(
        &self,
        uaid: Uuid,
        node: &str,
        connected_at: DateTime<Utc>,
    ) -> Result<Option<Client>, Error> {
        again(async || {
            let row = query_file_as!(Row, "queries/webpush/connect.sql", uaid, node, connected_at)
                .fetch_optional(&self.pool)
                .await?;
            match row {
                Some(row) => Ok(Some(Client::from(row))),
                None => self.webpush_client(uaid).await,
            }
        })
        .await
    }

    /// Registers a channel of a client, which may have `most`. The row of a client that is not stored yet is made, in `month` and as
    /// connected to `node` (to none if it is not connected).
    pub async fn webpush_register(
        &self,
        uaid: Uuid,
        node: Option<&str>,
        connected_at: DateTime<Utc>,
        month: Month,
        channel: Uuid,
        most: u32,
    ) -> Result<Registered, Error> {
        again(async || {
            if let Some(registered) = add_channel(&self.pool, uaid, channel, most).await? {
                return Ok(registered);
            }
            let mut transaction = self.pool.begin().await?;
            // Two that make the row of one client, each in the month of its own clock, come one after another.
            sqlx::query!(
                "SELECT pg_advisory_xact_lock(hashtextextended('postrider.webpush' || $1, 0))",
                uaid.simple().to_string(),
            )
            .execute(&mut *transaction)
            .await?;
            let registered = match add_channel(&mut *transaction, uaid, channel, most).await? {
                Some(registered) => registered,
                None => {
                    sqlx::query!(
                        r#"
                        INSERT INTO webpush_clients (uaid, month, node, connected_at, router_type, channels, created_at)
                        VALUES ($1, $2, $3, $4, 'webpush', ARRAY[$5::uuid], $4)
                        "#,
                        uaid,
                        month.first_day(),
                        node,
                        connected_at,
                        channel,
                    )
                    .execute(&mut *transaction)
                    .await?;
                    Registered::Yes { month }
                }
            };
            transaction.commit().await?;
            Ok(registered)
        })
        .await
    }

    /// Takes a channel from a client and deletes what waits in it; `false` when the client did not have it.
    pub async fn webpush_unregister(&self, uaid: Uuid, channel: Uuid) -> Result<bool, Error> {
        again(async || {
            let mut transaction = self.pool.begin().await?;
            let month = sqlx::query_scalar!(
                r#"
                UPDATE webpush_clients SET channels = array_remove(channels, $2)
                WHERE uaid = $1 AND $2 = ANY (channels)
                RETURNING month
                "#,
                uaid,
                channel,
            )
            .fetch_optional(&mut *transaction)
            .await?;
            // A statement of its own: only it sees what was stored while the first one waited for the row.
            if let Some(month) = month {
                sqlx::query!(
                    "DELETE FROM webpush_messages WHERE uaid = $1 AND month = $2 AND channel = $3",
                    uaid,
                    month,
                    channel,
                )
                .execute(&mut *transaction)
                .await?;
            }
            transaction.commit().await?;
            Ok(month.is_some())
        })
        .await
    }

    /// Notes that a client is not connected to a node, unless it has connected since `connected_at`; tells whether it did.
    pub async fn webpush_forget_node(
        &self,
        uaid: Uuid,
        node: &str,
        connected_at: DateTime<Utc>,
    ) -> Result<bool, Error> {
        again(async || {
            let forgotten = sqlx::query!(
                "UPDATE webpush_clients SET node = NULL WHERE uaid = $1 AND node = $2 AND connected_at = $3",
                uaid,
                node,
                connected_at,
            )
            .execute(&self.pool)
            .await?;
            Ok(forgotten.rows_affected() > 0)
        })
        .await
    }

    /// Deletes a client with its channels and all that waits for it; `false` when there was none.
    pub async fn webpush_reset(&self, uaid: Uuid) -> Result<bool, Error> {
        again(async || {
            let mut transaction = self.pool.begin().await?;
            let gone = sqlx::query!("DELETE FROM webpush_clients WHERE uaid = $1", uaid)
                .execute(&mut *transaction)
                .await?;
            sqlx::query!("DELETE FROM webpush_messages WHERE uaid = $1", uaid)
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await?;
            Ok(gone.rows_affected() > 0)
        })
        .await
    }
}

/// `None` when the client is not stored.
async fn add_channel(
    executor: impl PgExecutor<'_>,
    uaid: Uuid,
    channel: Uuid,
    most: u32,
) -> Result<Option<Registered>, Error> {
    let row = sqlx::query!(
        r#"
        UPDATE webpush_clients SET channels = CASE
            WHEN $2 = ANY (channels) OR cardinality(channels) >= $3 THEN channels
            ELSE channels || $2 END
        WHERE uaid = $1
        RETURNING month, $2 = ANY (channels) AS "has!"
        "#,
        uaid,
        channel,
        i32::try_from(most).unwrap_or(i32::MAX),
    )
    .fetch_optional(executor)
    .await?;
    Ok(row.map(|row| match row.has {
        true => Registered::Yes {
            month: month_of(row.month),
        },
        false => Registered::Full,
    }))
}
