//! Visits to the dashboard of a reseller, and the links that begin them.
//!
//! A link has 256 random bits of which only the digest is stored, and begins one visit, in the transaction that uses it up. A visit may what its
//! link said, and nothing once the key that made the link is revoked. An operator who has signed in with a provider has no key: such a visit ends by time.

mod listing;

use chrono::{DateTime, TimeDelta, Utc};
use domain::capability::Capability;
use domain::key::KeyDigest;
use serde_json::json;
use uuid::Uuid;

use crate::{Act, Error, Store, stored};

pub use listing::PortalLinkView;

/// Most visits of a person at once; the oldest ends when another one begins.
pub const PORTAL_VISITS_OF_PERSON: u32 = 20;

/// A link to be made.
#[derive(Debug, Clone)]
pub struct NewPortalLink {
    /// Its identifier.
    pub id: Uuid,
    /// Whose dashboard it opens.
    pub reseller_id: String,
    /// Whom it is for, as the one calls it who makes the link.
    pub person_id: String,
    /// The same for people.
    pub person_name: String,
    /// What its visit may do beside looking.
    pub capabilities: Vec<Capability>,
    /// The key that makes it; none of an operator who has signed in with a provider.
    pub key: Option<Uuid>,
    /// The operator who makes it to see what the reseller sees, as the audit log calls it; none of the reseller's own and of an embedder.
    pub operator: Option<String>,
    /// Until when it can be used.
    pub expires_at: DateTime<Utc>,
    /// How long its visit lasts, in minutes.
    pub visit_minutes: u32,
    /// The page that its visit begins with.
    pub landing: String,
    /// The origin whose pages may frame the visit.
    pub parent_origin: Option<String>,
    /// Where another link can be had.
    pub return_url: Option<String>,
    /// `light` or `dark`.
    pub theme: Option<String>,
    /// A language.
    pub locale: Option<String>,
    /// A time zone of the IANA database.
    pub time_zone: Option<String>,
    /// When the person last showed who it is.
    pub authenticated_at: Option<DateTime<Utc>>,
}

/// A visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortalVisit {
    /// Its identifier.
    pub id: Uuid,
    /// Whose dashboard it is in.
    pub reseller_id: String,
    /// Who visits, as the one calls it who made the link.
    pub person_id: String,
    /// The same for people.
    pub person_name: String,
    /// What it may do beside looking.
    pub capabilities: Vec<Capability>,
    /// The key that made its link; none of an operator who had signed in with a provider.
    pub key: Option<Uuid>,
    /// The operator who made its link, as the audit log calls it.
    pub operator: Option<String>,
    /// When it began.
    pub began_at: DateTime<Utc>,
    /// When its person last asked for a page, to the minute.
    pub last_seen_at: DateTime<Utc>,
    /// When it is over.
    pub ends_at: DateTime<Utc>,
    /// The page that it begins with.
    pub landing: String,
    /// The origin whose pages may frame it.
    pub parent_origin: Option<String>,
    /// Where another link can be had.
    pub return_url: Option<String>,
    /// `light` or `dark`.
    pub theme: Option<String>,
    /// A language.
    pub locale: Option<String>,
    /// A time zone of the IANA database.
    pub time_zone: Option<String>,
    /// When the person last showed who it is, as the one says who made the link.
    pub authenticated_at: Option<DateTime<Utc>>,
}

/// Which visits are to end.
#[derive(Debug, Clone, Copy)]
pub enum EndVisits<'a> {
    /// The one with this identifier.
    One(Uuid),
    /// Those of a person.
    Of(&'a str),
    /// All of them.
    All,
}

struct Row {
    id: Uuid,
    reseller_id: String,
    person_id: String,
    person_name: String,
    capabilities: Vec<String>,
    api_key_id: Option<Uuid>,
    made_by_operator: Option<String>,
    began_at: DateTime<Utc>,
    last_seen_at: DateTime<Utc>,
    ends_at: DateTime<Utc>,
    landing: String,
    parent_origin: Option<String>,
    return_url: Option<String>,
    theme: Option<String>,
    locale: Option<String>,
    time_zone: Option<String>,
    authenticated_at: Option<DateTime<Utc>>,
}

impl TryFrom<Row> for PortalVisit {
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
            began_at: row.began_at,
            last_seen_at: row.last_seen_at,
            ends_at: row.ends_at,
            landing: row.landing,
            parent_origin: row.parent_origin,
            return_url: row.return_url,
            theme: row.theme,
            locale: row.locale,
            time_zone: row.time_zone,
            authenticated_at: row.authenticated_at,
        })
    }
}

impl PortalVisit {
    /// Who it is, for the records. `names_of_acts` writes the same of a reseller's people, which an operator is not.
    pub fn signature(&self) -> String {
        if let Some(operator) = &self.operator {
            return operator.clone();
        }
        format!("{} <{}@{}>", self.person_name, self.person_id, self.reseller_id)
    }
}

impl Store {
    /// Keeps a new link, with its entry in the audit log.
    pub async fn create_portal_link(
        &self,
        link: &NewPortalLink,
        digest: &KeyDigest,
        act: Act<'_>,
    ) -> Result<(), Error> {
        let mut transaction = self.pool.begin().await?;
        let capabilities: Vec<&str> = link.capabilities.iter().map(|one| one.as_str()).collect();
        sqlx::query!(
            r#"
            INSERT INTO portal_links (id, digest, reseller_id, person_id, person_name, capabilities, api_key_id, created_at, expires_at,
                visit_minutes, landing, parent_origin, return_url, theme, locale, time_zone, authenticated_at, made_by_operator)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
            "#,
            link.id,
            digest.as_bytes(),
            link.reseller_id,
            link.person_id,
            link.person_name,
            &capabilities as &[&str],
            link.key,
            act.at,
            link.expires_at,
            i32::try_from(link.visit_minutes).unwrap_or(i32::MAX),
            link.landing,
            link.parent_origin,
            link.return_url,
            link.theme,
            link.locale,
            link.time_zone,
            link.authenticated_at,
            link.operator,
        )
        .execute(&mut *transaction)
        .await?;
        let details = json!({
            "reseller": link.reseller_id, "person": link.person_id, "name": link.person_name, "capabilities": capabilities,
            "link": link.id,
        });
        // That an operator looks is done to the reseller, which finds it in its activity.
        let subject = match link.operator {
            Some(_) => format!("reseller/{}", link.reseller_id),
            None => format!("portal-link/{}", link.id),
        };
        let entry = act.entry("portal-link.create", subject, details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Uses a link up and begins its visit, shown by the digest `visit`; `None` for a link that is unknown, used or over, or whose key is revoked.
    pub async fn use_portal_link(
        &self,
        link: &KeyDigest,
        visit: &KeyDigest,
        now: DateTime<Utc>,
    ) -> Result<Option<PortalVisit>, Error> {
        let mut transaction = self.pool.begin().await?;
        let used = sqlx::query!(
            r#"
            UPDATE portal_links SET used_at = $2 WHERE digest = $1 AND used_at IS NULL AND expires_at > $2
            RETURNING id, api_key_id
            "#,
            link.as_bytes(),
            now,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(used) = used else { return Ok(None) };
        if let Some(key) = used.api_key_id {
            // Locked, so that it is not revoked meanwhile, and so that those who come at once are counted one after another.
            let key = sqlx::query_scalar!(
                r#"
                SELECT id FROM api_keys
                WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2) FOR NO KEY UPDATE
                "#,
                key,
                now,
            )
            .fetch_optional(&mut *transaction)
            .await?;
            if key.is_none() {
                return Ok(None);
            }
        }
        let row = sqlx::query_as!(
            Row,
            r#"
            INSERT INTO portal_visits (id, digest, reseller_id, person_id, person_name, capabilities, api_key_id, began_at, last_seen_at, ends_at,
                landing, parent_origin, return_url, theme, locale, time_zone, authenticated_at, made_by_operator)
            SELECT $2, $3, reseller_id, person_id, person_name, capabilities, api_key_id, $4::timestamptz, $4, $4::timestamptz + make_interval(mins => visit_minutes),
                landing, parent_origin, return_url, theme, locale, time_zone, authenticated_at, made_by_operator
            FROM portal_links WHERE id = $1
            RETURNING id, reseller_id, person_id, person_name, capabilities, api_key_id, began_at, last_seen_at, ends_at, landing,
                parent_origin, return_url, theme, locale, time_zone, authenticated_at, made_by_operator
            "#,
            used.id,
            Uuid::now_v7(),
            visit.as_bytes(),
            now,
        )
        .fetch_one(&mut *transaction)
        .await?;
        let visit = PortalVisit::try_from(row)?;
        sqlx::query!(
            r#"
            UPDATE portal_visits SET ended_at = $3 WHERE id IN (
                SELECT id FROM portal_visits
                WHERE reseller_id = $1 AND person_id = $2 AND made_by_operator IS NOT DISTINCT FROM $5
                  AND ended_at IS NULL AND ends_at > $3
                ORDER BY began_at DESC, id DESC OFFSET $4
            )
            "#,
            visit.reseller_id,
            visit.person_id,
            now,
            i64::from(PORTAL_VISITS_OF_PERSON),
            visit.operator,
        )
        .execute(&mut *transaction)
        .await?;
        let signature = visit.signature();
        let act = Act {
            by: &signature,
            note: None,
            at: now,
        };
        let details =
            json!({ "reseller": visit.reseller_id, "link": used.id, "capabilities": visit.capabilities });
        act.entry("portal-visit.begin", subject(visit.id), details)
            .record(&mut transaction)
            .await?;
        transaction.commit().await?;
        Ok(Some(visit))
    }

    /// Revokes a link that can still be used. Returns whether it could until now.
    pub async fn revoke_portal_link(&self, id: Uuid, act: Act<'_>) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await?;
        // Over since it was made, and not since now: it is used by the clock of another machine, which may be behind.
        let revoked = sqlx::query!(
            r#"
            UPDATE portal_links SET expires_at = created_at WHERE id = $1 AND used_at IS NULL AND expires_at > $2
            RETURNING reseller_id, person_id
            "#,
            id,
            act.at,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(link) = revoked else { return Ok(false) };
        // Done to the reseller, which finds it in its activity, also of a link that it made itself.
        let subject = format!("reseller/{}", link.reseller_id);
        let details = json!({ "person": link.person_id, "link": id });
        act.entry("portal-link.revoke", subject, details)
            .record(&mut transaction)
            .await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// The visit that this cookie shows; none when it is over or its key was revoked. It counts as seen now only when `renews`.
    pub async fn find_portal_visit(
        &self,
        digest: &KeyDigest,
        now: DateTime<Utc>,
        renews: bool,
    ) -> Result<Option<PortalVisit>, Error> {
        let row = sqlx::query_as!(
            Row,
            r#"
            SELECT v.id, v.reseller_id, v.person_id, v.person_name, v.capabilities, v.api_key_id, v.began_at, v.last_seen_at, v.ends_at, v.landing,
                v.parent_origin, v.return_url, v.theme, v.locale, v.time_zone, v.authenticated_at, v.made_by_operator
            FROM portal_visits v
            WHERE v.digest = $1 AND v.ended_at IS NULL AND v.ends_at > $2
              AND (v.api_key_id IS NULL OR EXISTS (SELECT FROM api_keys k WHERE k.id = v.api_key_id AND k.revoked_at IS NULL
                                                    AND (k.expires_at IS NULL OR k.expires_at > $2)))
            "#,
            digest.as_bytes(),
            now,
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        if renews && row.last_seen_at < now - TimeDelta::minutes(1) {
            sqlx::query!(
                "UPDATE portal_visits SET last_seen_at = $2 WHERE id = $1 AND last_seen_at < $2",
                row.id,
                now,
            )
            .execute(&self.pool)
            .await?;
        }
        PortalVisit::try_from(row).map(Some)
    }

    /// The visit that this cookie showed, over or not: where its person came from is known by it.
    pub async fn find_past_portal_visit(&self, digest: &KeyDigest) -> Result<Option<PortalVisit>, Error> {
        let row = sqlx::query_as!(
            Row,
            r#"
            SELECT id, reseller_id, person_id, person_name, capabilities, api_key_id, began_at, last_seen_at, ends_at, landing,
                parent_origin, return_url, theme, locale, time_zone, authenticated_at, made_by_operator
            FROM portal_visits WHERE digest = $1
            "#,
            digest.as_bytes(),
        )
        .fetch_optional(&self.pool)
        .await?;
        row.map(PortalVisit::try_from).transpose()
    }

    /// The visits that go on, of a reseller or of all, of one person or of all, the newest first, those before the one with the identifier
    /// `before`.
    pub async fn list_portal_visits(
        &self,
        (reseller, person): (Option<&str>, Option<&str>),
        before: Option<Uuid>,
        limit: u32,
        now: DateTime<Utc>,
    ) -> Result<Vec<PortalVisit>, Error> {
        let rows = sqlx::query_as!(
            Row,
            r#"
            -- Materialized, or they would be looked for in the order of their identifiers, among all that ended in the last days.
            WITH going_on AS MATERIALIZED (
                SELECT * FROM portal_visits
                WHERE ($1::text IS NULL OR reseller_id = $1) AND ($2::text IS NULL OR person_id = $2)
                  AND ended_at IS NULL AND ends_at > $3 AND ($4::uuid IS NULL OR id < $4))
            SELECT v.id, v.reseller_id, v.person_id, v.person_name, v.capabilities, v.api_key_id, v.began_at, v.last_seen_at, v.ends_at, v.landing,
                v.parent_origin, v.return_url, v.theme, v.locale, v.time_zone, v.authenticated_at, v.made_by_operator
            FROM going_on v
            WHERE v.api_key_id IS NULL OR EXISTS (SELECT FROM api_keys k WHERE k.id = v.api_key_id AND k.revoked_at IS NULL
                                                  AND (k.expires_at IS NULL OR k.expires_at > $3))
            ORDER BY v.id DESC LIMIT $5
            "#,
            reseller,
            person,
            now,
            before,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(PortalVisit::try_from).collect()
    }

    /// Ends visits, of a reseller or of all. Returns how many went on until now.
    pub async fn end_portal_visits(
        &self,
        reseller: Option<&str>,
        which: EndVisits<'_>,
        act: Act<'_>,
    ) -> Result<u64, Error> {
        let (id, person) = match which {
            EndVisits::One(id) => (Some(id), None),
            EndVisits::Of(person) => (None, Some(person)),
            EndVisits::All => (None, None),
        };
        let mut transaction = self.pool.begin().await?;
        let ended = sqlx::query!(
            r#"
            UPDATE portal_visits SET ended_at = $4
            WHERE ($1::text IS NULL OR reseller_id = $1) AND ($2::uuid IS NULL OR id = $2) AND ($3::text IS NULL OR person_id = $3)
              AND ended_at IS NULL AND ends_at > $4
            RETURNING id, reseller_id, person_id
            "#,
            reseller,
            id,
            person,
            act.at,
        )
        .fetch_all(&mut *transaction)
        .await?;
        for visit in &ended {
            let details = json!({ "reseller": visit.reseller_id, "person": visit.person_id });
            act.entry("portal-visit.end", subject(visit.id), details)
                .record(&mut transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(ended.len() as u64)
    }
}

fn subject(visit: Uuid) -> String {
    format!("portal-visit/{visit}")
}
