//! Subscriptions as their reseller makes, sees and deletes them. Every operation names the reseller: what belongs to another does not
//! exist.
//!
//! What happens to a subscription by itself (verification, health) is elsewhere.

use chrono::{DateTime, Utc};
use domain::origin::origin;
use domain::reason::StateReason;
use domain::subscription::{EventFilter, SubscriptionRequest, SubscriptionState};
use serde_json::json;
use sqlx::{PgConnection, Postgres, Transaction};
use uuid::Uuid;

use super::addresses::{self, Address, Addresses, subject};
use super::locked::lock;
use super::secrets::{NewSecret, insert_secret};
use super::security::{self, SecurityChange};
use crate::read::{Count, Name, Nullable};
use crate::{Act, Error, Store};

/// A subscription as its reseller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionView {
    /// Its identifier.
    pub id: Uuid,
    /// Whose it is.
    pub reseller: String,
    /// The reseller's own words.
    pub description: String,
    /// Where to.
    pub url: String,
    /// The filter.
    pub event_types: Vec<String>,
    /// Who is told about trouble.
    pub email: String,
    /// When that address was confirmed, for this or another subscription of its reseller.
    pub email_confirmed_at: Option<DateTime<Utc>>,
    /// Where it stands.
    pub state: SubscriptionState,
    /// Why it stands there.
    pub state_reason: StateReason,
    /// Since when.
    pub state_changed_at: DateTime<Utc>,
    /// When the reseller paused it, if it is paused.
    pub paused_at: Option<DateTime<Utc>>,
    /// When an operator paused it, or all of its reseller, if that is so.
    pub held_at: Option<DateTime<Utc>>,
    /// How long the endpoint may take; the default when `None`, as in the two below.
    pub timeout_millis: Option<u32>,
    /// Notifications a day.
    pub daily_quota: Option<u32>,
    /// Attempts a second.
    pub requests_per_second: Option<u32>,
    /// Whether what an outage gives up is sent again by itself; the default when `None`.
    pub resend_after_outage: Option<bool>,
    /// The first failed attempt since the last success.
    pub failing_since: Option<DateTime<Utc>>,
    /// When it is challenged next.
    pub verification_due_at: Option<DateTime<Utc>>,
    /// How often it has been challenged in vain.
    pub verification_attempts: u32,
    /// What came of the last challenge.
    pub verification_error: Option<String>,
    /// When the present endpoint answered its challenge.
    pub verified_at: Option<DateTime<Utc>>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
}

/// A subscription to be stored, with its first secret.
#[derive(Debug)]
pub struct NewSubscription {
    /// Its identifier.
    pub id: Uuid,
    /// Whose it is.
    pub reseller: String,
    /// What was asked for.
    pub request: SubscriptionRequest,
    /// Its first secret.
    pub secret: NewSecret,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// What is thought of the address that it names.
    pub addresses: Addresses,
}

impl Store {
    /// Stores a subscription that waits for its verification, unless the reseller has `maximum` already; returns whether
    /// it is stored.
    pub async fn insert_subscription(
        &self,
        new: &NewSubscription,
        maximum: u32,
        act: Act<'_>,
    ) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await?;
        // There is no row that all of a reseller's requests could lock, and none of them sees what another one is about
        // to insert.
        sqlx::query!(
            "SELECT pg_advisory_xact_lock(hashtextextended('postrider.reseller/' || $1, 0))",
            new.reseller,
        )
        .execute(&mut *transaction)
        .await?;
        let present = sqlx::query_scalar!(
            r#"SELECT count(*) AS "count!" FROM subscriptions WHERE reseller_id = $1 AND deleted_at IS NULL"#,
            new.reseller,
        )
        .fetch_one(&mut *transaction)
        .await?;
        if present >= i64::from(maximum) {
            return Ok(false);
        }
        insert(&mut transaction, new).await?;
        insert_secret(&mut transaction, new.id, &new.secret, new.created_at).await?;
        let address = Address {
            reseller: &new.reseller,
            subscription: new.id,
            email: &new.request.email,
        };
        addresses::name(&mut transaction, address, new.addresses, new.created_at).await?;
        let details = json!({ "endpoint": origin(&new.request.url), "email": new.request.email });
        act.record(&mut transaction, "subscription.create", subject(new.id), details)
            .await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// The reseller's subscription with this identifier.
    pub async fn find_subscription(
        &self,
        reseller: &str,
        id: Uuid,
    ) -> Result<Option<SubscriptionView>, Error> {
        let mut connection = self.pool.acquire().await?;
        let mut found = select(&mut connection, reseller, Some(id), None, 1).await?;
        Ok(found.pop())
    }

    /// The reseller's subscriptions after the one with the identifier `after`, the oldest first.
    pub async fn list_subscriptions(
        &self,
        reseller: &str,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<SubscriptionView>, Error> {
        let mut connection = self.pool.acquire().await?;
        select(&mut connection, reseller, None, after, limit).await
    }

    /// Deletes a subscription for everybody but the records, with what only makes sense while it exists: a replay is
    /// cancelled, a quota request is answered. `false` when the reseller has no such subscription.
    pub async fn delete_subscription(&self, reseller: &str, id: Uuid, act: Act<'_>) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await?;
        // A statement of its own, so that the next one sees what callers asked for while this one waited for the lock.
        let Some(locked) = lock(&mut transaction, reseller, id).await? else {
            return Ok(false);
        };
        sqlx::query!(
            r#"
            WITH deleted AS (
                UPDATE subscriptions SET deleted_at = $2, updated_at = $2, verification_due_at = NULL
                WHERE id = $1),
            cancelled AS (
                UPDATE replays SET status = 'CANCELLED', finished_at = $2, updated_at = $2
                WHERE subscription_id = $1 AND status = 'RUNNING'),
            unpaused AS (
                DELETE FROM pauses WHERE scope = 'subscription' AND key = ($1::uuid)::text)
            UPDATE quota_requests
            SET status = 'DENIED', decided_by = 'postrider', decided_at = $2, note = 'The subscription was deleted.'
            WHERE subscription_id = $1 AND status = 'REQUESTED'
            "#,
            id,
            act.at,
        )
        .execute(&mut *transaction)
        .await?;
        security::tell(&mut transaction, id, &locked, &[SecurityChange::Deleted], act.at).await?;
        act.record(&mut transaction, "subscription.delete", subject(id), json!({}))
            .await?;
        transaction.commit().await?;
        Ok(true)
    }
}

pub(super) fn millis(value: Option<u32>) -> Option<i32> {
    value.map(|value| i32::try_from(value).unwrap_or(i32::MAX))
}

pub(super) fn names(filter: &[EventFilter]) -> Vec<&str> {
    filter.iter().map(EventFilter::as_str).collect()
}

async fn insert(transaction: &mut Transaction<'_, Postgres>, new: &NewSubscription) -> Result<(), Error> {
    let request = &new.request;
    sqlx::query!(
        r#"
        INSERT INTO subscriptions (id, reseller_id, description, url, event_types, email, state, state_reason,
                                   state_changed_at, timeout_millis, verification_due_at, created_at, updated_at,
                                   held_at, resend_after_outage)
        VALUES ($1, $2, $3, $4, $5, $6, 'PENDING_VERIFICATION', 'CREATED', $8, $7, $8, $8, $8,
                (SELECT paused_at FROM pauses WHERE scope = 'reseller' AND key = $2), $9)
        "#,
        new.id,
        new.reseller,
        request.description,
        request.url,
        &names(&request.event_types) as &[&str],
        request.email,
        millis(request.timeout_millis),
        new.created_at,
        request.resend_after_outage,
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}

/// The reseller's subscriptions: the one with an identifier, or those after another, the oldest first.
pub(super) async fn select(
    connection: &mut PgConnection,
    reseller: &str,
    id: Option<Uuid>,
    after: Option<Uuid>,
    limit: u32,
) -> Result<Vec<SubscriptionView>, Error> {
    Ok(sqlx::query_as!(
        SubscriptionView,
        r#"
        SELECT id, reseller_id AS reseller, description, url, event_types, email,
               (SELECT a.confirmed_at FROM email_addresses a
                WHERE a.reseller_id = s.reseller_id AND a.address = lower(s.email)) AS email_confirmed_at,
               state AS "state: Name<_>", state_reason AS "state_reason: Name<_>", state_changed_at, paused_at, held_at,
               timeout_millis AS "timeout_millis!: Nullable<Count>", daily_quota AS "daily_quota!: Nullable<Count>",
               requests_per_second AS "requests_per_second!: Nullable<Count>", resend_after_outage, failing_since,
               verification_due_at, verification_attempts AS "verification_attempts: Count", verification_error,
               verified_at, created_at, updated_at
        FROM subscriptions s
        WHERE reseller_id = $1 AND deleted_at IS NULL AND ($2::uuid IS NULL OR id = $2) AND ($3::uuid IS NULL OR id > $3)
        ORDER BY id
        LIMIT $4
        "#,
        reseller,
        id,
        after,
        i64::from(limit),
    )
    .fetch_all(connection)
    .await?)
}
