//! Deliveries in numbers, by subscription and hour: what the reseller sees of them long after the attempts are gone.
//!
//! They are derived and may lack what a crash took between an attempt and its counting; nothing is decided by them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use domain::latency::{BUCKETS, Latencies};
use uuid::Uuid;

use crate::{Error, Store, column};

/// How an attempt ended, as far as statistics tell attempts apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The receiver took the notification.
    Delivered,
    /// It did not, and there will be no other attempt.
    Failed,
    /// It did not, and it will be tried again.
    Retried,
}

/// What is counted for a subscription in an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatisticsDelta {
    /// Whose.
    pub subscription: Uuid,
    /// The hour in which the attempts started.
    pub hour: DateTime<Utc>,
    /// Attempts that are over.
    pub attempts: u64,
    /// Those after which the notification was delivered.
    pub delivered: u64,
    /// Those after which it had failed for good.
    pub failed: u64,
    /// Those after which it waited for another attempt.
    pub retried: u64,
    /// Bytes of request bodies.
    pub payload_bytes: u64,
    /// How long the attempts took.
    pub latencies: Latencies,
    /// Answers by status code; attempts without an answer are in none.
    pub statuses: BTreeMap<u16, u64>,
}

/// The counts of a subscription in an hour, without how long its attempts took: reading that for several subscriptions costs four times as
/// much as reading these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HourCounts {
    /// Whose.
    pub subscription: Uuid,
    /// The hour in which the attempts started.
    pub hour: DateTime<Utc>,
    /// Attempts after which the notification was delivered.
    pub delivered: u64,
    /// Those after which it had failed for good.
    pub failed: u64,
    /// Those after which it waited for another attempt.
    pub retried: u64,
    /// Answers by status code; attempts without an answer are in none.
    pub statuses: BTreeMap<u16, u64>,
}

/// How many notifications of some subscriptions ended in an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedInHour {
    /// The hour in which their last attempts started.
    pub hour: DateTime<Utc>,
    /// Those that were delivered.
    pub delivered: u64,
    /// Those that had failed for good.
    pub failed: u64,
}

impl StatisticsDelta {
    /// Nothing yet, for the hour that holds `at`.
    pub fn new(subscription: Uuid, at: DateTime<Utc>) -> Self {
        Self {
            subscription,
            hour: at.duration_trunc(TimeDelta::hours(1)).unwrap_or(at),
            attempts: 0,
            delivered: 0,
            failed: 0,
            retried: 0,
            payload_bytes: 0,
            latencies: Latencies::default(),
            statuses: BTreeMap::new(),
        }
    }

    /// Counts one attempt; `status` is that of the answer, when there was one.
    pub fn record(&mut self, end: AttemptEnd, elapsed: Duration, status: Option<u16>, payload_bytes: usize) {
        self.attempts += 1;
        match end {
            AttemptEnd::Delivered => self.delivered += 1,
            AttemptEnd::Failed => self.failed += 1,
            AttemptEnd::Retried => self.retried += 1,
        }
        self.payload_bytes += payload_bytes as u64;
        self.latencies.record(elapsed);
        if let Some(status) = status {
            *self.statuses.entry(status).or_default() += 1;
        }
    }

    /// Adds what another one has counted, whatever it was counted for.
    pub fn add(&mut self, other: &Self) {
        self.attempts += other.attempts;
        self.delivered += other.delivered;
        self.failed += other.failed;
        self.retried += other.retried;
        self.payload_bytes += other.payload_bytes;
        self.latencies.add(&other.latencies);
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
    }
}

/// Adds up what belongs to the same row, by its `key`: a statement cannot change a row twice. In key order, so that two batches cannot
/// wait for each other.
pub(super) fn summed<'a, T: Clone, K: Ord>(
    counted: &'a [T],
    key: impl Fn(&'a T) -> K,
    add: impl Fn(&mut T, &T),
) -> Vec<T> {
    let mut rows: BTreeMap<K, T> = BTreeMap::new();
    for one in counted {
        rows.entry(key(one))
            .and_modify(|row| add(row, one))
            .or_insert_with(|| one.clone());
    }
    rows.into_values().collect()
}

/// Counts stay far below what a bigint holds.
pub(super) fn bigint(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Store {
    /// Adds to what is counted already.
    pub async fn add_delivery_statistics(&self, deltas: &[StatisticsDelta]) -> Result<(), Error> {
        if deltas.is_empty() {
            return Ok(());
        }
        let rows = summed(deltas, |row| (row.subscription, row.hour), StatisticsDelta::add);
        let counts = |count: fn(&StatisticsDelta) -> u64| column(&rows, |row| bigint(count(row)));
        let latencies = rows.iter().flat_map(|row| row.latencies.counts());
        let latencies: Vec<i64> = latencies.copied().map(bigint).collect();
        let statuses: Vec<serde_json::Value> = rows.iter().map(|row| by_name(&row.statuses)).collect();
        sqlx::query!(
            r#"
            INSERT INTO delivery_statistics AS s (subscription_id, hour, attempts, delivered, failed, retried,
                                                  payload_bytes, latencies, statuses)
            SELECT i.subscription, i.hour, i.attempts, i.delivered, i.failed, i.retried, i.payload_bytes,
                   ($8::bigint[])[((i.n - 1) * $9 + 1)::int : (i.n * $9)::int], i.statuses
            FROM UNNEST($1::uuid[], $2::timestamptz[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
                        $7::bigint[], $10::jsonb[]) WITH ORDINALITY
                AS i(subscription, hour, attempts, delivered, failed, retried, payload_bytes, statuses, n)
            ORDER BY i.n
            ON CONFLICT (subscription_id, hour) DO UPDATE
            SET attempts = s.attempts + excluded.attempts, delivered = s.delivered + excluded.delivered,
                failed = s.failed + excluded.failed, retried = s.retried + excluded.retried,
                payload_bytes = s.payload_bytes + excluded.payload_bytes,
                latencies = (SELECT array_agg(coalesce(l.old, 0) + coalesce(l.new, 0) ORDER BY l.n)
                             FROM UNNEST(s.latencies, excluded.latencies) WITH ORDINALITY AS l(old, new, n)),
                statuses = (SELECT coalesce(jsonb_object_agg(c.status, c.count), '{}')
                            FROM (SELECT e.key AS status, sum(e.value::bigint) AS count
                                  FROM (SELECT * FROM jsonb_each_text(s.statuses)
                                        UNION ALL SELECT * FROM jsonb_each_text(excluded.statuses)) AS e
                                  GROUP BY e.key) AS c)
            "#,
            &column(&rows, |row| row.subscription),
            &column(&rows, |row| row.hour),
            &counts(|row| row.attempts),
            &counts(|row| row.delivered),
            &counts(|row| row.failed),
            &counts(|row| row.retried),
            &counts(|row| row.payload_bytes),
            &latencies,
            BUCKETS as i64,
            &statuses,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// What is counted for a subscription in the hours from `since` on, the earliest hour first.
    pub async fn delivery_statistics(
        &self,
        subscription: Uuid,
        since: DateTime<Utc>,
    ) -> Result<Vec<StatisticsDelta>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT hour, attempts, delivered, failed, retried, payload_bytes, latencies, statuses
            FROM delivery_statistics WHERE subscription_id = $1 AND hour >= $2 ORDER BY hour
            "#,
            subscription,
            since,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| StatisticsDelta {
                subscription,
                hour: row.hour,
                attempts: row.attempts.unsigned_abs(),
                delivered: row.delivered.unsigned_abs(),
                failed: row.failed.unsigned_abs(),
                retried: row.retried.unsigned_abs(),
                payload_bytes: row.payload_bytes.unsigned_abs(),
                latencies: latencies_of(&row.latencies),
                statuses: by_code(&row.statuses),
            })
            .collect())
    }

    /// The counts of several subscriptions in the hours from `since` on, the earliest hour first.
    pub async fn hour_counts_of(
        &self,
        subscriptions: &[Uuid],
        since: DateTime<Utc>,
    ) -> Result<Vec<HourCounts>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT subscription_id, hour, delivered, failed, retried, statuses
            FROM delivery_statistics WHERE subscription_id = ANY ($1) AND hour >= $2 ORDER BY hour, subscription_id
            "#,
            subscriptions,
            since,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| HourCounts {
                subscription: row.subscription_id,
                hour: row.hour,
                delivered: row.delivered.unsigned_abs(),
                failed: row.failed.unsigned_abs(),
                retried: row.retried.unsigned_abs(),
                statuses: by_code(&row.statuses),
            })
            .collect())
    }

    /// How many notifications of several subscriptions together ended in the hours from `since` on, the earliest hour first; hours of which nothing
    /// was counted are left out.
    pub async fn ended_by_hour(
        &self,
        subscriptions: &[Uuid],
        since: DateTime<Utc>,
    ) -> Result<Vec<EndedInHour>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT hour, sum(delivered)::bigint AS "delivered!", sum(failed)::bigint AS "failed!"
            FROM delivery_statistics WHERE subscription_id = ANY ($1) AND hour >= $2 GROUP BY hour ORDER BY hour
            "#,
            subscriptions,
            since,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| EndedInHour {
                hour: row.hour,
                delivered: row.delivered.unsigned_abs(),
                failed: row.failed.unsigned_abs(),
            })
            .collect())
    }

    /// How long the attempts of each of several subscriptions took that were counted in the hours from `since` on.
    pub async fn latency_sums_of(
        &self,
        subscriptions: &[Uuid],
        since: DateTime<Utc>,
    ) -> Result<HashMap<Uuid, Latencies>, Error> {
        let rows = sqlx::query_file!("queries/webhook/latency_sums.sql", subscriptions, since)
            .fetch_all(&self.pool)
            .await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.subscription_id, latencies_of(&row.latencies)))
            .collect())
    }
}

fn latencies_of(counts: &[i64]) -> Latencies {
    Latencies::from_counts(counts.iter().map(|count| count.unsigned_abs()))
}

pub(super) fn by_name(counts: &BTreeMap<u16, u64>) -> serde_json::Value {
    counts
        .iter()
        .map(|(code, count)| (code.to_string(), (*count).into()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

pub(super) fn by_code(counts: &serde_json::Value) -> BTreeMap<u16, u64> {
    let entries = counts.as_object().into_iter().flatten();
    entries
        .filter_map(|(code, count)| Some((code.parse().ok()?, count.as_u64()?)))
        .collect()
}
