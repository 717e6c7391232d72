//! Which event answered a request that comes again: by the caller's own event id, or by its `Idempotency-Key`.

use std::collections::HashMap;

use sqlx::{PgConnection, Postgres, Transaction};
use uuid::Uuid;

use crate::webhook::NewEvent;
use crate::{Error, column};

/// A caller's promise that requests with the same key are the same request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventKey {
    /// Within which keys are compared: a reseller's event ids, or an API key's `Idempotency-Key`s.
    pub scope: String,
    /// The key.
    pub key: String,
    /// SHA-256 over the request.
    pub request: [u8; 32],
}

/// What is known of an event that is not new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// The same request, stored as this event.
    Same(Uuid),
    /// Another request has the key of this place.
    Other(usize),
}

struct Recorded {
    scope: String,
    key: String,
    event: Uuid,
    request: Vec<u8>,
}

/// Records the keys of a batch; returns the events that are not new.
///
/// An event is new when each of its keys is its own. What is recorded for one that is not goes again before the commit:
/// nothing may stand for an event that is not stored. Keys are recorded in their order, so that two batches cannot wait
/// for each other.
pub(crate) async fn remember(
    transaction: &mut Transaction<'_, Postgres>,
    events: &[NewEvent],
) -> Result<HashMap<Uuid, Known>, Error> {
    let mut keyed: Vec<(&EventKey, &NewEvent)> = events
        .iter()
        .flat_map(|event| event.keys.iter().map(move |key| (key, event)))
        .collect();
    // Of two equal keys in one batch the earlier event's comes first, and is the one that is recorded.
    keyed.sort_by(|(a, _), (b, _)| (&a.scope, &a.key).cmp(&(&b.scope, &b.key)));
    if record(transaction, &keyed).await? == keyed.len() {
        return Ok(HashMap::new());
    }
    let recorded: HashMap<(String, String), Recorded> = look_up(transaction, &keyed)
        .await?
        .into_iter()
        .map(|row| ((row.scope.clone(), row.key.clone()), row))
        .collect();
    let mut known: HashMap<Uuid, Known> = HashMap::new();
    for event in events {
        let outcome = match known_key(event, &recorded) {
            None => continue,
            // The first one with the key may itself turn out to be a repetition.
            Some(Known::Same(first)) => known.get(&first).copied().unwrap_or(Known::Same(first)),
            Some(other) => other,
        };
        known.insert(event.id, outcome);
    }
    keyed.retain(|(_, event)| known.contains_key(&event.id));
    forget(transaction, &keyed).await?;
    Ok(known)
}

/// `None` when the event is new.
fn known_key(event: &NewEvent, recorded: &HashMap<(String, String), Recorded>) -> Option<Known> {
    let mut first = None;
    for (place, key) in event.keys.iter().enumerate() {
        let row = recorded.get(&(key.scope.clone(), key.key.clone()))?;
        if row.event == event.id {
            continue;
        }
        if row.request != key.request || first.is_some_and(|first| first != row.event) {
            return Some(Known::Other(place));
        }
        first = Some(row.event);
    }
    first.map(Known::Same)
}

async fn record(connection: &mut PgConnection, keyed: &[(&EventKey, &NewEvent)]) -> Result<usize, Error> {
    let recorded = sqlx::query!(
        r#"
        INSERT INTO event_keys (scope, key, event, request, created_at)
        SELECT * FROM UNNEST($1::text[], $2::text[], $3::uuid[], $4::bytea[], $5::timestamptz[])
        ON CONFLICT DO NOTHING
        "#,
        &column(keyed, |(key, _)| key.scope.as_str()) as &[&str],
        &column(keyed, |(key, _)| key.key.as_str()) as &[&str],
        &column(keyed, |(_, event)| event.id),
        &column(keyed, |(key, _)| key.request.as_slice()) as &[&[u8]],
        &column(keyed, |(_, event)| event.created_at),
    )
    .execute(connection)
    .await?;
    Ok(usize::try_from(recorded.rows_affected()).unwrap_or(usize::MAX))
}

async fn look_up(
    connection: &mut PgConnection,
    keyed: &[(&EventKey, &NewEvent)],
) -> Result<Vec<Recorded>, Error> {
    Ok(sqlx::query_as!(
        Recorded,
        r#"
        SELECT k.scope, k.key, k.event, k.request
        FROM UNNEST($1::text[], $2::text[]) AS i(scope, key)
        JOIN event_keys k ON k.scope = i.scope AND k.key = i.key
        "#,
        &column(keyed, |(key, _)| key.scope.as_str()) as &[&str],
        &column(keyed, |(key, _)| key.key.as_str()) as &[&str],
    )
    .fetch_all(connection)
    .await?)
}

/// Removes the rows that these events recorded themselves.
async fn forget(connection: &mut PgConnection, keyed: &[(&EventKey, &NewEvent)]) -> Result<(), Error> {
    sqlx::query!(
        r#"
        DELETE FROM event_keys k
        USING UNNEST($1::text[], $2::text[], $3::uuid[]) AS i(scope, key, event)
        WHERE k.scope = i.scope AND k.key = i.key AND k.event = i.event
        "#,
        &column(keyed, |(key, _)| key.scope.as_str()) as &[&str],
        &column(keyed, |(key, _)| key.key.as_str()) as &[&str],
        &column(keyed, |(_, event)| event.id),
    )
    .execute(connection)
    .await?;
    Ok(())
}
