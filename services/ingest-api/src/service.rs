//! Puts the parts together, and takes them apart again in the order in which they depend on each other.

use std::sync::Arc;
use std::time::Duration;

use broker::Broker;
use config::Config;
use domain::clock::{Clock, SystemClock};
use domain::push::queue_lease;
use http_api::{ConnectionLimits, Documents};
use lifecycle::{Lifecycle, Shutdown, TaskGroup};
use store::Store;
use telemetry::Metric;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::app::{self, App};
use crate::event::lane::EventLane;
use crate::lane::Lane;
use crate::lane::gate::Gate;
use crate::lane::intake::Intake;
use crate::lane::pipeline::{self, Pipeline};
use crate::lane::watch::{GateWatch, WatchedGate};
use crate::push::lane::PushLane;
use crate::router::Meters;
use crate::{Error, event, push, router};

/// The name in `pg_stat_activity` and the broker's list of connections.
const NAME: &str = "ingest-api";

/// The service before it runs.
pub struct Service {
    config: Arc<Config>,
    listener: TcpListener,
    lifecycle: Lifecycle,
    clock: Arc<dyn Clock>,
}

impl Service {
    /// A service on the system's clock.
    pub fn new(config: Arc<Config>, listener: TcpListener, lifecycle: Lifecycle) -> Self {
        Self {
            config,
            listener,
            lifecycle,
            clock: Arc::new(SystemClock),
        }
    }

    /// Replaces the clock by which pushes get their creation time and sending windows are judged.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// See [`crate::run`].
    pub async fn run(self) -> Result<(), Error> {
        let Self {
            config,
            listener,
            lifecycle,
            clock,
        } = self;
        let (store, pushes) = runtime::connections::open(&config, NAME).map_err(Error::Database)?;
        let events = runtime::connections::open_broker(&config, &format!("{NAME} {}", EventLane::WHAT));
        let brokers = Brokers { pushes, events };
        let gates = Gates::default();
        let watching = Shutdown::new();
        let watches = watch(
            &config,
            &lifecycle,
            (&store, &brokers),
            (&gates, &clock),
            &watching,
        );
        let meters = Meters {
            push: Arc::new(push::meters::Meters::new()),
            event: Arc::new(event::meters::Meters::new()),
        };
        let (mut lanes, pushes, events) = Lanes::start(&config, (&store, &brokers), &gates, &clock, &meters);
        let parts = app::Parts {
            pushes,
            events,
            store: store.clone(),
            clock,
        };
        let documents = Documents::of(&crate::openapi()).map_err(Error::OpenApi)?;
        let app = Arc::new(App::new(&config, parts));
        let router = router::router(app, documents, lifecycle.readiness.clone(), meters);
        let connections = TaskGroup::under(&lifecycle.shutdown);
        // A child, so that the connections also end when the service fails and the process goes on.
        let stop = lifecycle.shutdown.token().child_token();
        let limits = ConnectionLimits::of_the_house(config.ingest.max_connections);
        let served = tokio::select! {
            () = http_api::serve(listener, router, &connections, stop.clone(), limits) => Ok(()),
            task = lanes.ended() => Err(Error::TaskEnded { task }),
        };
        stop.cancel();
        let grace = config.shutdown.grace_period;
        finish(&lifecycle.shutdown, grace, &connections, lanes).await;
        watching.trigger();
        watches.join_all().await;
        runtime::connections::close([brokers.pushes, brokers.events], store).await;
        served
    }
}

/// The connection of each lane to the broker: what a queue without confirms holds up is its lane alone.
struct Brokers {
    pushes: Broker,
    events: Broker,
}

/// The gates of both lanes.
struct Gates {
    push: Arc<Gate>,
    event: Arc<Gate>,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            push: Arc::new(Gate::of(PushLane::WHAT)),
            event: Arc::new(Gate::of(EventLane::WHAT)),
        }
    }
}

/// The running tasks of both lanes.
struct Lanes {
    push: Pipeline,
    event: Pipeline,
}

impl Lanes {
    fn start(
        config: &Config,
        (store, brokers): (&Store, &Brokers),
        gates: &Gates,
        clock: &Arc<dyn Clock>,
        meters: &Meters,
    ) -> (Self, Intake<PushLane>, Intake<EventLane>) {
        let push = PushLane {
            store: store.clone(),
            queue_lease: queue_lease(config.push.queue.capacity, config.swrve.delay),
            meters: Arc::clone(&meters.push),
        };
        let event = EventLane {
            store: store.clone(),
            queue_lease: domain::notification::queue_lease(config.reseller.queue.capacity),
            clock: Arc::clone(clock),
            meters: Arc::clone(&meters.event),
        };
        let (push, pushes) = start(config, push, &gates.push, &brokers.pushes, clock);
        let (event, events) = start(config, event, &gates.event, &brokers.events, clock);
        (Self { push, event }, pushes, events)
    }

    /// Completes, with its name, when a task has ended although nothing was asked to.
    async fn ended(&mut self) -> &'static str {
        tokio::select! {
            task = self.push.ended() => task,
            task = self.event.ended() => task,
        }
    }

    /// As [`Pipeline::finish`], for both at once.
    async fn finish(self, deadline: Instant) {
        tokio::join!(self.push.finish(deadline), self.event.finish(deadline));
    }
}

fn start<L: Lane>(
    config: &Config,
    lane: L,
    gate: &Arc<Gate>,
    broker: &Broker,
    clock: &Arc<dyn Clock>,
) -> (Pipeline, Intake<L>) {
    let parts = pipeline::Parts {
        lane,
        gate: Arc::clone(gate),
        publisher: broker.publisher(),
        clock: Arc::clone(clock),
    };
    Pipeline::start(&config.ingest, parts)
}

/// What is looked at in the background until `stop`.
fn watch(
    config: &Config,
    lifecycle: &Lifecycle,
    (store, brokers): (&Store, &Brokers),
    (gates, clock): (&Gates, &Arc<dyn Clock>),
    stop: &Shutdown,
) -> JoinSet<()> {
    let readiness = &lifecycle.readiness;
    let push_gate = WatchedGate {
        gate: Arc::clone(&gates.push),
        broker: brokers.pushes.clone(),
        queue: PushLane::QUEUE,
        capacity: config.push.queue.capacity,
        patience: Some(config.push.job.send_pending.repeat_interval * 2),
        metric: Metric::IngestQueueGateOpen,
    };
    let event_gate = WatchedGate {
        gate: Arc::clone(&gates.event),
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
        brokers.pushes.clone(),
        readiness.clone(),
        stop.clone(),
    ));
    watches
}

/// Finishes requests, then what they left behind. Callers get three quarters of the grace period, so that slow ones
/// leave time for what is already here.
async fn finish(shutdown: &Shutdown, grace: Duration, connections: &TaskGroup, lanes: Lanes) {
    let deadline = Instant::now() + grace;
    let drained = connections.drain(grace.mul_f64(0.75)).await;
    tracing::debug!(?drained, "no more requests");
    tokio::select! {
        () = lanes.finish(deadline) => {}
        () = shutdown.hurried() => {}
    }
}
