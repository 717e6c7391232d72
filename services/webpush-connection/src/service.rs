//! Puts the parts together, and takes them apart again.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use config::{Config, WebpushConnection};
use domain::clock::{Clock, SystemClock};
use http::StatusCode;
use http_api::{AddressLimit, ConnectionLimits, Observer};
use lifecycle::{Drained, Lifecycle, Shutdown, TaskGroup};
use telemetry::Metric;
use tokio::net::TcpListener;
use webpush::Keys;

use crate::broadcasts::Broadcasts;
use crate::connection::{Close, Rules};
use crate::endpoints::Endpoints;
use crate::mailbox::Mailbox;
use crate::megaphone::Megaphone;
use crate::metrics::Metrics;
use crate::node::Node;
use crate::registry::Registry;
use crate::{health, months, public_port, router_port};

/// The name in `pg_stat_activity`.
const NAME: &str = "webpush-connection";
/// Most connections of the router port, which the house's own nodes alone use.
const ROUTER_CONNECTIONS: usize = 10_000;
/// What is left of the grace period for those that close their connection late.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// How often the number of connections is shown.
const SHOW_INTERVAL: Duration = Duration::from_secs(5);

/// Why a node cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database settings are unusable.
    #[error(transparent)]
    Store(#[from] runtime::connections::OpenError),
    /// There are no keys to make endpoints with.
    #[error("webpush.keys is not usable; `openssl rand -base64 32 | tr '+/' '-_'` prints a key")]
    Keys(#[source] webpush::KeyError),
    /// Another program listens there, or this one is not permitted to.
    #[error("failed to listen on {address} (webpush.connection.routerListen)")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system says.
        #[source]
        source: std::io::Error,
    },
    /// An address that stands for all of this machine's own tells other nodes nothing.
    #[error(
        "webpush.connection.routerListen is {address}: webpush.connection.routerUrl has to say where other nodes reach it"
    )]
    NoRouterUrl {
        /// The address.
        address: SocketAddr,
    },
    /// The megaphone has to be there at the start, or clients would be told that broadcasts do not exist.
    #[error("failed to ask for broadcasts (webpush.connection.megaphoneUrl)")]
    Megaphone(#[source] reqwest::Error),
}

/// Serves user agents on `listener` until the shutdown of `lifecycle`; then sends them to other nodes, spread over time.
///
/// # Errors
///
/// [`Error`] when the configuration cannot be used. The database may be away at the start and go away later.
pub async fn run(config: Arc<Config>, listener: TcpListener, lifecycle: Lifecycle) -> Result<(), Error> {
    let settings = &config.webpush.connection;
    let address = settings.router_listen;
    if address.ip().is_unspecified() && settings.router_url.is_none() {
        return Err(Error::NoRouterUrl { address });
    }
    let bound = TcpListener::bind(address).await;
    let router = bound.map_err(|source| Error::Listen { address, source })?;
    Box::pin(run_with_clock(
        config,
        (listener, router),
        lifecycle,
        Arc::new(SystemClock),
    ))
    .await
}

/// [`run`] with another clock, by which it is decided what has expired and which month it is, and with the listener of the router
/// port.
///
/// # Errors
///
/// As [`run`].
pub async fn run_with_clock(
    config: Arc<Config>,
    (public, router): (TcpListener, TcpListener),
    lifecycle: Lifecycle,
    clock: Arc<dyn Clock>,
) -> Result<(), Error> {
    let settings = &config.webpush.connection;
    let address = router.local_addr().map_err(|source| Error::Listen {
        address: settings.router_listen,
        source,
    })?;
    let node = Arc::new(node(&config, address, &lifecycle, clock)?);
    tracing::info!(node = node.name, %address, "serving user agents");
    let tasks = TaskGroup::under(&lifecycle.shutdown);
    if let Some(url) = &settings.megaphone_url {
        let megaphone = Megaphone::new(
            url.clone(),
            settings.megaphone_token.clone(),
            settings.megaphone_interval,
        );
        let megaphone = megaphone.map_err(Error::Megaphone)?;
        let broadcasts = megaphone.ask().await.map_err(Error::Megaphone)?;
        node.broadcasts.store(Arc::new(broadcasts));
        tasks.spawn(
            "megaphone",
            megaphone.listen(Arc::clone(&node), lifecycle.shutdown.clone()),
        );
    }
    let watching = Shutdown::new();
    tasks.spawn(
        "connections",
        runtime::connections::watch(
            node.store.clone(),
            None,
            lifecycle.readiness.clone(),
            watching.clone(),
        ),
    );
    tasks.spawn(
        "months",
        months::keep(
            Arc::clone(&node),
            config.push.partitions.months_ahead,
            watching.clone(),
        ),
    );
    tasks.spawn("numbers", show(Arc::clone(&node), watching.clone()));
    let grace = config.shutdown.grace_period;
    let router_shutdown = Shutdown::new();
    let limits = ConnectionLimits::of_the_house(ROUTER_CONNECTIONS);
    let pushed = node.metrics.pushed.clone();
    let routes = Observer::new(telemetry::traces::are_on())
        .counting(move |route, status, _| {
            let is_pushed = route == router_port::PUSH && status == StatusCode::OK;
            pushed.increment(u64::from(is_pushed));
            is_pushed
        })
        .around(router_port::routes(Arc::clone(&node)).merge(health::routes(Arc::clone(&node))));
    let serving_router = http_api::serve(router, routes, limits, &router_shutdown, grace);
    let serving_clients = async {
        serve_clients(&node, settings, public, &lifecycle.shutdown, grace).await;
        router_shutdown.trigger();
    };
    tokio::join!(serving_router, serving_clients);
    watching.trigger();
    let drained = tasks.drain(LAST_WORDS).await;
    tracing::debug!(?drained, "no more tasks");
    let store = node.store.clone();
    drop(node);
    runtime::connections::close([], store).await;
    Ok(())
}

fn node(
    config: &Config,
    router: SocketAddr,
    lifecycle: &Lifecycle,
    clock: Arc<dyn Clock>,
) -> Result<Node, Error> {
    let settings = &config.webpush.connection;
    let keys: Vec<_> = config.webpush.keys.iter().map(config::Secret::expose).collect();
    let keys = Keys::parse(&keys.join(",")).map_err(Error::Keys)?;
    let registrations = NonZeroU32::new(settings.registrations_per_minute).unwrap_or(NonZeroU32::MIN);
    Ok(Node {
        name: settings
            .router_url
            .clone()
            .unwrap_or_else(|| format!("http://{router}")),
        store: runtime::connections::open_store(config, NAME)?,
        registry: Registry::default(),
        rules: Rules {
            hello_timeout: settings.hello_timeout,
            ping_interval: settings.ping_interval,
            pong_timeout: settings.pong_timeout,
            message_limit: settings.message_limit,
            most_outstanding: settings.queue_capacity,
            most_registrations: settings.max_channels,
            command_gap: Duration::from_secs(1) / settings.commands_per_second,
            command_burst: settings.command_burst,
        },
        endpoints: Endpoints::new(config.webpush.endpoint_url.clone(), keys, Arc::clone(&clock)),
        clock,
        broadcasts: ArcSwap::from_pointee(Broadcasts::default()),
        queue_capacity: settings.queue_capacity,
        max_channels: settings.max_channels,
        registrations: AddressLimit::per_minute(registrations),
        ack_wait: settings.ack_wait,
        sessions: TaskGroup::under(&lifecycle.shutdown),
        metrics: Metrics::new(),
    })
}

/// Serves user agents until the shutdown, and then sends them away. The router port goes on meanwhile, so that senders learn what
/// becomes of the messages that they handed over.
async fn serve_clients(
    node: &Arc<Node>,
    settings: &WebpushConnection,
    listener: TcpListener,
    shutdown: &Shutdown,
    grace: Duration,
) {
    let limits = ConnectionLimits {
        in_all: settings.max_connections,
        per_peer: Some(settings.max_connections_per_peer),
        trusted_proxies: settings.trusted_proxies.clone(),
    };
    // A stranger begins no trace: a connection lasts for days.
    let routes = Observer::new(false)
        .around(public_port::routes(Arc::clone(node)).merge(health::routes(Arc::clone(node))));
    let drain = settings.drain.min(grace.saturating_sub(LAST_WORDS));
    let sending_away = async {
        shutdown.cancelled().await;
        send_away(node, drain, shutdown).await;
        if let Drained::Abandoned(count) = node.sessions.drain(LAST_WORDS).await {
            tracing::warn!(
                count,
                "user agents were cut off; what they had not acknowledged is stored by its senders"
            );
        }
    };
    tokio::join!(
        http_api::serve(listener, routes, limits, shutdown, grace),
        sending_away
    );
}

/// Has the connections end one after another, so that other nodes do not get all of them at once.
async fn send_away(node: &Node, over: Duration, shutdown: &Shutdown) {
    let connections = node.registry.close();
    tracing::info!(
        count = connections.len(),
        ?over,
        "sending user agents to other nodes"
    );
    end_one_after_another(&connections, over, shutdown).await;
}

/// Between two groups of connections that are asked to end.
const STEP: Duration = Duration::from_millis(20);

async fn end_one_after_another(connections: &[Arc<Mailbox>], over: Duration, shutdown: &Shutdown) {
    let in_a_step = in_a_step(connections.len(), over);
    for some in connections.chunks(in_a_step) {
        for connection in some {
            connection.end(Close::GoingAway);
        }
        tokio::select! {
            () = shutdown.hurried() => {}
            () = tokio::time::sleep(if connections.len() > in_a_step { STEP } else { Duration::ZERO }) => {}
        }
    }
}

/// How many of `count` connections end in each step, so that the last one does in time.
fn in_a_step(count: usize, over: Duration) -> usize {
    let steps = (over.as_millis() / STEP.as_millis()).max(1);
    count.div_ceil(usize::try_from(steps).unwrap_or(1)).max(1)
}

async fn show(node: Arc<Node>, shutdown: Shutdown) {
    let mut ticks = tokio::time::interval(SHOW_INTERVAL);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let count = u32::try_from(node.registry.len()).unwrap_or(u32::MAX);
        Metric::WebpushConnections.set(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_agents_are_sent_away_spread_over_the_time_given() {
        for (count, over, expected) in [
            (0, 10_000, 1),
            (3, 10_000, 1),
            (1_000, 10_000, 2),
            (100_000, 10_000, 200),
            (100_001, 10_000, 201),
            (1_000, 0, 1_000),
        ] {
            let over = Duration::from_millis(over);
            let at_once = in_a_step(count, over);
            assert_eq!(at_once, expected, "{count} over {over:?}");
            let steps = u32::try_from(count.div_ceil(at_once)).unwrap();
            assert!(STEP * steps <= over.max(STEP), "{count} over {over:?}");
        }
    }

    /// Without the signal this would take ten minutes.
    #[tokio::test]
    async fn a_second_signal_sends_all_away_at_once() {
        let connections: Vec<Arc<Mailbox>> = (0..30_000).map(|_| Arc::default()).collect();
        let shutdown = Shutdown::new();
        shutdown.trigger();
        shutdown.hurry();
        end_one_after_another(&connections, Duration::from_secs(600), &shutdown).await;
        assert!(connections.iter().all(|it| it.is_asked_to_end()));
    }

    #[tokio::test]
    async fn a_node_that_others_could_not_find_does_not_start() {
        let mut config = Config::for_tests("postgres://localhost/push", "amqp://unused").unwrap();
        config.webpush.connection.router_listen = "0.0.0.0:0".parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let refused = run(Arc::new(config), listener, Lifecycle::default())
            .await
            .unwrap_err();
        assert!(
            refused.to_string().contains("webpush.connection.routerUrl"),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn a_node_whose_megaphone_is_away_does_not_start() {
        lifecycle::crypto::install_default_provider();
        let mut config = Config::for_tests("postgres://localhost/push", "amqp://unused").unwrap();
        let listener = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
        let free = listener().await.local_addr().unwrap();
        config.webpush.connection.megaphone_url = Some(format!("http://{free}"));
        let refused = run(Arc::new(config), listener().await, Lifecycle::default())
            .await
            .unwrap_err();
        assert!(matches!(refused, Error::Megaphone(_)), "{refused}");
    }
}
