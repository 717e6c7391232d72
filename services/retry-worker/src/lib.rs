//! The retry worker: everything that happens to pushes and notifications while no process sends them. It puts waiting ones
//! into the queues, finds lost ones, archives what the broker gives up, and keeps the tables in shape. It also makes the
//! further attempts to deliver notifications (see [`engine`]), apart from the first ones, which they must not slow.
//!
//! Any number of replicas may run. Each periodic job runs in one of them at a time, under a lease of its own; since
//! every statement is guarded as well, two at once would waste work and do no harm. It never sends a push itself.

mod archiver;
mod context;
mod jobs;
mod periodic;

use std::sync::Arc;

use broker::{Broker, Queue};
use config::Config;
use domain::clock::{Clock, SystemClock};
use futures::future::select_all;
use lifecycle::{Drained, Lifecycle, Shutdown, TaskGroup};
use store::DeadLetterLane;
use tokio::task::JoinHandle;

use archiver::Archiver;
use context::{Context, Publishing};
use periodic::Job;

use jobs::{
    CountDeadLetters, CountSubscriptions, CountWebpush, EndInactive, EvaluateHealth, Expire, FindLines,
    Mailer, MaintainPartitions, MakeIndexes, Monitor, Prune, PruneKeys, Recover, Replay, RescueNotifications,
    RescuePushes, ResealSecrets, RunDeadLetterJobs, SendPending, SendRetries, SendScheduled,
    SendScheduledNotifications, SendWaitingNotifications, VerifyEndpoints,
};

/// The name in `pg_stat_activity` and the broker's list of connections.
const NAME: &str = "postrider-retry-worker";

/// Why the retry worker could not start or had to end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database settings are unusable.
    #[error(transparent)]
    Store(#[from] runtime::connections::OpenError),
    /// The reseller lane cannot be set up as configured.
    #[error("failed to prepare the reseller lane")]
    Engine(#[source] engine::webhook::OpenError),
    /// The mail server cannot be used as configured.
    #[error("failed to prepare the mail server")]
    Mail(#[source] mail::SettingsError),
    /// A job or an archiver ended without having been asked to; the log says which and why.
    #[error("a task ended by itself")]
    TaskEnded,
}

/// Runs the retry worker until shutdown; the executions under way are finished within the grace period.
///
/// # Errors
///
/// [`Error`] when the configuration cannot be used; servers that are away are waited for.
pub async fn run(config: Arc<Config>, lifecycle: Lifecycle) -> Result<(), Error> {
    run_with_clock(config, lifecycle, Arc::new(SystemClock)).await
}

/// [`run`] with another clock for due times, months and ages.
pub async fn run_with_clock(
    config: Arc<Config>,
    lifecycle: Lifecycle,
    clock: Arc<dyn Clock>,
) -> Result<(), Error> {
    let (store, broker) = runtime::connections::open(&config, NAME)?;
    let engine_tools =
        engine::webhook::Tools::open(&config, &store, &broker, &clock).map_err(Error::Engine)?;
    let resealer = ResealSecrets::new(engine_tools.as_ref());
    let verifier = VerifyEndpoints::new(engine_tools.clone()).map_err(Error::Engine)?;
    let mailer = Mailer::new(&config).map_err(Error::Mail)?;
    let shutdown = lifecycle.shutdown.child();
    let tasks = TaskGroup::under(&shutdown);
    tasks.spawn(
        "connections",
        runtime::connections::watch(
            store.clone(),
            Some(broker.clone()),
            lifecycle.readiness,
            shutdown.clone(),
        ),
    );
    let context = Arc::new(Context {
        config: config.clone(),
        store: store.clone(),
        broker: broker.clone(),
        publishing: Publishing::open(&config, NAME),
        clock,
    });
    let notifications =
        [Queue::ResellerReady, Queue::ResellerRetry].map(|queue| context.publishing.to(queue));
    tasks.spawn(
        "sharing of messages",
        runtime::connections::share_messages(
            store.clone(),
            notifications.map(Broker::clone).to_vec(),
            shutdown.clone(),
        ),
    );
    let working = [
        start(&tasks, SendScheduled, &context, &shutdown),
        start(&tasks, SendPending, &context, &shutdown),
        start(&tasks, RescuePushes, &context, &shutdown),
        start(&tasks, MaintainPartitions, &context, &shutdown),
        start(&tasks, MakeIndexes, &context, &shutdown),
        start(&tasks, PruneKeys, &context, &shutdown),
        start(&tasks, Prune, &context, &shutdown),
        start(&tasks, Monitor, &context, &shutdown),
        start(&tasks, CountSubscriptions, &context, &shutdown),
        start(&tasks, CountDeadLetters, &context, &shutdown),
        start(&tasks, CountWebpush, &context, &shutdown),
        start(&tasks, SendWaitingNotifications::default(), &context, &shutdown),
        start(&tasks, SendScheduledNotifications, &context, &shutdown),
        start(&tasks, FindLines, &context, &shutdown),
        start(&tasks, SendRetries::default(), &context, &shutdown),
        start(&tasks, RescueNotifications, &context, &shutdown),
        start(&tasks, EvaluateHealth, &context, &shutdown),
        start(&tasks, EndInactive, &context, &shutdown),
        start(&tasks, Expire, &context, &shutdown),
        start(&tasks, Replay, &context, &shutdown),
        start(&tasks, RunDeadLetterJobs, &context, &shutdown),
        start(&tasks, Recover, &context, &shutdown),
        start(&tasks, resealer, &context, &shutdown),
        start(&tasks, verifier, &context, &shutdown),
        start(&tasks, mailer, &context, &shutdown),
        tasks.spawn(
            "reseller lane",
            engine::webhook::deliver(engine::webhook::Lane::Retry, engine_tools, shutdown.clone()),
        ),
        archive(&tasks, DeadLetterLane::Push, &context, &shutdown),
        archive(&tasks, DeadLetterLane::Reseller, &context, &shutdown),
    ];
    let ended = tokio::select! {
        biased;
        () = shutdown.cancelled() => Ok(()),
        // No other task would notice that one is missing: better that the supervisor starts the whole again.
        _ = select_all(working) => Err(Error::TaskEnded),
    };
    shutdown.trigger();
    if let Drained::Abandoned(count) = tasks.drain(config.shutdown.grace_period).await {
        tracing::warn!(
            count,
            "the grace period ended first; leases will bring back what was in flight"
        );
    }
    let brokers = context.publishing.clone().into_iter().chain([broker]);
    runtime::connections::close(brokers, store).await;
    ended
}

fn start<J: Job>(tasks: &TaskGroup, job: J, context: &Arc<Context>, shutdown: &Shutdown) -> JoinHandle<()> {
    tasks.spawn(J::NAME, periodic::run(job, context.clone(), shutdown.clone()))
}

fn archive(
    tasks: &TaskGroup,
    lane: DeadLetterLane,
    context: &Arc<Context>,
    shutdown: &Shutdown,
) -> JoinHandle<()> {
    tasks.spawn(
        "archiver",
        Archiver::new(context.clone(), lane).run(shutdown.clone()),
    )
}
