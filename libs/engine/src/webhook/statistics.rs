//! Deliveries in numbers for their resellers, gathered in memory and added to the database now and then.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use domain::notification::NotificationStatus;
use lifecycle::error_chain;
use store::Store;
use store::webhook::{AttemptEnd, StatisticsDelta, TypeStatistics};
use uuid::Uuid;

use super::attempt::Attempted;

/// How long numbers may be gathered, and so what a crash may cost of them.
pub(crate) const INTERVAL: Duration = Duration::from_secs(2);
/// The same when they are those of many subscriptions: each is a row that is written once however much it has gathered, and with
/// ten thousand subscriptions that would cost as much as all their deliveries.
const WIDE_INTERVAL: Duration = Duration::from_secs(20);
/// So many subscriptions are many.
const MANY: usize = 500;
/// Rows added in one statement, so that none of them is locked for long.
const TOGETHER: usize = 500;
/// How long the database may take for one such statement.
const LIMIT: Duration = Duration::from_secs(5);

pub(crate) struct Statistics {
    store: Store,
    gathered: Mutex<Gathered>,
}

#[derive(Default)]
struct Gathered {
    hours: HashMap<(Uuid, DateTime<Utc>), StatisticsDelta>,
    types: HashMap<(Uuid, DateTime<Utc>, String), TypeStatistics>,
}

impl Statistics {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            gathered: Mutex::default(),
        }
    }

    pub(crate) fn count(&self, attempted: &Attempted) {
        let completion = &attempted.completion;
        let end = match completion.status {
            NotificationStatus::Sent => AttemptEnd::Delivered,
            NotificationStatus::Retry => AttemptEnd::Retried,
            _ => AttemptEnd::Failed,
        };
        let hour = completion
            .started_at
            .duration_trunc(TimeDelta::hours(1))
            .unwrap_or(completion.started_at);
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        gathered
            .hours
            .entry((attempted.subscription, hour))
            .or_insert_with(|| StatisticsDelta::new(attempted.subscription, hour))
            .record(
                end,
                attempted.elapsed,
                completion.classification.response_status,
                attempted.payload_bytes,
            );
        let of_type = (attempted.subscription, hour, attempted.event_type.clone());
        gathered
            .types
            .entry(of_type)
            .or_insert_with(|| TypeStatistics::new(attempted.subscription, &attempted.event_type, hour))
            .record(end, attempted.delay);
    }

    /// Adds what was gathered to the database, and says how long to gather until the next time. What it does not take is dropped: numbers
    /// are not worth a delay.
    pub(crate) async fn flush(&self) -> Duration {
        let gathered = {
            let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *gathered)
        };
        let hours: Vec<StatisticsDelta> = gathered.hours.into_values().collect();
        let types: Vec<TypeStatistics> = gathered.types.into_values().collect();
        if let Err(error) = self.add(&hours, &types).await {
            tracing::info!(
                error = error_chain(&error),
                "the numbers of some deliveries are lost"
            );
        }
        interval_after(hours.len())
    }

    /// Ends with the first failure: a database that is away holds nothing up for longer than one statement may take.
    async fn add(&self, hours: &[StatisticsDelta], types: &[TypeStatistics]) -> Result<(), store::Error> {
        for hours in hours.chunks(TOGETHER) {
            store::within(LIMIT, self.store.add_delivery_statistics(hours)).await?;
        }
        for types in types.chunks(TOGETHER) {
            store::within(LIMIT, self.store.add_type_statistics(types)).await?;
        }
        Ok(())
    }
}

fn interval_after(subscriptions: usize) -> Duration {
    if subscriptions < MANY {
        INTERVAL
    } else {
        WIDE_INTERVAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_many_subscriptions_are_gathered_for_longer() {
        assert_eq!(interval_after(0), INTERVAL);
        assert_eq!(interval_after(MANY - 1), INTERVAL);
        assert_eq!(interval_after(MANY), WIDE_INTERVAL);
    }
}
