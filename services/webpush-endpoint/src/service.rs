//! Puts the parts together, and takes them apart again.

use std::sync::Arc;

use config::Config;
use domain::clock::{Clock, SystemClock};
use http_api::{ConnectionLimits, Observer};
use lifecycle::{Lifecycle, Shutdown, TaskGroup};
use runtime::connections::Watch;
use tokio::net::TcpListener;

use crate::app::App;
use crate::{Error, router};

/// The name in `pg_stat_activity`.
const NAME: &str = "webpush-endpoint";

/// Serves `listener` until the shutdown of `lifecycle`; then finishes what is under way, within the grace period.
///
/// The database may be away at the start and go away later.
pub async fn run(config: Arc<Config>, listener: TcpListener, lifecycle: Lifecycle) -> Result<(), Error> {
    run_with_clock(config, listener, lifecycle, Arc::new(SystemClock)).await
}

/// [`run`] with another clock, by which everything gets its time.
pub async fn run_with_clock(
    config: Arc<Config>,
    listener: TcpListener,
    lifecycle: Lifecycle,
    clock: Arc<dyn Clock>,
) -> Result<(), Error> {
    let store = runtime::connections::open_store(&config, NAME)?;
    let grace = config.shutdown.grace_period;
    let endpoint = &config.webpush.endpoint;
    let limits = ConnectionLimits {
        in_all: endpoint.max_connections,
        per_peer: Some(endpoint.max_connections_per_peer),
        trusted_proxies: endpoint.trusted_proxies.clone(),
    };
    let working = Shutdown::new();
    let tasks = TaskGroup::under(&working);
    let app = Arc::new(App::new(&config, store.clone(), clock, tasks.clone())?);
    let observer = Observer::new(config.telemetry.otlp_endpoint.is_some()).of_strangers();
    let router = router::router(app, observer);
    let watch = Watch::begin(&store, None, lifecycle.readiness, Shutdown::new());
    http_api::serve(listener, router, limits, &lifecycle.shutdown, grace).await;
    // The entrances of the batches went with the router: what is left ends by itself, save nodes that do not answer.
    let drained = tasks.drain(grace).await;
    tracing::debug!(?drained, "nothing is under way");
    watch.end().await;
    runtime::connections::close([], store).await;
    Ok(())
}
