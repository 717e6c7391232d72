//! What is stored of Web Push, for operators: how much in which month, and of one client.

use chrono::{DateTime, NaiveDate, Utc};
use domain::month::Month;
use sqlx::query_file;
use uuid::Uuid;

use super::{Client, month_of};
use crate::{Error, Store};

/// Up to how many rows of a month are counted; more are estimated.
const COUNTED: u32 = 10_000;
/// Most messages of a client that are listed.
pub const LISTED: u32 = 100;

/// What one month holds. Above 10,000 a number is PostgreSQL's estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredMonth {
    /// Which.
    pub month: Month,
    /// Clients that read it.
    pub clients: u64,
    /// Of those that were counted, how many have a node: some of them have left it since.
    pub with_node: u64,
    /// Messages in it, expired ones included.
    pub messages: u64,
}

/// A client with what waits for it, for those who look into a case: no content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredClient {
    /// Its row.
    pub client: Client,
    /// Up to [`LISTED`] of its messages in the order in which it gets them, those of all months, expired ones included.
    pub messages: Vec<StoredMessage>,
}

/// A message that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// The month that it is in.
    pub month: Month,
    /// The channel.
    pub channel: Uuid,
    /// Its topic.
    pub topic: Option<String>,
    /// The message id that senders and clients see.
    pub version: String,
    /// When it was received.
    pub received_at: DateTime<Utc>,
    /// When its TTL is over.
    pub expires_at: DateTime<Utc>,
    /// The size of its encrypted body; `None` when it has none.
    pub bytes: Option<u32>,
}

impl Store {
    /// How much each month holds, the oldest first.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails.
    pub async fn webpush_months(&self) -> Result<Vec<StoredMonth>, Error> {
        let rows = query_file!("queries/webpush/months.sql", i64::from(COUNTED))
            .fetch_all(&self.pool)
            .await?;
        let number = |counted: i64, estimated: i64| {
            let known = if counted < i64::from(COUNTED) {
                counted
            } else {
                counted.max(estimated)
            };
            known.unsigned_abs()
        };
        Ok(rows
            .into_iter()
            .map(|row| StoredMonth {
                month: month_of(row.month),
                clients: number(row.clients, row.clients_estimated),
                with_node: row.connected.unsigned_abs(),
                messages: number(row.messages, row.messages_estimated),
            })
            .collect())
    }

    /// Whether a month has its partitions.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails.
    pub async fn webpush_has_month(&self, month: Month) -> Result<bool, Error> {
        Ok(sqlx::query_scalar!(
            r#"
            SELECT bool_and(to_regclass(parent || to_char($1::date, '"_y"YYYY"m"MM')) IS NOT NULL) AS "complete!"
            FROM unnest(ARRAY ['webpush_clients', 'webpush_messages']) AS t(parent)
            "#,
            month.first_day(),
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// Reads a client with what waits for it; `None` when it is unknown.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails.
    pub async fn webpush_stored_client(&self, uaid: Uuid) -> Result<Option<StoredClient>, Error> {
        let Some(client) = self.webpush_client(uaid).await? else {
            return Ok(None);
        };
        let rows = sqlx::query_as!(
            Row,
            r#"
            SELECT month, channel, topic, version, received_at, expires_at, octet_length(data) AS bytes
            FROM webpush_messages
            WHERE uaid = $1
            ORDER BY month, topic IS NULL, id
            LIMIT $2
            "#,
            uaid,
            i64::from(LISTED),
        )
        .fetch_all(&self.pool)
        .await?;
        let messages = rows.into_iter().map(StoredMessage::from).collect();
        Ok(Some(StoredClient { client, messages }))
    }
}

struct Row {
    month: NaiveDate,
    channel: Uuid,
    topic: Option<String>,
    version: String,
    received_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
    bytes: Option<i32>,
}

impl From<Row> for StoredMessage {
    fn from(row: Row) -> Self {
        Self {
            month: month_of(row.month),
            channel: row.channel,
            topic: row.topic,
            version: row.version,
            received_at: row.received_at,
            expires_at: row.expires_at,
            bytes: row.bytes.map(i32::unsigned_abs),
        }
    }
}
