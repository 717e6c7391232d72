//! Claiming notifications for sending. Here it is decided, under the locks of the rows concerned, whether one may be
//! sent now: its subscription must want it, its day must have quota left, and it gets a place in the requests per
//! second. The attempt is counted and recorded before anything is sent.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use domain::notification::{Attempts, NotificationId};
use domain::quota::start_of;
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use crate::reseller::NotificationRelease;
use crate::tentative::{Taken, Tentative};
use crate::{Error, Store, interval, within};

/// How many days ahead the database is told when days begin, so that it need not know time zones. What has a place
/// further ahead is looked at again on the last of them.
pub(super) const DAYS_AHEAD: i32 = 60;
/// A claim leaves a lease as it is that ends at most this much later than its own would. Then no index changes with it,
/// and what was queued a moment ago is found at most this much later if the claimer dies.
pub(super) const KEPT_LEASE: Duration = Duration::from_secs(15);
/// How long a claim of several statements may take. A caller should wait longer than this: what the first statement has
/// claimed is handed back when it gives up.
pub const CLAIM_LIMIT: Duration = Duration::from_secs(9);
/// How long a retry waits whose subscription is paused or not verified.
const HOLD: Duration = Duration::from_secs(60);

/// When and under which rules a claim is made.
#[derive(Debug, Clone, Copy)]
pub struct ClaimTerms {
    /// The present time.
    pub at: DateTime<Utc>,
    /// How long the claim holds, by the clock of the database.
    pub lease: Duration,
    /// Notifications a day, for subscriptions that have no number of their own.
    pub daily_quota: u32,
    /// Requests per second, for subscriptions that have no number of their own; `None`: any.
    pub requests_per_second: Option<u32>,
    /// Where days begin and end.
    pub zone: Tz,
    /// How the places of a coming day are spread.
    pub release_window: Duration,
    /// What is to be sent within this time is claimed already, and sent at its time.
    pub horizon: Duration,
}

/// A notification that is ours to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedNotification {
    /// Its identifier.
    pub id: NotificationId,
    /// Proves the claim when the attempt is completed.
    pub lease_token: Uuid,
    /// Attempts so far, this one included.
    pub attempts: Attempts,
    /// To whom it goes.
    pub subscription_id: Uuid,
    /// The version of the subscription; see [`crate::reseller::Endpoint`].
    pub version: i64,
    /// Not to be sent before this time.
    pub send_at: Option<DateTime<Utc>>,
    /// Whether more of its subscription waits in the database.
    pub backlog: bool,
    /// What receivers know the event by.
    pub event_id: String,
    /// The event's type.
    pub event_type: String,
    /// The bytes to send.
    pub body: String,
    /// When the event was accepted.
    pub accepted_at: DateTime<Utc>,
    /// W3C trace context of the request that brought the event.
    pub traceparent: Option<String>,
}

/// What became of the notifications that were to be claimed. Those in none of the lists were finished, claimed or
/// rescheduled before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// To be sent now.
    pub claimed: Vec<ClaimedNotification>,
    /// Left to a coming day.
    pub over_quota: u64,
    /// Left to their place in the requests per second.
    pub over_rate: u64,
    /// Their subscription is paused or not verified.
    pub held: u64,
    /// Their subscription is deactivated or deleted: given up.
    pub abandoned: u64,
    /// Their event is gone, which nothing of ours does. They are claimed, and their leases run out.
    pub orphaned: u64,
}

/// A row of a claiming statement.
pub(super) struct ClaimRow {
    pub(super) id: Uuid,
    pub(super) attempts: i32,
    pub(super) resent_after: i32,
    pub(super) subscription_id: Uuid,
    pub(super) slot_at: Option<DateTime<Utc>>,
    pub(super) verdict: String,
    pub(super) version: i64,
    pub(super) backlog: bool,
    pub(super) event_id: Option<String>,
    pub(super) event_type: Option<String>,
    pub(super) body: Option<String>,
    pub(super) accepted_at: Option<DateTime<Utc>>,
    pub(super) traceparent: Option<String>,
}

impl ClaimRow {
    /// `None` when the event is gone.
    fn claimed(self, lease_token: Uuid, at: DateTime<Utc>) -> Option<ClaimedNotification> {
        Some(ClaimedNotification {
            id: self.id.into(),
            lease_token,
            attempts: Attempts {
                total: self.attempts.unsigned_abs(),
                before_resend: self.resent_after.unsigned_abs(),
            },
            subscription_id: self.subscription_id,
            version: self.version,
            send_at: self.slot_at.filter(|slot| *slot > at),
            backlog: self.backlog,
            event_id: self.event_id?,
            event_type: self.event_type?,
            body: self.body?,
            accepted_at: self.accepted_at?,
            traceparent: self.traceparent,
        })
    }
}

impl Claims {
    /// What a statement that claimed under `lease_token` at the time `at` has returned.
    pub(super) fn of(rows: Vec<ClaimRow>, lease_token: Uuid, at: DateTime<Utc>) -> Self {
        let mut claims = Self::default();
        for row in rows {
            match row.verdict.as_str() {
                "QUOTA" => claims.over_quota += 1,
                "RATE" => claims.over_rate += 1,
                "PAUSED" | "UNVERIFIED" => claims.held += 1,
                "CLAIM" => match row.claimed(lease_token, at) {
                    Some(claimed) => claims.claimed.push(claimed),
                    None => claims.orphaned += 1,
                },
                _ => claims.abandoned += 1,
            }
        }
        claims
    }

    /// Joins what became of others.
    fn add(&mut self, others: Self) {
        self.claimed.extend(others.claimed);
        self.over_quota += others.over_quota;
        self.over_rate += others.over_rate;
        self.held += others.held;
        self.abandoned += others.abandoned;
        self.orphaned += others.orphaned;
    }
}

impl Store {
    /// Claims those of `ids` that are queued, wait for their first attempt, or are due again, and starts an attempt for each. Each id
    /// must be named once.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails and nothing was claimed before. What may have been claimed all the same is handed back;
    /// so is everything when the call is given up.
    pub async fn claim_notifications(
        &self,
        ids: &[NotificationId],
        terms: &ClaimTerms,
    ) -> Result<Claims, Error> {
        let all: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
        let today = domain::quota::day_of(terms.at, terms.zone);
        let started = Instant::now();
        let (mut claims, ordinary) = self.claim_ordinary(&all, Uuid::now_v7(), today, terms).await?;
        let taken: HashSet<NotificationId> = claims.claimed.iter().map(|claimed| claimed.id).collect();
        if taken.len() + usize::try_from(claims.orphaned).unwrap_or(usize::MAX) >= ids.len() {
            ordinary.keep();
            return Ok(claims);
        }
        let left: Vec<Uuid> = ids
            .iter()
            .filter(|id| !taken.contains(id))
            .map(|id| id.uuid())
            .collect();
        if claims == Claims::default() {
            let (claims, judged) = self.claim_judged(&left, today, terms).await?;
            judged.keep();
            return Ok(claims);
        }
        let remaining = CLAIM_LIMIT.saturating_sub(started.elapsed());
        match within(remaining, self.claim_left(&left, today, terms)).await {
            Ok((others, judged)) => {
                judged.keep();
                claims.add(others);
            }
            // What is claimed has to be sent; the others are handed back, or their queue leases bring them back.
            Err(error) => tracing::warn!(error = %error, "cannot claim some of the notifications"),
        }
        ordinary.keep();
        Ok(claims)
    }

    /// Claims what is left once others were claimed. The caller cannot ask again for all of them, so a failure that passes,
    /// such as a change of the lane's pauses in between, is followed by another try here.
    async fn claim_left(
        &self,
        ids: &[Uuid],
        today: NaiveDate,
        terms: &ClaimTerms,
    ) -> Result<(Claims, Tentative), Error> {
        match self.claim_judged(ids, today, terms).await {
            Err(error) if error.is_transient() => self.claim_judged(ids, today, terms).await,
            judged => judged,
        }
    }

    /// Claims by the whole rule, or finds the reason why not.
    async fn claim_judged(
        &self,
        ids: &[Uuid],
        today: NaiveDate,
        terms: &ClaimTerms,
    ) -> Result<(Claims, Tentative), Error> {
        let lease_token = Uuid::now_v7();
        let mut transaction = self.pool.begin().await?;
        let rows = sqlx::query_as!(
            ClaimRow,
            r#"
            WITH due AS (
                SELECT n.id, n.subscription_id, n.attempts, n.charged_on, n.slot_at,
                       n.reason IS NOT DISTINCT FROM 'BACKLOG' AS backlog, s.url, s.version,
                       coalesce(s.daily_quota, $5) AS quota, coalesce(s.requests_per_second, $6) AS rate,
                       CASE WHEN s.deleted_at IS NOT NULL THEN 'SUBSCRIPTION_DELETED'
                            WHEN s.state = 'DEACTIVATED' THEN 'SUBSCRIPTION_DEACTIVATED'
                            WHEN s.state = 'PENDING_VERIFICATION' THEN 'UNVERIFIED'
                            WHEN s.suspended THEN 'PAUSED' END AS obstacle
                FROM UNNEST($1::uuid[]) AS i(id)
                JOIN notifications n ON n.id = i.id
                JOIN subscriptions s ON s.id = n.subscription_id
                WHERE ((n.status = 'IN_MEMORY' AND n.lease_token IS NULL) OR n.status = 'PENDING'
                       OR (n.status = 'RETRY' AND n.next_attempt_at <= $2))
                  AND (SELECT enter_lane(l.name, l.changes) FROM lanes l WHERE l.name = 'reseller')
                ORDER BY n.id
                FOR UPDATE OF n),
            uncharged AS (
                SELECT id, subscription_id, quota,
                       row_number() OVER (PARTITION BY subscription_id ORDER BY id) AS rank,
                       count(*) OVER (PARTITION BY subscription_id) AS count
                FROM due
                -- A first attempt whose day has gone by needs a place of a day to come.
                WHERE obstacle IS NULL AND (charged_on IS NULL OR (charged_on < $7 AND attempts = 0))),
            charge AS (
                INSERT INTO subscription_budgets AS b (subscription_id, day, used, quota)
                SELECT subscription_id, $7, count, quota FROM uncharged WHERE rank = 1 ORDER BY subscription_id
                ON CONFLICT (subscription_id) DO UPDATE
                -- What has a place on a coming day keeps it when the quota changes.
                SET (day, used) = (
                        SELECT m.day + CASE WHEN m.moved AND m.used > excluded.quota THEN 1 ELSE 0 END,
                               excluded.used
                                   + CASE WHEN m.moved AND m.used > excluded.quota THEN 0 ELSE m.used END
                        FROM (SELECT c.moved,
                                     c.day + CASE WHEN c.moved THEN greatest(0, c.used - 1) / b.quota ELSE 0 END::integer
                                         AS day,
                                     CASE WHEN c.moved AND c.used > 0 THEN (c.used - 1) % b.quota + 1
                                          ELSE c.used END AS used
                              FROM (SELECT greatest(b.day, excluded.day) AS day, b.quota <> excluded.quota AS moved,
                                           greatest(0, b.used - b.quota::bigint * greatest(0, excluded.day - b.day))
                                               AS used) AS c) AS m),
                    quota = excluded.quota
                RETURNING subscription_id, day, used),
            placed AS (
                SELECT u.id, u.quota, (c.used - u.count + u.rank - 1) % u.quota AS number,
                       c.day + least(36500, (c.used - u.count + u.rank - 1) / u.quota)::integer AS day
                FROM uncharged u JOIN charge c ON c.subscription_id = u.subscription_id),
            judged AS (
                SELECT d.*, coalesce(p.day, d.charged_on) AS day, coalesce(p.number, 0) AS number,
                       coalesce(d.obstacle, CASE
                           WHEN p.day > $7 OR p.day IS NULL AND d.charged_on > $7 AND d.attempts = 0 THEN 'QUOTA' END)
                           AS verdict
                FROM due d LEFT JOIN placed p ON p.id = d.id),
            unpaced AS (
                SELECT id, subscription_id, interval '1 second' / rate AS step,
                       row_number() OVER (PARTITION BY subscription_id ORDER BY id) AS rank,
                       count(*) OVER (PARTITION BY subscription_id) AS count
                FROM judged
                WHERE verdict IS NULL AND rate IS NOT NULL
                  AND (slot_at IS NULL OR slot_at < $2::timestamptz - interval '2 seconds')),
            pace AS (
                INSERT INTO subscription_paces AS p (subscription_id, next_slot_at, asked_at, span)
                SELECT subscription_id, $2::timestamptz + count * step, $2, count * step
                FROM unpaced WHERE rank = 1 ORDER BY subscription_id
                ON CONFLICT (subscription_id) DO UPDATE
                SET next_slot_at = greatest(p.next_slot_at, excluded.asked_at) + excluded.span,
                    asked_at = excluded.asked_at, span = excluded.span
                RETURNING subscription_id, next_slot_at, span),
            slotted AS (
                SELECT u.id, p.next_slot_at - p.span + (u.rank - 1) * u.step AS slot_at
                FROM unpaced u JOIN pace p ON p.subscription_id = u.subscription_id),
            planned AS (
                SELECT j.id, j.subscription_id, j.url, j.version, j.backlog, j.day, j.number, j.quota,
                       coalesce(t.slot_at, j.slot_at) AS slot_at,
                       CASE WHEN j.verdict IS NOT NULL THEN j.verdict
                            WHEN coalesce(t.slot_at, j.slot_at) > $2::timestamptz + $8::interval THEN 'RATE'
                            ELSE 'CLAIM' END AS verdict
                FROM judged j LEFT JOIN slotted t ON t.id = j.id),
            changed AS (
                UPDATE notifications n
                SET status = CASE
                        WHEN p.verdict = 'CLAIM' THEN 'IN_MEMORY'
                        WHEN p.verdict IN ('SUBSCRIPTION_DELETED', 'SUBSCRIPTION_DEACTIVATED') THEN 'GIVEN_UP'
                        WHEN n.attempts > 0 THEN 'RETRY'
                        WHEN p.verdict IN ('QUOTA', 'RATE') THEN 'SCHEDULED'
                        ELSE 'PENDING' END,
                    next_attempt_at = CASE
                        WHEN p.verdict = 'QUOTA'
                            THEN ($9::timestamptz[])[least(p.day - $7, $12::integer) + 1]
                               + $10::interval * (p.number::float8 / p.quota)
                        WHEN p.verdict = 'RATE' THEN p.slot_at
                        WHEN p.verdict IN ('PAUSED', 'UNVERIFIED') AND n.attempts > 0
                            THEN $2::timestamptz + $11::interval END,
                    reason = nullif(p.verdict, 'CLAIM'), charged_on = coalesce(p.day, n.charged_on),
                    slot_at = p.slot_at,
                    attempts = n.attempts + CASE WHEN p.verdict = 'CLAIM' THEN 1 ELSE 0 END,
                    lease_token = CASE WHEN p.verdict = 'CLAIM' THEN $3::uuid END,
                    leased_until = CASE
                        WHEN p.verdict <> 'CLAIM' THEN NULL
                        WHEN n.leased_until BETWEEN now() + $4::interval AND now() + $4::interval + $13::interval
                        THEN n.leased_until ELSE now() + $4::interval END,
                    finished_at = CASE
                        WHEN p.verdict IN ('SUBSCRIPTION_DELETED', 'SUBSCRIPTION_DEACTIVATED') THEN $2::timestamptz END,
                    updated_at = $2
                FROM planned p WHERE n.id = p.id
                RETURNING n.id, n.event, n.attempts, n.resent_after, n.subscription_id, n.slot_at, p.verdict, p.url,
                          p.version, p.backlog),
            attempt AS (
                INSERT INTO delivery_attempts (notification_id, number, status, started_at, url)
                SELECT id, attempts, 'IN_PROCESS', $2, url FROM changed WHERE verdict = 'CLAIM')
            SELECT c.id AS "id!", c.attempts AS "attempts!", c.resent_after AS "resent_after!",
                   c.subscription_id AS "subscription_id!", c.slot_at, c.verdict AS "verdict!", c.version AS "version!",
                   c.backlog AS "backlog!", e.event_id AS "event_id?", e.type AS "event_type?", e.body AS "body?",
                   e.created_at AS "accepted_at?", e.traceparent
            FROM changed c LEFT JOIN events e ON e.id = c.event AND c.verdict = 'CLAIM'
            "#,
            ids,
            terms.at,
            lease_token,
            interval(terms.lease),
            i32::try_from(terms.daily_quota).unwrap_or(i32::MAX),
            terms.requests_per_second.map(|rate| i32::try_from(rate).unwrap_or(i32::MAX)),
            today,
            interval(terms.horizon),
            &day_starts(today, terms.zone),
            interval(terms.release_window),
            interval(HOLD),
            DAYS_AHEAD,
            interval(KEPT_LEASE),
        )
        .fetch_all(&mut *transaction)
        .await?;
        self.commit_claims(transaction, rows, lease_token, terms.at).await
    }

    /// Commits what a claiming statement has returned. The caller keeps them in the moment in which it hands them on.
    pub(super) async fn commit_claims(
        &self,
        transaction: Transaction<'_, Postgres>,
        rows: Vec<ClaimRow>,
        lease_token: Uuid,
        at: DateTime<Utc>,
    ) -> Result<(Claims, Tentative), Error> {
        let claims = Claims::of(rows, lease_token, at);
        let releases = claims.claimed.iter().map(|claimed| NotificationRelease {
            id: claimed.id,
            lease_token,
            postponed_to: None,
        });
        let tentative = Tentative::new(self, Taken::Notifications(releases.collect(), at));
        transaction.commit().await?;
        Ok((claims, tentative))
    }

    /// Whether any of these would be claimed, or given a place or a reason to wait, if it were up to the notification alone.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails.
    pub async fn any_notification_waits(
        &self,
        ids: &[NotificationId],
        at: DateTime<Utc>,
    ) -> Result<bool, Error> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
        let waits = sqlx::query_scalar!(
            r#"
            SELECT EXISTS (
                SELECT FROM UNNEST($1::uuid[]) AS i(id)
                JOIN notifications n ON n.id = i.id
                JOIN subscriptions s ON s.id = n.subscription_id
                WHERE (n.status = 'IN_MEMORY' AND n.lease_token IS NULL) OR n.status = 'PENDING'
                   OR (n.status = 'RETRY' AND n.next_attempt_at <= $2)) AS "waits!"
            "#,
            &ids,
            at,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(waits)
    }
}

/// When `today` begins and the days after it.
pub(super) fn day_starts(today: NaiveDate, zone: Tz) -> Vec<DateTime<Utc>> {
    (0..=DAYS_AHEAD)
        .map(|days| start_of(today + TimeDelta::days(days.into()), zone))
        .collect()
}
