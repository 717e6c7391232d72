//! What operators note of groups of dead letters: what is known of one, and who looks after it.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::archive::DeadLetterLane;
use crate::read::Name;
use crate::text::storable;
use crate::{Act, Error, Store, column};

/// What dead letters of a group have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterGroupKey {
    /// Their lane.
    pub lane: DeadLetterLane,
    /// What their failures have in common.
    pub fingerprint: String,
    /// Where those were; empty when nothing answered for it.
    pub target: String,
}

/// What is noted of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterGroupNote {
    /// What is known of it.
    pub note: Option<String>,
    /// Who looks after it.
    pub owner: Option<String>,
    /// The time until which this holds.
    pub until: Option<DateTime<Utc>>,
    /// Who noted it.
    pub by: String,
    /// When.
    pub at: DateTime<Utc>,
}

struct Row {
    lane: DeadLetterLane,
    fingerprint: String,
    target: String,
    note: Option<String>,
    owner: Option<String>,
    until: Option<DateTime<Utc>>,
    by: String,
    at: DateTime<Utc>,
}

impl Store {
    /// Puts a note in place of the one that a group has; one without text and owner takes it away. `false` when there are no dead letters of
    /// such a group, resolved ones included.
    pub async fn note_dead_letter_group(
        &self,
        group: &DeadLetterGroupKey,
        (owner, until): (Option<&str>, Option<DateTime<Utc>>),
        act: &Act<'_>,
    ) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await?;
        if !exists(&mut transaction, group).await? {
            return Ok(false);
        }
        let before = take(&mut transaction, group).await?;
        let owner = owner.map(storable);
        if act.note.is_some() || owner.is_some() {
            let note = act.note.map(storable);
            sqlx::query!(
                r#"
                INSERT INTO dead_letter_group_notes (lane, fingerprint, target, note, owner, until, noted_by, noted_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                ON CONFLICT (lane, fingerprint, target) DO UPDATE
                SET note = excluded.note, owner = excluded.owner, until = excluded.until, noted_by = excluded.noted_by,
                    noted_at = excluded.noted_at
                "#,
                group.lane.as_str(),
                &*storable(&group.fingerprint),
                &*storable(&group.target),
                note.as_deref(),
                owner.as_deref(),
                until,
                act.by,
                act.at,
            )
            .execute(&mut *transaction)
            .await?;
        }
        let details = json!({ "owner": owner, "until": until, "before": before });
        let entry = act.entry("dead-letter-group.note", subject(group), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// What is noted of some groups, in their order.
    pub(super) async fn notes_of_groups(
        &self,
        groups: &[DeadLetterGroupKey],
    ) -> Result<Vec<Option<DeadLetterGroupNote>>, Error> {
        let rows = sqlx::query_as!(
            Row,
            r#"
            SELECT n.lane AS "lane: Name<_>", n.fingerprint, n.target, n.note, n.owner, n.until, n.noted_by AS "by",
                   n.noted_at AS "at"
            FROM UNNEST($1::text[], $2::text[], $3::text[]) AS g(lane, fingerprint, target)
            JOIN dead_letter_group_notes n
              ON n.lane = g.lane AND n.fingerprint = g.fingerprint AND n.target = g.target
            WHERE n.until IS NULL OR n.until > now()
            "#,
            &column(&groups, |group| group.lane.as_str().to_owned()),
            &column(&groups, |group| group.fingerprint.clone()),
            &column(&groups, |group| group.target.clone()),
        )
        .fetch_all(&self.pool)
        .await?;
        let mut notes: Vec<Option<DeadLetterGroupNote>> = groups.iter().map(|_| None).collect();
        for row in rows {
            let is_of = |group: &DeadLetterGroupKey| {
                group.lane == row.lane && group.fingerprint == row.fingerprint && group.target == row.target
            };
            if let Some(place) = groups.iter().position(is_of) {
                notes[place] = Some(DeadLetterGroupNote {
                    note: row.note,
                    owner: row.owner,
                    until: row.until,
                    by: row.by,
                    at: row.at,
                });
            }
        }
        Ok(notes)
    }
}

/// How the audit log calls a group.
fn subject(group: &DeadLetterGroupKey) -> String {
    let name = format!("dead-letter-group/{}/{}", group.lane.as_str(), group.fingerprint);
    if group.target.is_empty() {
        return name;
    }
    format!("{name}/{}", group.target)
}

async fn exists(connection: &mut PgConnection, group: &DeadLetterGroupKey) -> Result<bool, Error> {
    Ok(sqlx::query_scalar!(
        r#"
        SELECT EXISTS (
            SELECT FROM dead_letter_totals t
            WHERE t.state IN ('OPEN', 'REPLAYED', 'DISCARDED') AND t.lane = $1 AND t.fingerprint = $2 AND t.target = $3)
            AS "exists!"
        "#,
        group.lane.as_str(),
        &*storable(&group.fingerprint),
        &*storable(&group.target),
    )
    .fetch_one(connection)
    .await?)
}

/// Takes the note of a group away.
async fn take(connection: &mut PgConnection, group: &DeadLetterGroupKey) -> Result<Option<Value>, Error> {
    let taken = sqlx::query!(
        r#"
        DELETE FROM dead_letter_group_notes
        WHERE lane = $1 AND fingerprint = $2 AND target = $3 RETURNING note, owner, until
        "#,
        group.lane.as_str(),
        &*storable(&group.fingerprint),
        &*storable(&group.target),
    )
    .fetch_optional(connection)
    .await?;
    Ok(taken.map(|row| json!({ "note": row.note, "owner": row.owner, "until": row.until })))
}
