//! Forgets dead letters that were resolved long ago, and the jobs that did it. What is open stays until somebody decides,
//! and the audit log stays for ever: it is the only memory of what people did.

use std::time::Duration;

use chrono::TimeDelta;

use crate::context::Context;
use crate::periodic::{Job, JobError, Timing};

/// How long a letter is kept after it was resolved, and a job after it ended: a quarter, for whoever looks for patterns.
const RETENTION: TimeDelta = TimeDelta::days(90);
/// Letters forgotten in one statement.
const BATCH: u32 = 1_000;

pub(crate) struct ForgetDeadLetters;

impl Job for ForgetDeadLetters {
    const NAME: &'static str = "forget-dead-letters";

    fn timing(&self, _: &Context) -> Timing {
        Timing {
            start_delay: Duration::ZERO,
            repeat_interval: Duration::from_secs(3_600),
        }
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let before = context.clock.now() - RETENTION;
        context.store.forget_dead_letter_jobs(before).await?;
        while context.store.forget_resolved_dead_letters(before, BATCH).await? == u64::from(BATCH) {}
        context.store.fold_dead_letter_tallies().await?;
        Ok(())
    }
}
