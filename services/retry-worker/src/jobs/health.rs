//! Judges endpoints that have failed for days: degraded, then deactivated. Ends pauses of operators whose time is over, those of lanes as well:
//! from then on what they held back is tried, and judged.

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
        let now = context.present().await?;
        let evaluated = context.store.evaluate_health(&policy, now).await;
        // Afterwards: it may wait for claims that are under way. Whichever of the two fails, the other is done.
        let ended = context.store.end_pauses(now).await;
        let (evaluated, ended) = (evaluated?, ended?);
        if evaluated.degraded + evaluated.deactivated > 0 {
            tracing::info!(
                degraded = evaluated.degraded,
                deactivated = evaluated.deactivated,
                "evaluated subscriptions whose endpoints keep failing"
            );
        }
        if ended > 0 {
            tracing::info!(pauses = ended, "ended pauses whose time was over");
        }
        Ok(())
    }
}
