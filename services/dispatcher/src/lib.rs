//! The dispatcher: the push lane (see [`engine::push`]), which one replica leads while the others stand by, and the first attempts
//! of the reseller lane (see [`engine::webhook`]), which every replica makes at the same time.

use std::sync::Arc;

use config::Config;
use domain::clock::{Clock, SystemClock};
use lifecycle::{Drained, Lifecycle, TaskGroup};

/// Why the dispatcher could not start or had to end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database settings are unusable.
    #[error(transparent)]
    Store(#[from] runtime::connections::OpenError),
    /// The push lane cannot be set up as configured.
    #[error("failed to prepare the push lane")]
    PushLane(#[source] engine::push::Error),
    /// The reseller lane cannot be set up as configured.
    #[error("failed to prepare the reseller lane")]
    ResellerLane(#[source] engine::webhook::OpenError),
    /// The reseller lane ended without having been asked to; the log says why.
    #[error("the reseller lane ended by itself")]
    ResellerLaneEnded,
    /// The push lane ended without having been asked to; the log says why.
    #[error("the push lane ended by itself")]
    PushLaneEnded,
}

/// Runs the dispatcher until shutdown; work in flight is finished or handed back within the grace period.
///
/// # Errors
///
/// [`Error`] when the configuration cannot be used; servers that are away are waited for.
pub async fn run(config: Arc<Config>, lifecycle: Lifecycle) -> Result<(), Error> {
    run_with_clock(config, lifecycle, Arc::new(SystemClock)).await
}

/// [`run`] with another clock for sending windows and retry times.
pub async fn run_with_clock(
    config: Arc<Config>,
    lifecycle: Lifecycle,
    clock: Arc<dyn Clock>,
) -> Result<(), Error> {
    let (store, broker) = runtime::connections::open(&config, "postrider-dispatcher")?;
    let push_store = runtime::connections::open_push_store(&config, "postrider-dispatcher")?;
    let engine_tools =
        engine::webhook::Tools::open(&config, &store, &broker, &clock).map_err(Error::ResellerLane)?;
    let lane = engine::push::Lane::new(config.clone(), push_store.clone(), broker.clone(), clock)
        .map_err(Error::PushLane)?;
    let tasks = TaskGroup::under(&lifecycle.shutdown);
    let shutdown = lifecycle.shutdown.child();
    tasks.spawn(
        "connections",
        runtime::connections::watch(
            store.clone(),
            Some(broker.clone()),
            lifecycle.readiness,
            shutdown.clone(),
        ),
    );
    let lead = tasks.spawn("push lane", lane.lead(shutdown.clone()));
    let deliver = tasks.spawn(
        "reseller lane",
        engine::webhook::deliver(engine::webhook::Lane::First, engine_tools, shutdown.clone()),
    );
    let ended = tokio::select! {
        biased;
        () = shutdown.cancelled() => Ok(()),
        _ = lead => Err(Error::PushLaneEnded),
        _ = deliver => Err(Error::ResellerLaneEnded),
    };
    shutdown.trigger();
    if let Drained::Abandoned(count) = tasks.drain(config.shutdown.grace_period).await {
        tracing::warn!(
            count,
            "the grace period ended first; leases will bring back what was in flight"
        );
    }
    tokio::join!(
        runtime::connections::close([broker], store),
        runtime::connections::close([], push_store)
    );
    ended
}
