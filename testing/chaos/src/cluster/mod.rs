//! Everything that runs, and what can be done to it: a private PostgreSQL, a cluster of RabbitMQ nodes, the services as processes of
//! their own, and a link between any two of them that can be cut. What flows through it, and what must come of it, is not known here.

mod clock;
mod fault;
mod http;
mod inject;
mod layout;
mod links;
mod log;
mod net;
mod postgres;
mod rabbit;
mod services;
mod start;
mod supervisor;
mod tool;
mod wait;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use fault::{ClusterFault, End, Replica, Service};
pub use inject::Injected;
pub use layout::{Layout, Replicas};

use clock::Clocks;
use links::Links;
use net::Net;
use postgres::Postgres;
use rabbit::Broker;
use services::Admins;
use supervisor::{Deaths, Supervisor};

/// An end of a process that the run had not asked for: a failure.
#[derive(Clone, Debug)]
pub struct Death {
    /// Whose: a replica, `postgres` or `rabbit-1`.
    pub process: String,
    /// When.
    pub at: SystemTime,
    /// How it ended.
    pub status: String,
    /// The last lines of its log.
    pub log_tail: String,
}

/// Everything that runs. Dropped without having been stopped, it kills what is left.
pub struct Cluster {
    layout: Layout,
    // Services go first when the cluster is dropped, so that they do not complain.
    services: BTreeMap<Replica, Supervisor>,
    admins: Admins,
    clocks: Arc<Clocks>,
    links: Arc<Links>,
    postgres: Arc<Postgres>,
    postgres_url: String,
    postgres_process: Supervisor,
    broker: Arc<Broker>,
    deaths: Deaths,
    /// Ends every fault of now.
    healing: Mutex<CancellationToken>,
    cures: TaskTracker,
    _net: Net,
}

impl Cluster {
    /// The database, without a link in between.
    pub fn postgres_url(&self) -> &str {
        &self.postgres_url
    }

    /// The broker, without a link in between: one URL per node.
    pub fn amqp_urls(&self) -> Vec<String> {
        let nodes = 0..self.broker.count();
        nodes
            .map(|node| self.broker.url(self.broker.address(node)))
            .collect()
    }

    /// The replicas of ingest-api, as clients reach them.
    pub fn ingest(&self) -> Vec<SocketAddr> {
        self.doors(Service::IngestApi)
    }

    /// The replicas of reseller-portal, as clients reach them.
    pub fn portal(&self) -> Vec<SocketAddr> {
        self.doors(Service::ResellerPortal)
    }

    /// The replicas of operator-api, as clients reach them.
    pub fn operator(&self) -> Vec<SocketAddr> {
        self.doors(Service::OperatorApi)
    }

    /// The replicas of webpush-endpoint, as senders reach them.
    pub fn webpush_endpoints(&self) -> Vec<SocketAddr> {
        self.doors(Service::WebpushEndpoint)
    }

    /// The replicas of webpush-connection, as user agents reach them.
    pub fn webpush_connections(&self) -> Vec<SocketAddr> {
        self.doors(Service::WebpushConnection)
    }

    fn doors(&self, service: Service) -> Vec<SocketAddr> {
        let replicas =
            (0..self.layout.replicas.of(service)).map(|index| End::Replica(service.replica(index)));
        replicas
            .flat_map(|replica| self.links.addresses(End::Clients, replica))
            .collect()
    }

    /// The endpoints of resellers as the services reach them, in the order of the layout: what URLs of subscriptions must name.
    pub fn receivers(&self) -> Vec<SocketAddr> {
        self.links.addresses(End::Clients, End::Receivers)
    }

    /// The listener for `/readyz` and `/metrics` of a replica, without a link in between; `None` while it is down or starts.
    pub fn admin(&self, replica: Replica) -> Option<SocketAddr> {
        self.admins.of(replica)
    }

    /// The process of a replica; `None` while it is down.
    pub fn pid(&self, replica: Replica) -> Option<u32> {
        let pid = self.services.get(&replica)?.pid()?;
        Some(pid.as_raw_nonzero().get().unsigned_abs())
    }

    /// How many replicas of a service there are.
    pub fn replicas(&self, service: Service) -> usize {
        self.layout.replicas.of(service)
    }

    /// The log of a replica, over all its incarnations.
    pub fn log(&self, replica: Replica) -> PathBuf {
        services::log(&self.layout.folder, replica)
    }

    /// A tool of the binary, with the environment of the services, directly to the database and the broker, with a true clock.
    pub fn command(&self, arguments: &[&str]) -> Command {
        start::tool(&self.layout, &self.postgres_url, &self.amqp_urls(), arguments)
    }

    /// The messages of each queue.
    pub async fn queue_depths(&self) -> anyhow::Result<Vec<(String, u64)>> {
        self.broker.depths().await
    }

    /// Which node of the broker leads a queue; `None` when no node that answers does.
    pub async fn queue_leader(&self, queue: &str) -> Option<usize> {
        self.broker.leader(queue).await
    }

    /// Ends that the run had not asked for, so far.
    pub fn deaths(&self) -> Vec<Death> {
        self.deaths.all()
    }

    /// Stops everything in good order; a service that does not end cleanly is an error.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.healing
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .cancel();
        let services = futures::future::join_all(self.services.values().map(Supervisor::retire)).await;
        self.broker.retire().await?;
        self.postgres_process.retire().await?;
        self.postgres.clear_away()?;
        services.into_iter().collect()
    }
}

/// What is done with a file, for when it fails.
fn using(path: &Path) -> impl FnOnce() -> String {
    move || format!("failed to use {}", path.display())
}
