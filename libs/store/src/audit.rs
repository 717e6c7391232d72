//! The audit log: who changed what by hand, when, and why. An entry is written in the transaction of the change that it
//! tells of, so that neither exists without the other.
//!
//! Entries are never changed and never deleted here. What services do by themselves is no concern of this log, unless
//! it carries on what was begun by hand, such as the end of a pause.

use std::sync::Mutex;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;
use utoipa::ToSchema;
use uuid::{ContextV7, Timestamp, Uuid};

use crate::text::{storable, storable_json};
use crate::webhook::first_id_at;
use crate::{Error, Store};

/// Who acts, why, and when: what every change by hand is signed with.
#[derive(Debug, Clone, Copy)]
pub struct Act<'a> {
    /// The name and identifier of the API key.
    pub by: &'a str,
    /// The reason that was given.
    pub note: Option<&'a str>,
    /// When.
    pub at: DateTime<Utc>,
}

impl<'a> Act<'a> {
    /// The audit log's entry for this act. An action is the kind of thing and a verb, such as `dead-letter.replay`; a subject is a kind and
    /// an identifier, such as `push/019aa2f0-…`; details are a JSON object.
    pub(crate) fn entry(self, action: &'a str, subject: String, details: Value) -> Entry<'a> {
        Entry {
            act: self,
            action,
            subject,
            details,
        }
    }

    /// Writes an entry for each of these subjects with its details, as part of the caller's transaction and in one statement: what one act did to
    /// many is found by each of them.
    pub(crate) async fn record_each(
        self,
        action: &str,
        of: &[(String, Value)],
        connection: &mut PgConnection,
    ) -> Result<(), Error> {
        let ids: Vec<_> = of.iter().map(|_| id_at(self.at)).collect();
        let subjects: Vec<_> = of
            .iter()
            .map(|(subject, _)| storable(subject).into_owned())
            .collect();
        let details: Vec<_> = of.iter().map(|(_, details)| storable_json(details)).collect();
        let note = self.note.map(storable);
        sqlx::query!(
            r#"
            INSERT INTO audit_log (id, at, actor, action, subject, note, details)
            SELECT t.id, $2::timestamptz, $3::text, $4::text, t.subject, $5::text, t.details
            FROM UNNEST($1::uuid[], $6::text[], $7::jsonb[]) AS t(id, subject, details)
            "#,
            &ids,
            self.at,
            &*storable(self.by),
            action,
            note.as_deref(),
            &subjects,
            &details,
        )
        .execute(connection)
        .await?;
        Ok(())
    }
}

/// An entry to be written.
pub(crate) struct Entry<'a> {
    act: Act<'a>,
    action: &'a str,
    subject: String,
    details: Value,
}

impl Entry<'_> {
    /// Writes it, as part of the caller's transaction.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then the change must not be committed.
    pub(crate) async fn record(self, connection: &mut PgConnection) -> Result<(), Error> {
        let of = [(self.subject, self.details)];
        self.act.record_each(self.action, &of, connection).await
    }
}

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditView {
    /// Its identifier.
    pub id: Uuid,
    /// When.
    pub at: DateTime<Utc>,
    /// Who: the name and identifier of the API key.
    #[schema(example = "maria (019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d)")]
    pub actor: String,
    /// What was done.
    #[schema(example = "dead-letter.replay")]
    pub action: String,
    /// To what.
    #[schema(example = "dead-letter/5f0c9f0e-3a55-4d0a-9d43-0c6c2f7cf2b1")]
    pub subject: String,
    /// Why, if the caller said so.
    pub note: Option<String>,
    /// What else belongs to it; the fields depend on the action.
    #[schema(value_type = Object)]
    pub details: Value,
}

/// Which entries of the log are listed. What is missing restricts nothing.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// By this actor: as it was written, or the name of its API key or person alone.
    pub actor: Option<String>,
    /// Of one of these actions.
    pub actions: Option<Vec<String>>,
    /// Of none of these actions.
    pub without: Vec<String>,
    /// About this subject.
    pub subject: Option<String>,
    /// From here on.
    pub since: Option<DateTime<Utc>>,
    /// Before this.
    pub until: Option<DateTime<Utc>>,
    /// Only those before this one.
    pub before: Option<Uuid>,
}

/// Reads the entries that match a filter besides `$subject`, which is about `$3`: as a condition of its own, so that a plan that does not know
/// the parameters finds those of a subject by their index.
macro_rules! entries {
    ($store:expr, $filter:expr, $limit:expr, $subject:literal) => {
        sqlx::query_as!(
            AuditView,
            "SELECT id, at, actor, action, subject, note, details FROM audit_log
             WHERE " + $subject + "
               AND id >= $4 AND id < coalesce($7, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
               AND ($1::text IS NULL OR actor = $1 OR starts_with(actor, $1 || ' (') OR starts_with(actor, $1 || ' <'))
               AND ($2::text[] IS NULL OR action = ANY ($2))
               AND at >= $5 AND ($6::timestamptz IS NULL OR at < $6)
               AND action <> ALL ($9)
             ORDER BY id DESC LIMIT $8",
            $filter.actor,
            $filter.actions.as_deref(),
            $filter.subject,
            first_id_at($filter.since.unwrap_or(DateTime::UNIX_EPOCH)),
            $filter.since.unwrap_or(DateTime::UNIX_EPOCH),
            $filter.until,
            $filter.before,
            i64::from($limit),
            &$filter.without,
        )
        .fetch_all(&$store.pool)
        .await?
    };
}

/// How many entries about one subject are looked at from the beginning of one span on.
const AROUND_MAX: i64 = 50;

/// Shared, so that what this process does in one millisecond keeps its order.
static ORDER: Mutex<ContextV7> = Mutex::new(ContextV7::new());

/// A new identifier of something that happened at `at`; greater than all that this process has made before.
pub(crate) fn id_at(at: DateTime<Utc>) -> Uuid {
    let seconds = u64::try_from(at.timestamp()).unwrap_or(0);
    Uuid::new_v7(Timestamp::from_unix(&ORDER, seconds, at.timestamp_subsec_nanos()))
}

impl Store {
    /// How often this actor has done one of these since then.
    pub async fn count_acts(
        &self,
        actor: &str,
        actions: &[&str],
        since: DateTime<Utc>,
    ) -> Result<u64, Error> {
        let actions: Vec<String> = actions.iter().map(|action| (*action).to_owned()).collect();
        let count = sqlx::query_scalar!(
            r#"
            SELECT count(*) AS "count!" FROM audit_log
            WHERE actor = $1 AND action = ANY($2) AND id >= $3 AND at > $4
            "#,
            &*storable(actor),
            &actions,
            first_id_at(since),
            since,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(count.unsigned_abs())
    }

    /// Entries of the audit log, the newest first.
    pub async fn list_audit(&self, filter: &AuditFilter, limit: u32) -> Result<Vec<AuditView>, Error> {
        Ok(match filter.subject {
            Some(_) => entries!(self, filter, limit, "subject = $3"),
            None => entries!(self, filter, limit, "$3::text IS NULL"),
        })
    }

    /// Entries of these actions about any of these subjects, made no longer than `apart` before or after one of these times, the newest first.
    /// They are found by subject and time, so that it does not matter how much else was done to a subject. The end of a span is no bound of
    /// identifiers: a process whose clock was set back makes them later than the time of what they are of.
    pub async fn acts_around(
        &self,
        times: &[DateTime<Utc>],
        apart: TimeDelta,
        subjects: &[String],
        actions: &[&str],
    ) -> Result<Vec<AuditView>, Error> {
        let actions: Vec<String> = actions.iter().map(|action| (*action).to_owned()).collect();
        let since: Vec<_> = times.iter().map(|at| *at - apart).collect();
        let until: Vec<_> = times.iter().map(|at| *at + apart).collect();
        let first_ids: Vec<_> = since.iter().map(|at| first_id_at(*at)).collect();
        Ok(sqlx::query_as!(
            AuditView,
            r#"
            SELECT a.id, a.at, a.actor, a.action, a.subject, a.note, a.details
            FROM audit_log a
            WHERE a.id = ANY (ARRAY(
                SELECT x.id
                FROM UNNEST($1::text[]) AS s(subject)
                CROSS JOIN UNNEST($2::uuid[], $3::timestamptz[], $4::timestamptz[]) AS t(id, since, until)
                CROSS JOIN LATERAL (
                    SELECT e.id, e.at, e.action FROM audit_log e
                    WHERE e.subject = s.subject AND e.id >= t.id
                    ORDER BY e.id LIMIT $6) AS x
                WHERE x.at >= t.since AND x.at <= t.until AND x.action = ANY ($5)))
            ORDER BY a.id DESC
            "#,
            subjects,
            &first_ids,
            &since,
            &until,
            &actions,
            AROUND_MAX,
        )
        .fetch_all(&self.pool)
        .await?)
    }
}
