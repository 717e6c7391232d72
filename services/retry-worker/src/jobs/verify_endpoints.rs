//! Challenges the endpoints of new and changed subscriptions, and activates those that answer as they have to.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use courier::{Answer, Challenger, OpenError, Tools};
use futures::future::join_all;
use store::reseller::{AfterFailure, DueVerification, Endpoint};

use crate::context::Context;
use crate::periodic::{Job, JobError, Timing};

/// Endpoints challenged at once.
const AT_ONCE: u32 = 32;
/// Longer than an execution can take: a challenge without a recorded answer was lost.
const LEASE: Duration = Duration::from_secs(90);
/// After this time an execution begins nothing new, so that it ends before it is given up.
const BEGINNING_LIMIT: Duration = Duration::from_secs(15);

pub(crate) struct VerifyEndpoints {
    /// `None`: the reseller lane is off, and nothing can be signed.
    challenger: Option<Challenger>,
}

impl VerifyEndpoints {
    /// # Errors
    ///
    /// [`OpenError`] when the client cannot be set up.
    pub(crate) fn new(tools: Option<Tools>) -> Result<Self, OpenError> {
        Ok(Self {
            challenger: tools.map(Challenger::new).transpose()?,
        })
    }
}

impl Job for VerifyEndpoints {
    const NAME: &'static str = "verification";

    fn timing(&self, _: &Context) -> Timing {
        Timing {
            start_delay: Duration::ZERO,
            repeat_interval: Duration::from_secs(1),
        }
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let Some(challenger) = &self.challenger else {
            return Ok(());
        };
        let started = Instant::now();
        loop {
            let now = context.clock.now();
            let due = context.store.claim_verifications(now, AT_ONCE, LEASE).await?;
            let is_last = due.len() < AT_ONCE as usize;
            let ids: Vec<_> = due.iter().map(|due| due.subscription_id).collect();
            // Read after the claim: whatever the endpoint is now is what is challenged, and what its answer counts for.
            let endpoints = context.store.find_endpoints(&ids).await?;
            let mut challenges = Vec::with_capacity(due.len());
            for due in &due {
                if let Some(endpoint) = endpoints.get(&due.subscription_id) {
                    challenges.push(verify(context, challenger, due, endpoint));
                }
            }
            for ended in join_all(challenges).await {
                ended?;
            }
            if is_last || started.elapsed() >= BEGINNING_LIMIT {
                return Ok(());
            }
        }
    }
}

async fn verify(
    context: &Context,
    challenger: &Challenger,
    due: &DueVerification,
    endpoint: &Endpoint,
) -> Result<(), JobError> {
    let id = due.subscription_id;
    match challenger.challenge(id, endpoint).await {
        Answer::Right => {
            let now = context.clock.now();
            let passed = context.store.pass_verification(due, &endpoint.url, now).await?;
            tracing::info!(subscription.id = %id, passed, "an endpoint answered its challenge");
        }
        Answer::Wrong(error) => fail(context, due, endpoint, &error).await?,
        // The claim runs out by itself, and then it is tried again.
        Answer::NotAsked(error) => {
            tracing::error!(subscription.id = %id, error, "an endpoint could not be challenged");
        }
    }
    Ok(())
}

async fn fail(
    context: &Context,
    due: &DueVerification,
    endpoint: &Endpoint,
    error: &str,
) -> Result<(), JobError> {
    let (settings, now) = (&context.config.reseller.verification, context.clock.now());
    let delay = TimeDelta::from_std(settings.retry_delay).unwrap_or(TimeDelta::MAX);
    let after = match now.checked_add_signed(delay) {
        Some(next) if due.attempts + 1 < settings.max_attempts => AfterFailure::TryAgain(next),
        _ => AfterFailure::Stop,
    };
    let store = &context.store;
    store
        .fail_verification(due, &endpoint.url, error, after, now)
        .await?;
    tracing::info!(subscription.id = %due.subscription_id, error, ?after, "an endpoint did not answer its challenge");
    Ok(())
}
