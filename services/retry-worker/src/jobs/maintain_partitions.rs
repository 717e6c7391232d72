//! Makes the partitions of the months ahead and drops those that are past their retention and finished.

use std::time::{Duration, Instant};

use domain::month::Month;
use store::OldMonth;
use telemetry::Metric;

use crate::context::Context;
use crate::periodic::{Job, JobError, UNKNOWN};

/// How long an execution tries to drop months that are read or written at that moment.
const DROPPING_LIMIT: Duration = Duration::from_secs(30);
/// Between two tries. Each holds up the lane for a fraction of a second at most.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct MaintainPartitions;

impl Job for MaintainPartitions {
    const NAME: &'static str = "partitions";
    const INTERVAL: Duration = Duration::from_secs(3_600);

    fn end_of_term(&self) {
        Metric::PartitionsAheadMonths.set(UNKNOWN);
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let settings = &context.config.push.partitions;
        let current = Month::containing(context.clock.now());
        // From the month before on, for a host whose clock is behind; the current and that one are the other two.
        let (store, first, months) = (&context.store, current.minus(1), settings.months_ahead + 2);
        let created = store.create_partitions(first, months).await?
            + store.create_webpush_partitions(first, months).await?;
        if created > 0 {
            tracing::info!(tables = created, "made partitions");
        }
        let ahead = store.partitions_ahead(current).await?;
        Metric::PartitionsAheadMonths.set(ahead.min(store.webpush_partitions_ahead(current).await?));
        let present = context.cutoff(Duration::ZERO).await?;
        let until = Instant::now() + DROPPING_LIMIT;
        let mut kept = Ok(());
        for month in context
            .store
            .old_months(present, settings.retention_months)
            .await?
        {
            // A month that is in use keeps none of the others.
            match drop_month(context, &month, until).await {
                Ok(true) => tracing::info!(
                    partition = month.name(),
                    "dropped a month that was past its retention"
                ),
                Ok(false) => {}
                Err(error) => kept = Err(error),
            }
        }
        for month in patiently(until, || store.drop_webpush_partitions(present)).await? {
            tracing::info!(month, "dropped a month of Web Push that was past its retention");
        }
        kept
    }
}

async fn drop_month(context: &Context, month: &OldMonth, until: Instant) -> Result<bool, JobError> {
    patiently(until, || context.store.drop_month(month)).await
}

/// Tries until no lock is in the way. What holds a lock for longer, as a backup does, is left in peace until the next execution.
async fn patiently<T, F: Future<Output = Result<T, store::Error>>>(
    until: Instant,
    operation: impl Fn() -> F,
) -> Result<T, JobError> {
    loop {
        match operation().await {
            Err(error) if error.is_transient() && Instant::now() < until => tokio::time::sleep(PAUSE).await,
            done => return Ok(done?),
        }
    }
}
