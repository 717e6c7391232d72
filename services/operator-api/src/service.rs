//! Puts the parts together, and takes them apart again.

use std::sync::Arc;

use config::Config;
use domain::clock::{Clock, SystemClock};
use http_api::{ConnectionLimits, Documents};
use lifecycle::{Lifecycle, Shutdown};
use runtime::connections::{OpenError, Watch};
use tokio::net::TcpListener;

use crate::app::App;
use crate::{router, status};

/// The name in `pg_stat_activity` and the broker's list of connections.
const NAME: &str = "operator-api";

/// Serves `listener` until the shutdown of `lifecycle`; then finishes what is under way, within the grace period.
///
/// The database and the broker may be away at the start and go away later.
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
    let (store, broker) = runtime::connections::open(&config, NAME)?;
    let documents = Documents::new(&crate::openapi());
    let grace = config.shutdown.grace_period;
    let limits = ConnectionLimits {
        trusted_proxies: config.operator.trusted_proxies.clone(),
        ..ConnectionLimits::of_the_house(config.operator.max_connections)
    };
    let app = Arc::new(App::new(config, store.clone(), broker.clone(), clock));
    let watching = Shutdown::new();
    let looks = tokio::spawn(status::watch(Arc::clone(&app), watching.clone()));
    let router = router::router(app, documents, lifecycle.readiness.clone());
    let watch = Watch::begin(&store, Some(&broker), lifecycle.readiness, watching);
    http_api::serve(listener, router, limits, &lifecycle.shutdown, grace).await;
    watch.end().await;
    if looks.await.is_err() {
        tracing::error!("a look at the system panicked");
    }
    runtime::connections::close([broker], store).await;
    Ok(())
}
