//! Deliveries in numbers, by subscription, hour and event type, with how long after their event they were delivered.
//!
//! As those of the hour, they are derived, and nothing is decided by them.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use domain::latency::{BUCKETS, Delays};
use uuid::Uuid;

use super::statistics::{AttemptEnd, bigint, by_code, by_name, summed};
use crate::{Error, Store, column};

/// What is counted for events of a type to a subscription in an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeStatistics {
    /// To which.
    pub subscription: Uuid,
    /// The hour in which the attempts started; of several, the first one.
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

/// What is counted for events to a subscription in some time, by their type or by when it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeSums {
    /// What is counted for each event type in all of the time, in the order of their names.
    pub types: Vec<TypeStatistics>,
    /// How long after their event notifications of any type were delivered, by when each step of the time began.
    pub delays: Vec<(DateTime<Utc>, Delays)>,
}

impl Store {
    /// Adds to what is counted already. What is counted for the hours as such has to be there before.
    pub async fn add_type_statistics(&self, counted: &[TypeStatistics]) -> Result<(), Error> {
        if counted.is_empty() {
            return Ok(());
        }
        let rows = summed(
            counted,
            |row| (row.subscription, row.hour, row.event_type.as_str()),
            TypeStatistics::add,
        );
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

    /// What is counted for each event type to a subscription in the hours from `since` on, added up, and how late notifications of all of them
    /// were in each `step` of hours. There are as many rows for it as hours and types together: the database adds them up, so that no more are
    /// read than are told.
    pub async fn type_sums(
        &self,
        subscription: Uuid,
        since: DateTime<Utc>,
        step: u32,
    ) -> Result<TypeSums, Error> {
        // A row that has a step is of all types, one that has a type is of all the time.
        let rows = sqlx::query!(
            r#"
            SELECT c.began AS "began?", c.event_type AS "event_type?", jsonb_object_agg(c.name, c.count) AS "counts!"
            FROM (SELECT b.began, s.event_type, e.name, sum(e.count) AS count
                  FROM delivery_type_statistics s
                  CROSS JOIN LATERAL (
                      SELECT date_bin($3::bigint * interval '1 hour', s.hour, $2::timestamptz) AS began) AS b
                  CROSS JOIN LATERAL (
                      SELECT d.key AS name, d.value::bigint AS count FROM jsonb_each_text(s.delays) AS d
                      UNION ALL VALUES ('attempts', s.attempts), ('delivered', s.delivered), ('failed', s.failed),
                                       ('retried', s.retried)) AS e
                  WHERE s.subscription_id = $1 AND s.hour >= $2::timestamptz
                  GROUP BY GROUPING SETS ((b.began, e.name), (s.event_type, e.name))) AS c
            GROUP BY c.began, c.event_type
            ORDER BY c.began, c.event_type
            "#,
            subscription,
            since,
            i64::from(step),
        )
        .fetch_all(&self.pool)
        .await?;
        let mut sums = TypeSums::default();
        for row in rows {
            let count = |name: &str| row.counts[name].as_u64().unwrap_or_default();
            let delays = delays_of(&row.counts);
            match (row.began, row.event_type) {
                (Some(began), _) => sums.delays.push((began, delays)),
                (None, Some(event_type)) => sums.types.push(TypeStatistics {
                    subscription,
                    hour: since,
                    event_type,
                    attempts: count("attempts"),
                    delivered: count("delivered"),
                    failed: count("failed"),
                    retried: count("retried"),
                    delays,
                }),
                // Every row is of the one or the other.
                (None, None) => {}
            }
        }
        Ok(sums)
    }

    /// What is counted for one event type to a subscription in the hours from `since` on, the earliest hour first.
    pub async fn type_statistics(
        &self,
        (subscription, event_type): (Uuid, &str),
        since: DateTime<Utc>,
    ) -> Result<Vec<TypeStatistics>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT hour, event_type, attempts, delivered, failed, retried, delays
            FROM delivery_type_statistics WHERE subscription_id = $1 AND hour >= $2 AND event_type = $3 ORDER BY hour
            "#,
            subscription,
            since,
            event_type,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| TypeStatistics {
                subscription,
                hour: row.hour,
                event_type: row.event_type,
                attempts: row.attempts.unsigned_abs(),
                delivered: row.delivered.unsigned_abs(),
                failed: row.failed.unsigned_abs(),
                retried: row.retried.unsigned_abs(),
                delays: delays_of(&row.delays),
            })
            .collect())
    }
}

/// Names that are no bucket are passed over.
fn delays_of(counts: &serde_json::Value) -> Delays {
    let delays = by_code(counts);
    let counts = (0_u16..).take(BUCKETS).map(|bucket| delays.get(&bucket).copied());
    Delays::from_counts(counts.map(Option::unwrap_or_default))
}

/// Most are empty: nothing is delivered both within milliseconds and after days.
fn by_bucket(delays: &Delays) -> BTreeMap<u16, u64> {
    let counts = (0_u16..).zip(delays.counts().iter().copied());
    counts.filter(|(_, count)| *count > 0).collect()
}
