//! The line of a subscription: its notifications that wait for quota or for the requests per second, oldest first.
//!
//! They are SCHEDULED and have nothing reserved. How many may go is asked of the limits each time the line is looked at,
//! so a limit that has changed holds for all of them at once, however many there are. What is released here is only put
//! into the queue: the claim decides, under the locks, and puts back what does not fit.
//!
//! `subscription_budgets.release_at` says that there is a line and when to look at it; the row's lock keeps what joins
//! the line apart from the look that finds it empty.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use domain::notification::NotificationStatus;
use domain::quota::{Budget, LineRules, day_of, start_of};
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use super::PromotedNotification;
use super::outages::WITHHELD_FOR;
use crate::{Error, Store, column, interval};

/// Lines looked at in one statement.
const LINES: i64 = 100;
/// Lines whose turns are forecast in one statement: each may be read up to [`AHEAD_MAX`], and a statement has 8 seconds.
const FORECAST: usize = 20;
/// Most notifications before one in line that are counted.
const AHEAD_MAX: i64 = 100_000;
/// How much of the requests per second is released ahead: what is promoted, published and claimed until the next look.
const RATE_AHEAD: Duration = Duration::from_millis(1_200);
/// Until the next look at a line that moves by the requests per second.
const RATE_LOOK: Duration = Duration::from_millis(400);
/// Until the next look at a line from which the quota lets some go: as long as those take to be claimed and counted.
const QUOTA_LOOK: Duration = Duration::from_secs(2);
/// Until the next look at a line of which nothing may go. A limit that was changed by other means than through this
/// program, a default for instance, holds after this time at the latest.
const IDLE_LOOK: Duration = Duration::from_secs(30);
/// Notifications of an earlier version that join a line in one look.
const JOINING: i64 = 5_000;

/// What holds for lines where the subscription says nothing else.
#[derive(Debug, Clone, Copy)]
pub struct LineTerms {
    /// Notifications a day.
    pub daily_quota: u32,
    /// Requests a second; `None`: any.
    pub requests_per_second: Option<u32>,
    /// Where days begin and end.
    pub zone: chrono_tz::Tz,
    /// Over which part of a day its places are given to what has waited for it.
    pub release_window: Duration,
}

/// What came of looking at lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Release {
    /// What is to be published now.
    pub promoted: Vec<PromotedNotification>,
    /// Whether there may be more lines whose time has come.
    pub more: bool,
}

/// A notification in a list, which may be in line.
pub(super) struct Listed<'a> {
    pub(super) subscription: Uuid,
    pub(super) id: Uuid,
    pub(super) status: NotificationStatus,
    /// Since when it is in line; becomes when its turn comes.
    pub(super) due: &'a mut Option<DateTime<Utc>>,
}

/// A notification in line.
struct InLine {
    subscription: Uuid,
    /// The time that its line is sorted by.
    since: DateTime<Utc>,
    id: Uuid,
}

impl Default for LineTerms {
    /// As `config/default.yaml` has it.
    fn default() -> Self {
        Self {
            daily_quota: 1_000_000,
            requests_per_second: None,
            zone: chrono_tz::UTC,
            release_window: Duration::from_hours(6),
        }
    }
}

/// By what a line moves at a moment.
pub(super) struct LineLimits {
    pub(super) rules: LineRules,
    budget: Budget,
    before: u32,
    now: DateTime<Utc>,
}

impl LineLimits {
    /// When the turn comes of what has `ahead` before it.
    pub(super) fn turn(&self, ahead: u64) -> DateTime<Utc> {
        self.rules.forecast(self.budget, self.before, ahead, self.now)
    }
}

impl LineTerms {
    fn rules(&self, quota: Option<i32>, rate: Option<i32>) -> LineRules {
        LineRules {
            quota: quota.map_or(self.daily_quota, i32::unsigned_abs),
            rate: rate.map(i32::unsigned_abs).or(self.requests_per_second),
            zone: self.zone,
            window: self.release_window,
            spreads_today: true,
        }
    }
}

impl Store {
    /// Looks at the lines whose time has come, longest overdue first, and releases what their limits allow: of each the
    /// oldest, at most `share`, and at most `limit` altogether, each line's first one before any line's second.
    pub async fn release_lines(
        &self,
        at: DateTime<Utc>,
        terms: &LineTerms,
        share: u32,
        limit: u32,
        queue_lease: Duration,
    ) -> Result<Release, Error> {
        let mut transaction = self.pool.begin().await?;
        // A statement of its own: the next one sees what joined these lines before they were locked.
        let lines = sqlx::query_scalar!(
            r#"
            SELECT subscription_id FROM subscription_budgets WHERE release_at <= now()
            ORDER BY release_at, subscription_id LIMIT $1 FOR UPDATE SKIP LOCKED
            "#,
            LINES,
        )
        .fetch_all(&mut *transaction)
        .await?;
        if lines.is_empty() {
            return Ok(Release::default());
        }
        let rules = terms.rules(None, None);
        let today = day_of(at, rules.zone);
        take_in(&mut transaction, &lines, today).await?;
        let promoted = sqlx::query_file_as!(
            PromotedNotification,
            "queries/webhook/release_lines.sql",
            &lines,
            i64::from(share),
            i64::from(limit),
            today,
            rules.share_open(at),
            interval(queue_lease),
            at,
            i32::try_from(terms.daily_quota).unwrap_or(i32::MAX),
            terms
                .requests_per_second
                .map(|rate| i32::try_from(rate).unwrap_or(i32::MAX)),
            interval(RATE_AHEAD),
            interval(IDLE_LOOK),
            interval(RATE_LOOK),
            interval(QUOTA_LOOK),
            start_of(today, rules.zone),
            interval(WITHHELD_FOR),
        )
        .fetch_all(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(Release {
            promoted,
            more: i64::try_from(lines.len()).is_ok_and(|looked_at| looked_at >= LINES),
        })
    }

    /// Notes the lines that nothing has noted: of an earlier version, or left by a hand in the database. Returns how many.
    pub async fn find_lines(&self, at: DateTime<Utc>, terms: &LineTerms) -> Result<u64, Error> {
        let found = sqlx::query!(
            r#"
            WITH RECURSIVE hop AS (
                (SELECT subscription_id FROM notifications WHERE status = 'SCHEDULED' ORDER BY subscription_id LIMIT 1)
                UNION ALL
                SELECT (SELECT n.subscription_id FROM notifications n
                        WHERE n.status = 'SCHEDULED' AND n.subscription_id > h.subscription_id
                        ORDER BY n.subscription_id LIMIT 1)
                FROM hop h WHERE h.subscription_id IS NOT NULL)
            INSERT INTO subscription_budgets AS b (subscription_id, day, used, quota, release_at)
            SELECT h.subscription_id, $1, 0, $2, now() FROM hop h
            WHERE h.subscription_id IS NOT NULL
              AND (SELECT o.release_at FROM subscription_budgets o WHERE o.subscription_id = h.subscription_id OFFSET 0) IS NULL
            ORDER BY h.subscription_id
            ON CONFLICT (subscription_id) DO UPDATE SET release_at = coalesce(b.release_at, excluded.release_at)
            "#,
            day_of(at, terms.zone),
            i32::try_from(terms.daily_quota).unwrap_or(i32::MAX),
        )
        .execute(&self.pool)
        .await?;
        Ok(found.rows_affected())
    }

    /// Tells of those in a list that are in line when their turns come, with few queries for many subscriptions.
    pub(super) async fn tell_turns(&self, list: Vec<Listed<'_>>) -> Result<(), Error> {
        let mut waiting = Vec::new();
        let mut in_line = Vec::new();
        for listed in list {
            if listed.status == NotificationStatus::Scheduled
                && let Some(since) = *listed.due
            {
                waiting.push(InLine {
                    subscription: listed.subscription,
                    since,
                    id: listed.id,
                });
                in_line.push(listed);
            }
        }
        let turns = self.forecast(&waiting).await?;
        for listed in in_line {
            *listed.due = turns.get(&listed.id).copied();
        }
        Ok(())
    }

    /// When one is due: of what is in line, when its turn comes.
    pub(crate) async fn turn_of(
        &self,
        subscription: Uuid,
        id: Uuid,
        status: NotificationStatus,
        next_attempt_at: Option<DateTime<Utc>>,
    ) -> Result<Option<DateTime<Utc>>, Error> {
        match next_attempt_at {
            Some(since) if status == NotificationStatus::Scheduled => {
                let waiting = InLine {
                    subscription,
                    since,
                    id,
                };
                Ok(self.forecast(&[waiting]).await?.remove(&id))
            }
            due => Ok(due),
        }
    }

    /// When the turns come of those of `waiting` in the lines of their subscriptions, by the limits at the moment. Beyond the first 100,000 of
    /// a line it is the earliest possible time.
    async fn forecast(&self, waiting: &[InLine]) -> Result<HashMap<Uuid, DateTime<Utc>>, Error> {
        // A line is read up to the last one of these.
        let mut ends: BTreeMap<Uuid, (DateTime<Utc>, Uuid)> = BTreeMap::new();
        for one in waiting {
            let place = (one.since, one.id);
            let end = ends.entry(one.subscription).or_insert(place);
            *end = place.max(*end);
        }
        if ends.is_empty() {
            return Ok(HashMap::new());
        }
        let lines: Vec<Uuid> = ends.keys().copied().collect();
        let (ends_at, end_ids): (Vec<DateTime<Utc>>, Vec<Uuid>) = ends.into_values().unzip();
        let ids = column(waiting, |one| one.id);
        let mut ahead: HashMap<Uuid, u64> = HashMap::new();
        let parts = lines.chunks(FORECAST).zip(ends_at.chunks(FORECAST));
        for ((lines, ends_at), end_ids) in parts.zip(end_ids.chunks(FORECAST)) {
            let rows = sqlx::query!(
                r#"
            SELECT l.id AS "id!", l.ahead AS "ahead!"
            FROM UNNEST($1::uuid[], $2::timestamptz[], $3::uuid[]) AS i(subscription, ends_at, end_id)
            CROSS JOIN LATERAL (
                SELECT w.id, row_number() OVER (ORDER BY w.next_attempt_at, w.id) - 1 AS ahead
                FROM (SELECT n.id, n.next_attempt_at FROM notifications n
                      WHERE n.subscription_id = i.subscription AND n.status = 'SCHEDULED'
                        AND (n.next_attempt_at, n.id) <= (i.ends_at, i.end_id)
                      ORDER BY n.next_attempt_at, n.id LIMIT $4) AS w) AS l
            WHERE l.id = ANY ($5)
            "#,
                lines,
                ends_at,
                end_ids,
                AHEAD_MAX,
                &ids,
            )
            .fetch_all(&self.pool)
            .await?;
            ahead.extend(rows.into_iter().map(|row| (row.id, row.ahead.unsigned_abs())));
        }
        let limits = self.limits_of_lines(&lines).await?;
        let turn = |one: &InLine| {
            let ahead = ahead.get(&one.id).copied();
            let limits = limits.get(&one.subscription)?;
            Some((one.id, limits.turn(ahead.unwrap_or(AHEAD_MAX.unsigned_abs()))))
        };
        Ok(waiting.iter().filter_map(turn).collect())
    }

    /// By what the line of a subscription moves at the moment.
    pub(super) async fn line_limits(&self, subscription: Uuid) -> Result<LineLimits, Error> {
        let limits = self.limits_of_lines(&[subscription]).await?.remove(&subscription);
        Ok(limits.ok_or(sqlx::Error::RowNotFound)?)
    }

    /// The same for several; none of a subscription that there is not.
    async fn limits_of_lines(&self, subscriptions: &[Uuid]) -> Result<HashMap<Uuid, LineLimits>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT s.id, s.daily_quota, s.requests_per_second, b.day AS "day?", b.used AS "used?", b.quota AS "quota?",
                   now() AS "now!"
            FROM subscriptions s
            LEFT JOIN LATERAL (
                SELECT day, used, quota FROM subscription_budgets WHERE subscription_id = s.id OFFSET 0) b ON true
            WHERE s.id = ANY ($1)
            "#,
            subscriptions,
        )
        .fetch_all(&self.pool)
        .await?;
        let limits = rows.into_iter().map(|row| {
            let rules = self.line_terms.rules(row.daily_quota, row.requests_per_second);
            let limits = LineLimits {
                before: row.quota.map_or(rules.quota, i32::unsigned_abs),
                budget: Budget {
                    day: row.day.unwrap_or(NaiveDate::MIN),
                    used: row.used.unwrap_or(0).unsigned_abs(),
                },
                rules,
                now: row.now,
            };
            (row.id, limits)
        });
        Ok(limits.collect())
    }
}

/// Lets what an earlier version has given places of coming days or seconds join the line at its age, without the place.
/// While such versions run beside this one, there may be more of them each time.
async fn take_in(
    transaction: &mut Transaction<'_, Postgres>,
    lines: &[Uuid],
    today: NaiveDate,
) -> Result<(), Error> {
    let joined = sqlx::query!(
        r#"
        UPDATE notifications n SET next_attempt_at = n.created_at, charged_on = NULL, slot_at = NULL
        FROM (SELECT o.id, o.status
              FROM UNNEST($1::uuid[]) AS i(id)
              CROSS JOIN LATERAL (
                  SELECT n.id, n.status FROM notifications n
                  WHERE n.subscription_id = i.id AND n.status = 'SCHEDULED' AND n.next_attempt_at > now()
                  ORDER BY n.next_attempt_at, n.id LIMIT $2) o
              LIMIT $2) AS p
        WHERE n.id = p.id AND n.status = p.status
        "#,
        lines,
        JOINING,
    )
    .execute(&mut **transaction)
    .await?;
    if joined.rows_affected() >= JOINING.unsigned_abs() {
        return Ok(());
    }
    // Nothing holds a place of a coming day any more, so none is counted.
    sqlx::query!(
        r#"
        UPDATE subscription_budgets
        SET day = $2, used = least(quota, used - quota::bigint * ($2 - day))
        WHERE subscription_id = ANY ($1) AND day <= $2 AND used - quota::bigint * ($2 - day) > 0 AND used > quota
        "#,
        lines,
        today,
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}
