//! Rows of subscriptions in any state, made as their resellers and the life cycle would have left them.
//!
//! It writes the tables itself and takes no part of `store`, so that a test of `store` compares two independent things.

use domain::clock::{Clock, SystemClock};
use domain::subscription::SubscriptionState;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// A subscription to be made.
#[derive(Debug, Clone)]
pub struct SubscriptionRow {
    id: Uuid,
    state: SubscriptionState,
    reseller_id: String,
    url: String,
    event_types: Vec<String>,
    paused: bool,
    deleted: bool,
    timeout_millis: Option<i32>,
    daily_quota: Option<i32>,
    requests_per_second: Option<i32>,
    sealed_secrets: Vec<Vec<u8>>,
}

impl SubscriptionRow {
    /// A subscription of the reseller `acme` to everything, in `state`, without limits and without a secret; its address
    /// is confirmed.
    pub fn in_state(state: SubscriptionState) -> Self {
        Self {
            id: Uuid::now_v7(),
            state,
            reseller_id: "acme".to_owned(),
            url: "https://acme.example/hook".to_owned(),
            event_types: vec!["*".to_owned()],
            paused: false,
            deleted: false,
            timeout_millis: None,
            daily_quota: None,
            requests_per_second: None,
            sealed_secrets: Vec::new(),
        }
    }

    /// As [`SubscriptionRow::in_state`], active.
    pub fn active() -> Self {
        Self::in_state(SubscriptionState::Active)
    }

    /// Its identifier, which sealing its secrets needs before it is stored.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Of this reseller.
    pub fn reseller(mut self, id: &str) -> Self {
        id.clone_into(&mut self.reseller_id);
        self
    }

    /// With this endpoint.
    pub fn url(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    /// For these event types.
    pub fn event_types(mut self, filter: &[&str]) -> Self {
        self.event_types = filter.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Paused by its reseller.
    pub fn paused(mut self) -> Self {
        self.paused = true;
        self
    }

    /// Deleted.
    pub fn deleted(mut self) -> Self {
        self.deleted = true;
        self
    }

    /// With a time limit of its own for a request.
    pub fn timeout_millis(mut self, millis: i32) -> Self {
        self.timeout_millis = Some(millis);
        self
    }

    /// With a daily quota of its own.
    pub fn daily_quota(mut self, quota: i32) -> Self {
        self.daily_quota = Some(quota);
        self
    }

    /// With a rate of its own.
    pub fn requests_per_second(mut self, rate: i32) -> Self {
        self.requests_per_second = Some(rate);
        self
    }

    /// With one more signing secret, sealed for [`SubscriptionRow::id`].
    pub fn sealed_secret(mut self, sealed: Vec<u8>) -> Self {
        self.sealed_secrets.push(sealed);
        self
    }

    /// Stores it and returns its identifier.
    ///
    /// # Panics
    ///
    /// When the database does not take it.
    pub async fn make(&self, pool: &PgPool) -> Uuid {
        let stored = async {
            let mut transaction = pool.begin().await?;
            self.insert(&mut transaction).await?;
            for sealed in &self.sealed_secrets {
                insert_secret(&mut transaction, self.id, sealed).await?;
            }
            transaction.commit().await
        };
        stored.await.expect("the database should take the row");
        self.id
    }

    async fn insert(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        sqlx::query(
            "INSERT INTO subscriptions
                 (id, reseller_id, url, event_types, email, state, state_reason, state_changed_at, paused_at,
                  timeout_millis, daily_quota, requests_per_second, failing_since, last_failure_at,
                  verification_due_at, verified_at, created_at, updated_at, deleted_at)
             VALUES ($1, $2, $3, $4, 'ops@acme.example', $5,
                     CASE $5 WHEN 'ACTIVE' THEN 'VERIFIED' WHEN 'DEGRADED' THEN 'FAILING' WHEN 'DEACTIVATED' THEN 'BY_RESELLER'
                             ELSE 'CREATED' END, $6, CASE WHEN $7 THEN $6 END, $8, $9, $10,
                     CASE WHEN $5 = 'DEGRADED' THEN $6 - interval '2 days' END,
                     CASE WHEN $5 = 'DEGRADED' THEN $6 END,
                     CASE WHEN $5 = 'PENDING_VERIFICATION' THEN $6 END,
                     CASE WHEN $5 <> 'PENDING_VERIFICATION' THEN $6 END, $6, $6, CASE WHEN $11 THEN $6 END)",
        )
        .bind(self.id)
        .bind(&self.reseller_id)
        .bind(&self.url)
        .bind(&self.event_types)
        .bind(self.state.as_str())
        .bind(SystemClock.now())
        .bind(self.paused)
        .bind(self.timeout_millis)
        .bind(self.daily_quota)
        .bind(self.requests_per_second)
        .bind(self.deleted)
        .execute(&mut *connection)
        .await?;
        // An older schema knows no addresses that have to be confirmed.
        let knows_addresses: bool = sqlx::query_scalar("SELECT to_regclass('email_addresses') IS NOT NULL")
            .fetch_one(&mut *connection)
            .await?;
        if !knows_addresses {
            return Ok(());
        }
        sqlx::query(
            "INSERT INTO email_addresses (reseller_id, address, confirmed_at, created_at)
             VALUES ($1, 'ops@acme.example', $2, $2) ON CONFLICT DO NOTHING",
        )
        .bind(&self.reseller_id)
        .bind(SystemClock.now())
        .execute(connection)
        .await?;
        Ok(())
    }
}

async fn insert_secret(
    connection: &mut PgConnection,
    subscription: Uuid,
    sealed: &[u8],
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO signing_secrets (id, subscription_id, sealed, created_at) VALUES ($1, $2, $3, $4)",
    )
    .bind(Uuid::now_v7())
    .bind(subscription)
    .bind(sealed)
    .bind(SystemClock.now())
    .execute(connection)
    .await?;
    Ok(())
}
