//! The health of endpoints that fail for days: `domain` evaluates it, and here the result is carried out, together with the
//! e-mail that tells of it.

use chrono::{DateTime, TimeDelta, Utc};
use domain::subscription::{Health, HealthPolicy, SubscriptionState};
use uuid::Uuid;

use crate::read::Name;
use crate::{Error, Store, column, stored};

/// Subscriptions that are evaluated in one statement.
const PAGE: i64 = 500;

/// How many subscriptions changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HealthChanges {
    /// Became `DEGRADED`.
    pub degraded: u64,
    /// Became `DEACTIVATED`.
    pub deactivated: u64,
}

/// A subscription whose endpoint fails.
struct Failing {
    id: Uuid,
    state: SubscriptionState,
    failing_since: DateTime<Utc>,
    /// From when on its failures count: since then, or since the end of a pause after that.
    judged_from: DateTime<Utc>,
    last_failure_at: Option<DateTime<Utc>>,
}

impl Failing {
    /// The state that follows, if it is another one. Health only falls here: a success heals where it is recorded.
    fn next(&self, policy: &HealthPolicy, at: DateTime<Utc>) -> Option<SubscriptionState> {
        match (
            policy.evaluate(at, Some(self.judged_from), self.last_failure_at),
            self.state,
        ) {
            (Health::Degraded, SubscriptionState::Active) => Some(SubscriptionState::Degraded),
            (Health::Deactivated, _) => Some(SubscriptionState::Deactivated),
            _ => None,
        }
    }
}

impl Store {
    /// Judges every endpoint that fails, at the time `at`. However many replicas do so at once, each change is made and
    /// told once. What is paused, by whomever, is left alone: what is not tried cannot succeed.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; what was evaluated before stays so.
    pub async fn evaluate_health(
        &self,
        policy: &HealthPolicy,
        at: DateTime<Utc>,
    ) -> Result<HealthChanges, Error> {
        let (mut evaluated, mut after) = (HealthChanges::default(), (DateTime::UNIX_EPOCH, Uuid::nil()));
        loop {
            let page = self.failing_subscriptions(policy, at, after).await?;
            let Some(last) = page.last() else {
                return Ok(evaluated);
            };
            after = (last.failing_since, last.id);
            let changes: Vec<_> = page
                .iter()
                .filter_map(|failing| Some((failing, failing.next(policy, at)?)))
                .collect();
            for state in self.let_health_fall(&changes, policy, at).await? {
                match stored("subscription state", &state)? {
                    SubscriptionState::Degraded => evaluated.degraded += 1,
                    _ => evaluated.deactivated += 1,
                }
            }
        }
    }

    /// The next page of the subscriptions that have failed for long enough to be looked at.
    async fn failing_subscriptions(
        &self,
        policy: &HealthPolicy,
        at: DateTime<Utc>,
        after: (DateTime<Utc>, Uuid),
    ) -> Result<Vec<Failing>, Error> {
        Ok(sqlx::query_as!(
            Failing,
            r#"
            SELECT id, state AS "state: Name<_>", failing_since AS "failing_since!",
                   greatest(failing_since, judged_from) AS "judged_from!", last_failure_at FROM subscriptions
            WHERE failing_since <= $1 AND (failing_since, id) > ($2, $3) AND failing_since IS NOT NULL
              AND deleted_at IS NULL AND NOT suspended AND state IN ('ACTIVE', 'DEGRADED')
              AND NOT (SELECT paused FROM lanes WHERE name = 'reseller')
            ORDER BY failing_since, id LIMIT $4
            "#,
            before(at, policy.degraded_after.min(policy.deactivated_after)),
            after.0,
            after.1,
            PAGE,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Changes those that are still as they were when they were evaluated; returns their new states.
    async fn let_health_fall(
        &self,
        changes: &[(&Failing, SubscriptionState)],
        policy: &HealthPolicy,
        at: DateTime<Utc>,
    ) -> Result<Vec<String>, Error> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let lasting = TimeDelta::from_std(policy.deactivated_after).unwrap_or(TimeDelta::MAX);
        let ends: Vec<_> = changes
            .iter()
            .map(|(failing, _)| failing.judged_from.checked_add_signed(lasting))
            .collect();
        Ok(sqlx::query_scalar!(
            r#"
            WITH input AS (
                SELECT * FROM UNNEST($1::uuid[], $2::text[], $3::timestamptz[], $4::text[], $5::timestamptz[])
                    AS i(id, previous, judged_from, state, deactivated_at)),
            judged AS (
                SELECT s.id, i.previous, i.state, i.deactivated_at
                FROM input i JOIN subscriptions s ON s.id = i.id
                WHERE s.state = i.previous AND greatest(s.failing_since, s.judged_from) = i.judged_from
                  AND s.failing_since IS NOT NULL AND s.deleted_at IS NULL
                  AND NOT s.suspended AND NOT (SELECT paused FROM lanes WHERE name = 'reseller')
                ORDER BY s.id
                FOR NO KEY UPDATE OF s),
            changed AS (
                UPDATE subscriptions s
                SET state = j.state, state_reason = 'FAILING', state_changed_at = $6, updated_at = $6
                FROM judged j WHERE s.id = j.id
                RETURNING s.state, mail_state_change(s.id, j.previous, $6, j.deactivated_at))
            SELECT state AS "state!" FROM changed
            "#,
            &column(changes, |(failing, _)| failing.id),
            &column(changes, |(failing, _)| failing.state.as_str()) as &[&str],
            &column(changes, |(failing, _)| failing.judged_from),
            &column(changes, |(_, state)| state.as_str()) as &[&str],
            &ends as &[Option<DateTime<Utc>>],
            at,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Counts the subscriptions that exist; every state is named.
    pub async fn count_subscriptions(&self) -> Result<Vec<(SubscriptionState, u64)>, Error> {
        let rows = sqlx::query!(
            r#"SELECT state, count(*) AS "count!" FROM subscriptions WHERE deleted_at IS NULL GROUP BY state"#,
        )
        .fetch_all(&self.pool)
        .await?;
        let count = |state: SubscriptionState| {
            let row = rows.iter().find(|row| row.state == state.as_str());
            (state, row.map_or(0, |row| row.count.unsigned_abs()))
        };
        Ok(SubscriptionState::ALL.map(count).to_vec())
    }

    /// Counts the subscriptions that get notifications and whose endpoint has failed since `since` and not succeeded
    /// after that.
    pub async fn count_failing_subscriptions(&self, since: DateTime<Utc>) -> Result<u64, Error> {
        let count = sqlx::query_scalar!(
            r#"
            SELECT count(*) AS "count!" FROM subscriptions
            WHERE failing_since IS NOT NULL AND deleted_at IS NULL AND NOT suspended
              AND state IN ('ACTIVE', 'DEGRADED') AND last_failure_at >= $1
            "#,
            since,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(count.unsigned_abs())
    }
}

fn before(at: DateTime<Utc>, span: std::time::Duration) -> DateTime<Utc> {
    TimeDelta::from_std(span)
        .ok()
        .and_then(|span| at.checked_sub_signed(span))
        .unwrap_or(DateTime::UNIX_EPOCH)
}
