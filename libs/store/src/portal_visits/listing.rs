//! Links to the dashboards of resellers, for those who look after access.

use chrono::{DateTime, Utc};
use domain::capability::Capability;
use uuid::Uuid;

use crate::{Error, Store, stored};

/// A link, without what opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortalLinkView {
    /// Its identifier.
    pub id: Uuid,
    /// Whose dashboard it opens.
    pub reseller_id: String,
    /// Whom it is for, as the one calls it who made it.
    pub person_id: String,
    /// The same for people.
    pub person_name: String,
    /// What its visit may do beside looking.
    pub capabilities: Vec<Capability>,
    /// The key that made it; none of an operator who had signed in with a provider.
    pub key: Option<Uuid>,
    /// The operator who made it, as the audit log calls it.
    pub operator: Option<String>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// Until when it can be used.
    pub expires_at: DateTime<Utc>,
    /// When it was used, which it is once.
    pub used_at: Option<DateTime<Utc>>,
}

impl Store {
    /// The links that were made of late, used and over ones among them, the newest first, those before the one with the identifier `before`.
    pub async fn list_portal_links(
        &self,
        reseller: Option<&str>,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<PortalLinkView>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT id, reseller_id, person_id, person_name, capabilities, api_key_id, made_by_operator, created_at, expires_at, used_at
            FROM portal_links
            WHERE ($1::text IS NULL OR reseller_id = $1) AND ($2::uuid IS NULL OR id < $2)
            ORDER BY id DESC LIMIT $3
            "#,
            reseller,
            before,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter()
            .map(|row| -> Result<_, Error> {
                let capabilities = row.capabilities.iter().map(|name| stored("capability", name));
                Ok(PortalLinkView {
                    id: row.id,
                    reseller_id: row.reseller_id,
                    person_id: row.person_id,
                    person_name: row.person_name,
                    capabilities: capabilities.collect::<Result<_, Error>>()?,
                    key: row.api_key_id,
                    operator: row.made_by_operator,
                    created_at: row.created_at,
                    expires_at: row.expires_at,
                    used_at: row.used_at,
                })
            })
            .collect()
    }
}
