//! Links to the dashboards of resellers, for those who look after access.

use chrono::{DateTime, Utc};
use domain::capability::Capability;
use uuid::Uuid;

use crate::{Error, Store, stored};

/// Most links of a reseller that can still be used and are shown.
const USABLE_MAX: i64 = 50;

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

struct Row {
    id: Uuid,
    reseller_id: String,
    person_id: String,
    person_name: String,
    capabilities: Vec<String>,
    api_key_id: Option<Uuid>,
    made_by_operator: Option<String>,
    created_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
    used_at: Option<DateTime<Utc>>,
}

impl TryFrom<Row> for PortalLinkView {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let capabilities = row.capabilities.iter().map(|name| stored("capability", name));
        Ok(Self {
            id: row.id,
            reseller_id: row.reseller_id,
            person_id: row.person_id,
            person_name: row.person_name,
            capabilities: capabilities.collect::<Result<_, _>>()?,
            key: row.api_key_id,
            operator: row.made_by_operator,
            created_at: row.created_at,
            expires_at: row.expires_at,
            used_at: row.used_at,
        })
    }
}

impl Store {
    /// The links that were made of late, used and over ones among them, the newest first, those before the one with the identifier `before`.
    pub async fn list_portal_links(
        &self,
        reseller: Option<&str>,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<PortalLinkView>, Error> {
        let rows = sqlx::query_as!(
            Row,
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
        rows.into_iter().map(PortalLinkView::try_from).collect()
    }

    /// The links of a reseller that can still be used, those that can be for longest first; at most 50.
    pub async fn list_usable_portal_links(
        &self,
        reseller: &str,
        now: DateTime<Utc>,
    ) -> Result<Vec<PortalLinkView>, Error> {
        let rows = sqlx::query_as!(
            Row,
            r#"
            -- In the order of the index by the end, which few are after: among all of the last days a reseller has few or none.
            SELECT id, reseller_id, person_id, person_name, capabilities, api_key_id, made_by_operator, created_at, expires_at, used_at
            FROM portal_links
            WHERE reseller_id = $1 AND used_at IS NULL AND expires_at > $2
            ORDER BY expires_at DESC LIMIT $3
            "#,
            reseller,
            now,
            USABLE_MAX,
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(PortalLinkView::try_from).collect()
    }
}
