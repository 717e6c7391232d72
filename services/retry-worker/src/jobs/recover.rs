//! Has what the outage of an endpoint gave up sent again once the endpoint answers: begins the jobs that do so, and draws the
//! consequences of their ends. The work between is that of any job on dead letters, see `run_dead_letter_jobs`.

use std::time::Duration;

use store::RecoveryTerms;

use crate::context::Context;
use crate::periodic::{Job, JobError};

pub(crate) struct Recover;

impl Job for Recover {
    const NAME: &'static str = "recoveries";
    const INTERVAL: Duration = Duration::from_secs(1);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let now = context.clock.now();
        for ended in context.store.settle_recoveries(now).await? {
            tracing::info!(
                subscription = %ended.subscription,
                sent_again = ended.sent_again,
                remaining = ended.remaining,
                "a recovery has ended"
            );
        }
        let replay = &context.config.reseller.replay;
        let terms = RecoveryTerms {
            enabled: replay.after_outage,
            per_second: replay.per_second,
            max_age: replay.max_age,
        };
        let begun = context.store.begin_recoveries(&terms, now).await?;
        if begun > 0 {
            tracing::info!(
                begun,
                "endpoints answer again: what their outages gave up is sent again"
            );
        }
        Ok(())
    }
}
