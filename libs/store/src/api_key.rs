//! API keys.

use chrono::{DateTime, Utc};
use domain::key::{KeyDigest, Role};
use serde::Serialize;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{Act, Error, Store, stored};

/// An API key as it is stored; the key itself is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// When it was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
}

/// What came of revoking a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRevoked {
    /// It is revoked.
    Done,
    /// It stays: without it no administrator would be left.
    LastAdministrator,
    /// There is no such key, or it was revoked before.
    Unknown,
}

pub(crate) struct Row {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) roles: Vec<String>,
    pub(crate) reseller_id: Option<String>,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) revoked_at: Option<DateTime<Utc>>,
}

impl TryFrom<Row> for ApiKey {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let roles = row
            .roles
            .iter()
            .map(|role| stored("role", role))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            id: row.id,
            name: row.name,
            roles,
            reseller_id: row.reseller_id,
            created_at: row.created_at,
            revoked_at: row.revoked_at,
        })
    }
}

impl Store {
    /// Stores a new key, with its entry in the audit log.
    pub async fn create_api_key(&self, key: &ApiKey, digest: &KeyDigest, act: Act<'_>) -> Result<(), Error> {
        let mut transaction = self.pool.begin().await?;
        insert(&mut transaction, key, digest).await?;
        let roles: Vec<&str> = key.roles.iter().map(|role| role.as_str()).collect();
        let details = json!({ "name": key.name, "roles": roles, "reseller": key.reseller_id });
        let entry = act.entry("api-key.create", subject(key.id), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Stores a new key that no operator made by hand.
    pub async fn insert_api_key(&self, key: &ApiKey, digest: &KeyDigest) -> Result<(), Error> {
        let mut connection = self.pool.acquire().await?;
        insert(&mut connection, key, digest).await
    }

    /// The key with this digest, unless it was revoked.
    pub async fn find_api_key(&self, digest: &KeyDigest) -> Result<Option<ApiKey>, Error> {
        let row = sqlx::query_as!(
            Row,
            r#"
            SELECT id, name, roles, reseller_id, created_at, revoked_at FROM api_keys
            WHERE digest = $1 AND revoked_at IS NULL
            "#,
            digest.as_bytes(),
        )
        .fetch_optional(&self.pool)
        .await?;
        row.map(ApiKey::try_from).transpose()
    }

    /// Every key, the oldest first.
    pub async fn list_api_keys(&self) -> Result<Vec<ApiKey>, Error> {
        let rows = sqlx::query_as!(
            Row,
            "SELECT id, name, roles, reseller_id, created_at, revoked_at FROM api_keys ORDER BY created_at, id"
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(ApiKey::try_from).collect()
    }

    /// Keys of a role, of a reseller, or all, the newest first, those before the one with the identifier `before`. Revoked ones only with
    /// `revoked`.
    pub async fn list_keys(
        &self,
        (role, reseller, revoked): (Option<Role>, Option<&str>, bool),
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<ApiKey>, Error> {
        let rows = sqlx::query_as!(
            Row,
            r#"
            SELECT id, name, roles, reseller_id, created_at, revoked_at FROM api_keys
            WHERE ($1::text IS NULL OR $1 = ANY (roles)) AND ($2::text IS NULL OR reseller_id = $2)
              AND ($3 OR revoked_at IS NULL) AND ($4::uuid IS NULL OR id < $4)
            ORDER BY id DESC LIMIT $5
            "#,
            role.map(Role::as_str),
            reseller,
            revoked,
            before,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(ApiKey::try_from).collect()
    }

    /// Revokes a key as [`Store::revoke_api_key`] does, unless it is the last one of an administrator.
    pub async fn revoke_key_of_several(&self, id: Uuid, act: Act<'_>) -> Result<KeyRevoked, Error> {
        let mut transaction = self.pool.begin().await?;
        // Locked, so that two administrators who revoke each other's key at once are not both obeyed.
        let administrators = sqlx::query_scalar!(
            "SELECT id FROM api_keys WHERE revoked_at IS NULL AND 'admin' = ANY (roles) ORDER BY id FOR NO KEY UPDATE"
        )
        .fetch_all(&mut *transaction)
        .await?;
        if administrators == [id] {
            return Ok(KeyRevoked::LastAdministrator);
        }
        if !revoke(&mut transaction, id, act).await? {
            return Ok(KeyRevoked::Unknown);
        }
        transaction.commit().await?;
        Ok(KeyRevoked::Done)
    }

    /// Revokes a key; `false` when there is none with this identifier that is not revoked yet.
    pub async fn revoke_api_key(&self, id: Uuid, act: Act<'_>) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await?;
        let is_revoked = revoke(&mut transaction, id, act).await?;
        transaction.commit().await?;
        Ok(is_revoked)
    }
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
            INSERT INTO api_keys (id, name, digest, roles, reseller_id, created_at)
            VALUES ($1, $2, $3, $4, $5, $6)
            "#,
        key.id,
        key.name,
        digest.as_bytes(),
        &roles as &[&str],
        key.reseller_id,
        key.created_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

fn subject(key: Uuid) -> String {
    format!("api-key/{key}")
}
