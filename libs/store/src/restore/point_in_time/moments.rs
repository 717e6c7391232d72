//! What the database tells of the moments of a restore: to which one it was restored, what happened since, and whether a recovery was through.

use chrono::{DateTime, Utc};
use sqlx::types::Json;

use super::NotRecovered;
use super::stop::Stopped;
use crate::{Error, Store};

/// What the audit log has of a recovery that began, or that was through.
pub(super) struct Noted {
    /// When that was.
    pub(super) at: DateTime<Utc>,
    /// The moment that the database had been restored to.
    pub(super) restored_to: DateTime<Utc>,
    /// What it had stopped; at its end by all of its runs.
    pub(super) stopped: Json<Stopped>,
}

impl Store {
    /// About the moment that the database was restored to, before it was lost at `lost_at`: what a recovery from this loss noted, or else one that
    /// was interrupted; or the last transaction that the server replayed, which it knows until it is started again; or when the database last saw
    /// a service at work, which is later if one was started since.
    pub async fn restored_to(&self, lost_at: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, Error> {
        if let Some(before) = self.recovered_before(lost_at).await? {
            return Ok(Some(before.restored_to));
        }
        let noted = self.recovery_under_way().await?;
        if let Some(first) = noted.iter().map(|run| run.restored_to).min() {
            return Ok(Some(first));
        }
        let replayed = sqlx::query_scalar!("SELECT pg_last_xact_replay_timestamp()")
            .fetch_one(&self.pool)
            .await?;
        match replayed {
            Some(replayed) => Ok(Some(replayed)),
            None => self.last_sign_of_service().await,
        }
    }

    async fn last_sign_of_service(&self) -> Result<Option<DateTime<Utc>>, Error> {
        Ok(sqlx::query_scalar!(
            "SELECT greatest((SELECT max(renewed_at) FROM leases), (SELECT max(beat_at) FROM processes))"
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// The recovery from this loss that was through, if one was.
    pub(super) async fn recovered_before(&self, lost_at: DateTime<Utc>) -> Result<Option<Noted>, Error> {
        Ok(sqlx::query_as!(
            Noted,
            r#"
            SELECT at, (details ->> 'restoredTo')::timestamptz AS "restored_to!", details AS "stopped: Json<Stopped>" FROM audit_log
            WHERE subject = 'database' AND action = 'recover.end' AND (details ->> 'lostAt')::timestamptz = $1
            ORDER BY id DESC LIMIT 1
            "#,
            lost_at,
        )
        .fetch_optional(&self.pool)
        .await?)
    }

    /// The runs of the recovery under way, the first one first: more than one when it was interrupted, none when the last was through.
    pub(super) async fn recovery_under_way(&self) -> Result<Vec<Noted>, Error> {
        Ok(sqlx::query_as!(
            Noted,
            r#"
            SELECT s.at, (s.details ->> 'restoredTo')::timestamptz AS "restored_to!", s.details AS "stopped: Json<Stopped>" FROM audit_log s
            WHERE s.subject = 'database' AND s.action = 'recover.start'
              AND NOT EXISTS (SELECT FROM audit_log e WHERE e.subject = 'database' AND e.action = 'recover.end' AND e.id > s.id)
            ORDER BY s.id
            "#,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Why the database is not one that was just restored, with everything that works on it stopped.
    pub(super) async fn is_in_use(&self, lost_at: DateTime<Utc>) -> Result<Option<NotRecovered>, Error> {
        let connected = sqlx::query_scalar!(
            r#"
            SELECT DISTINCT application_name AS "name!" FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()
              AND (starts_with(application_name, 'postrider-')
                   -- What services of an earlier version call themselves.
                   OR application_name IN ('ingest-api', 'operator-api', 'reseller-portal', 'webpush-endpoint', 'webpush-connection'))
            ORDER BY 1
            "#,
        )
        .fetch_all(&self.pool)
        .await?;
        if !connected.is_empty() {
            return Ok(Some(NotRecovered::Connected(connected)));
        }
        let newer = self.last_sign_of_service().await?;
        Ok(newer.filter(|at| *at > lost_at).map(NotRecovered::Newer))
    }
}
