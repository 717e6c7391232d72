//! From when until when operators had something paused. Pauses in force are rows of `pauses`; those that are over are known from the audit log,
//! whose entry of the end names the beginning.

use chrono::{DateTime, Utc};

use crate::webhook::first_id_at;
use crate::{Error, Pausable, Store};

/// Most pauses that are told, the newest ones.
const TOLD_MAX: i64 = 100;

/// A pause by an operator, whether it is over or in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausePeriod {
    /// What kind of thing was paused: `lane`, `subscription` or `reseller`.
    pub scope: String,
    /// Who paused it.
    pub paused_by: String,
    /// Why, as the pause had it at its end; empty where that was not recorded.
    pub note: String,
    /// Since when.
    pub paused_at: DateTime<Utc>,
    /// When it ended; `None` while it is in force.
    pub resumed_at: Option<DateTime<Utc>>,
    /// When it ends by itself, of one that is in force and does.
    pub until: Option<DateTime<Utc>>,
}

impl Store {
    /// The pauses of any of these that are in force or ended at `since` or later, the first one first; of what has ended, those that began before.
    pub async fn pauses_since(
        &self,
        what: &[Pausable],
        since: DateTime<Utc>,
        ended_at: Option<DateTime<Utc>>,
    ) -> Result<Vec<PausePeriod>, Error> {
        let subjects: Vec<String> = what
            .iter()
            .map(|what| format!("{}/{}", what.scope(), what.key()))
            .collect();
        let mut periods = sqlx::query_as!(
            PausePeriod,
            r#"
            SELECT scope AS "scope!", paused_by AS "paused_by!", note AS "note!", paused_at AS "paused_at!", resumed_at, until FROM (
                SELECT scope, paused_by, note, paused_at, NULL::timestamptz AS resumed_at, until
                FROM pauses WHERE scope || '/' || key = ANY ($1)
                UNION ALL
                -- Resellers resume subscriptions of theirs as well, and such an entry names no beginning.
                (SELECT split_part(action, '.', 1), details ->> 'pausedBy', coalesce(details ->> 'pauseNote', ''),
                        (details ->> 'pausedAt')::timestamptz, at, NULL::timestamptz
                 FROM audit_log
                 WHERE subject = ANY ($1) AND action IN ('lane.resume', 'reseller.resume', 'subscription.resume')
                   AND id >= $2 AND at >= $3 AND details ? 'pausedAt' AND details ? 'pausedBy'
                   AND ($5::timestamptz IS NULL OR (details ->> 'pausedAt')::timestamptz < $5)
                 ORDER BY id DESC LIMIT $4)) AS p
            WHERE $5::timestamptz IS NULL OR paused_at < $5
            ORDER BY paused_at DESC LIMIT $4
            "#,
            &subjects,
            first_id_at(since),
            since,
            TOLD_MAX,
            ended_at,
        )
        .fetch_all(&self.pool)
        .await?;
        periods.reverse();
        Ok(periods)
    }
}
