//! Seals signing secrets again that were sealed with a previous key, so that the previous key can be taken away.
//!
//! While a change of the key is rolled out, workers with the old and the new configuration may seal the same secrets in turn. Both read what
//! the other sealed, and the last one stays.

use std::sync::Arc;
use std::time::Duration;

use encryption::Sealer;
use engine::webhook::Tools;
use lifecycle::error_chain;
use store::webhook::StoredSecret;
use telemetry::Metric;
use uuid::Uuid;

use crate::context::Context;
use crate::periodic::{Job, JobError, UNKNOWN};

/// Secrets read at once.
const BATCH: u32 = 500;

pub(crate) struct ResealSecrets {
    /// `None`: the reseller lane is off.
    sealer: Option<Arc<Sealer>>,
}

impl ResealSecrets {
    pub(crate) fn new(tools: Option<&Tools>) -> Self {
        Self {
            sealer: tools.map(|tools| Arc::clone(&tools.sealer)),
        }
    }
}

impl Job for ResealSecrets {
    const NAME: &'static str = "reseal-secrets";
    const INTERVAL: Duration = Duration::from_secs(60);

    fn end_of_term(&self) {
        Metric::SecretsStale.set(UNKNOWN);
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let Some(sealer) = &self.sealer else {
            return Ok(());
        };
        let (store, now) = (&context.store, context.clock.now());
        let (mut after, mut resealed, mut left) = (Uuid::nil(), 0_u32, 0_u32);
        loop {
            let found = store
                .secrets_sealed_otherwise(&sealer.mark(), after, BATCH, now)
                .await?;
            let Some(last) = found.last() else { break };
            after = last.id;
            for secret in &found {
                match again(sealer, secret) {
                    Ok(sealed) => resealed += u32::from(store.reseal_secret(secret, &sealed).await?),
                    Err(error) => {
                        left += 1;
                        tracing::warn!(
                            error = error_chain(&error),
                            secret.id = %secret.id,
                            subscription.id = %secret.subscription,
                            "a signing secret cannot be sealed with the current key of reseller.secrets"
                        );
                    }
                }
            }
        }
        if resealed > 0 {
            tracing::info!(secrets = resealed, "sealed signing secrets with the current key");
        }
        Metric::SecretsStale.set(f64::from(left));
        Ok(())
    }
}

fn again(sealer: &Sealer, secret: &StoredSecret) -> Result<Vec<u8>, encryption::SealError> {
    let plain = sealer.open(secret.subscription, &secret.sealed)?;
    sealer.seal(secret.subscription, &plain)
}
