//! Puts the parts together, and takes them apart again in the order in which they depend on each other.

use std::sync::Arc;
use std::time::Duration;

use broker::Broker;
use config::Config;
use domain::clock::{Clock, SystemClock};
use lifecycle::{Lifecycle, Shutdown, TaskGroup};
use store::Store;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::app::{self, App};
use crate::gate::Gate;
use crate::meters::Meters;
use crate::pipeline::{self, Pipeline};
use crate::watch::GateWatch;
use crate::{Error, router, server};

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
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// See [`crate::run`].
    ///
    /// # Errors
    ///
    /// As [`crate::run`].
    pub async fn run(self) -> Result<(), Error> {
        let Self {
            config,
            listener,
            lifecycle,
            clock,
        } = self;
        let (store, broker) = vitals::open(&config, NAME).map_err(Error::Database)?;
        let (gate, meters) = (Arc::new(Gate::default()), Arc::new(Meters::new()));
        let watching = Shutdown::new();
        let watches = watch(&config, &lifecycle, (&store, &broker), (&gate, &clock), &watching);
        let parts = pipeline::Parts {
            store: store.clone(),
            publisher: broker.publisher(),
            gate,
            clock: Arc::clone(&clock),
            meters: Arc::clone(&meters),
        };
        let (mut pipeline, intake) = Pipeline::start(&config, parts);
        let parts = app::Parts {
            intake,
            store: store.clone(),
            clock,
            meters,
        };
        let app = Arc::new(App::new(&config, parts).map_err(Error::OpenApi)?);
        let router = router::router(app, lifecycle.readiness.clone());
        let connections = TaskGroup::under(&lifecycle.shutdown);
        // A child, so that the connections also end when the service fails and the process goes on.
        let stop = lifecycle.shutdown.token().child_token();
        let served = tokio::select! {
            () = server::serve(listener, router, &connections, stop.clone()) => Ok(()),
            task = pipeline.ended() => Err(Error::TaskEnded { task }),
        };
        stop.cancel();
        let grace = config.shutdown.grace_period;
        finish(&lifecycle.shutdown, grace, &connections, pipeline).await;
        watching.trigger();
        watches.join_all().await;
        vitals::part(broker, store).await;
        served
    }
}

/// What is looked at in the background until `stop`.
fn watch(
    config: &Config,
    lifecycle: &Lifecycle,
    (store, broker): (&Store, &Broker),
    (gate, clock): (&Arc<Gate>, &Arc<dyn Clock>),
    stop: &Shutdown,
) -> JoinSet<()> {
    let readiness = &lifecycle.readiness;
    let gate_watch = GateWatch {
        broker: broker.clone(),
        store: store.clone(),
        gate: Arc::clone(gate),
        capacity: config.push.queue.capacity,
        patience: config.push.job.send_pending.repeat_interval * 2,
        clock: Arc::clone(clock),
        seen: readiness.condition("queue"),
    };
    let mut watches = JoinSet::new();
    watches.spawn(gate_watch.run(stop.clone()));
    watches.spawn(vitals::watch(
        store.clone(),
        broker.clone(),
        readiness.clone(),
        stop.clone(),
    ));
    watches
}

/// Finishes requests, then what they left behind. Callers get three quarters of the grace period, so that slow ones
/// leave time for the pushes that are already here.
async fn finish(shutdown: &Shutdown, grace: Duration, connections: &TaskGroup, pipeline: Pipeline) {
    let deadline = Instant::now() + grace;
    let drained = connections.drain(grace.mul_f64(0.75)).await;
    tracing::debug!(?drained, "no more requests");
    tokio::select! {
        () = pipeline.finish(deadline) => {}
        () = shutdown.hurried() => {}
    }
}
