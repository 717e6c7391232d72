//! Deliveries in numbers, by subscription, hour and event type, with how long after their event they were delivered.
//!
//! As those of the hour, they are derived, and nothing is decided by them.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use domain::latency::{BUCKETS, Delays};
use uuid::Uuid;

use super::statistics::{AttemptEnd, bigint, by_code, by_name};
use crate::{Error, Store, column};

/// What is counted for events of a type to a subscription in an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeStatistics {
    /// To which.
    pub subscription: Uuid,
    /// The hour in which the attempts started.
    pub hour: DateTime<Utc>,
    /// Of which type the events are.
    pub event_type: String,
    /// Attempts that are over.
    pub attempts: u64,
    /// Those after which the notification was delivered.
    pub delivered: u64,
    /// Those after which it had failed for good.
    pub failed: u64,
    /// Those after which it waited for another attempt.
    pub retried: u64,
    /// How long after their event notifications were delivered.
    pub delays: Delays,
}

impl TypeStatistics {
    /// Nothing yet, for the hour that holds `at`.
    pub fn new(subscription: Uuid, event_type: &str, at: DateTime<Utc>) -> Self {
        Self {
            subscription,
            hour: at.duration_trunc(TimeDelta::hours(1)).unwrap_or(at),
            event_type: event_type.to_owned(),
            attempts: 0,
            delivered: 0,
            failed: 0,
            retried: 0,
            delays: Delays::default(),
        }
    }

    /// Counts one attempt; `delay` is the time from the event to its end, and none of what was sent again or replayed: that
    /// was asked for later.
    pub fn record(&mut self, end: AttemptEnd, delay: Option<Duration>) {
        self.attempts += 1;
        match end {
            AttemptEnd::Delivered => {
                self.delivered += 1;
                if let Some(delay) = delay {
                    self.delays.record(delay);
                }
            }
            AttemptEnd::Failed => self.failed += 1,
            AttemptEnd::Retried => self.retried += 1,
        }
    }

    /// Adds what another one has counted, whatever it was counted for.
    pub fn add(&mut self, other: &Self) {
        self.attempts += other.attempts;
        self.delivered += other.delivered;
        self.failed += other.failed;
        self.retried += other.retried;
        self.delays.add(&other.delays);
    }
}

/// Adds up what belongs to the same row, in key order, as [`super::statistics`] does and for its reasons.
fn summed(counted: &[TypeStatistics]) -> Vec<TypeStatistics> {
    let mut rows: BTreeMap<(Uuid, DateTime<Utc>, &str), TypeStatistics> = BTreeMap::new();
    for one in counted {
        rows.entry((one.subscription, one.hour, one.event_type.as_str()))
            .and_modify(|row| row.add(one))
            .or_insert_with(|| one.clone());
    }
    rows.into_values().collect()
}

impl Store {
    /// Adds to what is counted already. What is counted for the hours as such has to be there before.
    pub async fn add_type_statistics(&self, counted: &[TypeStatistics]) -> Result<(), Error> {
        if counted.is_empty() {
            return Ok(());
        }
        let rows = summed(counted);
        let counts = |count: fn(&TypeStatistics) -> u64| column(&rows, |row| bigint(count(row)));
        sqlx::query!(
            r#"
            INSERT INTO delivery_type_statistics AS s (subscription_id, hour, event_type, attempts, delivered, failed,
                                                       retried, delays)
            SELECT * FROM UNNEST($1::uuid[], $2::timestamptz[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[],
                                 $7::bigint[], $8::jsonb[])
            ON CONFLICT (subscription_id, hour, event_type) DO UPDATE
            SET attempts = s.attempts + excluded.attempts, delivered = s.delivered + excluded.delivered,
                failed = s.failed + excluded.failed, retried = s.retried + excluded.retried,
                delays = (SELECT coalesce(jsonb_object_agg(c.bucket, c.count), '{}')
                          FROM (SELECT e.key AS bucket, sum(e.value::bigint) AS count
                                FROM (SELECT * FROM jsonb_each_text(s.delays)
                                      UNION ALL SELECT * FROM jsonb_each_text(excluded.delays)) AS e
                                GROUP BY e.key) AS c)
            "#,
            &column(&rows, |row| row.subscription),
            &column(&rows, |row| row.hour),
            &column(&rows, |row| row.event_type.clone()),
            &counts(|row| row.attempts),
            &counts(|row| row.delivered),
            &counts(|row| row.failed),
            &counts(|row| row.retried),
            &column(&rows, |row| by_name(&by_bucket(&row.delays))),
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// What is counted for each event type to a subscription in the hours from `since` on, the earliest hour first.
    pub async fn type_statistics(
        &self,
        subscription: Uuid,
        since: DateTime<Utc>,
    ) -> Result<Vec<TypeStatistics>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT hour, event_type, attempts, delivered, failed, retried, delays
            FROM delivery_type_statistics WHERE subscription_id = $1 AND hour >= $2 ORDER BY hour, event_type
            "#,
            subscription,
            since,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| {
                let delays = by_code(&row.delays);
                let counts = (0_u16..).take(BUCKETS).map(|bucket| delays.get(&bucket).copied());
                TypeStatistics {
                    subscription,
                    hour: row.hour,
                    event_type: row.event_type,
                    attempts: row.attempts.unsigned_abs(),
                    delivered: row.delivered.unsigned_abs(),
                    failed: row.failed.unsigned_abs(),
                    retried: row.retried.unsigned_abs(),
                    delays: Delays::from_counts(counts.map(Option::unwrap_or_default)),
                }
            })
            .collect())
    }
}

/// Most are empty: nothing is delivered both within milliseconds and after days.
fn by_bucket(delays: &Delays) -> BTreeMap<u16, u64> {
    let counts = (0_u16..).zip(delays.counts().iter().copied());
    counts.filter(|(_, count)| *count > 0).collect()
}
