//! Storing events together with the notifications that they become: many in one transaction, so that the commit is paid
//! once for all of them.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::notification::{NotificationId, NotificationStatus};
use sqlx::{Connection as _, PgConnection, Postgres, Transaction};
use uuid::Uuid;

use crate::webhook::event_key::{self, EventKey, Known};
use crate::{Error, Store, column, interval, stored};

/// An event to store.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// Its identifier: a version 7 UUID.
    pub id: Uuid,
    /// What receivers know it by.
    pub event_id: String,
    /// Whose event it is.
    pub reseller_id: String,
    /// Its type.
    pub event_type: String,
    /// The bytes of every request body that tells of it.
    pub body: String,
    /// When it happened.
    pub occurred_at: DateTime<Utc>,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// W3C trace context of the request.
    pub traceparent: Option<String>,
    /// Each makes a repeated request return the first answer.
    pub keys: Vec<EventKey>,
}

/// What became of an event that was to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InsertedEvent {
    /// It is stored, with these notifications.
    New(Vec<FannedOut>),
    /// The same request was stored before, as this event.
    Repeated(Uuid),
    /// One of its keys, by its place in [`NewEvent::keys`], belongs to a different request.
    KeyReused(usize),
}

/// A notification that an event became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FannedOut {
    /// Its identifier.
    pub id: NotificationId,
    /// Who is to be notified.
    pub subscription_id: Uuid,
    /// `IN_MEMORY`: its message is to be published now. `PENDING`: it waits.
    pub status: NotificationStatus,
}

impl Store {
    /// Stores a batch in one transaction; the answers are in the order of `events`. Notifications are `IN_MEMORY` when
    /// `queued` says so and their subscription is not paused, and are taken for lost after `queue_lease`.
    ///
    /// Of the events that share a key within the batch the first is stored.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then none of the batch is stored, unless the connection broke during the
    /// commit, where either all of it is or none.
    pub async fn insert_events(
        &self,
        events: &[NewEvent],
        queued: bool,
        queue_lease: Duration,
    ) -> Result<Vec<InsertedEvent>, Error> {
        self.insert_unless(|_| false, events, queued, queue_lease).await
    }

    /// As [`Store::insert_events`], for events that one caller handed in as one: when a key of any of them belongs to
    /// another request, none is stored.
    pub async fn insert_events_together(
        &self,
        events: &[NewEvent],
        queued: bool,
        queue_lease: Duration,
    ) -> Result<Vec<InsertedEvent>, Error> {
        let refused = |answer: &InsertedEvent| matches!(answer, InsertedEvent::KeyReused(_));
        self.insert_unless(refused, events, queued, queue_lease).await
    }

    /// Stores a batch, or nothing of it when any of its answers is `refused`.
    async fn insert_unless(
        &self,
        refused: fn(&InsertedEvent) -> bool,
        events: &[NewEvent],
        queued: bool,
        queue_lease: Duration,
    ) -> Result<Vec<InsertedEvent>, Error> {
        let mut connection = self.resting.take().await?;
        // Without keys nothing is known of any, and one statement is a transaction by itself.
        if events.iter().all(|event| event.keys.is_empty()) {
            let all: Vec<&NewEvent> = events.iter().collect();
            let fanned = insert(&mut connection, &all, queued, queue_lease).await?;
            connection.rest();
            return Ok(answers(events, fanned, &HashMap::new()));
        }
        let mut transaction = connection.begin().await?;
        let inserted = insert_new(&mut transaction, events, queued, queue_lease).await?;
        if inserted.iter().any(refused) {
            transaction.rollback().await?;
        } else {
            transaction.commit().await?;
        }
        connection.rest();
        Ok(inserted)
    }
}

async fn insert_new(
    transaction: &mut Transaction<'_, Postgres>,
    events: &[NewEvent],
    queued: bool,
    queue_lease: Duration,
) -> Result<Vec<InsertedEvent>, Error> {
    let known = event_key::remember(transaction, events).await?;
    let new: Vec<&NewEvent> = events
        .iter()
        .filter(|event| !known.contains_key(&event.id))
        .collect();
    let fanned = insert(transaction, &new, queued, queue_lease).await?;
    Ok(answers(events, fanned, &known))
}

fn answers(
    events: &[NewEvent],
    mut fanned: HashMap<Uuid, Vec<FannedOut>>,
    known: &HashMap<Uuid, Known>,
) -> Vec<InsertedEvent> {
    events
        .iter()
        .map(|event| match known.get(&event.id) {
            Some(Known::Same(first)) => InsertedEvent::Repeated(*first),
            Some(Known::Other(key)) => InsertedEvent::KeyReused(*key),
            None => InsertedEvent::New(fanned.remove(&event.id).unwrap_or_default()),
        })
        .collect()
}

async fn insert(
    connection: &mut PgConnection,
    events: &[&NewEvent],
    queued: bool,
    queue_lease: Duration,
) -> Result<HashMap<Uuid, Vec<FannedOut>>, Error> {
    let mut fanned: HashMap<Uuid, Vec<FannedOut>> = HashMap::new();
    if events.is_empty() {
        return Ok(fanned);
    }
    let text = |f: fn(&NewEvent) -> &str| events.iter().map(|event| f(event)).collect::<Vec<_>>();
    // The rule of filters stays in `domain`: the database only looks for what would let the event through.
    let patterns: Vec<String> = events
        .iter()
        .map(|event| domain::subscription::patterns_of(&event.event_type).join(" "))
        .collect();
    let rows = sqlx::query_file!(
        "queries/webhook/insert_events.sql",
        &column(events, |event| event.id),
        &text(|event| &event.event_id) as &[&str],
        &text(|event| &event.reseller_id) as &[&str],
        &text(|event| &event.event_type) as &[&str],
        &text(|event| &event.body) as &[&str],
        &patterns,
        &column(events, |event| event.occurred_at),
        &column(events, |event| event.created_at),
        &column(events, |event| event.traceparent.as_deref()) as &[Option<&str>],
        queued,
        interval(queue_lease),
    )
    .fetch_all(connection)
    .await?;
    for row in rows {
        fanned.entry(row.event).or_default().push(FannedOut {
            id: row.id.into(),
            subscription_id: row.subscription_id,
            status: stored("notification status", &row.status)?,
        });
    }
    Ok(fanned)
}
