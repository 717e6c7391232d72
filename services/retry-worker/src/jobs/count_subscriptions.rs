//! Counts subscriptions by state. That reads all of them, so it is done less often than the lanes are measured.

use std::time::Duration;

use chrono::TimeDelta;
use domain::subscription::SubscriptionState;
use telemetry::Metric;

use crate::context::Context;
use crate::periodic::{Job, JobError, UNKNOWN};

pub(crate) struct CountSubscriptions;

impl Job for CountSubscriptions {
    const NAME: &'static str = "count-subscriptions";
    const INTERVAL: Duration = Duration::from_secs(30);

    fn end_of_term(&self) {
        for state in SubscriptionState::ALL {
            Metric::Subscriptions.set_with(&[("state", state.as_str())], UNKNOWN);
        }
        Metric::SubscriptionsFailing.set(UNKNOWN);
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        for (state, count) in context.store.count_subscriptions().await? {
            Metric::Subscriptions.set_with(&[("state", state.as_str())], count as f64);
        }
        // Longer ago says little: a subscription that gets nothing cannot succeed either.
        let since = context.clock.now() - TimeDelta::hours(1);
        let failing = context.store.count_failing_subscriptions(since).await?;
        Metric::SubscriptionsFailing.set(failing as f64);
        Ok(())
    }
}
