//! Resolving one dead letter, at an operator's word.

use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::apply::{self, Applied, OpenDeadLetter, Skipped};
use crate::{Act, DeadLetterState, Error, Store, stored};

/// What came of asking for a dead letter to be resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved {
    /// It is.
    Done,
    /// It was before.
    Before(DeadLetterState),
    /// There is nothing to replay; the dead letter stays open.
    Refused(Skipped),
    /// There is no such dead letter.
    Unknown,
}

impl Store {
    /// Makes due what a dead letter is about, with all of its attempts ahead of it.
    pub async fn replay_dead_letter(&self, id: Uuid, act: &Act<'_>) -> Result<Resolved, Error> {
        let mut transaction = self.pool.begin().await?;
        let letters = apply::lock(&mut transaction, &[id]).await?;
        let Some(letter) = letters.first() else {
            return match resolved_before(&mut transaction, id).await? {
                Resolved::Before(_) if is_cancelled(&mut transaction, id).await? => {
                    Ok(Resolved::Refused(Skipped::Cancelled))
                }
                before => Ok(before),
            };
        };
        let applied = apply::replay(&mut transaction, &letters, act, None).await?;
        if let Some((reason, _)) = applied.skipped.first_key_value() {
            return Ok(Resolved::Refused(*reason));
        }
        let details = details(letter, &applied);
        let entry = act.entry("dead-letter.replay", super::dead_letter(id), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(Resolved::Done)
    }

    /// Puts a dead letter aside. Its push or notification stays as it ended.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails or the act has no note; then nothing is changed.
    pub async fn discard_dead_letter(&self, id: Uuid, act: &Act<'_>) -> Result<Resolved, Error> {
        let mut transaction = self.pool.begin().await?;
        let letters = apply::lock(&mut transaction, &[id]).await?;
        let Some(letter) = letters.first() else {
            return resolved_before(&mut transaction, id).await;
        };
        let applied = apply::discard(&mut transaction, &letters, act, None).await?;
        let details = details(letter, &applied);
        let entry = act.entry("dead-letter.discard", super::dead_letter(id), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(Resolved::Done)
    }
}

fn details(letter: &OpenDeadLetter, applied: &Applied) -> serde_json::Value {
    let others: Vec<Uuid> = applied
        .dead_letters
        .iter()
        .copied()
        .filter(|id| *id != letter.id)
        .collect();
    let mut details = match (letter.push, letter.notification) {
        (Some(id), _) => json!({ "push": id }),
        (None, Some(id)) => json!({ "notification": id }),
        (None, None) => json!({}),
    };
    if !others.is_empty() {
        details["otherLetters"] = json!(others);
    }
    details
}

async fn resolved_before(connection: &mut PgConnection, id: Uuid) -> Result<Resolved, Error> {
    let state = sqlx::query_scalar!("SELECT state FROM dead_letters WHERE id = $1", id)
        .fetch_optional(connection)
        .await?;
    Ok(match state {
        Some(state) => Resolved::Before(stored("state of a dead letter", &state)?),
        None => Resolved::Unknown,
    })
}

/// Whether an operator has cancelled what a dead letter is about: that is why nothing replays it, whatever has resolved the dead letter.
async fn is_cancelled(connection: &mut PgConnection, letter: Uuid) -> Result<bool, Error> {
    Ok(sqlx::query_scalar!(
        r#"
        SELECT EXISTS (
            SELECT FROM dead_letters d
            LEFT JOIN push_notifications p ON p.id = d.push_id
            LEFT JOIN notifications n ON n.id = d.notification_id
            WHERE d.id = $1 AND coalesce(p.status, n.status) = 'GIVEN_UP'
              AND coalesce(p.reason, n.reason) = 'CANCELLED') AS "cancelled!"
        "#,
        letter,
    )
    .fetch_one(connection)
    .await?)
}
