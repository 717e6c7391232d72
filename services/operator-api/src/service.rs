//! Puts the parts together, and takes them apart again.

use std::sync::Arc;

use config::Config;
use domain::clock::{Clock, SystemClock};
use http_api::{ConnectionLimits, Documents};
use lifecycle::{Lifecycle, Shutdown, TaskGroup};
use tokio::net::TcpListener;

use crate::app::App;
use crate::{Error, router};

/// The name in `pg_stat_activity` and the broker's list of connections.
const NAME: &str = "operator-api";

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

    /// Replaces the clock by which everything gets its time.
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
        let (store, broker) = runtime::connections::open(&config, NAME).map_err(Error::Database)?;
        let documents = Documents::of(&crate::openapi()).map_err(Error::OpenApi)?;
        let grace = config.shutdown.grace_period;
        let limits = ConnectionLimits::of_the_house(config.operator.max_connections);
        let app = Arc::new(App::new(config, store.clone(), broker.clone(), clock));
        let router = router::router(app, documents, lifecycle.readiness.clone());
        let watching = Shutdown::new();
        let watch = tokio::spawn(runtime::connections::watch(
            store.clone(),
            broker.clone(),
            lifecycle.readiness.clone(),
            watching.clone(),
        ));
        let connections = TaskGroup::under(&lifecycle.shutdown);
        let stop = lifecycle.shutdown.token().child_token();
        http_api::serve(listener, router, &connections, stop, limits).await;
        let drained = connections.drain(grace).await;
        tracing::debug!(?drained, "no more requests");
        watching.trigger();
        if watch.await.is_err() {
            tracing::error!("the watch over database and broker panicked");
        }
        runtime::connections::close([broker], store).await;
        Ok(())
    }
}
