//! Web Push: clients with the node that they are connected to, and the messages that wait for them, by month.
//!
//! A client is in one month at a time. A message is stored into the month that its client is in, by a statement that locks the row of
//! the client, so that stores, moves to another month and connections of one client come one after another: a message is never left
//! in a month that its client has left, and a client that connects either reads the message or is named to who stored it. What has
//! been acknowledged is deleted by identifier; nothing here goes by the time at which a message was received.
//!
//! PostgreSQL refuses (40001) a statement that waited for a row which then went to another month: it is done again here.

mod client;
mod clients;
mod message;
mod month;
mod stored;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use domain::month::Month;
use uuid::Uuid;

use crate::Error;

pub use client::Registered;
pub use clients::{ClientFilter, Clients};
pub use message::{Message, MessageBody, NewMessage, Newer, Stored};
pub use stored::{LISTED, StoredClient, StoredMessage, StoredMonth};

/// A user agent that registered at least one channel, at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its identifier.
    pub uaid: Uuid,
    /// The month whose messages it reads.
    pub month: Month,
    /// The node that it is connected to: the URL of the node's router port.
    pub node: Option<String>,
    /// When it last connected, by the clock of that node; PostgreSQL keeps microseconds.
    pub connected_at: DateTime<Utc>,
    /// How it is reached: `webpush`.
    pub router_type: String,
    /// The channels that it has registered, in order.
    pub channels: Vec<Uuid>,
    /// When it was first stored.
    pub created_at: DateTime<Utc>,
}

/// What a sender has to know of a client and one of its channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The node that it is connected to.
    pub node: Option<String>,
    /// Since when; needed to clear the node.
    pub connected_at: DateTime<Utc>,
    /// How it is reached: `webpush`.
    pub router_type: String,
    /// Whether it has the channel.
    pub subscribed: bool,
}

/// How often a statement that met a client on its way to another month is done.
const ATTEMPTS: u32 = 5;

/// Does again what PostgreSQL gave up in favour of another transaction.
async fn again<T, F: Future<Output = Result<T, Error>>>(operation: impl Fn() -> F) -> Result<T, Error> {
    let mut attempt = 1;
    loop {
        match operation().await {
            Err(Error::Unavailable(sqlx::Error::Database(error)))
                if attempt < ATTEMPTS && matches!(error.code().as_deref(), Some("40001" | "40P01")) =>
            {
                attempt += 1;
            }
            done => return done,
        }
    }
}

fn month_of(first_day: NaiveDate) -> Month {
    Month::containing(first_day.and_time(NaiveTime::MIN).and_utc())
}
