//! Visits: a person who looks at the pages of the operator API, from signing in to signing out.
//!
//! A visit is shown by a cookie of 256 random bits, of which only the digest is stored. One that began with a key may what that key may
//! now: a key that is revoked ends the visits that began with it. One that began with a provider may what the provider said then.

mod listing;

use chrono::{DateTime, TimeDelta, Utc};
use domain::key::{KeyDigest, Role};
use serde_json::json;
use uuid::Uuid;

use crate::text::storable;
use crate::{Act, ApiKey, Error, Store, stored};

pub use listing::VisitView;

/// How long a visit lasts at most.
pub const VISIT_HOURS: i64 = 12;
/// How long one lasts at most that began with a key although people sign in with a provider.
pub const BREAK_GLASS_MINUTES: i64 = 60;
/// How long a visit lasts in which its person asks for nothing; what a page asks for by itself does not count.
pub const IDLE_MINUTES: i64 = 30;

/// A person who signed in with a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The provider.
    pub issuer: String,
    /// Who it is there.
    pub subject: String,
    /// What it is called.
    pub name: String,
    /// What it may.
    pub role: Role,
    /// When it last showed the provider who it is, if that says so.
    pub authenticated_at: Option<DateTime<Utc>>,
    /// The values of the provider's claim that the role comes of.
    pub granted_by: Vec<String>,
}

/// Whose visit it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visitor {
    /// Of who has this key.
    Key(ApiKey),
    /// Of who has this key, although people sign in with a provider.
    BreakGlass(ApiKey),
    /// Of a person who signed in with a provider.
    Person(Person),
}

/// What a visit begins with.
#[derive(Debug, Clone, Copy)]
pub enum VisitBy<'a> {
    /// A key, which is how people sign in.
    Key(Uuid),
    /// A key, although people sign in with a provider.
    BreakGlass(Uuid),
    /// A provider.
    Person(&'a Person),
}

/// Visits that began with a key although people sign in with a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BrokenGlass {
    /// How many.
    pub count: u64,
    /// When the last one began.
    pub last: Option<DateTime<Utc>>,
}

impl Store {
    /// Begins a visit, with its entry in the audit log.
    pub async fn begin_visit(
        &self,
        digest: &KeyDigest,
        with: VisitBy<'_>,
        act: Act<'_>,
    ) -> Result<(), Error> {
        let mut transaction = self.pool.begin().await?;
        let id = Uuid::now_v7();
        let (key, person, breaks_glass) = match with {
            VisitBy::Key(key) => (Some(key), None, false),
            VisitBy::BreakGlass(key) => (Some(key), None, true),
            VisitBy::Person(person) => (None, Some(person), false),
        };
        let lasts = if breaks_glass {
            TimeDelta::minutes(BREAK_GLASS_MINUTES)
        } else {
            TimeDelta::hours(VISIT_HOURS)
        };
        let roles = person.map(|person| vec![person.role.as_str().to_owned()]);
        sqlx::query!(
            r#"
            INSERT INTO visits
                (id, digest, api_key_id, began_at, last_seen_at, ends_at, issuer, subject, name, roles, authenticated_at, break_glass,
                 granted_by)
            VALUES ($1, $2, $3, $4, $4, $5, $6, $7, $8, $9, $10, $11, $12)
            "#,
            id,
            digest.as_bytes(),
            key,
            act.at,
            act.at + lasts,
            person.map(|person| person.issuer.as_str()),
            person.map(|person| person.subject.as_str()),
            person.map(|person| person.name.as_str()),
            roles.as_deref(),
            person.and_then(|person| person.authenticated_at),
            breaks_glass,
            person.map(|person| person.granted_by.as_slice()),
        )
        .execute(&mut *transaction)
        .await?;
        let action = if breaks_glass {
            "visit.break-glass"
        } else {
            "visit.begin"
        };
        let details = person.map_or_else(
            || json!({}),
            |person| json!({ "role": person.role.as_str(), "authenticatedAt": person.authenticated_at }),
        );
        let entry = act.entry(action, subject(id), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Whose visit this cookie shows; none when it is over, or its key was revoked. The visit counts as seen now only when `renews`.
    pub async fn find_visit(
        &self,
        digest: &KeyDigest,
        now: DateTime<Utc>,
        renews: bool,
    ) -> Result<Option<Visitor>, Error> {
        let seen = sqlx::query!(
            r#"
            SELECT v.id AS visit, v.last_seen_at, v.issuer, v.subject, v.name AS person, v.roles AS person_roles, v.authenticated_at, v.break_glass, v.granted_by,
                k.id AS "key?", k.name AS "key_name?", k.roles AS "key_roles?", k.reseller_id, k.created_at AS "created_at?"
            FROM visits v LEFT JOIN api_keys k ON k.id = v.api_key_id
            WHERE v.digest = $1 AND v.ended_at IS NULL AND v.ends_at > $2 AND v.last_seen_at > $3 AND k.revoked_at IS NULL
                AND (k.expires_at IS NULL OR k.expires_at > $2)
            "#,
            digest.as_bytes(),
            now,
            now - TimeDelta::minutes(IDLE_MINUTES),
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(seen) = seen else { return Ok(None) };
        if renews && seen.last_seen_at < now - TimeDelta::minutes(1) {
            sqlx::query!(
                "UPDATE visits SET last_seen_at = $2 WHERE id = $1 AND last_seen_at < $2",
                seen.visit,
                now,
            )
            .execute(&self.pool)
            .await?;
        }
        if let (Some(id), Some(name), Some(roles), Some(created_at)) =
            (seen.key, seen.key_name, seen.key_roles, seen.created_at)
        {
            let roles: Result<_, Error> = roles.iter().map(|role| stored("role", role)).collect();
            let key = ApiKey {
                id,
                ..ApiKey::new(name, roles?, seen.reseller_id, created_at)
            };
            let visitor = if seen.break_glass {
                Visitor::BreakGlass
            } else {
                Visitor::Key
            };
            return Ok(Some(visitor(key)));
        }
        let roles = seen.person_roles.unwrap_or_default();
        // The database holds that a visit without a key has all of them.
        let (Some(issuer), Some(subject), Some(name), Some(role)) =
            (seen.issuer, seen.subject, seen.person, roles.first())
        else {
            return Ok(None);
        };
        Ok(Some(Visitor::Person(Person {
            issuer,
            subject,
            name,
            role: stored("role", role)?,
            authenticated_at: seen.authenticated_at,
            granted_by: seen.granted_by.unwrap_or_default(),
        })))
    }

    /// The visits since then that began with a key although people sign in with a provider.
    pub async fn broken_glass(&self, since: DateTime<Utc>) -> Result<BrokenGlass, Error> {
        let found = sqlx::query!(
            r#"SELECT count(*) AS "count!", max(began_at) AS last FROM visits WHERE break_glass AND began_at > $1"#,
            since,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(BrokenGlass {
            count: found.count.unsigned_abs(),
            last: found.last,
        })
    }

    /// Ends a visit; `false` when it is over already.
    pub async fn end_visit(&self, digest: &KeyDigest, act: Act<'_>) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await?;
        let ended = sqlx::query_scalar!(
            "UPDATE visits SET ended_at = $2 WHERE digest = $1 AND ended_at IS NULL RETURNING id",
            digest.as_bytes(),
            act.at,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        if let Some(id) = ended {
            act.entry("visit.end", subject(id), json!({}))
                .record(&mut transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(ended.is_some())
    }

    /// Ends every visit of a person that goes on. `person` is the subject at the provider, the subject and the issuer with `@` between them, or
    /// how the audit log calls the person. Returns how many there were; of none there is no entry in the audit log.
    pub async fn end_visits_of(&self, person: &str, act: Act<'_>) -> Result<u64, Error> {
        let mut transaction = self.pool.begin().await?;
        let ended = sqlx::query_scalar!(
            r#"
            UPDATE visits SET ended_at = $2
            WHERE ended_at IS NULL AND ends_at > $2
              AND $1 IN (subject, subject || '@' || issuer, name || ' <' || subject || '@' || issuer || '>')
            RETURNING id
            "#,
            &*storable(person),
            act.at,
        )
        .fetch_all(&mut *transaction)
        .await?;
        if !ended.is_empty() {
            let details = json!({ "person": person, "visits": ended });
            let entry = act.entry("visit.revoke", format!("person/{person}"), details);
            entry.record(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(ended.len() as u64)
    }
}

fn subject(visit: Uuid) -> String {
    format!("visit/{visit}")
}
