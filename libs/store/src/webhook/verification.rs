//! Verification: which endpoints are to be challenged, and what follows from their answers.
//!
//! A challenge that is under way is a `verification_due_at` that lies a lease ahead. A process that was lost with a challenge is
//! replaced when that time comes; and since every change that starts a verification over sets another time, an answer to
//! a challenge of before finds that it is not waited for any more.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::subscription::{CHALLENGE_FLOOR, CHALLENGE_FLOOR_MAX};
use serde_json::json;
use uuid::Uuid;

use crate::cutoff::not_after_now;
use crate::read::Count;
use crate::text::storable;
use crate::{Act, Error, Store, interval};

/// An endpoint that is ours to challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueVerification {
    /// The subscription.
    pub subscription_id: Uuid,
    /// Whose it is.
    pub reseller: String,
    /// Proves the claim when the answer is recorded.
    pub lease: DateTime<Utc>,
    /// Challenges before this one.
    pub attempts: u32,
}

/// What follows a challenge that was not answered as it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// Another one at this time.
    TryAgain(DateTime<Utc>),
    /// None: the reseller is told by e-mail.
    Stop,
}

/// How many challenges there may be, whichever commands ask for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    /// To one site in an hour, for all resellers together.
    pub per_site_and_hour: u32,
    /// Hosts of one reseller in a day that have not answered as they must.
    pub hosts_per_reseller_and_day: u32,
}

impl Budgets {
    /// A challenge may be a request to a host that never asked for it: strangers get few, whichever reseller names them.
    pub const OF_CHALLENGES: Self = Self {
        per_site_and_hour: 30,
        hosts_per_reseller_and_day: 20,
    };
    /// Those of checks, which are counted together with challenges: half, so that checks leave room for those of subscriptions.
    pub const OF_CHECKS: Self = Self {
        per_site_and_hour: Self::OF_CHALLENGES.per_site_and_hour / 2,
        hosts_per_reseller_and_day: Self::OF_CHALLENGES.hosts_per_reseller_and_day / 2,
    };
}

/// Whether there is room for a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charged {
    /// It is counted.
    Done,
    /// Its site, or its reseller's day, is used up; there is room again then.
    NotBefore(DateTime<Utc>),
}

impl Store {
    /// Claims at most `limit` endpoints whose challenge was due at the time `at`, longest overdue first, but at most
    /// `share` of a reseller and none of the resellers `busy`. One whose answer is not recorded within `lease` is claimed
    /// again.
    pub async fn claim_verifications(
        &self,
        at: DateTime<Utc>,
        (limit, share): (u32, u32),
        busy: &[String],
        lease: Duration,
    ) -> Result<Vec<DueVerification>, Error> {
        let until = TimeDelta::from_std(lease)
            .ok()
            .and_then(|lease| at.checked_add_signed(lease))
            .unwrap_or(at);
        Ok(sqlx::query_as!(
            DueVerification,
            r#"
            WITH waiting AS (
                SELECT id, verification_due_at,
                       row_number() OVER (PARTITION BY reseller_id ORDER BY verification_due_at, id) AS rank
                FROM subscriptions
                WHERE verification_due_at <= $1 AND deleted_at IS NULL AND state = 'PENDING_VERIFICATION'
                  AND reseller_id <> ALL ($4)),
            next AS (
                SELECT id, verification_due_at FROM waiting WHERE rank <= $5 ORDER BY verification_due_at, id LIMIT $2),
            due AS (
                SELECT s.id FROM next n JOIN subscriptions s ON s.id = n.id AND s.verification_due_at = n.verification_due_at
                ORDER BY s.id FOR UPDATE OF s SKIP LOCKED)
            UPDATE subscriptions s
            SET verification_due_at = $3,
                challenge_floor_at = $1::timestamptz + least($7::interval, $6::interval * 2 ^ least(s.challenges_failed, 16))
            FROM due d WHERE s.id = d.id
            RETURNING s.id AS subscription_id, s.reseller_id AS reseller, s.verification_due_at AS "lease!",
                      s.verification_attempts AS "attempts: Count"
            "#,
            at,
            i64::from(limit),
            until,
            busy,
            i64::from(share),
            interval(CHALLENGE_FLOOR),
            interval(CHALLENGE_FLOOR_MAX),
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Counts a challenge of a reseller's `host`, which belongs to `site`, if the budgets have room for it. A time `at` that is yet to
    /// come by the clock of the database is its present: it would have room in any budget, and use up those of all others.
    pub async fn charge_challenge(
        &self,
        (reseller, host, site): (&str, &str, &str),
        budgets: Budgets,
        at: DateTime<Utc>,
    ) -> Result<Charged, Error> {
        let mut transaction = self.pool.begin().await?;
        // There is no row that all challenges of a site could lock.
        sqlx::query!("SELECT pg_advisory_xact_lock(hashtextextended('postrider.challenges', 0))")
            .execute(&mut *transaction)
            .await?;
        let at = not_after_now(&mut transaction, at).await?;
        let (hour_ago, day_ago) = (at - TimeDelta::hours(1), at - TimeDelta::days(1));
        let full = sqlx::query!(
            r#"
            SELECT
                (SELECT min(i.at) FROM (SELECT c.at, count(*) OVER () AS times FROM challenges c
                                        WHERE c.site = $3 AND c.at > $4 AND NOT c.answered) i
                 -- Each reseller has a few of its own, so that none can use up the site for the others.
                 WHERE times >= $6 AND (SELECT count(*) FROM challenges o
                                        WHERE o.site = $3 AND o.reseller_id = $1 AND o.at > $4) >= 3) AS site_full,
                (SELECT min(i.at) FROM (
                     SELECT min(c.at) AS at, count(*) OVER () AS hosts FROM challenges c
                     WHERE c.reseller_id = $1 AND c.at > $5
                     GROUP BY c.host HAVING NOT bool_or(c.answered) AND c.host <> $2) i
                 WHERE hosts >= $7) AS reseller_full
            "#,
            reseller,
            host,
            site,
            hour_ago,
            day_ago,
            i64::from(budgets.per_site_and_hour),
            i64::from(budgets.hosts_per_reseller_and_day),
        )
        .fetch_one(&mut *transaction)
        .await?;
        let site_free = full.site_full.map(|first| first + TimeDelta::hours(1));
        let reseller_free = full.reseller_full.map(|first| first + TimeDelta::days(1));
        if let Some(then) = site_free.max(reseller_free) {
            return Ok(Charged::NotBefore(then));
        }
        sqlx::query!(
            r#"
            WITH forgotten AS (DELETE FROM challenges WHERE at <= $5)
            INSERT INTO challenges (id, reseller_id, host, site, at) VALUES (gen_random_uuid(), $1, $2, $3, $4)
            "#,
            reseller,
            host,
            site,
            at,
            day_ago,
        )
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(Charged::Done)
    }

    /// Records that a reseller had an endpoint at `host` checked, which it has no subscription for. One that `passed` has answered a challenge, so
    /// that it does not count among the hosts that do not.
    pub async fn record_endpoint_check(
        &self,
        (reseller, host): (&str, &str),
        passed: bool,
        act: Act<'_>,
    ) -> Result<(), Error> {
        let mut transaction = self.pool.begin().await?;
        if passed {
            sqlx::query!(
                "UPDATE challenges SET answered = true WHERE reseller_id = $1 AND host = $2 AND NOT answered",
                reseller,
                host,
            )
            .execute(&mut *transaction)
            .await?;
        }
        let details = json!({ "host": host, "passed": passed });
        let entry = act.entry("endpoint.check", format!("reseller/{reseller}"), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Puts a claimed challenge off that has no room in its budget; it does not count as one in vain.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then it is claimed again.
    pub async fn put_challenge_off(
        &self,
        challenged: &DueVerification,
        until: DateTime<Utc>,
        why: &str,
        at: DateTime<Utc>,
    ) -> Result<(), Error> {
        sqlx::query!(
            r#"
            UPDATE subscriptions SET verification_due_at = $3, verification_error = $4, updated_at = $5
            WHERE id = $1 AND verification_due_at = $2 AND state = 'PENDING_VERIFICATION' AND deleted_at IS NULL
            "#,
            challenged.subscription_id,
            challenged.lease,
            until,
            why,
            at,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Activates a subscription whose endpoint `url` at `host` has answered its challenge, and tells so by e-mail; `false`
    /// when that answer is not waited for any more.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then it is challenged again.
    pub async fn pass_verification(
        &self,
        challenged: &DueVerification,
        (url, host): (&str, &str),
        at: DateTime<Utc>,
    ) -> Result<bool, Error> {
        let passed = sqlx::query_scalar!(
            r#"
            WITH changed AS (
                UPDATE subscriptions
                SET state = 'ACTIVE', state_reason = 'VERIFIED', state_changed_at = $4, updated_at = $4, verified_at = $4,
                    verification_due_at = NULL, verification_error = NULL, failing_since = NULL, last_failure_at = NULL,
                    challenges_failed = 0
                WHERE id = $1 AND url = $2 AND verification_due_at = $3 AND state = 'PENDING_VERIFICATION'
                  AND deleted_at IS NULL
                RETURNING reseller_id, mail_state_change(id, 'PENDING_VERIFICATION', $4)),
            answered AS (
                UPDATE challenges h SET answered = true
                FROM changed c WHERE h.reseller_id = c.reseller_id AND h.host = $5)
            SELECT count(*) AS "count!" FROM changed
            "#,
            challenged.subscription_id,
            url,
            challenged.lease,
            at,
            host,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(passed > 0)
    }

    /// Records that the endpoint `url` did not answer its challenge as it must; `false` when that answer is not waited
    /// for any more.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then it is challenged again.
    pub async fn fail_verification(
        &self,
        challenged: &DueVerification,
        url: &str,
        error: &str,
        after: AfterFailure,
        at: DateTime<Utc>,
    ) -> Result<bool, Error> {
        let next = match after {
            AfterFailure::TryAgain(next) => Some(next),
            AfterFailure::Stop => None,
        };
        let error = storable(error);
        let failed = sqlx::query_scalar!(
            r#"
            WITH changed AS (
                UPDATE subscriptions
                SET verification_due_at = $5, verification_error = $4, updated_at = $6,
                    verification_attempts = verification_attempts + 1,
                    -- Of those that follow a command by themselves, only the first counts: they have a pace of their own.
                    challenges_failed = challenges_failed + (verification_attempts = 0)::int,
                    challenge_floor_at = $6::timestamptz + least($8::interval,
                        $7::interval * 2 ^ least(challenges_failed + (verification_attempts = 0)::int, 16))
                WHERE id = $1 AND url = $2 AND verification_due_at = $3 AND state = 'PENDING_VERIFICATION'
                  AND deleted_at IS NULL
                RETURNING id, email, url, description, reseller_id, verification_attempts),
            mail AS (
                INSERT INTO emails (id, kind, subscription_id, recipient, data, next_attempt_at, created_at)
                SELECT gen_random_uuid(), 'VERIFICATION_FAILED', c.id, c.email,
                       jsonb_build_object('url', c.url, 'description', c.description, 'resellerId', c.reseller_id,
                                          'error', $4::text, 'attempts', c.verification_attempts),
                       $6, $6
                FROM changed c WHERE $5::timestamptz IS NULL)
            SELECT count(*) AS "count!" FROM changed
            "#,
            challenged.subscription_id,
            url,
            challenged.lease,
            &*error,
            next,
            at,
            interval(CHALLENGE_FLOOR),
            interval(CHALLENGE_FLOOR_MAX),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(failed > 0)
    }
}
