//! Subscriptions as their reseller sees them. Every operation names the reseller: what belongs to another does not exist.

use chrono::{DateTime, Utc};
use domain::notification::RetryPlan;
use domain::reason::StateReason;
use domain::subscription::SubscriptionState;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::read::{Count, Name, Nullable};
use crate::{Error, Store};

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
    /// For how long what failed is tried again.
    pub retry_plan: RetryPlan,
    /// Whether answers from 400 to 499 are tried again.
    pub retry_client_errors: bool,
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

impl Store {
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
               requests_per_second AS "requests_per_second!: Nullable<Count>", resend_after_outage,
               retry_plan AS "retry_plan: Name<_>", retry_client_errors, failing_since, verification_due_at,
               verification_attempts AS "verification_attempts: Count", verification_error, verified_at, created_at, updated_at
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
