//! Resolving dead letters that the caller's transaction has locked, any number in a few statements.
//!
//! All dead letters that are open about one push or notification are resolved by its replay: they tell of what is sent again.
//! A dead letter that another transaction is at stays as that one leaves it; waiting for it could make the two wait for each
//! other.

use std::collections::{BTreeMap, HashMap};

use domain::named;
use sqlx::PgConnection;
use uuid::Uuid;

use super::resolve::resolve;
use crate::{Act, Error, column};

/// Why a dead letter was left as it was.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum Skipped {
    /// Another caller has resolved it meanwhile.
    Resolved,
    /// What it is about has not ended: it will be sent anyhow.
    Unfinished,
    /// It was delivered after all.
    Delivered,
    /// It was cancelled by hand.
    Cancelled,
    /// It is not stored any more.
    Gone,
    /// Its subscription gets nothing.
    SubscriptionInactive,
    /// The dead letter does not say what it is about.
    Malformed,
    /// It was sent again by itself as often as that may be, in vain.
    OftenRecovered,
}

named!(Skipped, "way to leave a dead letter as it was");

/// An open dead letter whose row is locked.
pub(super) struct OpenDeadLetter {
    pub(super) id: Uuid,
    pub(super) push: Option<Uuid>,
    pub(super) notification: Option<Uuid>,
}

/// What was done to some dead letters.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// The dead letters that were resolved.
    pub(super) dead_letters: Vec<Uuid>,
    /// How many pushes and notifications were made due, or dead letters discarded: what a rate is about.
    pub(super) effects: usize,
    /// The pushes and notifications that were made due.
    pub(super) due: Vec<Uuid>,
    /// The dead letters that were left as they were, by reason.
    pub(super) skipped: BTreeMap<Skipped, u64>,
}

impl Applied {
    /// What was made due, if it was a single notification: that of one of these dead letters.
    pub(super) fn first_due(&self, letters: &[OpenDeadLetter]) -> Option<Uuid> {
        let resolved = letters
            .iter()
            .find(|letter| self.dead_letters.contains(&letter.id))?;
        resolved.notification
    }
}

/// Locks those of the dead letters that are open, in the order of lists: every caller that locks several does it in that order.
pub(super) async fn lock(connection: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<OpenDeadLetter>, Error> {
    Ok(sqlx::query_as!(
        OpenDeadLetter,
        r#"
        SELECT id, push_id AS push, notification_id AS notification FROM dead_letters
        WHERE id = ANY ($1) AND state = 'OPEN'
        ORDER BY created_at, id
        FOR UPDATE
        "#,
        ids,
    )
    .fetch_all(connection)
    .await?)
}

/// Puts the dead letters aside.
pub(super) async fn discard(
    connection: &mut PgConnection,
    letters: &[OpenDeadLetter],
    act: &Act<'_>,
    job: Option<Uuid>,
) -> Result<Applied, Error> {
    let discarded = sqlx::query_scalar!(
        r#"
        UPDATE dead_letters SET state = 'DISCARDED', resolved_at = $2, resolved_by = $3, note = $4, job_id = $5
        WHERE id = ANY ($1) AND state = 'OPEN'
        RETURNING id
        "#,
        &column(&letters, |letter| letter.id),
        act.at,
        act.by,
        act.note,
        job,
    )
    .fetch_all(connection)
    .await?;
    Ok(Applied {
        effects: discarded.len(),
        due: Vec::new(),
        dead_letters: discarded,
        skipped: BTreeMap::new(),
    })
}

/// Makes due what the dead letters are about, where that has ended badly, and resolves all that are open about it.
pub(super) async fn replay(
    connection: &mut PgConnection,
    letters: &[OpenDeadLetter],
    act: &Act<'_>,
    job: Option<Uuid>,
) -> Result<Applied, Error> {
    let mut fates = replay_pushes(connection, &subjects(letters, |letter| letter.push), act).await?;
    let notifications = subjects(letters, |letter| letter.notification);
    fates.extend(replay_notifications(connection, &notifications, act).await?);
    let due: Vec<Uuid> = fates
        .iter()
        .filter(|(_, fate)| fate.is_none())
        .map(|(id, _)| *id)
        .collect();
    let mut applied = Applied {
        dead_letters: resolve(connection, &due, act, job).await?,
        effects: due.len(),
        due,
        skipped: BTreeMap::new(),
    };
    for letter in letters {
        let fate = match letter.push.or(letter.notification) {
            None => Some(Skipped::Malformed),
            Some(subject) => fates.get(&subject).copied().unwrap_or(Some(Skipped::Gone)),
        };
        if let Some(reason) = fate {
            *applied.skipped.entry(reason).or_default() += 1;
        }
    }
    Ok(applied)
}

fn subjects(letters: &[OpenDeadLetter], subject: fn(&OpenDeadLetter) -> Option<Uuid>) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = letters.iter().filter_map(subject).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Why each push that is stored was left as it was, or `None` for one that is due again.
type Fates = HashMap<Uuid, Option<Skipped>>;

async fn replay_pushes(connection: &mut PgConnection, ids: &[Uuid], act: &Act<'_>) -> Result<Fates, Error> {
    if ids.is_empty() {
        return Ok(Fates::new());
    }
    let rows = sqlx::query!(
        r#"
        WITH found AS (
            SELECT p.id, p.status, p.status = 'GIVEN_UP' AND p.reason IS NOT DISTINCT FROM 'CANCELLED' AS cancelled
            FROM UNNEST($1::uuid[]) AS i(id) JOIN push_notifications p ON p.id = i.id
            ORDER BY p.id
            FOR UPDATE OF p),
        replayed AS (
            UPDATE push_notifications p
            SET status = 'PENDING', replayed_after = p.attempts, reason = 'REPLAYED', finished_at = NULL,
                updated_at = $2
            FROM found f
            WHERE p.id = f.id AND f.status IN ('FAILED', 'GIVEN_UP') AND NOT f.cancelled)
        SELECT id, status, cancelled AS "cancelled!" FROM found
        "#,
        ids,
        act.at,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.id, ended_otherwise(&row.status, row.cancelled)))
        .collect())
}

/// What a resend by its reseller does, too.
async fn replay_notifications(
    connection: &mut PgConnection,
    ids: &[Uuid],
    act: &Act<'_>,
) -> Result<Fates, Error> {
    if ids.is_empty() {
        return Ok(Fates::new());
    }
    let rows = sqlx::query!(
        r#"
        WITH found AS (
            SELECT n.id, n.status, n.status = 'GIVEN_UP' AND n.reason IS NOT DISTINCT FROM 'CANCELLED' AS cancelled,
                   s.state IS NOT NULL AND s.state IN ('ACTIVE', 'DEGRADED') AS active
            FROM UNNEST($1::uuid[]) AS i(id) JOIN notifications n ON n.id = i.id
            LEFT JOIN subscriptions s ON s.id = n.subscription_id AND s.deleted_at IS NULL
            ORDER BY n.id
            FOR UPDATE OF n),
        replayed AS (
            UPDATE notifications n
            SET status = 'RETRY', next_attempt_at = $2, resent_after = n.attempts, resent_at = $2,
                finished_at = NULL, reason = 'REPLAYED', slot_at = NULL, updated_at = $2
            FROM found f
            WHERE n.id = f.id AND f.status IN ('FAILED', 'GIVEN_UP') AND NOT f.cancelled AND f.active)
        SELECT id, status, cancelled AS "cancelled!", active AS "active!" FROM found
        "#,
        ids,
        act.at,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let inactive = (!row.active).then_some(Skipped::SubscriptionInactive);
            (row.id, ended_otherwise(&row.status, row.cancelled).or(inactive))
        })
        .collect())
}

/// Why something in this status is not to be made due: only what ended badly by itself is.
fn ended_otherwise(status: &str, cancelled: bool) -> Option<Skipped> {
    match status {
        "FAILED" | "GIVEN_UP" if cancelled => Some(Skipped::Cancelled),
        "FAILED" | "GIVEN_UP" => None,
        "SENT" => Some(Skipped::Delivered),
        _ => Some(Skipped::Unfinished),
    }
}
