//! Signing secrets of subscriptions, always sealed: what a secret is, is known to its holders alone.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::daily::{DAY, full_until};
use super::locked::{lock, subject};
use super::security::{self, SecurityChange};
use crate::{Act, Error, Store, interval};

/// Most secrets of a subscription that are valid at once. Each of them is one more signature in every request.
pub const VALID_SECRETS_MAX: u32 = 5;
/// Most secrets of a subscription that are made within a day. Each of them is kept for weeks after its end.
const MADE_A_DAY_MAX: i64 = 20;

/// A secret to be stored. Its `Debug` shows how long the sealed bytes are and nothing else.
pub struct NewSecret {
    /// Its identifier.
    pub id: Uuid,
    /// The secret, sealed for its subscription.
    pub sealed: Vec<u8>,
}

impl std::fmt::Debug for NewSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewSecret")
            .field("id", &self.id)
            .field("sealed", &self.sealed.len())
            .finish()
    }
}

/// A secret as its reseller sees it later on: everything but the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretView {
    /// Its identifier.
    pub id: Uuid,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// Until when it signs, if a rotation has set an end.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
    /// Who made it, as the audit log has it.
    pub created_by: Option<String>,
}

/// What came of a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotated {
    /// The new secret signs from now on.
    Done,
    /// Too many secrets are still valid.
    TooMany,
    /// Too many were made within a day; the next one not before this time.
    NotBefore(DateTime<Utc>),
    /// The reseller has no such subscription.
    Unknown,
}

/// What came of a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    /// It signs nothing any more.
    Done,
    /// It is the last one without an end: without it nothing could be signed, now or soon.
    Last,
    /// The reseller has no such secret.
    Unknown,
}

/// A secret that signs no more, as it is stored.
pub struct EndedSecret {
    /// The secret, sealed.
    pub sealed: Vec<u8>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// Whether it was revoked; otherwise a rotation had set its end.
    pub is_revoked: bool,
    /// When it was revoked, or ended.
    pub ended_at: DateTime<Utc>,
}

impl Store {
    /// Adds a secret to a subscription; the others sign along for `overlap` and not longer.
    pub async fn rotate_secret(
        &self,
        (reseller, subscription): (&str, Uuid),
        new: &NewSecret,
        overlap: Duration,
        act: Act<'_>,
    ) -> Result<Rotated, Error> {
        let now = act.at;
        let mut transaction = self.pool.begin().await?;
        let Some(locked) = lock(&mut transaction, reseller, subscription).await? else {
            return Ok(Rotated::Unknown);
        };
        let made = sqlx::query!(
            r#"
            SELECT count(*) FILTER (WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)) AS "valid!",
                   count(*) FILTER (WHERE created_at > $3) AS "lately!",
                   min(created_at) FILTER (WHERE created_at > $3) AS first
            FROM signing_secrets WHERE subscription_id = $1
            "#,
            subscription,
            now,
            now - DAY,
        )
        .fetch_one(&mut *transaction)
        .await?;
        if made.valid >= i64::from(VALID_SECRETS_MAX) {
            return Ok(Rotated::TooMany);
        }
        if let Some(then) = full_until(made.lately, made.first, MADE_A_DAY_MAX) {
            return Ok(Rotated::NotBefore(then));
        }
        sqlx::query!(
            r#"
            UPDATE signing_secrets SET expires_at = $2::timestamptz + $3::interval
            WHERE subscription_id = $1 AND revoked_at IS NULL AND expires_at IS NULL
            "#,
            subscription,
            now,
            interval(overlap),
        )
        .execute(&mut *transaction)
        .await?;
        insert_secret(&mut transaction, subscription, new, now).await?;
        let told = [SecurityChange::SecretMade];
        security::tell(&mut transaction, subscription, &locked, &told, now).await?;
        let entry = act.entry(
            "secret.create",
            subject(subscription),
            json!({ "secret": new.id }),
        );
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(Rotated::Done)
    }

    /// The secrets of a reseller's subscription, the newest first; `None` when there is no such subscription. The first one is made with the
    /// subscription, and has no entry of its own in the audit log.
    pub async fn list_secrets(
        &self,
        reseller: &str,
        subscription: Uuid,
    ) -> Result<Option<Vec<SecretView>>, Error> {
        if self.find_subscription(reseller, subscription).await?.is_none() {
            return Ok(None);
        }
        let secrets = sqlx::query_as!(
            SecretView,
            r#"
            WITH made AS MATERIALIZED (
                SELECT a.details->>'secret' AS secret, a.at, a.actor FROM audit_log a
                WHERE a.subject = $2 AND a.action IN ('secret.create', 'subscription.create')
                ORDER BY a.id DESC LIMIT 101)
            SELECT s.id, s.created_at, s.expires_at, s.revoked_at,
                   (SELECT m.actor FROM made m
                    WHERE m.secret = s.id::text OR (m.secret IS NULL AND m.at = s.created_at)
                    ORDER BY m.secret NULLS LAST LIMIT 1) AS "created_by?"
            FROM signing_secrets s
            WHERE s.subscription_id = $1 ORDER BY s.created_at DESC, s.id DESC LIMIT 100
            "#,
            subscription,
            subject(subscription),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(Some(secrets))
    }

    /// A valid secret, sealed, with when it was made; the look at it is in the audit log, and a mail tells of it, before it is there to be
    /// looked at. `None` when the reseller has no such secret, or it has ended.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then nothing was shown.
    pub async fn view_secret(
        &self,
        (reseller, subscription): (&str, Uuid),
        secret: Uuid,
        act: Act<'_>,
    ) -> Result<Option<(Vec<u8>, DateTime<Utc>)>, Error> {
        let mut transaction = self.pool.begin().await?;
        let Some(locked) = lock(&mut transaction, reseller, subscription).await? else {
            return Ok(None);
        };
        let found = sqlx::query!(
            r#"
            SELECT sealed, created_at FROM signing_secrets
            WHERE id = $2 AND subscription_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3)
            "#,
            subscription,
            secret,
            act.at,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(found) = found else {
            return Ok(None);
        };
        let told = [SecurityChange::SecretViewed];
        security::tell(&mut transaction, subscription, &locked, &told, act.at).await?;
        let entry = act.entry("secret.view", subject(subscription), json!({ "secret": secret }));
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(Some((found.sealed, found.created_at)))
    }

    /// The valid secrets of a reseller's subscription, sealed, the newest first: for checking a signature, which shows none of them. `None`
    /// when there is no such subscription.
    pub async fn sealed_secrets(
        &self,
        reseller: &str,
        subscription: Uuid,
        at: DateTime<Utc>,
    ) -> Result<Option<Vec<(Uuid, Vec<u8>)>>, Error> {
        if self.find_subscription(reseller, subscription).await?.is_none() {
            return Ok(None);
        }
        let rows = sqlx::query!(
            r#"
            SELECT id, sealed FROM signing_secrets
            WHERE subscription_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)
            ORDER BY created_at DESC, id DESC
            "#,
            subscription,
            at,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(Some(rows.into_iter().map(|row| (row.id, row.sealed)).collect()))
    }

    /// The latest secrets of a subscription that sign no more and are still kept, sealed, the one that ended last first: for telling that a request was
    /// signed with one of them.
    pub async fn ended_secrets(
        &self,
        subscription: Uuid,
        at: DateTime<Utc>,
    ) -> Result<Vec<EndedSecret>, Error> {
        Ok(sqlx::query_as!(
            EndedSecret,
            r#"
            SELECT sealed, created_at, revoked_at IS NOT NULL AS "is_revoked!",
                   coalesce(revoked_at, expires_at) AS "ended_at!"
            FROM signing_secrets
            WHERE subscription_id = $1 AND (revoked_at IS NOT NULL OR expires_at <= $2)
            ORDER BY coalesce(revoked_at, expires_at) DESC LIMIT 20
            "#,
            subscription,
            at,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Ends a secret at once. One that has ended already stays as it is.
    pub async fn revoke_secret(
        &self,
        (reseller, subscription): (&str, Uuid),
        secret: Uuid,
        act: Act<'_>,
    ) -> Result<Revoked, Error> {
        let mut transaction = self.pool.begin().await?;
        let Some(locked) = lock(&mut transaction, reseller, subscription).await? else {
            return Ok(Revoked::Unknown);
        };
        let lasting = sqlx::query!(
            r#"
            SELECT id, expires_at IS NULL AND revoked_at IS NULL AS "lasting!" FROM signing_secrets
            WHERE subscription_id = $1 AND (id = $2 OR (expires_at IS NULL AND revoked_at IS NULL))
            "#,
            subscription,
            secret,
        )
        .fetch_all(&mut *transaction)
        .await?;
        match lasting.iter().find(|row| row.id == secret) {
            None => return Ok(Revoked::Unknown),
            // One that a rotation has given an end does not count: when it ends nothing would be left.
            Some(row) if row.lasting && lasting.iter().filter(|other| other.lasting).count() == 1 => {
                return Ok(Revoked::Last);
            }
            Some(_) => {}
        }
        let revoked = sqlx::query!(
            "UPDATE signing_secrets SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL",
            secret,
            act.at,
        )
        .execute(&mut *transaction)
        .await?;
        if revoked.rows_affected() > 0 {
            let told = [SecurityChange::SecretRevoked];
            security::tell(&mut transaction, subscription, &locked, &told, act.at).await?;
            let entry = act.entry(
                "secret.revoke",
                subject(subscription),
                json!({ "secret": secret }),
            );
            entry.record(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(Revoked::Done)
    }
}

/// A valid secret as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredSecret {
    /// Its identifier.
    pub id: Uuid,
    /// Whose it is, and what it is sealed for.
    pub subscription: Uuid,
    /// The secret, sealed.
    pub sealed: Vec<u8>,
}

impl Store {
    /// Secrets whose sealed form does not begin with `mark`, by their identifiers, those past `after`: valid ones, and those that have expired within a
    /// day, which engines still read.
    pub async fn secrets_sealed_otherwise(
        &self,
        mark: &[u8],
        after: Uuid,
        limit: u32,
        now: DateTime<Utc>,
    ) -> Result<Vec<StoredSecret>, Error> {
        Ok(sqlx::query_as!(
            StoredSecret,
            r#"
            SELECT id, subscription_id AS subscription, sealed FROM signing_secrets
            WHERE id > $2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $4::timestamptz - interval '1 day')
              AND substring(sealed FROM 1 FOR length($1::bytea)) <> $1
            ORDER BY id LIMIT $3
            "#,
            mark,
            after,
            i64::from(limit),
            now,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Puts the same secrets, sealed otherwise, in the place of those that are still there as they were; returns how many. One that another
    /// transaction holds is passed by.
    pub async fn reseal_secrets(&self, secrets: &[(StoredSecret, Vec<u8>)]) -> Result<u64, Error> {
        let ids: Vec<Uuid> = secrets.iter().map(|(secret, _)| secret.id).collect();
        let old: Vec<&[u8]> = secrets
            .iter()
            .map(|(secret, _)| secret.sealed.as_slice())
            .collect();
        let new: Vec<&[u8]> = secrets.iter().map(|(_, sealed)| sealed.as_slice()).collect();
        let done = sqlx::query!(
            r#"
            WITH same AS (
                SELECT k.id, i.new FROM UNNEST($1::uuid[], $2::bytea[], $3::bytea[]) AS i(id, old, new)
                JOIN signing_secrets k ON k.id = i.id AND k.sealed = i.old
                FOR NO KEY UPDATE OF k SKIP LOCKED)
            UPDATE signing_secrets k SET sealed = same.new FROM same WHERE k.id = same.id
            "#,
            &ids,
            &old as &[&[u8]],
            &new as &[&[u8]],
        )
        .execute(&self.pool)
        .await?;
        Ok(done.rows_affected())
    }
}

pub(super) async fn insert_secret(
    connection: &mut PgConnection,
    subscription: Uuid,
    new: &NewSecret,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query!(
        "INSERT INTO signing_secrets (id, subscription_id, sealed, created_at) VALUES ($1, $2, $3, $4)",
        new.id,
        subscription,
        new.sealed,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}
