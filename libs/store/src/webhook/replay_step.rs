//! A step of a replay: looks at the next events, and makes due what the subscription missed of them. The cursor moves in
//! the same transaction, so that a crash repeats nothing and skips nothing; two replicas at once work one after the other.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::reason::NotificationReason;
use domain::subscription::{EventFilter, RateBudget};
use sqlx::PgConnection;
use uuid::Uuid;

use super::listing::first_id_at;
use super::replays::{Missed, NewReplay, ReplayCount};
use super::sending_again::resolve_sent_again;
use crate::{Error, Store, column};

/// Events looked at in one step.
const EXAMINED_MAX: i64 = 1_000;
/// Younger events are left to a later step.
pub const SETTLED_AFTER: Duration = Duration::from_secs(10);
/// How long after its identifier the transaction of an event begins, at the most: what it waits in the intake and for a connection, and
/// by how much clocks differ.
const BEGUN_WITHIN: TimeDelta = TimeDelta::seconds(30);

/// What a step has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplayStep {
    /// Events looked at.
    pub examined: u64,
    /// Notifications that were made or made due again.
    pub replayed: u64,
    /// Whether the next step would find something to do at once.
    pub more: bool,
}

/// A replay that this transaction has to itself.
struct Held {
    id: Uuid,
    subscription: Uuid,
    reseller: String,
    filter: Vec<EventFilter>,
    missed: Missed,
    next: Uuid,
    until: DateTime<Utc>,
    per_second: u32,
    /// Up to when its rate is used up.
    paced_to: DateTime<Utc>,
}

/// An event, and whether the subscription missed it.
struct Candidate {
    id: Uuid,
    event_type: String,
    bytes: i32,
    missed: bool,
    /// Whether its notification was cancelled, so that it is not made due.
    cancelled: bool,
    /// How it was missed: what has no notification is `MISSED`.
    status: &'static str,
}

impl Store {
    /// Takes a replay one step further, as far as its rate allows at `now`. Does nothing when another one is at it, when
    /// it has ended, or while its subscription gets nothing.
    pub async fn advance_replay(&self, id: Uuid, now: DateTime<Utc>) -> Result<ReplayStep, Error> {
        let mut transaction = self.pool.begin().await?;
        let Some(replay) = hold(&mut transaction, id).await? else {
            return Ok(ReplayStep::default());
        };
        let settled = settled(&mut transaction, now).await?;
        let end = first_id_at(replay.until.min(settled));
        let candidates = candidates(&mut transaction, &replay, end).await?;
        let whole = candidates.len() < usize::try_from(EXAMINED_MAX).unwrap_or(usize::MAX);
        let rate_budget = RateBudget::at(now, replay.paced_to, replay.per_second);
        let (examined, missed) = within(&candidates, rate_budget.count);
        let replayed = make_due(&mut transaction, &replay, &missed, now).await?;
        let through = examined.len() == candidates.len();
        let progress = Progress {
            cursor: examined.last().map(|event| event.id),
            examined: examined.len(),
            replayed,
            cancelled: examined.iter().filter(|event| event.cancelled).count(),
            paced_to: rate_budget.paced_to(missed.len()),
            finished: whole && through && replay.until <= settled,
        };
        record(&mut transaction, &replay, &progress, now).await?;
        transaction.commit().await?;
        Ok(ReplayStep {
            examined: examined.len() as u64,
            replayed,
            more: through && !whole,
        })
    }
}

impl Store {
    /// Counts what a replay of a subscription with the filter `event_types` would send again, of at most `examined_max` events. Whose the
    /// subscription is, is for the caller to know.
    pub async fn count_replay(
        &self,
        new: &NewReplay,
        (reseller, event_types): (&str, &[String]),
        examined_max: u32,
    ) -> Result<ReplayCount, Error> {
        let mut connection = self.pool.acquire().await?;
        let mut replay = Held {
            id: new.id,
            subscription: new.subscription,
            reseller: reseller.to_owned(),
            filter: filter_of(event_types),
            missed: new.missed.clone(),
            next: first_id_at(new.since),
            until: new.until,
            per_second: new.per_second,
            paced_to: new.created_at,
        };
        let mut counted = ReplayCount::default();
        while counted.examined < u64::from(examined_max) {
            let part = candidates(&mut connection, &replay, first_id_at(new.until)).await?;
            counted.examined += part.len() as u64;
            for candidate in &part {
                counted.cancelled += u64::from(candidate.cancelled);
                if candidate.missed {
                    *counted.by_status.entry(candidate.status).or_default() += 1;
                    *counted
                        .by_event_type
                        .entry(candidate.event_type.clone())
                        .or_default() += 1;
                }
            }
            match part.last() {
                Some(last) if i64::try_from(part.len()).is_ok_and(|looked_at| looked_at >= EXAMINED_MAX) => {
                    replay.next = Uuid::from_u128(last.id.as_u128() + 1);
                }
                _ => {
                    counted.is_whole = true;
                    break;
                }
            }
        }
        Ok(counted)
    }
}

/// The events up to the one at which the rate budget is used up, and those of them that were missed.
fn within(candidates: &[Candidate], rate_budget: usize) -> (&[Candidate], Vec<&Candidate>) {
    let mut missed = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        if candidate.missed {
            if missed.len() >= rate_budget {
                return (&candidates[..index], missed);
            }
            missed.push(candidate);
        }
    }
    (candidates, missed)
}

async fn hold(connection: &mut PgConnection, id: Uuid) -> Result<Option<Held>, Error> {
    let row = sqlx::query!(
        r#"
        SELECT r.subscription_id, r.reseller_id, r.since, r.until, r.per_second, r.cursor, r.updated_at, s.event_types,
               coalesce(r.event_types, '{}') AS "only_types!", coalesce(r.statuses, '{}') AS "only_statuses!"
        FROM replays r JOIN subscriptions s ON s.id = r.subscription_id
        WHERE r.id = $1 AND r.status = 'RUNNING' AND s.state IN ('ACTIVE', 'DEGRADED') AND NOT s.suspended
          AND s.deleted_at IS NULL
        FOR UPDATE OF r SKIP LOCKED
        "#,
        id,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| Held {
        id,
        subscription: row.subscription_id,
        reseller: row.reseller_id,
        filter: filter_of(&row.event_types),
        missed: Missed {
            event_types: row.only_types,
            statuses: row.only_statuses,
        },
        next: row.cursor.map_or(first_id_at(row.since), |cursor| {
            Uuid::from_u128(cursor.as_u128() + 1)
        }),
        until: row.until,
        per_second: row.per_second.unsigned_abs(),
        paced_to: row.updated_at,
    }))
}

/// Entries are checked before they are stored; one that a later version wrote selects nothing for this one.
fn filter_of(event_types: &[String]) -> Vec<EventFilter> {
    let entries = event_types.iter();
    entries
        .filter_map(|entry| EventFilter::parse(entry).ok())
        .collect()
}

impl Missed {
    /// Whether it is among them. An empty list stands for all.
    fn has(&self, event_type: &str, status: &str) -> bool {
        let is_in = |list: &[String], one: &str| list.is_empty() || list.iter().any(|entry| entry == one);
        is_in(&self.event_types, event_type) && is_in(&self.statuses, status)
    }
}

/// Up to when no event appears any more that this subscription would miss. An event whose statement begins from now on sees a
/// subscription that is sent everything, and makes the notification by itself. One whose statement is under way may have seen it as it was
/// before, however long its commit takes: the cursor stays behind all of these. To be asked before events are looked at, so
/// that what ends in between is seen there.
async fn settled(connection: &mut PgConnection, now: DateTime<Utc>) -> Result<DateTime<Utc>, Error> {
    let writing = sqlx::query!(
        r#"
        SELECT
            (SELECT min(xact_start) FROM pg_stat_activity
             WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
               -- What has not written for a minute only reads, as a backup does for hours.
               AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL AND xact_start > clock_timestamp() - interval '1 minute')) AS oldest,
            -- Of sessions of other roles most is NULL without the privileges of pg_read_all_stats. What they have locked is not hidden.
            EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
                    WHERE l.relation = 'events'::regclass AND l.mode = 'RowExclusiveLock'
                      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                      AND a.backend_type IS NULL) AS "hidden!"
        "#,
    )
    .fetch_one(connection)
    .await?;
    if writing.hidden {
        return Err(Error::HiddenSessions);
    }
    let settled = now - TimeDelta::from_std(SETTLED_AFTER).unwrap_or_default();
    Ok(writing
        .oldest
        .map_or(settled, |oldest| settled.min(oldest - BEGUN_WITHIN)))
}

async fn candidates(
    connection: &mut PgConnection,
    replay: &Held,
    end: Uuid,
) -> Result<Vec<Candidate>, Error> {
    let rows = sqlx::query!(
        r#"
        SELECT e.id, e.type AS event_type, octet_length(e.body) AS "bytes!", n.status AS "status?", n.reason
        FROM events e LEFT JOIN notifications n ON n.id = notification_id(e.id, $2)
        WHERE e.reseller_id = $1 AND e.reseller_id <> '' AND e.id >= $3 AND e.id < $4 AND e.test_of IS NULL
        ORDER BY e.id LIMIT $5
        "#,
        replay.reseller,
        replay.subscription,
        replay.next,
        end,
        EXAMINED_MAX,
    )
    .fetch_all(connection)
    .await?;
    let selected = |event_type: &str| replay.filter.iter().any(|filter| filter.matches(event_type));
    Ok(rows
        .into_iter()
        .map(|row| {
            let status = match row.status.as_deref() {
                None => "MISSED",
                Some("FAILED") => "FAILED",
                Some("GIVEN_UP") => "GIVEN_UP",
                Some(_) => "",
            };
            let wanted =
                !status.is_empty() && selected(&row.event_type) && replay.missed.has(&row.event_type, status);
            let cancelled = row.status.as_deref() == Some("GIVEN_UP")
                && row.reason.as_deref() == Some(NotificationReason::Cancelled.as_str());
            Candidate {
                missed: wanted && !cancelled,
                cancelled: wanted && cancelled,
                id: row.id,
                event_type: row.event_type,
                bytes: row.bytes,
                status,
            }
        })
        .collect())
}

/// Makes a notification of each event that has none, and those that ended badly due again; the dead letters about these
/// are resolved. Whatever another transaction did to one meanwhile stays.
async fn make_due(
    connection: &mut PgConnection,
    replay: &Held,
    missed: &[&Candidate],
    now: DateTime<Utc>,
) -> Result<u64, Error> {
    if missed.is_empty() {
        return Ok(0);
    }
    let made = sqlx::query_scalar!(
        r#"
        INSERT INTO notifications AS n (id, event, subscription_id, reseller_id, event_type, status, payload_bytes,
                                        created_at, updated_at)
        SELECT notification_id(i.event, $4), i.event, $4, $5, i.type, 'PENDING', i.bytes, $6, $6
        FROM UNNEST($1::uuid[], $2::text[], $3::integer[]) AS i(event, type, bytes)
        ORDER BY 1
        ON CONFLICT (id) DO UPDATE
        SET status = 'RETRY', next_attempt_at = $6, resent_after = n.attempts, resent_at = $6, finished_at = NULL,
            reason = 'REPLAYED', slot_at = NULL, updated_at = $6
        WHERE n.status = 'FAILED' OR n.status = 'GIVEN_UP' AND n.reason IS DISTINCT FROM 'CANCELLED'
        RETURNING n.id
        "#,
        &column(missed, |event| event.id),
        &column(missed, |event| event.event_type.as_str()) as &[&str],
        &column(missed, |event| event.bytes),
        replay.subscription,
        replay.reseller,
        now,
    )
    .fetch_all(&mut *connection)
    .await?;
    let noted = ("replayed by its reseller", now);
    resolve_sent_again(connection, &replay.reseller, &made, noted).await?;
    Ok(made.len() as u64)
}

struct Progress {
    cursor: Option<Uuid>,
    examined: usize,
    replayed: u64,
    cancelled: usize,
    paced_to: DateTime<Utc>,
    finished: bool,
}

async fn record(
    connection: &mut PgConnection,
    replay: &Held,
    progress: &Progress,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query!(
        r#"
        UPDATE replays
        SET cursor = coalesce($2, cursor), examined = examined + $3, replayed = replayed + $4,
            updated_at = CASE WHEN $6 THEN $7::timestamptz ELSE $5 END,
            status = CASE WHEN $6 THEN 'COMPLETED' ELSE status END,
            finished_at = CASE WHEN $6 THEN $7::timestamptz END, cancelled = cancelled + $8
        WHERE id = $1
        "#,
        replay.id,
        progress.cursor,
        i64::try_from(progress.examined).unwrap_or(i64::MAX),
        i64::try_from(progress.replayed).unwrap_or(i64::MAX),
        progress.paced_to,
        progress.finished,
        now,
        i64::try_from(progress.cancelled).unwrap_or(i64::MAX),
    )
    .execute(connection)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_before_the_first_missed_event_that_is_too_many() {
        let candidates: Vec<Candidate> = [true, false, true, false, true]
            .into_iter()
            .map(|missed| Candidate {
                id: Uuid::nil(),
                event_type: String::new(),
                bytes: 0,
                missed,
                cancelled: false,
                status: "MISSED",
            })
            .collect();
        let lengths = |rate_budget| {
            let (examined, missed) = within(&candidates, rate_budget);
            (examined.len(), missed.len())
        };
        assert_eq!([0, 1, 2, 3].map(lengths), [(0, 0), (2, 1), (4, 2), (5, 3)]);
    }
}
