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

struct Row {
    id: Uuid,
    name: String,
    roles: Vec<String>,
    reseller_id: Option<String>,
    created_at: DateTime<Utc>,
    revoked_at: Option<DateTime<Utc>>,
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

    /// Revokes a key; `false` when there is none with this identifier that is not revoked yet.
    pub async fn revoke_api_key(&self, id: Uuid, act: Act<'_>) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await?;
        let revoked = sqlx::query!(
            "UPDATE api_keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING name, roles, reseller_id",
            id,
            act.at,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let is_revoked = revoked.is_some();
        if let Some(key) = revoked {
            let details = json!({ "name": key.name, "roles": key.roles, "reseller": key.reseller_id });
            let entry = act.entry("api-key.revoke", subject(id), details);
            entry.record(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(is_revoked)
    }
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
