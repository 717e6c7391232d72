//! Runs a job again and again, in one replica at a time.

use std::sync::Arc;
use std::time::Duration;

use leadership::{Candidate, Term};
use lifecycle::{Shutdown, error_chain};
use telemetry::Metric;
use tokio::time::MissedTickBehavior;

use crate::context::Context;

/// How long a job's lease holds without renewal: what a crash of the replica that runs it costs at most.
const LEASE_TTL: Duration = Duration::from_secs(5);
/// How often the lease is renewed.
const LEASE_POLL: Duration = Duration::from_secs(1);
/// An execution that takes longer is hanging, whatever it waits for.
const EXECUTION_LIMIT: Duration = Duration::from_secs(60);
/// How long an execution that is under way may still take at shutdown. One whose database has gone silent would use up the grace period of
/// all others.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// The value of a gauge that this replica does not know. Prometheus leaves it out of a maximum, and it is past no threshold.
pub(crate) const UNKNOWN: f64 = f64::NAN;

/// When a job is executed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// From the start of the service to the first execution.
    pub(crate) start_delay: Duration,
    /// From the start of an execution to the start of the next, or less if the execution took longer.
    pub(crate) repeat_interval: Duration,
}

impl Timing {
    /// From the start of the service on.
    pub(crate) fn every(repeat_interval: Duration) -> Self {
        Self {
            start_delay: Duration::ZERO,
            repeat_interval,
        }
    }
}

/// Why an execution failed. The next one tries again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    #[error("the database failed")]
    Store(#[from] store::Error),
    #[error("the broker failed")]
    Broker(#[from] broker::Error),
    /// Nothing is dropped, expired or forgotten while one of the two clocks is wrong.
    #[error(
        "the clocks of this host and of the database are {seconds} s apart; what is old is left alone until they agree"
    )]
    ClocksApart { seconds: i64 },
}

/// Something that is done periodically.
pub(crate) trait Job: Send + Sync + 'static {
    /// Names its lease and its log lines.
    const NAME: &'static str;
    /// From the start of an execution to the start of the next, where nothing else is configured.
    const INTERVAL: Duration = Duration::from_secs(1);

    fn timing(&self, _: &Context) -> Timing {
        Timing::every(Self::INTERVAL)
    }

    /// What this replica has measured is no longer kept up to date: another one does the job, or none. A gauge that stood
    /// still would go on telling of a state that has long passed, so a job that sets gauges makes them unknown here.
    fn end_of_term(&self) {}

    /// One execution. It may be dropped at any await point, and repeated.
    fn execute(&self, context: &Context) -> impl Future<Output = Result<(), JobError>> + Send;
}

/// Executes `job` until shutdown, whenever this replica holds its lease.
pub(crate) async fn run<J: Job>(job: J, context: Arc<Context>, shutdown: Shutdown) {
    let timing = job.timing(&context);
    tokio::select! {
        () = tokio::time::sleep(timing.start_delay) => {}
        () = shutdown.cancelled() => return,
    }
    let settings = leadership::Settings {
        name: format!("job/{}", J::NAME),
        ttl: LEASE_TTL,
        poll: LEASE_POLL,
    };
    let candidate = Candidate::new(context.store.clone(), settings);
    while let Some(term) = candidate.next_term(&shutdown).await {
        serve(&job, &context, timing, &term, &shutdown).await;
        job.end_of_term();
        Metric::JobLastSuccess.set_with(&[("name", J::NAME)], UNKNOWN);
        term.resign().await;
    }
}

async fn serve<J: Job>(job: &J, context: &Context, timing: Timing, term: &Term, shutdown: &Shutdown) {
    let validity = term.validity();
    let mut ticks = tokio::time::interval(timing.repeat_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            () = validity.ended() => return,
            _ = ticks.tick() => {}
        }
        let stopped = async {
            shutdown.cancelled().await;
            tokio::time::sleep(STOP_LIMIT).await;
        };
        let executed = tokio::select! {
            executed = tokio::time::timeout(EXECUTION_LIMIT, job.execute(context)) => executed,
            () = stopped => {
                tracing::warn!(job = J::NAME, "an execution did not end in time at shutdown and was given up");
                return;
            }
        };
        match executed {
            Ok(Ok(())) => {
                let now = context.clock.now().timestamp();
                Metric::JobLastSuccess.set_with(&[("name", J::NAME)], now as f64);
            }
            Ok(Err(error)) => {
                tracing::warn!(job = J::NAME, error = error_chain(&error), "an execution failed");
                Metric::JobFailures.increment_with(&[("name", J::NAME)], 1);
            }
            Err(_) => {
                tracing::warn!(job = J::NAME, "an execution took too long and was given up");
                Metric::JobFailures.increment_with(&[("name", J::NAME)], 1);
            }
        }
    }
}
