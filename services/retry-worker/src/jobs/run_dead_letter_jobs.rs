//! Takes bulk work on dead letters on: replays or discards them, at the rate of each job.
//!
//! Where a job stands is in its row, and moves in the transaction that resolves dead letters: a replica that comes after a crash goes on
//! where the last step ended. What is replayed waits like anything else; sending is left to those who send.

use std::time::Duration;

use lifecycle::error_chain;
use telemetry::Metric;
use uuid::Uuid;

use crate::context::Context;
use crate::periodic::{Job, JobError};

/// Steps of one job in an execution. One that finds much to leave alone must not keep the others waiting.
const STEPS: u32 = 20;

pub(crate) struct RunDeadLetterJobs;

impl Job for RunDeadLetterJobs {
    const NAME: &'static str = "dead-letter-jobs";
    const INTERVAL: Duration = Duration::from_millis(500);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let mut outcome = Ok(());
        for job in context.store.running_dead_letter_jobs().await? {
            // One whose steps take too long must not keep the others waiting.
            if let Err(error) = take_on(context, job).await {
                tracing::error!(%job, error = error_chain(&error), "failed to take a job on dead letters on");
                outcome = Err(error.into());
            }
        }
        outcome
    }
}

async fn take_on(context: &Context, job: Uuid) -> Result<(), store::Error> {
    for _ in 0..STEPS {
        let step = context
            .store
            .advance_dead_letter_job(job, context.clock.now())
            .await?;
        if step.replayed + step.discarded > 0 {
            Metric::DeadLettersReplayed.increment(step.replayed);
            Metric::DeadLettersDiscarded.increment(step.discarded);
            tracing::debug!(%job, replayed = step.replayed, discarded = step.discarded, "resolved dead letters");
        }
        if !step.more {
            break;
        }
    }
    Ok(())
}
