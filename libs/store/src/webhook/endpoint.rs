//! What a delivery needs to know of a subscription besides the notification itself.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::notification::RetryPlan;
use uuid::Uuid;

use crate::{Error, Store, stored};

/// Where and how a subscription is delivered to. It stays true for as long as its version does, so that it can be kept.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Grows with every change of the rest.
    pub version: i64,
    /// Whose subscription it is.
    pub reseller: String,
    /// Whether notifications may go there, and not challenges alone: the subscription is active or degraded.
    pub takes_notifications: bool,
    /// Where requests go.
    pub url: String,
    /// Longest time for one request, in milliseconds; `None`: the configured default.
    pub timeout_millis: Option<u32>,
    /// For how long what failed is tried again.
    pub retry_plan: RetryPlan,
    /// Whether answers from 400 to 499 are tried again.
    pub retry_client_errors: bool,
    /// The secrets that sign, the newest first.
    pub secrets: Vec<SealedSecret>,
}

/// A signing secret as it is stored.
#[derive(Clone)]
pub struct SealedSecret {
    /// Encrypted.
    pub sealed: Vec<u8>,
    /// It signs until then.
    pub expires_at: Option<DateTime<Utc>>,
}

impl std::fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealedSecret")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Reads what deliveries to these subscriptions need.
    pub async fn find_endpoints(&self, subscriptions: &[Uuid]) -> Result<HashMap<Uuid, Endpoint>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT s.id, s.reseller_id, s.version, s.url, s.timeout_millis,
                   s.retry_plan, s.retry_client_errors,
                   s.state IN ('ACTIVE', 'DEGRADED') AND s.deleted_at IS NULL AS "takes_notifications!",
                   k.sealed AS "sealed?", k.expires_at
            FROM UNNEST($1::uuid[]) AS i(id)
            JOIN subscriptions s ON s.id = i.id
            LEFT JOIN signing_secrets k ON k.subscription_id = s.id AND k.revoked_at IS NULL
                AND (k.expires_at IS NULL OR k.expires_at > now() - interval '1 day')
            ORDER BY s.id, k.created_at DESC, k.id DESC
            "#,
            subscriptions,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut endpoints: HashMap<Uuid, Endpoint> = HashMap::new();
        for row in rows {
            let retry_plan = stored("retry plan", &row.retry_plan)?;
            let endpoint = endpoints.entry(row.id).or_insert_with(|| Endpoint {
                version: row.version,
                reseller: row.reseller_id,
                takes_notifications: row.takes_notifications,
                url: row.url,
                timeout_millis: row.timeout_millis.map(i32::unsigned_abs),
                retry_plan,
                retry_client_errors: row.retry_client_errors,
                secrets: Vec::new(),
            });
            endpoint.secrets.extend(row.sealed.map(|sealed| SealedSecret {
                sealed,
                expires_at: row.expires_at,
            }));
        }
        Ok(endpoints)
    }
}
