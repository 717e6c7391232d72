//! Puts the parts together, and takes them apart again in the order in which they depend on each other.

use std::sync::Arc;

use broker::Broker;
use config::Config;
use domain::clock::{Clock, SystemClock};
use http_api::{ConnectionLimits, Documents};
use lifecycle::{Lifecycle, Readiness, Shutdown, TaskGroup};
use store::Store;
use telemetry::Metric;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::app::{self, App};
use crate::event::lane::EventLane;
use crate::lane::Lane;
use crate::lane::gate::Gate;
use crate::lane::watch::{GateWatch, WatchedGate};
use crate::lane::writer::Writer;
use crate::metrics::Metrics;
use crate::push::lane::PushLane;
use crate::{Error, router};

/// The name in `pg_stat_activity` and the broker's list of connections.
const NAME: &str = "ingest-api";

/// Serves `listener` until the shutdown of `lifecycle`; then finishes what is under way, within the grace period.
///
/// The database and the broker may be away at the start and go away later.
///
/// # Errors
///
/// [`Error`] when the service cannot start, or a part that it cannot do without has ended.
pub async fn run(config: Arc<Config>, listener: TcpListener, lifecycle: Lifecycle) -> Result<(), Error> {
    run_with_clock(config, listener, lifecycle, Arc::new(SystemClock)).await
}

/// [`run`] with another clock, by which pushes get their creation time and sending windows are judged.
pub async fn run_with_clock(
    config: Arc<Config>,
    listener: TcpListener,
    lifecycle: Lifecycle,
    clock: Arc<dyn Clock>,
) -> Result<(), Error> {
    let (store, brokers) = open(&config)?;
    // A child, so that everything also ends when the service fails and the process goes on.
    let shutdown = lifecycle.shutdown.child();
    let tasks = TaskGroup::under(&shutdown);
    let metrics = Arc::new(Metrics::new());
    let (push_lane, event_lane) = lanes(&config, &store, &clock, &metrics);
    let push_writer = Writer::new(push_lane, brokers.pushes.publisher(), &tasks);
    let event_writer = Writer::new(event_lane, brokers.events.publisher(), &tasks);
    let gates = [&push_writer.gate, &event_writer.gate];
    let watching = Shutdown::new();
    let watches = watch(
        &config,
        &lifecycle.readiness,
        (&store, &brokers),
        (gates, &clock),
        &watching,
    );
    let closing = CancellationToken::new();
    let (pushes, push_writing) = push_writer.start(&config.ingest, &closing);
    let (events, event_writing) = event_writer.start(&config.ingest, &closing);
    let parts = app::Parts {
        pushes,
        events,
        event_writer,
        store: store.clone(),
        clock,
    };
    let app = Arc::new(App::new(&config, parts));
    let documents = Documents::new(&crate::openapi());
    let router = router::router(app, documents, lifecycle.readiness, metrics);
    let limits = ConnectionLimits::of_the_house(config.ingest.max_connections);
    let grace = config.shutdown.grace_period;
    let stopping = async {
        let stopped = until_stopped(&shutdown, push_writing, event_writing).await;
        (stopped, Instant::now() + grace)
    };
    // Callers get three quarters of the grace period, so that slow ones leave time for what is already here.
    let serving = http_api::serve(listener, router, limits, &shutdown, grace.mul_f64(0.75));
    let ((stopped, deadline), ()) = tokio::join!(stopping, serving);
    closing.cancel();
    let drained = tasks
        .drain(deadline.saturating_duration_since(Instant::now()))
        .await;
    tracing::debug!(?drained, "nothing is left to store or to publish");
    watching.trigger();
    watches.join_all().await;
    runtime::connections::close([brokers.pushes, brokers.events], store).await;
    stopped
}

/// The connection of each lane to the broker: what a queue without confirms holds up is its lane alone.
struct Brokers {
    pushes: Broker,
    events: Broker,
}

fn open(config: &Config) -> Result<(Store, Brokers), Error> {
    let (store, pushes) = runtime::connections::open(config, NAME)?;
    let events = runtime::connections::open_broker(config, &format!("{NAME} {}", EventLane::WHAT));
    Ok((store, Brokers { pushes, events }))
}

fn lanes(
    config: &Config,
    store: &Store,
    clock: &Arc<dyn Clock>,
    metrics: &Arc<Metrics>,
) -> (PushLane, EventLane) {
    let push = PushLane {
        store: store.clone(),
        queue_lease: domain::push::queue_lease(config.push.queue.capacity, config.swrve.delay),
        clock: Arc::clone(clock),
        metrics: Arc::clone(metrics),
    };
    let event = EventLane {
        store: store.clone(),
        queue_lease: domain::notification::queue_lease(config.reseller.queue.capacity),
        clock: Arc::clone(clock),
        metrics: Arc::clone(metrics),
        together: Semaphore::new(config.ingest.writers),
    };
    (push, event)
}

/// Waits for the shutdown, or requests it when a writer has ended although nothing asked it to.
async fn until_stopped(
    shutdown: &Shutdown,
    pushes: JoinHandle<()>,
    events: JoinHandle<()>,
) -> Result<(), Error> {
    let stopped = tokio::select! {
        biased;
        () = shutdown.cancelled() => Ok(()),
        _ = pushes => Err(Error::TaskEnded { task: "writer" }),
        _ = events => Err(Error::TaskEnded { task: "writer" }),
    };
    shutdown.trigger();
    stopped
}

/// What is looked at in the background until `stop`.
fn watch(
    config: &Config,
    readiness: &Readiness,
    (store, brokers): (&Store, &Brokers),
    ([push_gate, event_gate], clock): ([&Arc<Gate>; 2], &Arc<dyn Clock>),
    stop: &Shutdown,
) -> JoinSet<()> {
    let push_gate = WatchedGate {
        gate: Arc::clone(push_gate),
        broker: brokers.pushes.clone(),
        queue: PushLane::QUEUE,
        capacity: config.push.queue.capacity,
        patience: Some(config.push.job.send_pending.repeat_interval * 2),
        metric: Metric::IngestQueueGateOpen,
    };
    let event_gate = WatchedGate {
        gate: Arc::clone(event_gate),
        broker: brokers.events.clone(),
        queue: EventLane::QUEUE,
        capacity: config.reseller.queue.capacity,
        patience: None,
        metric: Metric::EventQueueGateOpen,
    };
    let gate_watch = GateWatch {
        store: store.clone(),
        gates: vec![push_gate, event_gate],
        clock: Arc::clone(clock),
        seen: readiness.condition("queue"),
    };
    let mut watches = JoinSet::new();
    watches.spawn(gate_watch.run(stop.clone()));
    watches.spawn(runtime::connections::watch(
        store.clone(),
        Some(brokers.pushes.clone()),
        readiness.clone(),
        stop.clone(),
    ));
    watches.spawn(runtime::connections::share_messages(
        store.clone(),
        vec![brokers.events.clone()],
        stop.clone(),
    ));
    watches
}
