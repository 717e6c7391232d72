//! The visits that go on, for those who give access and take it.

use chrono::{DateTime, TimeDelta, Utc};
use domain::key::Role;
use serde_json::json;
use uuid::Uuid;

use super::{IDLE_MINUTES, subject};
use crate::{Act, Error, Store, stored};

/// A visit that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitView {
    /// Its identifier.
    pub id: Uuid,
    /// The key that it began with; none with a provider.
    pub key: Option<Uuid>,
    /// The provider that it began with; none with a key.
    pub issuer: Option<String>,
    /// How the key or the person is called.
    pub name: String,
    /// What it may.
    pub roles: Vec<Role>,
    /// Whether it began with a key although people sign in with a provider.
    pub breaks_glass: bool,
    /// When it began.
    pub began_at: DateTime<Utc>,
    /// When its person last asked for something, to the minute.
    pub last_seen_at: DateTime<Utc>,
    /// When it ends at the latest.
    pub ends_at: DateTime<Utc>,
}

struct Row {
    id: Uuid,
    key: Option<Uuid>,
    issuer: Option<String>,
    name: String,
    roles: Vec<String>,
    breaks_glass: bool,
    began_at: DateTime<Utc>,
    last_seen_at: DateTime<Utc>,
    ends_at: DateTime<Utc>,
}

impl TryFrom<Row> for VisitView {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let roles = row.roles.iter().map(|role| stored("role", role));
        Ok(Self {
            roles: roles.collect::<Result<_, _>>()?,
            id: row.id,
            key: row.key,
            issuer: row.issuer,
            name: row.name,
            breaks_glass: row.breaks_glass,
            began_at: row.began_at,
            last_seen_at: row.last_seen_at,
            ends_at: row.ends_at,
        })
    }
}

impl Store {
    /// The visits that go on at `now`, the newest first.
    pub async fn list_visits(
        &self,
        now: DateTime<Utc>,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<VisitView>, Error> {
        let rows = sqlx::query_as!(
            Row,
            r#"
            SELECT v.id, v.api_key_id AS key, v.issuer, coalesce(k.name, v.name, '') AS "name!", coalesce(k.roles, v.roles, '{}') AS "roles!",
                   v.break_glass AS breaks_glass, v.began_at, v.last_seen_at, v.ends_at
            FROM visits v LEFT JOIN api_keys k ON k.id = v.api_key_id
            WHERE v.ended_at IS NULL AND v.ends_at > $1 AND v.last_seen_at > $2 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $1)
              AND ($3::uuid IS NULL OR v.id < $3)
            ORDER BY v.id DESC LIMIT $4
            "#,
            now,
            now - TimeDelta::minutes(IDLE_MINUTES),
            before,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(VisitView::try_from).collect()
    }

    /// Ends the visit of another person; `false` when it is over already, or there is none.
    pub async fn end_visit_of(&self, id: Uuid, act: Act<'_>) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await?;
        let ended = sqlx::query!(
            "UPDATE visits SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL AND ends_at > $2 AND last_seen_at > $3",
            id,
            act.at,
            act.at - TimeDelta::minutes(IDLE_MINUTES),
        )
        .execute(&mut *transaction)
        .await?
        .rows_affected()
            > 0;
        if ended {
            let entry = act.entry("visit.end", subject(id), json!({ "byAdministrator": true }));
            entry.record(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(ended)
    }
}
