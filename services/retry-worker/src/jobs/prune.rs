//! Forgets what is past its retention, whatever it is: what there is, and how each is found, is listed in `store::Kept`.
//!
//! Two jobs, because keys come with every push and event, and the rest slowly.

use std::time::{Duration, Instant};

use config::Config;
use lifecycle::error_chain;
use store::Kept;

use crate::context::Context;
use crate::periodic::{Job, JobError};

/// Rows forgotten in one statement.
const BATCH: u32 = 1_000;
/// Changes of one that follows them that are forgotten in one statement.
const READ: u32 = 20_000;
/// How long changes are kept for a reseller that has stopped to follow them.
const CHANGES_KEPT: Duration = Duration::from_secs(60);
/// How long visits, and links that begin some, are kept after they could last.
const VISITS_KEPT: Duration = Duration::from_secs(7 * 86_400);
/// How long an execution goes on. What is left then waits for the next one.
const LIMIT: Duration = Duration::from_secs(40);

/// Forgets idempotency keys, event ids, and changes that were noted for those who do not follow them any more.
pub(crate) struct PruneKeys;

impl Job for PruneKeys {
    const NAME: &'static str = "idempotency-keys";
    const INTERVAL: Duration = Duration::from_secs(60);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let config = &context.config;
        let ages = [
            (Kept::Changes, CHANGES_KEPT),
            (Kept::PushKeys, config.push.idempotency.retention),
            (Kept::EventKeys, config.reseller.event.key_retention),
        ];
        let forgotten = forget(context, &ages).await;
        let started = Instant::now();
        while started.elapsed() < LIMIT / 4
            && context.store.forget_read_changes(READ).await? >= u64::from(READ)
        {}
        forgotten
    }
}

/// Forgets everything else.
pub(crate) struct Prune;

impl Job for Prune {
    const NAME: &'static str = "retention";
    const INTERVAL: Duration = Duration::from_secs(600);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let forgotten = forget(context, &ages(&context.config)).await;
        context.store.fold_dead_letter_tallies().await?;
        forgotten
    }
}

fn ages(config: &Config) -> Vec<(Kept, Duration)> {
    let retention = &config.retention;
    let mut ages = vec![
        (Kept::Mails, retention.mails),
        (Kept::ResolvedDeadLetters, retention.dead_letters),
        (Kept::DeadLetterJobs, retention.dead_letters),
        (Kept::OpenDeadLetters, retention.open_dead_letters),
        (Kept::Statistics, retention.statistics),
        (Kept::Replays, retention.replays),
        (Kept::QuotaRequests, retention.audit),
        (Kept::Secrets, retention.secrets),
        (Kept::Subscriptions, retention.subscriptions),
        (Kept::Addresses, retention.subscriptions),
        (Kept::Holds, retention.audit),
        (Kept::Audit, retention.audit),
        (Kept::Visits, VISITS_KEPT),
        (Kept::PortalLinks, VISITS_KEPT),
        (Kept::PortalVisits, VISITS_KEPT),
    ];
    // With a mail server, the mailer ends them.
    if config.mail.smtp_url.is_none() {
        ages.push((Kept::UnsentMails, config.mail.max_age));
    }
    ages
}

/// A batch of each in turn, so that much of one kind keeps no other waiting; nor does one that cannot be forgotten.
async fn forget(context: &Context, ages: &[(Kept, Duration)]) -> Result<(), JobError> {
    let started = Instant::now();
    let mut left = Vec::with_capacity(ages.len());
    for (kept, age) in ages {
        left.push((*kept, context.cutoff(*age).await?, 0));
    }
    let mut outcome = Ok(());
    while !left.is_empty() && started.elapsed() < LIMIT {
        let mut more = Vec::new();
        for (kept, cutoff, sum) in left {
            match context.store.forget(kept, cutoff, BATCH).await {
                Ok(rows) if rows >= u64::from(BATCH) => more.push((kept, cutoff, sum + rows)),
                Ok(rows) => tell(kept, sum + rows),
                Err(error) => {
                    tracing::warn!(
                        what = kept.name(),
                        error = error_chain(&error),
                        "could not forget what is past its retention"
                    );
                    outcome = Err(error.into());
                }
            }
        }
        left = more;
    }
    for (kept, _, sum) in left {
        tell(kept, sum);
    }
    outcome
}

fn tell(kept: Kept, rows: u64) {
    if rows > 0 {
        tracing::info!(what = kept.name(), rows, "forgot what was past its retention");
    }
}
