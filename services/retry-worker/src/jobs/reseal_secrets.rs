//! Seals signing secrets again that were sealed with a previous key, so that the previous key can be taken away.
//!
//! While a change of the key is rolled out, workers with the old and the new configuration may seal the same secrets in turn. Both read what
//! the other sealed, and the last one stays.

use std::sync::Arc;
use std::time::{Duration, Instant};

use encryption::{SealError, Sealer};
use engine::webhook::Tools;
use lifecycle::error_chain;
use store::webhook::StoredSecret;
use telemetry::Metric;
use uuid::Uuid;

use crate::context::Context;
use crate::periodic::{Job, JobError, UNKNOWN};

/// Secrets read at once.
const BATCH: u32 = 500;
/// How long another batch is begun in one execution: it ends well before it counts as hanging.
const BEGINNING_LIMIT: Duration = Duration::from_secs(40);
/// How many that cannot be sealed again are named in the log.
const TOLD: u32 = 10;

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
        let (started, mut after) = (Instant::now(), Uuid::nil());
        let (mut resealed, mut left) = (0_u64, 0_u32);
        while started.elapsed() < BEGINNING_LIMIT {
            let found = store
                .secrets_sealed_otherwise(&sealer.mark(), after, BATCH, now)
                .await?;
            let Some(last) = found.last() else { break };
            after = last.id;
            let mut again = Vec::with_capacity(found.len());
            for secret in found {
                match sealed_again(sealer, &secret) {
                    Ok(sealed) => again.push((secret, sealed)),
                    Err(error) => {
                        left += 1;
                        if left <= TOLD {
                            tell(&secret, &error);
                        }
                    }
                }
            }
            resealed += store.reseal_secrets(&again).await?;
        }
        if resealed > 0 {
            tracing::info!(secrets = resealed, "sealed signing secrets with the current key");
        }
        if left > TOLD {
            tracing::warn!(
                secrets = left,
                "signing secrets cannot be sealed with the current key of reseller.secrets; the first ones are named above"
            );
        }
        Metric::SecretsStale.set(f64::from(left));
        Ok(())
    }
}

fn tell(secret: &StoredSecret, error: &SealError) {
    tracing::warn!(
        error = error_chain(error),
        secret.id = %secret.id,
        subscription.id = %secret.subscription,
        "a signing secret cannot be sealed with the current key of reseller.secrets"
    );
}

fn sealed_again(sealer: &Sealer, secret: &StoredSecret) -> Result<Vec<u8>, SealError> {
    let plain = sealer.open(secret.subscription, &secret.sealed)?;
    sealer.seal(secret.subscription, &plain)
}
