//! The dispatcher. In the push lane it takes pushes from the queue, claims them in PostgreSQL, sends them to Swrve at the
//! one pace that Swrve allows, and records what came of it. In the reseller lane it makes the first attempts to deliver
//! notifications; all of that is in [`engine`], and every replica does it at the same time.
//!
//! Any number of replicas may run; one of them leads the push lane and sends, the others stand by (see [`leadership`]).
//! Within a term
//! a push passes through three stages, each of which works in batches where it commits:
//!
//! ```text
//! queue ─▶ claimer ─▶ sender ─▶ completer ─▶ ack
//!          (SQL)      (HTTP)    (SQL)
//! ```
//!
//! The sender has a thread of its own, because pacing suffers from any other work on the same runtime. No stage holds a
//! transaction while another talks to Swrve, and the message is acknowledged last: whatever dies in between, the push
//! is found again by its lease. While Swrve is out of order, and until what waited meanwhile has been sent, the first stage is another
//! one (`backlog`), which reads the database instead of the queue.

mod backlog;
mod claimer;
mod completer;
mod ending;
mod lane;
mod plan;
mod sender;
mod spans;
mod starts;
mod vigil;
mod work;

use std::sync::Arc;

use config::Config;
use domain::clock::{Clock, SystemClock};
use lifecycle::{Drained, Lifecycle, TaskGroup};

use lane::Lane;

/// Why the dispatcher could not start or had to end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database settings are unusable.
    #[error("failed to prepare the database connection")]
    Store(#[source] store::Error),
    /// The Swrve settings are unusable.
    #[error("failed to prepare the Swrve client")]
    Swrve(#[source] http_client::SwrveError),
    /// It cannot be found out whether the push lane is held.
    #[error("failed to look for an outage of Swrve")]
    Hold(#[source] store::Error),
    /// The sender's thread could not be started.
    #[error("failed to start the sender")]
    Sender(#[source] std::io::Error),
    /// The sender's thread ended without having been asked to; the log says why.
    #[error("the sender ended by itself")]
    SenderEnded,
    /// The completer ended while outcomes could still come; the log says why.
    #[error("the completer ended by itself")]
    CompleterEnded,
    /// The reseller lane cannot be set up as configured.
    #[error("failed to prepare the reseller lane")]
    Engine(#[source] engine::OpenError),
    /// The reseller lane ended without having been asked to; the log says why.
    #[error("the reseller lane ended by itself")]
    CourierEnded,
    /// The push lane ended without having been asked to; the log says why.
    #[error("the push lane ended by itself")]
    LaneEnded,
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
    let (store, broker) =
        runtime::connections::open(&config, "postrider-dispatcher").map_err(Error::Store)?;
    let push_store =
        runtime::connections::open_push_store(&config, "postrider-dispatcher").map_err(Error::Store)?;
    let engine_tools = engine::Tools::open(&config, &store, &broker, &clock).map_err(Error::Engine)?;
    let lane = Lane::new(config.clone(), push_store.clone(), broker.clone(), clock)?;
    let tasks = TaskGroup::under(&lifecycle.shutdown);
    let shutdown = lifecycle.shutdown.child();
    tasks.spawn(
        "connections",
        runtime::connections::watch(
            store.clone(),
            broker.clone(),
            lifecycle.readiness,
            shutdown.clone(),
        ),
    );
    let lead = tasks.spawn("push lane", lane.lead(shutdown.clone()));
    let deliver = tasks.spawn(
        "reseller lane",
        engine::deliver(engine::Lane::First, engine_tools, shutdown.clone()),
    );
    let ended = tokio::select! {
        biased;
        () = shutdown.cancelled() => Ok(()),
        _ = lead => Err(Error::LaneEnded),
        _ = deliver => Err(Error::CourierEnded),
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
        runtime::connections::close_store(push_store)
    );
    ended
}
