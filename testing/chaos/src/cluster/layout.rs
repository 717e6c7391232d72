//! What a cluster consists of.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Replica, Service};

/// How many replicas of each service there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas {
    /// `ingest-api`
    pub ingest_api: usize,
    /// `dispatcher`
    pub dispatcher: usize,
    /// `retry-worker`
    pub retry_worker: usize,
    /// `reseller-portal`
    pub reseller_portal: usize,
    /// `operator-api`
    pub operator_api: usize,
    /// `webpush-endpoint`
    pub webpush_endpoint: usize,
    /// `webpush-connection`
    pub webpush_connection: usize,
}

impl Default for Replicas {
    fn default() -> Self {
        Self {
            ingest_api: 2,
            dispatcher: 2,
            retry_worker: 2,
            reseller_portal: 1,
            operator_api: 1,
            webpush_endpoint: 2,
            webpush_connection: 2,
        }
    }
}

impl Replicas {
    /// Each replica once.
    pub fn all(self) -> impl Iterator<Item = Replica> {
        Service::ALL
            .into_iter()
            .flat_map(move |service| (0..self.of(service)).map(move |index| service.replica(index)))
    }

    /// How many there are of a service.
    pub const fn of(self, service: Service) -> usize {
        match service {
            Service::IngestApi => self.ingest_api,
            Service::Dispatcher => self.dispatcher,
            Service::RetryWorker => self.retry_worker,
            Service::ResellerPortal => self.reseller_portal,
            Service::OperatorApi => self.operator_api,
            Service::WebpushEndpoint => self.webpush_endpoint,
            Service::WebpushConnection => self.webpush_connection,
        }
    }
}

/// What [`super::Cluster::start`] starts.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The binary of the services.
    pub postrider: PathBuf,
    /// Where data and logs go; made when it is not there, never removed.
    pub folder: PathBuf,
    /// How many of each service.
    pub replicas: Replicas,
    /// How many nodes the broker has: 1 or 3.
    pub broker_nodes: usize,
    /// Where the Swrve simulator listens.
    pub swrve: SocketAddr,
    /// Where the endpoints of resellers listen.
    pub receivers: Vec<SocketAddr>,
    /// Variables of the environment of every service.
    pub settings: Vec<(String, String)>,
    /// More of them, for one replica.
    pub replica_settings: fn(Replica, &std::path::Path) -> Vec<(String, String)>,
}
