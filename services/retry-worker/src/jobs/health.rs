//! Judges endpoints that have failed for days: degraded, then deactivated.

use std::time::Duration;

use domain::subscription::HealthPolicy;

use crate::context::Context;
use crate::periodic::{Job, JobError};

pub(crate) struct JudgeHealth;

impl Job for JudgeHealth {
    const NAME: &'static str = "health";
    const INTERVAL: Duration = Duration::from_secs(1);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let health = &context.config.reseller.health;
        let policy = HealthPolicy {
            degraded_after: health.degraded_after,
            deactivated_after: health.deactivated_after,
            evidence_after: health.evidence_after,
        };
        let judged = context
            .store
            .judge_health(&policy, context.present().await?)
            .await?;
        if judged.degraded + judged.deactivated > 0 {
            tracing::info!(
                degraded = judged.degraded,
                deactivated = judged.deactivated,
                "judged subscriptions whose endpoints keep failing"
            );
        }
        Ok(())
    }
}
