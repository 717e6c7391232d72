//! Storing pushes: many in one statement, so that the commit is paid once for all of them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::push::{PushId, PushRequest, PushStatus};
use sqlx::Connection as _;
use uuid::Uuid;

use crate::{Error, Store, interval};

/// A push to store.
#[derive(Debug, Clone)]
pub struct NewPush {
    /// Its identifier.
    pub id: PushId,
    /// What was asked for.
    pub request: PushRequest,
    /// `SCHEDULED`, `PENDING` or `IN_MEMORY`.
    pub status: PushStatus,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// W3C trace context of the request.
    pub traceparent: Option<String>,
    /// Makes a repeated request return the first answer.
    pub idempotency: Option<IdempotencyKey>,
}

/// A caller's promise that requests with the same key are the same request.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// The API key that presented it.
    pub owner: Uuid,
    /// The header's value.
    pub key: String,
    /// SHA-256 over the request body.
    pub request: [u8; 32],
}

/// What became of a push that was to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// It is stored.
    New,
    /// The same request was stored before, as this push.
    Repeated(PushId),
    /// Its idempotency key belongs to a different request.
    KeyReused,
}

/// The columns of a batch, as the arrays that `UNNEST` takes.
#[derive(Default)]
struct Columns<'a> {
    ids: Vec<Uuid>,
    statuses: Vec<&'static str>,
    platforms: Vec<&'static str>,
    prototypes: Vec<Option<&'a str>>,
    push_keys: Vec<&'a str>,
    messages: Vec<&'a str>,
    crons: Vec<Option<&'a str>>,
    windows: Vec<Option<DateTime<Utc>>>,
    traceparents: Vec<Option<&'a str>>,
    created: Vec<DateTime<Utc>>,
}

impl<'a> Columns<'a> {
    fn of(pushes: impl Iterator<Item = &'a NewPush>) -> Self {
        let mut columns = Self::default();
        for push in pushes {
            columns.ids.push(push.id.uuid());
            columns.statuses.push(push.status.as_str());
            columns.platforms.push(push.request.platform.as_str());
            columns
                .prototypes
                .push(push.request.message_prototype_key.as_deref());
            columns.push_keys.push(&push.request.push_key);
            columns.messages.push(&push.request.message);
            columns.crons.push(push.request.cron_expression.as_deref());
            columns.windows.push(push.request.first_window);
            columns.traceparents.push(push.traceparent.as_deref());
            columns.created.push(push.created_at);
        }
        columns
    }
}

impl Store {
    /// Stores a batch in one transaction; the answers are in the order of `pushes`. A push that is `IN_MEMORY` is taken
    /// for lost after `queue_lease` unless something happens to it.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then none of the batch is stored, unless the connection broke during the
    /// commit, where either all of it is or none.
    pub async fn insert_pushes(
        &self,
        pushes: &[NewPush],
        queue_lease: Duration,
    ) -> Result<Vec<Inserted>, Error> {
        let mut connection = self.resting.take().await?;
        if pushes.iter().all(|push| push.idempotency.is_none()) {
            insert(&mut *connection, &Columns::of(pushes.iter()), queue_lease).await?;
            connection.rest();
            return Ok(vec![Inserted::New; pushes.len()]);
        }
        let mut transaction = connection.begin().await?;
        let verdicts = super::idempotency::remember(&mut transaction, pushes).await?;
        let new = pushes
            .iter()
            .zip(&verdicts)
            .filter(|(_, v)| **v == Inserted::New)
            .map(|(push, _)| push);
        insert(&mut *transaction, &Columns::of(new), queue_lease).await?;
        transaction.commit().await?;
        connection.rest();
        Ok(verdicts)
    }
}

async fn insert<'e>(
    executor: impl sqlx::PgExecutor<'e>,
    columns: &Columns<'_>,
    queue_lease: Duration,
) -> Result<(), Error> {
    sqlx::query!(
        r#"
        INSERT INTO push_notifications
            (id, status, platform, message_prototype_key, push_key, message, cron_expression, next_attempt_at,
             traceparent, created_at, leased_until)
        SELECT i.*, CASE WHEN i.status = 'IN_MEMORY' THEN now() + $11::interval END
        FROM UNNEST($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                    $8::timestamptz[], $9::text[], $10::timestamptz[])
            AS i(id, status, platform, prototype, push_key, message, cron, next_attempt_at, traceparent, created_at)
        "#,
        &columns.ids,
        &columns.statuses as &[&str],
        &columns.platforms as &[&str],
        &columns.prototypes as &[Option<&str>],
        &columns.push_keys as &[&str],
        &columns.messages as &[&str],
        &columns.crons as &[Option<&str>],
        &columns.windows as &[Option<DateTime<Utc>>],
        &columns.traceparents as &[Option<&str>],
        &columns.created,
        interval(queue_lease),
    )
    .execute(executor)
    .await?;
    Ok(())
}
