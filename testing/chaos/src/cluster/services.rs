//! The services as processes, each behind links of its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::clock::Clocks;
use super::links::Links;
use super::log::Log;
use super::supervisor::Program;
use super::{End, Replica, Service};

const BETWEEN: Duration = Duration::from_millis(20);
const ADMIN_LINE: &str = "serving /healthz, /readyz and /metrics";
const LISTEN_LINE: &str = "listening";
const ROUTER_LINE: &str = "serving user agents";

/// Variables that every service gets. Ports are taken at each start.
pub(crate) const SETTINGS: [(&str, &str); 9] = [
    ("POSTRIDER__INGEST__LISTEN", "127.0.0.1:0"),
    ("POSTRIDER__PORTAL__LISTEN", "127.0.0.1:0"),
    ("POSTRIDER__OPERATOR__LISTEN", "127.0.0.1:0"),
    ("POSTRIDER__WEBPUSH__ENDPOINT__LISTEN", "127.0.0.1:0"),
    ("POSTRIDER__WEBPUSH__CONNECTION__LISTEN", "127.0.0.1:0"),
    ("POSTRIDER__WEBPUSH__CONNECTION__ROUTER_LISTEN", "127.0.0.1:0"),
    ("POSTRIDER__ADMIN__LISTEN", "127.0.0.1:0"),
    ("POSTRIDER__TELEMETRY__LOG_FORMAT", "json"),
    ("POSTRIDER__RESELLER__EGRESS__ALLOW_NETWORKS", "127.0.0.0/8"),
];

/// Where replicas serve `/readyz`, while they are up.
#[derive(Clone, Default)]
pub(crate) struct Admins(Arc<Mutex<BTreeMap<Replica, SocketAddr>>>);

impl Admins {
    pub(crate) fn of(&self, replica: Replica) -> Option<SocketAddr> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&replica)
            .copied()
    }

    fn put(&self, replica: Replica, address: Option<SocketAddr>) {
        let mut admins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match address {
            Some(address) => admins.insert(replica, address),
            None => admins.remove(&replica),
        };
    }
}

pub(crate) struct Process {
    pub(crate) replica: Replica,
    pub(crate) postrider: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) clocks: Arc<Clocks>,
    pub(crate) links: Arc<Links>,
    pub(crate) admins: Admins,
}

impl Program for Process {
    fn name(&self) -> String {
        self.replica.to_string()
    }

    fn log(&self) -> PathBuf {
        self.log.clone()
    }

    fn command(&self) -> Command {
        self.admins.put(self.replica, None);
        let mut command = Command::new(&self.postrider);
        command.args(["serve", self.replica.service.name()]);
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        self.clocks.show(self.replica, &mut command);
        command
    }

    /// Every incarnation listens at other ports: finds them, and leads its callers there.
    async fn beside(&self, log: Log) {
        let replica = self.replica;
        self.admins.put(replica, Some(said(&log, ADMIN_LINE).await));
        if listens(replica.service) {
            let address = said(&log, LISTEN_LINE).await;
            self.links.lead(End::Clients, End::Replica(replica), address);
        }
        if replica.service == Service::WebpushConnection {
            let address = said(&log, ROUTER_LINE).await;
            self.links
                .lead(End::EndpointNodes, End::Replica(replica), address);
        }
    }
}

async fn said(log: &Log, message: &str) -> SocketAddr {
    loop {
        if let Some(address) = log.address(message) {
            return address;
        }
        tokio::time::sleep(BETWEEN).await;
    }
}

/// Whether it has callers.
pub(crate) const fn listens(service: Service) -> bool {
    matches!(
        service,
        Service::IngestApi
            | Service::ResellerPortal
            | Service::OperatorApi
            | Service::WebpushEndpoint
            | Service::WebpushConnection
    )
}

pub(crate) fn log(folder: &Path, replica: Replica) -> PathBuf {
    folder.join("logs").join(format!("{replica}.log"))
}
