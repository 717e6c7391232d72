//! Makes the partitions of the months ahead and drops those that are past their retention and finished.

use std::time::Duration;

use domain::month::Month;
use telemetry::Metric;

use crate::context::Context;
use crate::periodic::{Job, JobError, Timing, UNKNOWN};

pub(crate) struct KeepPartitions;

impl Job for KeepPartitions {
    const NAME: &'static str = "partitions";

    fn timing(&self, _: &Context) -> Timing {
        Timing {
            start_delay: Duration::ZERO,
            repeat_interval: Duration::from_secs(3_600),
        }
    }

    fn end_of_term(&self) {
        Metric::PartitionsAheadMonths.set(UNKNOWN);
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let settings = &context.config.push.partitions;
        let current = Month::containing(context.clock.now());
        // From the month before on, for a host whose clock is behind; the current and that one are the other two.
        let created = context
            .store
            .create_partitions(current.minus(1), settings.months_ahead + 2)
            .await?;
        if created > 0 {
            tracing::info!(tables = created, "made partitions");
        }
        Metric::PartitionsAheadMonths.set(context.store.partitions_ahead(current).await?);
        for partition in context
            .store
            .drop_partitions(current.minus(settings.retention_months))
            .await?
        {
            tracing::info!(partition, "dropped a month that was past its retention");
        }
        Ok(())
    }
}
