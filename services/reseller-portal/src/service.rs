//! Puts the parts together, and takes them apart again.

use std::sync::Arc;

use config::Config;
use domain::clock::{Clock, SystemClock};
use http_api::{ConnectionLimits, Documents};
use lifecycle::{Lifecycle, Shutdown};
use runtime::connections::{OpenError, Watch};
use tokio::net::TcpListener;

use crate::app::App;
use crate::router;

/// The name in `pg_stat_activity`.
const NAME: &str = "reseller-portal";

/// Serves `listener` until the shutdown of `lifecycle`; then finishes what is under way, within the grace period.
///
/// The database may be away at the start and go away later.
pub async fn run(config: Arc<Config>, listener: TcpListener, lifecycle: Lifecycle) -> Result<(), OpenError> {
    run_with_clock(config, listener, lifecycle, Arc::new(SystemClock)).await
}

/// [`run`] with another clock, by which everything gets its time.
pub async fn run_with_clock(
    config: Arc<Config>,
    listener: TcpListener,
    lifecycle: Lifecycle,
    clock: Arc<dyn Clock>,
) -> Result<(), OpenError> {
    let store = runtime::connections::open_store(&config, NAME)?;
    let documents = Documents::new(&crate::openapi());
    let grace = config.shutdown.grace_period;
    let limits = ConnectionLimits {
        in_all: config.portal.max_connections,
        per_peer: Some(config.portal.max_connections_per_peer),
        trusted_proxies: config.portal.trusted_proxies.clone(),
    };
    let app = Arc::new(App::new(config, store.clone(), clock, lifecycle.shutdown.clone()));
    let router = router::router(app, documents, lifecycle.readiness.clone());
    let watch = Watch::begin(&store, None, lifecycle.readiness, Shutdown::new());
    http_api::serve(listener, router, limits, &lifecycle.shutdown, grace).await;
    watch.end().await;
    runtime::connections::close([], store).await;
    Ok(())
}
