//! Judges endpoints that have failed for days: degraded, then deactivated.

use std::time::Duration;

use domain::subscription::HealthPolicy;

use crate::context::Context;
use crate::periodic::{Job, JobError};

pub(crate) struct EvaluateHealth;

impl Job for EvaluateHealth {
    const NAME: &'static str = "health";
    const INTERVAL: Duration = Duration::from_secs(1);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let health = &context.config.reseller.health;
        let policy = HealthPolicy {
            degraded_after: health.degraded_after,
            deactivated_after: health.deactivated_after,
            evidence_after: health.evidence_after,
        };
        let evaluated = context
            .store
            .evaluate_health(&policy, context.present().await?)
            .await?;
        if evaluated.degraded + evaluated.deactivated > 0 {
            tracing::info!(
                degraded = evaluated.degraded,
                deactivated = evaluated.deactivated,
                "evaluated subscriptions whose endpoints keep failing"
            );
        }
        Ok(())
    }
}
