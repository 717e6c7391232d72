//! Subscriptions as their reseller makes and deletes them. Every operation names the reseller: what belongs to another does not
//! exist.
//!
//! What happens to a subscription by itself (verification, health) is elsewhere.

use chrono::{DateTime, Utc};
use domain::origin::origin;
use domain::subscription::{EventFilter, SubscriptionRequest};
use serde_json::json;
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use super::addresses::{self, Address, Addresses};
use super::daily::{DAY, full_until};
use super::first_id_at;
use super::locked::{lock, subject};
use super::secrets::{NewSecret, insert_secret};
use super::security::{self, SecurityChange};
use crate::{Act, Error, Store};

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

/// How many more than it may have at once a reseller may make within a day: each that it deletes is kept for months.
const REMADE_A_DAY: i64 = 50;

/// What came of a new subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscribed {
    /// It is stored.
    Done,
    /// The reseller has as many as it may.
    Full,
    /// The reseller has made as many within a day as it may; the next one not before this time.
    NotBefore(DateTime<Utc>),
}

impl Store {
    /// Stores a subscription that waits for its verification, unless the reseller has `maximum` already, or has made 50 more than that
    /// within a day.
    pub async fn insert_subscription(
        &self,
        new: &NewSubscription,
        maximum: u32,
        act: Act<'_>,
    ) -> Result<Subscribed, Error> {
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
            return Ok(Subscribed::Full);
        }
        // By the identifiers, which have the time: no index has those of a reseller that are deleted.
        let made = sqlx::query!(
            r#"
            SELECT count(*) AS "count!", min(created_at) AS first FROM subscriptions
            WHERE id >= $2 AND reseller_id = $1
            "#,
            new.reseller,
            first_id_at(new.created_at - DAY),
        )
        .fetch_one(&mut *transaction)
        .await?;
        if let Some(then) = full_until(made.count, made.first, i64::from(maximum) + REMADE_A_DAY) {
            return Ok(Subscribed::NotBefore(then));
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
        let entry = act.entry("subscription.create", subject(new.id), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(Subscribed::Done)
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
        let entry = act.entry("subscription.delete", subject(id), json!({}));
        entry.record(&mut transaction).await?;
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
                                   held_at, resend_after_outage, retry_plan, retry_client_errors)
        VALUES ($1, $2, $3, $4, $5, $6, 'PENDING_VERIFICATION', 'CREATED', $8, $7,
                CASE WHEN NOT $12 THEN $8::timestamptz END, $8, $8,
                (SELECT paused_at FROM pauses WHERE scope = 'reseller' AND key = $2), $9, $10, $11)
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
        request.retry_plan.as_str(),
        request.retry_client_errors,
        request.verify_later,
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}
