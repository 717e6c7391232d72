//! Counts subscriptions by state. That reads all of them, so it is done less often than the lanes are measured.

use std::time::Duration;

use telemetry::Metric;

use crate::context::Context;
use crate::periodic::{Job, JobError, Timing};

pub(crate) struct CountSubscriptions;

impl Job for CountSubscriptions {
    const NAME: &'static str = "count-subscriptions";

    fn timing(&self, _: &Context) -> Timing {
        Timing {
            start_delay: Duration::ZERO,
            repeat_interval: Duration::from_secs(30),
        }
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        for (state, count) in context.store.count_subscriptions().await? {
            Metric::Subscriptions.set_with(&[("state", state.as_str())], count as f64);
        }
        Ok(())
    }
}
