//! Idempotency keys: which push answered a request that comes again.

use chrono::{DateTime, Utc};
use domain::push::PushId;
use sqlx::{PgConnection, Postgres, Transaction};
use uuid::Uuid;

use crate::push::{IdempotencyKey, Inserted, NewPush};
use crate::{Cutoff, Error, Store};

/// Records the keys of a batch and tells for each push whether it is new. Pushes without a key are.
///
/// Of two equal keys, in one batch or in two at once, the database lets one through; the other then reads the first
/// one's row. The batch is recorded in key order, so that two batches cannot wait for each other.
pub(crate) async fn remember(
    transaction: &mut Transaction<'_, Postgres>,
    pushes: &[NewPush],
) -> Result<Vec<Inserted>, Error> {
    let mut keyed: Vec<&NewPush> = pushes.iter().filter(|push| push.idempotency.is_some()).collect();
    keyed.sort_by(|a, b| key_of(a).cmp(&key_of(b)));
    let recorded = record(transaction, &keyed).await?;
    let known = if recorded.len() < keyed.len() {
        look_up(transaction, &keyed).await?
    } else {
        Vec::new()
    };
    Ok(pushes
        .iter()
        .map(|push| verdict(push, &recorded, &known))
        .collect())
}

fn key_of(push: &NewPush) -> Option<(Uuid, &str)> {
    push.idempotency.as_ref().map(|key| (key.owner, key.key.as_str()))
}

struct Known {
    owner: Uuid,
    key: String,
    push_id: Uuid,
    request: Vec<u8>,
}

fn verdict(push: &NewPush, recorded: &[Uuid], known: &[Known]) -> Inserted {
    let Some(key) = &push.idempotency else {
        return Inserted::New;
    };
    if recorded.contains(&push.id.uuid()) {
        return Inserted::New;
    }
    match known.iter().find(|k| k.owner == key.owner && k.key == key.key) {
        Some(first) if first.request == key.request => Inserted::Repeated(first.push_id.into()),
        _ => Inserted::KeyReused,
    }
}

async fn record(connection: &mut PgConnection, keyed: &[&NewPush]) -> Result<Vec<Uuid>, Error> {
    let owners: Vec<Uuid> = keyed
        .iter()
        .filter_map(|p| p.idempotency.as_ref().map(|k| k.owner))
        .collect();
    let keys: Vec<&str> = keyed
        .iter()
        .filter_map(|p| p.idempotency.as_ref().map(|k| k.key.as_str()))
        .collect();
    let requests: Vec<&[u8]> = keyed
        .iter()
        .filter_map(|p| p.idempotency.as_ref().map(|k| k.request.as_slice()))
        .collect();
    let ids: Vec<Uuid> = keyed.iter().map(|p| p.id.uuid()).collect();
    let created: Vec<DateTime<Utc>> = keyed.iter().map(|p| p.created_at).collect();
    let recorded = sqlx::query_scalar!(
        r#"
        INSERT INTO idempotency_keys (owner, key, push_id, request, created_at)
        SELECT * FROM UNNEST($1::uuid[], $2::text[], $3::uuid[], $4::bytea[], $5::timestamptz[])
        ON CONFLICT DO NOTHING
        RETURNING push_id
        "#,
        &owners,
        &keys as &[&str],
        &ids,
        &requests as &[&[u8]],
        &created,
    )
    .fetch_all(connection)
    .await?;
    Ok(recorded)
}

async fn look_up(connection: &mut PgConnection, keyed: &[&NewPush]) -> Result<Vec<Known>, Error> {
    let (owners, keys): (Vec<Uuid>, Vec<&str>) = keyed.iter().filter_map(|p| key_of(p)).unzip();
    let known = sqlx::query_as!(
        Known,
        r#"
        SELECT k.owner, k.key, k.push_id, k.request
        FROM idempotency_keys k
        JOIN UNNEST($1::uuid[], $2::text[]) AS i(owner, key) ON k.owner = i.owner AND k.key = i.key
        "#,
        &owners,
        &keys as &[&str],
    )
    .fetch_all(connection)
    .await?;
    Ok(known)
}

impl Store {
    /// The push that answered the same request before, if one did.
    pub async fn recall_push(&self, key: &IdempotencyKey) -> Result<Option<PushId>, Error> {
        let first = sqlx::query_scalar!(
            "SELECT push_id FROM idempotency_keys WHERE owner = $1 AND key = $2 AND request = $3",
            key.owner,
            key.key,
            key.request.as_slice(),
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(first.map(PushId::from))
    }

    /// Forgets at most `limit` keys that were recorded before the cutoff; returns how many it forgot.
    pub async fn forget_idempotency_keys(&self, cutoff: Cutoff, limit: i64) -> Result<u64, Error> {
        let forgotten = sqlx::query!(
            r#"
            DELETE FROM idempotency_keys
            WHERE (owner, key) IN (
                SELECT owner, key FROM idempotency_keys WHERE created_at < $1
                ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)
            "#,
            cutoff.before(),
            limit,
        )
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }
}
