//! Claiming notifications for sending. Here it is decided, under the locks of the rows concerned, whether one may be
//! sent now: its subscription must want it, the day must have quota left, and the requests per second must have a slot
//! within the horizon. What may not waits in line (`line`), with nothing reserved for it. The attempt is counted and
//! recorded before anything is sent.

use std::collections::HashSet;
use std::iter::Sum;
use std::time::{Duration, Instant};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use domain::lifecycle::Attempts;
use domain::notification::NotificationId;
use domain::reason::NotificationReason;
use sqlx::{Connection as _, PgConnection, Postgres, Transaction};
use uuid::Uuid;

use crate::tentative::{Taken, Tentative};
use crate::webhook::NotificationRelease;
use crate::{Error, Store, column, interval, singly, stored, within};

/// A claim leaves a lease as it is that ends at most this much later than its own would. Then no index changes with it,
/// and what was queued a moment ago is found at most this much later if the claimer dies.
pub(super) const KEPT_LEASE: Duration = Duration::from_secs(15);
/// How long a claim of several statements may take. A caller should wait longer than this: what the first statement has
/// claimed is handed back when it gives up.
pub const CLAIM_LIMIT: Duration = Duration::from_secs(9);
/// How long a retry waits whose subscription is paused or not verified.
const HOLD: Duration = Duration::from_secs(60);
/// How long a retry waits for which the requests per second had no slot.
const RATE_AGAIN: Duration = Duration::from_secs(2);

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
    /// What has a slot of the requests per second within this time is claimed already, and sent at its time.
    pub horizon: Duration,
}

impl ClaimTerms {
    pub(super) fn rate(&self) -> Option<i32> {
        self.requests_per_second
            .map(|rate| i32::try_from(rate).unwrap_or(i32::MAX))
    }
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
    /// The version of the subscription; see [`crate::webhook::Endpoint`].
    pub version: i64,
    /// Whether no attempt of its subscription has failed since the last that succeeded.
    pub was_well: bool,
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
    /// Whether it is sent because that was asked for later: it is sent again, or a replay has made it.
    pub again: bool,
}

/// What became of the notifications that were to be claimed. Those in none of the lists were finished, claimed or
/// rescheduled before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// To be sent now.
    pub claimed: Vec<ClaimedNotification>,
    /// In line for the quota.
    pub over_quota: u64,
    /// In line for the requests per second, or retries that are tried again for a slot.
    pub over_rate: u64,
    /// Their subscription is paused or not verified.
    pub held: u64,
    /// Their subscription is deactivated or deleted: given up.
    pub abandoned: u64,
    /// The same of those that had been delivered and were to be sent again: they stay delivered.
    pub stay_delivered: u64,
    /// Their event is gone, which nothing of ours does. They are claimed, and their leases run out.
    pub orphaned: u64,
    /// Subscriptions that have some of them in line for the quota.
    pub in_line: HashSet<Uuid>,
    /// Subscriptions that have some of them waiting for anything else.
    pub held_up: HashSet<Uuid>,
}

/// The verdict on what is claimed.
const CLAIM: &str = "CLAIM";
/// The verdict on what stays delivered.
const DELIVERED: &str = "DELIVERED";

/// A row of a claiming statement.
pub(super) struct ClaimRow {
    pub(super) id: Uuid,
    pub(super) attempts: i32,
    pub(super) resent_after: i32,
    pub(super) subscription_id: Uuid,
    /// Seconds until its slot, from when the database answered.
    pub(super) wait: Option<f64>,
    /// [`CLAIM`], [`DELIVERED`], or why not.
    pub(super) verdict: String,
    pub(super) version: i64,
    pub(super) was_well: bool,
    pub(super) backlog: bool,
    pub(super) event_id: Option<String>,
    pub(super) event_type: Option<String>,
    pub(super) body: Option<String>,
    pub(super) accepted_at: Option<DateTime<Utc>>,
    pub(super) traceparent: Option<String>,
    pub(super) again: bool,
}

impl ClaimRow {
    /// Why it is not claimed, if it is not.
    fn obstacle(&self) -> Result<Option<NotificationReason>, Error> {
        let refused = self.verdict != CLAIM;
        refused
            .then(|| stored("verdict on a claim", &self.verdict))
            .transpose()
    }

    /// `None` when the event is gone.
    fn claimed(self, lease_token: Uuid, answered_at: DateTime<Utc>) -> Option<ClaimedNotification> {
        // The database says how long, not when: its clock and this process's may differ by seconds.
        let wait = self
            .wait
            .filter(|seconds| *seconds > 0.0)
            .map(Duration::from_secs_f64);
        Some(ClaimedNotification {
            id: self.id.into(),
            lease_token,
            attempts: Attempts {
                total: self.attempts.unsigned_abs(),
                before_resend: self.resent_after.unsigned_abs(),
            },
            subscription_id: self.subscription_id,
            version: self.version,
            was_well: self.was_well,
            send_at: wait
                .and_then(|wait| TimeDelta::from_std(wait).ok())
                .map(|wait| answered_at + wait),
            backlog: self.backlog,
            event_id: self.event_id?,
            event_type: self.event_type?,
            body: self.body?,
            accepted_at: self.accepted_at?,
            traceparent: self.traceparent,
            again: self.again,
        })
    }
}

impl Claims {
    /// What a statement that claimed under `lease_token` has returned at the time `answered_at`.
    pub(super) fn of(
        rows: Vec<ClaimRow>,
        lease_token: Uuid,
        answered_at: DateTime<Utc>,
    ) -> Result<Self, Error> {
        use NotificationReason as R;
        let mut claims = Self::default();
        for row in rows {
            let subscription = row.subscription_id;
            if row.verdict == DELIVERED {
                claims.stay_delivered += 1;
                continue;
            }
            match row.obstacle()? {
                None => match row.claimed(lease_token, answered_at) {
                    Some(claimed) => claims.claimed.push(claimed),
                    None => claims.orphaned += 1,
                },
                Some(R::Quota) => {
                    claims.over_quota += 1;
                    claims.in_line.insert(subscription);
                }
                Some(R::Rate) => {
                    claims.over_rate += 1;
                    claims.held_up.insert(subscription);
                }
                Some(R::Paused | R::Unverified) => {
                    claims.held += 1;
                    claims.held_up.insert(subscription);
                }
                Some(R::SubscriptionDeleted | R::SubscriptionDeactivated) => claims.abandoned += 1,
                Some(other) => {
                    let what = "verdict on a claim";
                    let found = other.to_string();
                    return Err(Error::Corrupt { what, found });
                }
            }
        }
        Ok(claims)
    }

    /// Joins what became of others.
    fn add(&mut self, others: Self) {
        self.claimed.extend(others.claimed);
        self.over_quota += others.over_quota;
        self.over_rate += others.over_rate;
        self.held += others.held;
        self.abandoned += others.abandoned;
        self.stay_delivered += others.stay_delivered;
        self.orphaned += others.orphaned;
        self.in_line.extend(others.in_line);
        self.held_up.extend(others.held_up);
    }
}

impl Sum for Claims {
    fn sum<I: Iterator<Item = Self>>(claims: I) -> Self {
        claims.fold(Self::default(), |mut all, others| {
            all.add(others);
            all
        })
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
        let (mut claims, ordinary) = self.claim_fast(&all, Uuid::now_v7(), today, terms).await?;
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
            let (claims, slow) = Box::pin(self.claim_slow(&left, today, terms, started)).await?;
            slow.keep();
            return Ok(claims);
        }
        let remaining = CLAIM_LIMIT.saturating_sub(started.elapsed());
        match within(remaining, self.claim_left(&left, today, terms, started)).await {
            Ok((others, slow)) => {
                slow.keep();
                claims.add(others);
            }
            Err(error) if !error.is_transient() && left.len() > 1 => {
                tracing::warn!(error = %error, "the database refuses to claim some of the notifications");
                claims.add(self.claim_left_singly(&left, today, terms, started).await);
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
        started: Instant,
    ) -> Result<(Claims, Tentative), Error> {
        match Box::pin(self.claim_slow(ids, today, terms, started)).await {
            Err(error) if error.is_transient() => Box::pin(self.claim_slow(ids, today, terms, started)).await,
            slow => slow,
        }
    }

    /// Claims each of what is left by itself, so that one that the database refuses for good holds up no other.
    async fn claim_left_singly(
        &self,
        ids: &[Uuid],
        today: NaiveDate,
        terms: &ClaimTerms,
        started: Instant,
    ) -> Claims {
        let claim_one = |id| async move { Box::pin(self.claim_slow(&[id], today, terms, started)).await };
        let remaining = CLAIM_LIMIT.saturating_sub(started.elapsed());
        let claimed = singly(remaining, ids, claim_one, |id, error| {
            tracing::warn!(notification = %id, error = %error, "passed over a notification that could not be claimed");
        });
        // Kept together: a caller that gives up before the last one has none of them.
        let (claims, slow): (Vec<_>, Vec<_>) = claimed.await.into_iter().unzip();
        slow.into_iter().for_each(Tentative::keep);
        claims.into_iter().sum()
    }

    /// Claims by the whole rule, or finds the reason why not.
    async fn claim_slow(
        &self,
        ids: &[Uuid],
        today: NaiveDate,
        terms: &ClaimTerms,
        started: Instant,
    ) -> Result<(Claims, Tentative), Error> {
        let mut connection = self.resting.take().await?;
        Self::begin_counting(&mut connection, ids, today, terms).await?;
        let lease_token = Uuid::now_v7();
        let mut transaction = connection.begin().await?;
        let rows = sqlx::query_file_as!(
            ClaimRow,
            "queries/webhook/claim_slow.sql",
            ids,
            terms.at,
            lease_token,
            interval(terms.lease),
            i32::try_from(terms.daily_quota).unwrap_or(i32::MAX),
            terms.rate(),
            today,
            interval(terms.horizon),
            interval(HOLD),
            interval(KEPT_LEASE),
            interval(RATE_AGAIN),
        )
        .fetch_all(&mut *transaction)
        .await?;
        let claims = self
            .commit_claims(transaction, rows, lease_token, terms.at + started.elapsed())
            .await?;
        connection.rest();
        Ok(claims)
    }

    /// Commits what a claiming statement has returned. The caller keeps them in the moment in which it hands them on.
    pub(super) async fn commit_claims(
        &self,
        transaction: Transaction<'_, Postgres>,
        rows: Vec<ClaimRow>,
        lease_token: Uuid,
        at: DateTime<Utc>,
    ) -> Result<(Claims, Tentative), Error> {
        let claims = Claims::of(rows, lease_token, at)?;
        let releases = claims.claimed.iter().map(|claimed| NotificationRelease {
            id: claimed.id,
            lease_token,
            postponed_to: None,
        });
        let tentative = Tentative::new(self, Taken::Notifications(releases.collect(), at));
        transaction.commit().await?;
        Ok((claims, tentative))
    }

    /// Makes the rows that count quota and pace where there are none yet, so that a claim finds them to lock.
    async fn begin_counting(
        connection: &mut PgConnection,
        ids: &[Uuid],
        today: NaiveDate,
        terms: &ClaimTerms,
    ) -> Result<(), Error> {
        sqlx::query!(
            r#"
            WITH counted AS (
                SELECT DISTINCT s.id, coalesce(s.daily_quota, $3) AS quota, coalesce(s.requests_per_second, $4) AS rate
                FROM UNNEST($1::uuid[]) AS i(id)
                JOIN notifications n ON n.id = i.id
                -- As in the fast claim, `OFFSET 0` keeps it behind the notifications, and `CASE` keeps the planner to the ids.
                CROSS JOIN LATERAL (
                    SELECT id, daily_quota, requests_per_second FROM subscriptions
                    WHERE id = n.subscription_id AND state IN ('ACTIVE', 'DEGRADED') AND deleted_at IS NULL AND NOT suspended
                    OFFSET 0) AS s
                WHERE CASE n.status WHEN 'IN_MEMORY' THEN n.lease_token IS NULL WHEN 'PENDING' THEN true
                      WHEN 'RETRY' THEN n.next_attempt_at <= $5 ELSE false END
                  AND (SELECT enter_lane(l.name, l.changes) FROM lanes l WHERE l.name = 'reseller')
                ORDER BY s.id),
            budgets AS (
                INSERT INTO subscription_budgets (subscription_id, day, used, quota)
                SELECT c.id, $2, 0, c.quota FROM counted c
                WHERE NOT EXISTS (SELECT FROM subscription_budgets b WHERE b.subscription_id = c.id OFFSET 0)
                ON CONFLICT DO NOTHING)
            INSERT INTO subscription_paces (subscription_id, next_slot_at, asked_at, span)
            SELECT c.id, now(), now(), interval '0' FROM counted c
            WHERE c.rate IS NOT NULL
              AND NOT EXISTS (SELECT FROM subscription_paces p WHERE p.subscription_id = c.id OFFSET 0)
            ON CONFLICT DO NOTHING
            "#,
            ids,
            today,
            i32::try_from(terms.daily_quota).unwrap_or(i32::MAX),
            terms.rate(),
            terms.at,
        )
        .execute(connection)
        .await?;
        Ok(())
    }

    /// Whether any of these would be claimed, or given a reason to wait, if it were up to the notification alone.
    pub async fn any_notification_waits(
        &self,
        ids: &[NotificationId],
        at: DateTime<Utc>,
    ) -> Result<bool, Error> {
        Ok(sqlx::query_scalar!(
            r#"
            SELECT EXISTS (
                SELECT FROM UNNEST($1::uuid[]) AS i(id)
                JOIN notifications n ON n.id = i.id
                JOIN subscriptions s ON s.id = n.subscription_id
                WHERE CASE n.status WHEN 'IN_MEMORY' THEN n.lease_token IS NULL WHEN 'PENDING' THEN true
                      WHEN 'RETRY' THEN n.next_attempt_at <= $2 ELSE false END) AS "waits!"
            "#,
            &column(ids, |id| id.uuid()),
            at,
        )
        .fetch_one(&self.pool)
        .await?)
    }
}
