//! Idempotency keys: which push answered a request that comes again.

use domain::push::PushId;
use sqlx::{PgConnection, Postgres, Transaction};
use uuid::Uuid;

use crate::push::{IdempotencyKey, Inserted, NewPush};
use crate::{Error, Store, column};

/// Records the keys of a batch and tells for each push whether it is new. Pushes without a key are.
///
/// Of two equal keys, in one batch or in two at once, the database lets one through; the other then reads the first
/// one's row. The batch is recorded in key order, so that two batches cannot wait for each other.
pub(crate) async fn remember(
    transaction: &mut Transaction<'_, Postgres>,
    pushes: &[NewPush],
) -> Result<Vec<Inserted>, Error> {
    let mut keyed: Vec<(&IdempotencyKey, &NewPush)> = pushes
        .iter()
        .filter_map(|push| Some((push.idempotency.as_ref()?, push)))
        .collect();
    keyed.sort_by_key(|(key, _)| (key.owner, key.key.as_str()));
    let recorded = record(transaction, &keyed).await?;
    let known = if recorded.len() < keyed.len() {
        look_up(transaction, &keyed).await?
    } else {
        Vec::new()
    };
    Ok(pushes
        .iter()
        .map(|push| inserted(push, &recorded, &known))
        .collect())
}

struct Known {
    owner: Uuid,
    key: String,
    push_id: Uuid,
    request: Vec<u8>,
}

fn inserted(push: &NewPush, recorded: &[Uuid], known: &[Known]) -> Inserted {
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

async fn record(
    connection: &mut PgConnection,
    keyed: &[(&IdempotencyKey, &NewPush)],
) -> Result<Vec<Uuid>, Error> {
    Ok(sqlx::query_scalar!(
        r#"
        INSERT INTO idempotency_keys (owner, key, push_id, request, created_at)
        SELECT * FROM UNNEST($1::uuid[], $2::text[], $3::uuid[], $4::bytea[], $5::timestamptz[])
        ON CONFLICT DO NOTHING
        RETURNING push_id
        "#,
        &column(keyed, |(key, _)| key.owner),
        &column(keyed, |(key, _)| key.key.as_str()) as &[&str],
        &column(keyed, |(_, push)| push.id.uuid()),
        &column(keyed, |(key, _)| key.request.as_slice()) as &[&[u8]],
        &column(keyed, |(_, push)| push.created_at),
    )
    .fetch_all(connection)
    .await?)
}

async fn look_up(
    connection: &mut PgConnection,
    keyed: &[(&IdempotencyKey, &NewPush)],
) -> Result<Vec<Known>, Error> {
    Ok(sqlx::query_as!(
        Known,
        r#"
        SELECT k.owner, k.key, k.push_id, k.request
        FROM idempotency_keys k
        JOIN UNNEST($1::uuid[], $2::text[]) AS i(owner, key) ON k.owner = i.owner AND k.key = i.key
        "#,
        &column(keyed, |(key, _)| key.owner),
        &column(keyed, |(key, _)| key.key.as_str()) as &[&str],
    )
    .fetch_all(connection)
    .await?)
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
}
