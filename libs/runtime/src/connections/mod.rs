//! What every service is connected to, database and broker: opening them, keeping the readiness conditions about them up to
//! date, closing them.
//!
//! Watching only reports. No service stops because a condition fails; each goes on with what it can still do. While it
//! watches, a service also leaves a sign of life in the database, with what it is missing and what it has counted.

mod heartbeat;
mod report;
mod schema;
mod sharing;

use std::time::Duration;

use broker::{Broker, ConnectionState};
use config::Config;
use lifecycle::{Condition, Readiness, Shutdown, error_chain};
use store::Store;
use store::webhook::LineTerms;
use telemetry::Metric;
use tokio::task::{JoinHandle, JoinSet};

pub use schema::with_schema;
pub use sharing::share_messages;

pub use heartbeat::INTERVAL as BEAT_INTERVAL;
pub use report::{AnswerSecond, Counters, Earlier, LATELY, PaceSecond, Previous, Report, SwrveReport};

/// How often the database is asked, and for how long at most.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// How long closing the connections may take. Everything that matters is settled by then.
const CLOSING_LIMIT: Duration = Duration::from_secs(3);

/// The database settings are unusable.
#[derive(Debug, thiserror::Error)]
#[error("failed to prepare the database connection")]
pub struct OpenError(#[from] store::Error);

/// Prepares what a service named `name` is connected to. Servers that are away are connected to when they are there.
pub fn open(config: &Config, name: &str) -> Result<(Store, Broker), OpenError> {
    Ok((open_store(config, name)?, open_broker(config, name)))
}

/// A connection to the broker of its own, named `name`. A queue that does not confirm has the server stop reading from the whole
/// connection that publishes to it, so a service that publishes to several queues has one for each.
pub fn open_broker(config: &Config, name: &str) -> Broker {
    Broker::start(broker::Settings {
        url: config.amqp.url.expose().to_owned(),
        queue_prefix: config.amqp.queue_prefix.clone(),
        connection_name: name.to_owned(),
        push_queue_capacity: config.push.queue.capacity,
        reseller_queue_capacity: config.reseller.queue.capacity,
        confirm_timeout: config.amqp.confirm_timeout,
        max_unconfirmed: config.amqp.max_unconfirmed,
    })
}

/// The same for a service that needs no broker.
pub fn open_store(config: &Config, name: &str) -> Result<Store, OpenError> {
    open_store_with(config, name, config.database.max_connections)
}

/// The same with connections of the push lane's own, which nothing else in the process can take.
pub fn open_push_store(config: &Config, name: &str) -> Result<Store, OpenError> {
    open_store_with(config, name, config.database.push_connections)
}

fn open_store_with(config: &Config, name: &str, max_connections: u32) -> Result<Store, OpenError> {
    let store = Store::open(&store::Settings {
        url: config.database.url.expose().to_owned(),
        max_connections,
        lease_connections: config.database.lease_connections,
        acquire_timeout: config.database.acquire_timeout,
        application_name: session_name(name),
        line_terms: line_terms(config),
    })?;
    Ok(store)
}

/// What a service calls itself to the database. A recovery after a restore knows sessions of Postrider by how it begins.
fn session_name(service: &str) -> String {
    format!(
        "postrider-{}",
        service.strip_prefix("postrider-").unwrap_or(service)
    )
}

/// By which the lines of subscriptions move that have no limits of their own.
pub fn line_terms(config: &Config) -> LineTerms {
    let reseller = &config.reseller;
    LineTerms {
        daily_quota: reseller.subscription.daily_quota,
        requests_per_second: reseller.subscription.requests_per_second,
        zone: reseller.quota.time_zone,
        release_window: reseller.quota.release_window,
    }
}

/// Watches database and schema until shutdown, and the broker of a service that needs one.
pub async fn watch(store: Store, broker: Option<Broker>, readiness: Readiness, shutdown: Shutdown) {
    // Registered before the first probe, so that an empty list is not taken for readiness.
    let (database, schema) = (readiness.condition("database"), readiness.condition("migrations"));
    let broker = broker.map(|broker| (broker, readiness.condition("broker")));
    let watching_broker = async {
        match &broker {
            Some((broker, condition)) => watch_broker(broker, condition).await,
            None => std::future::pending().await,
        }
    };
    let watching = async {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = watch_store(&store, &database, &schema) => {}
            () = watching_broker => {}
        }
    };
    tokio::join!(
        watching,
        heartbeat::run(store.clone(), readiness.clone(), shutdown.clone())
    );
}

/// [`watch`] beside what a service serves.
#[derive(Debug)]
pub struct Watch {
    task: JoinHandle<()>,
    stop: Shutdown,
}

impl Watch {
    /// Begins it; it ends when `stop` says so.
    pub fn begin(store: &Store, broker: Option<&Broker>, readiness: Readiness, stop: Shutdown) -> Self {
        let task = tokio::spawn(watch(store.clone(), broker.cloned(), readiness, stop.clone()));
        Self { task, stop }
    }

    /// Says that it is to stop, and waits until it has taken its leave in the database.
    pub async fn end(self) {
        self.stop.trigger();
        if self.task.await.is_err() {
            tracing::error!("the watch over the connections panicked");
        }
    }
}

/// Closes what a service was connected to at its end, as far as the other side lets it.
pub async fn close(brokers: impl IntoIterator<Item = Broker>, store: Store) {
    let closed = async {
        let closing: JoinSet<()> = brokers
            .into_iter()
            .map(|broker| async move { broker.close().await })
            .collect();
        tokio::join!(closing.join_all(), store.close());
    };
    if tokio::time::timeout(CLOSING_LIMIT, closed).await.is_err() {
        tracing::debug!("the connections to broker and database were left to the operating system");
    }
}

async fn watch_store(store: &Store, database: &Condition, schema: &Condition) {
    let mut ticks = tokio::time::interval(PROBE_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        show_connections(store);
        match tokio::time::timeout(PROBE_INTERVAL * 3, store.is_migrated()).await {
            Ok(Ok(migrated)) => {
                database.ready();
                if migrated {
                    schema.ready();
                } else {
                    schema.not_ready("migrations are missing: run `postrider migrate`");
                }
            }
            Ok(Err(error)) => {
                tracing::debug!(error = error_chain(&error), "the database probe failed");
                database.not_ready(error.to_string());
            }
            Err(_) => database.not_ready("the database does not answer"),
        }
    }
}

/// Taken before the probe, which needs a connection itself.
fn show_connections(store: &Store) {
    let connections = store.connections();
    let service = connections.service.as_str();
    for (state, count) in [("busy", connections.busy), ("idle", connections.idle)] {
        Metric::DatabaseConnections.set_with(&[("service", service), ("state", state)], count);
    }
    Metric::DatabaseConnectionsMax.set_with(&[("service", service)], connections.most);
}

async fn watch_broker(broker: &Broker, condition: &Condition) {
    let mut states = broker.state();
    loop {
        let state = states.borrow_and_update().clone();
        Metric::BrokerConnected.set(f64::from(u8::from(state.is_connected())));
        let blocked = matches!(state, ConnectionState::Blocked { .. });
        Metric::BrokerBlocked.set(f64::from(u8::from(blocked)));
        match state {
            ConnectionState::Connected { .. } => condition.ready(),
            ConnectionState::Connecting { last_error: None } => condition.not_ready("connecting"),
            ConnectionState::Connecting {
                last_error: Some(error),
            } => condition.not_ready(error),
            ConnectionState::Blocked { reason, .. } => condition.not_ready(format!("blocked: {reason}")),
            ConnectionState::Closed => condition.not_ready("closed"),
        }
        if states.changed().await.is_err() {
            condition.not_ready("its supervisor has ended");
            return std::future::pending().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_session_begins_with_the_product_whatever_the_service_calls_itself() {
        for (service, session) in [
            ("ingest-api", "postrider-ingest-api"),
            ("operator-api", "postrider-operator-api"),
            ("reseller-portal", "postrider-reseller-portal"),
            ("webpush-endpoint", "postrider-webpush-endpoint"),
            ("webpush-connection", "postrider-webpush-connection"),
            ("postrider-dispatcher", "postrider-dispatcher"),
            ("postrider-retry-worker", "postrider-retry-worker"),
        ] {
            assert_eq!(session_name(service), session);
        }
    }
}
