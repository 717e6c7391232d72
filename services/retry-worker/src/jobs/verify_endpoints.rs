//! Challenges the endpoints of new and changed subscriptions, and activates those that answer as they have to.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use engine::webhook::{Answer, Challenger, OpenError, Stranger, Tools};
use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::FuturesUnordered;
use store::webhook::{AfterFailure, Budgets, Charged, DueVerification, Endpoint};

use crate::context::Context;
use crate::periodic::{Job, JobError};

/// Endpoints challenged at once.
const AT_ONCE: u32 = 32;
/// Most of them that are one reseller's: what hangs there takes no other reseller's place.
const SHARE: u32 = 4;
/// How often it is looked whether more are due while others are under way.
const LOOK: Duration = Duration::from_secs(1);
/// Longer than an execution can take: a challenge without a recorded answer was lost.
const LEASE: Duration = Duration::from_secs(90);
/// After this time an execution begins nothing new, so that it ends before it is given up.
const BEGINNING_LIMIT: Duration = Duration::from_secs(40);

pub(crate) struct VerifyEndpoints {
    /// `None`: the reseller lane is off, and nothing can be signed.
    challenger: Option<Challenger>,
}

impl VerifyEndpoints {
    pub(crate) fn new(tools: Option<Tools>) -> Result<Self, OpenError> {
        Ok(Self {
            challenger: tools.map(Challenger::new).transpose()?,
        })
    }
}

impl Job for VerifyEndpoints {
    const NAME: &'static str = "verification";
    const INTERVAL: Duration = Duration::from_secs(1);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let Some(challenger) = &self.challenger else {
            return Ok(());
        };
        let started = Instant::now();
        let (mut under_way, mut shares) = (FuturesUnordered::new(), HashMap::<String, u32>::new());
        loop {
            if started.elapsed() < BEGINNING_LIMIT {
                let free = AT_ONCE.saturating_sub(u32::try_from(under_way.len()).unwrap_or(u32::MAX));
                for (due, endpoint) in begin(context, free, &shares).await? {
                    *shares.entry(due.reseller.clone()).or_default() += 1;
                    under_way.push(verify(context, challenger, due, endpoint).boxed());
                }
            }
            if !one_ended(&mut under_way, &mut shares).await? {
                return Ok(());
            }
        }
    }
}

/// Waits for one of those under way to end, but not for long; `false` when none is left.
async fn one_ended(
    under_way: &mut FuturesUnordered<BoxFuture<'_, (String, Result<(), JobError>)>>,
    shares: &mut HashMap<String, u32>,
) -> Result<bool, JobError> {
    match tokio::time::timeout(LOOK, under_way.next()).await {
        Ok(None) => Ok(false),
        Ok(Some((reseller, ended))) => {
            if let Some(share) = shares.get_mut(&reseller) {
                *share = share.saturating_sub(1);
            }
            ended.map(|()| true)
        }
        Err(_) => Ok(true),
    }
}

/// Takes what is due of resellers that have not their share under way.
async fn begin(
    context: &Context,
    free: u32,
    shares: &HashMap<String, u32>,
) -> Result<Vec<(DueVerification, Endpoint)>, JobError> {
    if free == 0 {
        return Ok(Vec::new());
    }
    let full = shares.iter().filter(|(_, share)| **share >= SHARE);
    let busy: Vec<String> = full.map(|(reseller, _)| reseller.clone()).collect();
    // A budget that is used up puts a challenge off to a time of the database: by a clock that is ahead it would be due at once.
    let now = context.present().await?;
    let due = context
        .store
        .claim_verifications(now, (free, SHARE), &busy, LEASE)
        .await?;
    let ids: Vec<_> = due.iter().map(|due| due.subscription_id).collect();
    // Read after the claim: whatever the endpoint is now is what is challenged, and what its answer counts for.
    let mut endpoints = context.store.find_endpoints(&ids).await?;
    let found = due.into_iter().filter_map(|due| {
        let endpoint = endpoints.remove(&due.subscription_id)?;
        Some((due, endpoint))
    });
    Ok(found.collect())
}

async fn verify(
    context: &Context,
    challenger: &Challenger,
    due: DueVerification,
    endpoint: Endpoint,
) -> (String, Result<(), JobError>) {
    let ended = challenge(context, challenger, &due, &endpoint).await;
    (due.reseller, ended)
}

async fn challenge(
    context: &Context,
    challenger: &Challenger,
    due: &DueVerification,
    endpoint: &Endpoint,
) -> Result<(), JobError> {
    let id = due.subscription_id;
    let stranger = challenger.stranger(endpoint);
    if let Some(stranger) = &stranger
        && !has_room(context, due, stranger).await?
    {
        return Ok(());
    }
    match challenger.challenge(id, endpoint).await {
        Answer::Right => {
            let now = context.clock.now();
            let host = stranger.as_ref().map_or("", |stranger| &stranger.host);
            let passed = context
                .store
                .pass_verification(due, (&endpoint.url, host), now)
                .await?;
            tracing::info!(subscription.id = %id, passed, "an endpoint answered its challenge");
        }
        Answer::Wrong { told, detail } => {
            tracing::info!(subscription.id = %id, error = detail, "an endpoint did not answer its challenge");
            fail(context, due, endpoint, told).await?;
        }
        // The claim runs out by itself, and then it is tried again.
        Answer::NotAsked(error) => {
            tracing::error!(subscription.id = %id, error, "an endpoint could not be challenged");
        }
    }
    Ok(())
}

/// Whether a host may be challenged now; otherwise it is put off.
async fn has_room(context: &Context, due: &DueVerification, stranger: &Stranger) -> Result<bool, JobError> {
    let (store, now) = (&context.store, context.clock.now());
    let target = (&*due.reseller, &*stranger.host, &*stranger.site);
    match store
        .charge_challenge(target, Budgets::OF_CHALLENGES, now)
        .await?
    {
        Charged::Done => Ok(true),
        Charged::NotBefore(then) => {
            let why = "too many challenges to this domain, or to hosts of this reseller that did not answer: put off";
            store.put_challenge_off(due, then, why, now).await?;
            tracing::info!(subscription.id = %due.subscription_id, "a challenge had no room in its budget");
            Ok(false)
        }
    }
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
    tracing::debug!(subscription.id = %due.subscription_id, ?after, "a challenge in vain was recorded");
    Ok(())
}
