//! From a layout to everything running and ready.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use tokio_util::task::TaskTracker;

use super::clock::Clocks;
use super::links::Links;
use super::net::Net;
use super::postgres::Postgres;
use super::rabbit::Broker;
use super::services::{self, Admins, Process, SETTINGS};
use super::supervisor::{Deaths, Supervisor, programs};
use super::{Cluster, End, Layout, Replica, Service, http, tool, using, wait};

/// The host of the database in the corner of the cluster.
const POSTGRES_HOST: u8 = 2;

impl Cluster {
    /// Starts everything and waits until it is ready.
    pub async fn start(layout: Layout) -> anyhow::Result<Self> {
        let logs = layout.folder.join("logs");
        std::fs::create_dir_all(&logs).with_context(using(&logs))?;
        let (net, deaths, mut links) = (Net::reserve()?, Deaths::default(), Links::default());
        let clocks = Arc::new(Clocks::create(
            layout.folder.join("clocks"),
            layout.replicas.all(),
        )?);
        let rabbit = layout.folder.join("rabbit");
        let broker = Broker::start(&rabbit, &logs, layout.broker_nodes, &net, &mut links, &deaths).await?;
        let postgres = Postgres::create(
            layout.folder.join("postgres"),
            logs.join("postgres.log"),
            net.host(POSTGRES_HOST),
            &net,
        );
        let postgres = Arc::new(postgres.await?);
        let postgres_process = Supervisor::start(postgres.clone(), deaths.clone());
        postgres.make_database().await?;
        lay(&mut links, &layout, &postgres, &broker).await?;
        let mut cluster = Self {
            postgres_url: postgres.url(postgres.address()),
            layout,
            services: BTreeMap::new(),
            admins: Admins::default(),
            clocks,
            links: Arc::new(links),
            postgres,
            postgres_process,
            broker: Arc::new(broker),
            deaths,
            healing: Mutex::default(),
            cures: TaskTracker::new(),
            _net: net,
        };
        tool::output(cluster.command(&["migrate"])).await?;
        cluster.broker.ready().await?;
        cluster.start_services();
        cluster.ready().await?;
        Ok(cluster)
    }

    fn start_services(&mut self) {
        for replica in self.layout.replicas.all() {
            let process = Process {
                replica,
                postrider: self.layout.postrider.clone(),
                log: self.log(replica),
                settings: self.settings(replica),
                clocks: self.clocks.clone(),
                links: self.links.clone(),
                admins: self.admins.clone(),
            };
            let supervisor = Supervisor::start(Arc::new(process), self.deaths.clone());
            self.services.insert(replica, supervisor);
        }
    }

    /// What leads a replica over its links, and what the layout wants.
    fn settings(&self, replica: Replica) -> Vec<(String, String)> {
        let here = End::Replica(replica);
        let mut settings = own_settings();
        for address in self.links.addresses(here, End::Postgres) {
            settings.push(("DATABASE_URL".to_owned(), self.postgres.url(address)));
        }
        for address in self.links.addresses(here, End::Swrve) {
            settings.push(("POSTRIDER__SWRVE__URL".to_owned(), format!("http://{address}")));
        }
        for address in self.links.addresses(End::EndpointNodes, here) {
            settings.push((
                "POSTRIDER__WEBPUSH__CONNECTION__ROUTER_URL".to_owned(),
                format!("http://{address}"),
            ));
        }
        let nodes =
            (0..self.broker.count()).flat_map(|node| self.links.addresses(here, End::BrokerNode(node)));
        let urls: Vec<String> = nodes.map(|address| self.broker.url(address)).collect();
        settings.push(("AMQP_URL".to_owned(), urls.join(",")));
        settings.extend(self.layout.settings.clone());
        settings.extend((self.layout.replica_settings)(replica, &self.layout.folder));
        settings
    }

    /// Waits until everything runs and says that it can do its work.
    pub(super) async fn ready(&self) -> anyhow::Result<()> {
        wait::until("the database", async || self.postgres.answers().await).await?;
        self.broker.ready().await?;
        for replica in self.services.keys() {
            wait::until(&format!("{replica} to be ready"), async || {
                match self.admin(*replica) {
                    Some(address) => http::is_ready(address).await,
                    None => false,
                }
            })
            .await?;
        }
        Ok(())
    }
}

/// Every link between services, what they use and who calls them.
async fn lay(links: &mut Links, layout: &Layout, postgres: &Postgres, broker: &Broker) -> anyhow::Result<()> {
    for receiver in &layout.receivers {
        links.lay(End::Clients, End::Receivers, Some(*receiver)).await?;
    }
    for replica in layout.replicas.all() {
        let here = End::Replica(replica);
        links.lay(here, End::Postgres, Some(postgres.address())).await?;
        for node in 0..broker.count() {
            links
                .lay(here, End::BrokerNode(node), Some(broker.address(node)))
                .await?;
        }
        if replica.service == Service::Dispatcher {
            links.lay(here, End::Swrve, Some(layout.swrve)).await?;
        }
        if services::listens(replica.service) {
            // Leads there once the replica has said where it listens.
            links.lay(End::Clients, here, None).await?;
        }
        if replica.service == Service::WebpushConnection {
            links.lay(End::EndpointNodes, here, None).await?;
        }
    }
    Ok(())
}

fn own_settings() -> Vec<(String, String)> {
    let settings = SETTINGS.iter();
    settings
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// See [`Cluster::command`].
pub(super) fn tool(layout: &Layout, postgres: &str, brokers: &[String], arguments: &[&str]) -> Command {
    let mut command = Command::new(&layout.postrider);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", programs())
        .envs(own_settings())
        .env("DATABASE_URL", postgres)
        .env("AMQP_URL", brokers.join(","))
        .env("POSTRIDER__SWRVE__URL", format!("http://{}", layout.swrve))
        .envs(layout.settings.iter().map(|(name, value)| (name, value)))
        // A tool runs once, beside brokers that start: it has more patience than a service needs.
        .env("POSTRIDER__DATABASE__ACQUIRE_TIMEOUT_MILLIS", "60000");
    command
}
