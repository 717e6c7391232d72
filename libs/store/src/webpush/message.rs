//! The messages that wait for clients.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use domain::month::Month;
use sqlx::{query_file, query_file_as};
use uuid::Uuid;

use super::again;
use crate::{Error, Store, column};

/// An encrypted body and what is needed to decrypt it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageBody {
    /// As it was received.
    pub data: Vec<u8>,
    /// Its content coding: `aes128gcm` or `aesgcm`.
    pub encoding: String,
    /// The header `Encryption` of `aesgcm`.
    pub encryption: Option<String>,
    /// The header `Crypto-Key` of `aesgcm`.
    pub crypto_key: Option<String>,
}

/// A message to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// The client.
    pub uaid: Uuid,
    /// The channel.
    pub channel: Uuid,
    /// Replaces the message of the same client, channel and topic.
    pub topic: Option<String>,
    /// The message id that senders and clients see.
    pub version: String,
    /// When it was received.
    pub received_at: DateTime<Utc>,
    /// When its TTL is over.
    pub expires_at: DateTime<Utc>,
    /// What it says, if it says anything.
    pub body: Option<MessageBody>,
}

/// A message of a topic that a client has, though it was not stored: what was stored for the topic before it is old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newer {
    /// The channel.
    pub channel: Uuid,
    /// The topic.
    pub topic: Box<str>,
    /// When the message was received.
    pub received_at: DateTime<Utc>,
}

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// By which it is deleted. A message that replaces another one has its own.
    pub id: i64,
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
    /// What it says, if it says anything.
    pub body: Option<MessageBody>,
}

/// What became of a message that was to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// It is stored.
    Yes {
        /// The node that the client was connected to in that moment, to be told of it: a client that connects later reads it.
        node: Option<String>,
        /// When the client last connected; needed to clear the node.
        connected_at: DateTime<Utc>,
    },
    /// The client is unknown.
    NoClient,
    /// The client does not have the channel.
    NoChannel,
}

struct Row {
    id: i64,
    channel: Uuid,
    topic: Option<String>,
    version: String,
    received_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
    data: Option<Vec<u8>>,
    encoding: Option<String>,
    encryption: Option<String>,
    crypto_key: Option<String>,
}

impl From<Row> for Message {
    fn from(row: Row) -> Self {
        let body = row.data.zip(row.encoding).map(|(data, encoding)| MessageBody {
            data,
            encoding,
            encryption: row.encryption,
            crypto_key: row.crypto_key,
        });
        Self {
            id: row.id,
            channel: row.channel,
            topic: row.topic,
            version: row.version,
            received_at: row.received_at,
            expires_at: row.expires_at,
            body,
        }
    }
}

impl Store {
    /// Stores messages, each into the month that its client is in; returns in order what became of each. All of them, or none when it
    /// fails.
    pub async fn webpush_store(&self, messages: &[NewMessage]) -> Result<Vec<Stored>, Error> {
        let replaced = replaced(messages);
        let rows = again(async || {
            let mut connection = self.resting.take().await?;
            let rows = query_file!(
                "queries/webpush/store.sql",
                &column(messages, |m| m.uaid),
                &column(messages, |m| m.channel),
                &column(messages, |m| m.topic.as_deref()) as &[Option<&str>],
                &column(messages, |m| m.version.as_str()) as &[&str],
                &column(messages, |m| m.received_at),
                &column(messages, |m| m.expires_at),
                &of_body(messages, |body| Some(body.data.as_slice())) as &[Option<&[u8]>],
                &of_body(messages, |body| Some(body.encoding.as_str())) as &[Option<&str>],
                &of_body(messages, |body| body.encryption.as_deref()) as &[Option<&str>],
                &of_body(messages, |body| body.crypto_key.as_deref()) as &[Option<&str>],
                &replaced,
            )
            .fetch_all(&mut *connection)
            .await?;
            connection.rest();
            Ok(rows)
        })
        .await?;
        let mut stored = vec![Stored::NoClient; messages.len()];
        for row in rows {
            let place = usize::try_from(row.place - 1).ok();
            if let Some(stored) = place.and_then(|place| stored.get_mut(place)) {
                *stored = if row.subscribed {
                    Stored::Yes {
                        node: row.node,
                        connected_at: row.connected_at,
                    }
                } else {
                    Stored::NoChannel
                };
            }
        }
        Ok(stored)
    }

    /// Reads up to `limit` messages that wait for a client in a month and have not expired: those with a topic first, then in the order
    /// in which they were stored. Those in `outstanding` are left out.
    pub async fn webpush_waiting(
        &self,
        uaid: Uuid,
        month: Month,
        now: DateTime<Utc>,
        outstanding: &[i64],
        limit: u32,
    ) -> Result<Vec<Message>, Error> {
        let rows = query_file_as!(
            Row,
            "queries/webpush/waiting.sql",
            uaid,
            month.first_day(),
            now,
            outstanding,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(Message::from).collect())
    }

    /// Deletes messages of a client that it has acknowledged; returns how many there were.
    pub async fn webpush_acked(&self, uaid: Uuid, month: Month, ids: &[i64]) -> Result<u64, Error> {
        again(async || {
            let deleted = sqlx::query!(
                "DELETE FROM webpush_messages WHERE uaid = $1 AND month = $2 AND id = ANY ($3)",
                uaid,
                month.first_day(),
                ids,
            )
            .execute(&self.pool)
            .await?;
            Ok(deleted.rows_affected())
        })
        .await
    }

    /// Deletes the messages of a client that have these message ids; returns those of them that waited.
    pub async fn webpush_delete(&self, uaid: Uuid, versions: &[&str]) -> Result<Vec<String>, Error> {
        again(async || {
            Ok(sqlx::query_scalar!(
                "DELETE FROM webpush_messages WHERE uaid = $1 AND version = ANY ($2) RETURNING version",
                uaid,
                versions as &[&str],
            )
            .fetch_all(&self.pool)
            .await?)
        })
        .await
    }

    /// Deletes what was received for topics before messages that the client has; returns how many there were. What replaces such a
    /// message meanwhile is looked at as well, and stays when it is the newer one.
    pub async fn webpush_delete_older(&self, uaid: Uuid, newer: &[&Newer]) -> Result<u64, Error> {
        again(async || {
            let deleted = sqlx::query!(
                r#"
                DELETE FROM webpush_messages m
                USING unnest($2::uuid[], $3::text[], $4::timestamptz[]) AS n(channel, topic, received_at)
                WHERE m.uaid = $1 AND m.channel = n.channel AND m.topic = n.topic AND m.received_at < n.received_at
                "#,
                uaid,
                &column(newer, |n| n.channel),
                &column(newer, |n| &*n.topic) as &[&str],
                &column(newer, |n| n.received_at),
            )
            .execute(&self.pool)
            .await?;
            Ok(deleted.rows_affected())
        })
        .await
    }

    /// Deletes up to `limit` messages of a client whose TTL is over in a month, so that they need not wait for the month to go; returns
    /// how many there were.
    pub async fn webpush_delete_expired(
        &self,
        uaid: Uuid,
        month: Month,
        now: DateTime<Utc>,
        limit: u32,
    ) -> Result<u64, Error> {
        again(async || {
            let deleted = sqlx::query!(
                r#"
                DELETE FROM webpush_messages
                WHERE uaid = $1 AND month = $2 AND expires_at <= $3 AND id = ANY (ARRAY(
                    SELECT id FROM webpush_messages WHERE uaid = $1 AND month = $2 AND expires_at <= $3 ORDER BY id LIMIT $4))
                "#,
                uaid,
                month.first_day(),
                now,
                i64::from(limit),
            )
            .execute(&self.pool)
            .await?;
            Ok(deleted.rows_affected())
        })
        .await
    }

    /// Moves a client with its channels from one month to another, unless a message with TTL left waits in the first; tells whether
    /// it did.
    pub async fn webpush_move(
        &self,
        uaid: Uuid,
        from: Month,
        to: Month,
        now: DateTime<Utc>,
    ) -> Result<bool, Error> {
        again(async || {
            let mut transaction = self.pool.begin().await?;
            // A statement of its own: only the one after it sees what was stored while this one waited for the row.
            sqlx::query!(
                "SELECT month FROM webpush_clients WHERE uaid = $1 AND month = $2 FOR UPDATE",
                uaid,
                from.first_day(),
            )
            .fetch_optional(&mut *transaction)
            .await?;
            let moved = sqlx::query!(
                r#"
                UPDATE webpush_clients SET month = $3
                WHERE uaid = $1 AND month = $2 AND NOT EXISTS (
                    SELECT FROM webpush_messages WHERE uaid = $1 AND month = $2 AND expires_at > $4)
                "#,
                uaid,
                from.first_day(),
                to.first_day(),
                now,
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await?;
            Ok(moved.rows_affected() > 0)
        })
        .await
    }
}

/// Which messages are replaced by a later one of the same batch: a statement may write a row only once.
fn replaced(messages: &[NewMessage]) -> Vec<bool> {
    let mut later = HashSet::new();
    let mut replaced: Vec<bool> = messages
        .iter()
        .rev()
        .map(|m| match &m.topic {
            Some(topic) => !later.insert((m.uaid, m.channel, topic.as_str())),
            None => false,
        })
        .collect();
    replaced.reverse();
    replaced
}

fn of_body<'a, T>(
    messages: &'a [NewMessage],
    value: impl Fn(&'a MessageBody) -> Option<T>,
) -> Vec<Option<T>> {
    column(messages, |message| message.body.as_ref().and_then(&value))
}
