//! API keys.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::key::{KeyDigest, Role};
use domain::scope::Scope;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{Act, Error, Store, column, stored};

/// An API key as it is stored; the key itself is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// Its identifier.
    pub id: Uuid,
    /// What its makers call it.
    pub name: String,
    /// What it allows.
    pub roles: Vec<Role>,
    /// Whose it is, when it has the role of a reseller; that one has no other role beside it.
    pub reseller_id: Option<String>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// Who made it, as the audit log names them. Lists and [`Store::find_key`] say so, of the keys that it has an entry of.
    pub created_by: Option<String>,
    /// When it was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
    /// Who revoked it, in the same way.
    pub revoked_by: Option<String>,
    /// When it ends by itself.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was last looked up for a request, to about a minute.
    pub used_at: Option<DateTime<Utc>>,
    /// What an ingest key is limited to.
    pub scope: Scope,
    /// How many pushes and events together it may hand in a second at each replica, when that is limited.
    pub per_second: Option<u32>,
    /// The first key of those that were rotated into this one: Idempotency-Keys are remembered under it.
    pub successor_of: Option<Uuid>,
}

impl ApiKey {
    /// A key that is made now and has no limits.
    pub fn new(name: String, roles: Vec<Role>, reseller_id: Option<String>, now: DateTime<Utc>) -> Self {
        Self {
            id: Uuid::now_v7(),
            name,
            roles,
            reseller_id,
            created_at: now,
            created_by: None,
            revoked_at: None,
            revoked_by: None,
            expires_at: None,
            used_at: None,
            scope: Scope::default(),
            per_second: None,
            successor_of: None,
        }
    }

    /// When and by whom it was revoked, in words; nothing of one that was not.
    pub fn said_of_revocation(&self) -> Option<String> {
        let at = self.revoked_at?.format("%F %T UTC");
        let by = self.revoked_by.as_ref();
        let by = by.map_or_else(String::new, |by| format!(" by {by}"));
        Some(format!("the key {} was revoked at {at}{by}", self.id))
    }

    /// What the audit log says of it.
    fn details(&self) -> Value {
        let roles: Vec<&str> = self.roles.iter().map(|role| role.as_str()).collect();
        let mut details = json!({ "name": self.name, "roles": roles, "reseller": self.reseller_id });
        let limits = [
            ("expiresAt", self.expires_at.map(|at| json!(at))),
            ("scope", (!self.scope.is_open()).then(|| json!(self.scope))),
            ("perSecond", self.per_second.map(|rate| json!(rate))),
            ("successorOf", self.successor_of.map(|id| json!(id))),
        ];
        for (name, limit) in limits {
            if let Some(limit) = limit {
                details[name] = limit;
            }
        }
        details
    }
}

/// When the key ends that another is rotated into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuccessorEnd {
    /// After as long a life as the old one was made to; never, when that was to end never.
    SameLife,
    /// Never by itself.
    Never,
    /// At this time.
    At(DateTime<Utc>),
}

/// What came of rotating a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyRotated {
    /// It is rotated.
    Done {
        /// The new key.
        into: Box<ApiKey>,
        /// When the old one ends.
        until: DateTime<Utc>,
    },
    /// It was rotated before, into this key, which works.
    Before(Uuid),
    /// It stays: neither the new key nor another one of an administrator would last as long.
    LastAdministrator,
    /// There is no such key, or it was revoked or has expired.
    Unknown,
}

/// What came of revoking a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRevoked {
    /// It is revoked.
    Done,
    /// It stays: no other key of an administrator lasts as long.
    LastAdministrator,
    /// There is no such key, or it was revoked before.
    Unknown,
}

struct Row {
    id: Uuid,
    name: String,
    roles: Vec<String>,
    reseller_id: Option<String>,
    created_at: DateTime<Utc>,
    revoked_at: Option<DateTime<Utc>>,
    expires_at: Option<DateTime<Utc>>,
    used_at: Option<DateTime<Utc>>,
    scope: Option<Value>,
    per_second: Option<i32>,
    successor_of: Option<Uuid>,
}

impl TryFrom<Row> for ApiKey {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let roles = row
            .roles
            .iter()
            .map(|role| stored("role", role))
            .collect::<Result<_, _>>()?;
        let scope = row.scope.map(|scope| {
            Scope::deserialize(&scope).map_err(|_| Error::Corrupt {
                what: "scope of an API key",
                found: scope.to_string(),
            })
        });
        let scope = scope.transpose()?;
        Ok(Self {
            id: row.id,
            name: row.name,
            roles,
            reseller_id: row.reseller_id,
            created_at: row.created_at,
            created_by: None,
            revoked_at: row.revoked_at,
            revoked_by: None,
            expires_at: row.expires_at,
            used_at: row.used_at,
            scope: scope.unwrap_or_default(),
            per_second: row.per_second.map(i32::unsigned_abs),
            successor_of: row.successor_of,
        })
    }
}

impl Store {
    /// Stores a new key, with its entry in the audit log.
    pub async fn create_api_key(&self, key: &ApiKey, digest: &KeyDigest, act: Act<'_>) -> Result<(), Error> {
        let mut transaction = self.pool.begin().await?;
        insert(&mut transaction, key, digest).await?;
        let entry = act.entry("api-key.create", subject(key.id), key.details());
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Stores a new key that no operator made by hand.
    pub async fn insert_api_key(&self, key: &ApiKey, digest: &KeyDigest) -> Result<(), Error> {
        let mut connection = self.pool.acquire().await?;
        insert(&mut connection, key, digest).await
    }

    /// The key with this digest, unless it was revoked or has expired, by the clock of the database: services whose clocks differ agree on it.
    pub async fn find_api_key(&self, digest: &KeyDigest) -> Result<Option<ApiKey>, Error> {
        let row = sqlx::query_as!(
            Row,
            r#"
            SELECT id, name, roles, reseller_id, created_at, revoked_at, expires_at, used_at, scope, per_second, successor_of FROM api_keys
            WHERE digest = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
            "#,
            digest.as_bytes(),
        )
        .fetch_optional(&self.pool)
        .await?;
        row.map(ApiKey::try_from).transpose()
    }

    /// Notes that a key is used now, unless that was noted within a minute. A row that another transaction holds is passed by: a request
    /// does not wait for it.
    pub async fn note_key_use(&self, id: Uuid) -> Result<(), Error> {
        sqlx::query!(
            r#"
            UPDATE api_keys SET used_at = now() WHERE id = (
                SELECT id FROM api_keys WHERE id = $1 AND (used_at IS NULL OR used_at < now() - interval '1 minute')
                FOR NO KEY UPDATE SKIP LOCKED
            )
            "#,
            id,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// The key with this identifier, also one that was revoked or has expired, with who made and who revoked it.
    pub async fn find_key(&self, id: Uuid) -> Result<Option<ApiKey>, Error> {
        let row = sqlx::query_as!(
            Row,
            r#"
            SELECT id, name, roles, reseller_id, created_at, revoked_at, expires_at, used_at, scope, per_second, successor_of FROM api_keys
            WHERE id = $1
            "#,
            id,
        )
        .fetch_optional(&self.pool)
        .await?;
        let mut keys = self.name_who_acted(row.into_iter().collect()).await?;
        Ok(keys.pop())
    }

    /// Every key, the oldest first.
    pub async fn list_api_keys(&self) -> Result<Vec<ApiKey>, Error> {
        let rows = sqlx::query_as!(
            Row,
            r#"
            SELECT id, name, roles, reseller_id, created_at, revoked_at, expires_at, used_at, scope, per_second, successor_of FROM api_keys
            ORDER BY created_at, id
            "#
        )
        .fetch_all(&self.pool)
        .await?;
        self.name_who_acted(rows).await
    }

    /// Keys of a role, of a reseller, or all, the newest first, those before the one with the identifier `before`. Those that were revoked or
    /// have expired only with `ended`.
    pub async fn list_keys(
        &self,
        (role, reseller, ended): (Option<Role>, Option<&str>, bool),
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<ApiKey>, Error> {
        let rows = sqlx::query_as!(
            Row,
            r#"
            SELECT id, name, roles, reseller_id, created_at, revoked_at, expires_at, used_at, scope, per_second, successor_of FROM api_keys
            WHERE ($1::text IS NULL OR $1 = ANY (roles)) AND ($2::text IS NULL OR reseller_id = $2)
              AND ($3 OR revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())) AND ($4::uuid IS NULL OR id < $4)
            ORDER BY id DESC LIMIT $5
            "#,
            role.map(Role::as_str),
            reseller,
            ended,
            before,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        self.name_who_acted(rows).await
    }

    /// The keys, with who made and who revoked each, as far as the audit log says: one look-up for all of them.
    async fn name_who_acted(&self, rows: Vec<Row>) -> Result<Vec<ApiKey>, Error> {
        let keys = rows.into_iter().map(ApiKey::try_from);
        let mut keys = keys.collect::<Result<Vec<_>, _>>()?;
        let subjects = column(&keys, |key| subject(key.id));
        let acts = sqlx::query!(
            r#"
            SELECT subject, action, actor FROM audit_log
            WHERE subject = ANY ($1) AND action IN ('api-key.create', 'api-key.revoke')
            "#,
            &subjects,
        )
        .fetch_all(&self.pool)
        .await?;
        let acts = acts.into_iter().map(|act| ((act.subject, act.action), act.actor));
        let mut acts: HashMap<_, _> = acts.collect();
        for key in &mut keys {
            let subject = subject(key.id);
            let mut by = |action: &str| acts.remove(&(subject.clone(), action.to_owned()));
            (key.created_by, key.revoked_by) = (by("api-key.create"), by("api-key.revoke"));
        }
        Ok(keys)
    }

    /// Keys that were used within the last week and end by themselves in the coming one, the next to end first. Left out are those that were made
    /// to end so soon, and those that another has been rotated into.
    pub async fn keys_about_to_end(&self, now: DateTime<Utc>, limit: u32) -> Result<Vec<ApiKey>, Error> {
        let rows = sqlx::query_as!(
            Row,
            r#"
            SELECT id, name, roles, reseller_id, created_at, revoked_at, expires_at, used_at, scope, per_second, successor_of FROM api_keys k
            WHERE revoked_at IS NULL AND expires_at > $1 AND expires_at <= $1::timestamptz + interval '7 days'
              AND used_at > $1::timestamptz - interval '7 days' AND expires_at > created_at + interval '7 days'
              AND NOT EXISTS (
                SELECT FROM api_keys n WHERE n.successor_of = coalesce(k.successor_of, k.id) AND n.created_at > k.created_at
                  AND n.revoked_at IS NULL AND (n.expires_at IS NULL OR n.expires_at > k.expires_at)
              )
            ORDER BY expires_at, id LIMIT $2
            "#,
            now,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(ApiKey::try_from).collect()
    }

    /// Revokes a key as [`Store::revoke_api_key`] does, unless it is the last one of an administrator: one that ends earlier, as after a
    /// rotation, does not take its place.
    pub async fn revoke_key_of_several(&self, id: Uuid, act: Act<'_>) -> Result<KeyRevoked, Error> {
        let mut transaction = self.pool.begin().await?;
        if outlasts_administrators(&mut transaction, id, None).await? {
            return Ok(KeyRevoked::LastAdministrator);
        }
        if !revoke(&mut transaction, id, act).await? {
            return Ok(KeyRevoked::Unknown);
        }
        transaction.commit().await?;
        Ok(KeyRevoked::Done)
    }

    /// Makes the key that a key is rotated into: it has the same name, roles and limits, and ends as `end` says. The old one ends at `until`, unless
    /// it ends before. The last key of an administrator is not rotated into one that ends earlier than it. A repetition, as by a caller that has not
    /// got the answer, makes no other.
    pub async fn rotate_api_key(
        &self,
        old: Uuid,
        digest: &KeyDigest,
        (until, end): (DateTime<Utc>, SuccessorEnd),
        act: Act<'_>,
    ) -> Result<KeyRotated, Error> {
        let mut transaction = self.pool.begin().await?;
        let expires_at = match end {
            SuccessorEnd::SameLife => end_of_same_life(&mut transaction, old, act.at).await?,
            SuccessorEnd::Never => None,
            SuccessorEnd::At(at) => Some(at),
        };
        // A new key without an end lasts as long as any. Locked before the old one's row, as for every revocation.
        let is_last =
            expires_at.is_some() && outlasts_administrators(&mut transaction, old, expires_at).await?;
        let row = sqlx::query_as!(
            Row,
            r#"
            UPDATE api_keys SET expires_at = LEAST(expires_at, $2)
            WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3)
            RETURNING id, name, roles, reseller_id, created_at, revoked_at, expires_at, used_at, scope, per_second, successor_of
            "#,
            old,
            until,
            act.at,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else {
            return Ok(KeyRotated::Unknown);
        };
        let old = ApiKey::try_from(row)?;
        let first = old.successor_of.unwrap_or(old.id);
        // Looked for once the old one is locked: a rotation at the same time is over then.
        let before = sqlx::query_scalar!(
            r#"
            SELECT id FROM api_keys
            WHERE successor_of = $1 AND id <> $2 AND created_at >= $3
              AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $4)
            ORDER BY id DESC LIMIT 1
            "#,
            first,
            old.id,
            old.created_at,
            act.at,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        if let Some(before) = before {
            return Ok(KeyRotated::Before(before));
        }
        if is_last {
            return Ok(KeyRotated::LastAdministrator);
        }
        let key = ApiKey {
            expires_at,
            scope: old.scope,
            per_second: old.per_second,
            successor_of: Some(first),
            ..ApiKey::new(old.name, old.roles, old.reseller_id, act.at)
        };
        insert(&mut transaction, &key, digest).await?;
        let until = old.expires_at.unwrap_or(until);
        let mut details = key.details();
        details["successor"] = json!(key.id);
        details["until"] = json!(until);
        for (action, key, details) in [
            ("api-key.rotate", old.id, details),
            ("api-key.create", key.id, key.details()),
        ] {
            let entry = act.entry(action, subject(key), details);
            entry.record(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(KeyRotated::Done {
            into: Box::new(key),
            until,
        })
    }

    /// Revokes a key; `false` when there is none with this identifier that is not revoked yet.
    pub async fn revoke_api_key(&self, id: Uuid, act: Act<'_>) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await?;
        let is_revoked = revoke(&mut transaction, id, act).await?;
        transaction.commit().await?;
        Ok(is_revoked)
    }
}

/// Whether a key is one of an administrator, and all others end earlier than it; so does a successor of it, where one is to take its place that ends.
///
/// Those of administrators are locked, so that two who revoke each other's key at once are not both obeyed.
async fn outlasts_administrators(
    connection: &mut PgConnection,
    id: Uuid,
    successor_ends: Option<DateTime<Utc>>,
) -> Result<bool, Error> {
    let administrators = sqlx::query!(
        r#"
        SELECT id, expires_at FROM api_keys
        WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) AND 'admin' = ANY (roles)
        ORDER BY id FOR NO KEY UPDATE
        "#
    )
    .fetch_all(connection)
    .await?;
    let end = |at: Option<DateTime<Utc>>| at.unwrap_or(DateTime::<Utc>::MAX_UTC);
    let its = administrators.iter().find(|key| key.id == id);
    Ok(its.is_some_and(|it| {
        let others = administrators.iter().filter(|key| key.id != id);
        let mut ends = others.map(|other| end(other.expires_at)).chain(successor_ends);
        ends.all(|other| other < end(it.expires_at))
    }))
}

/// When a key ends that is made now and lasts as long as this one was made to.
///
/// A rotation has brought forward the end of the key that it was of. So the latest key of the line is asked, which may be revoked: its end is as
/// it was made.
async fn end_of_same_life(
    connection: &mut PgConnection,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, Error> {
    let latest = sqlx::query!(
        r#"
        SELECT created_at, expires_at FROM api_keys
        WHERE id = $1 OR successor_of = (SELECT coalesce(o.successor_of, o.id) FROM api_keys o WHERE o.id = $1)
        ORDER BY id DESC LIMIT 1
        "#,
        id,
    )
    .fetch_optional(connection)
    .await?;
    Ok(latest.and_then(|key| now.checked_add_signed(key.expires_at? - key.created_at)))
}

async fn revoke(connection: &mut PgConnection, id: Uuid, act: Act<'_>) -> Result<bool, Error> {
    let key = sqlx::query!(
        "UPDATE api_keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING name, roles, reseller_id",
        id,
        act.at,
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(key) = key else {
        return Ok(false);
    };
    let details = json!({ "name": key.name, "roles": key.roles, "reseller": key.reseller_id });
    let entry = act.entry("api-key.revoke", subject(id), details);
    entry.record(connection).await?;
    Ok(true)
}

async fn insert(connection: &mut PgConnection, key: &ApiKey, digest: &KeyDigest) -> Result<(), Error> {
    let roles: Vec<&str> = key.roles.iter().map(|role| role.as_str()).collect();
    sqlx::query!(
        r#"
            INSERT INTO api_keys (id, name, digest, roles, reseller_id, created_at, expires_at, scope, per_second, successor_of)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
            "#,
        key.id,
        key.name,
        digest.as_bytes(),
        &roles as &[&str],
        key.reseller_id,
        key.created_at,
        key.expires_at,
        (!key.scope.is_open()).then(|| json!(key.scope)),
        key.per_second.map(u32::cast_signed),
        key.successor_of,
    )
    .execute(connection)
    .await?;
    Ok(())
}

fn subject(key: Uuid) -> String {
    format!("api-key/{key}")
}
