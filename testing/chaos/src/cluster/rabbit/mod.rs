//! The private broker: nodes with names, ports, cookies and data of their own, joined to a cluster over links that can be cut.

mod control;
mod files;
mod names;
mod node;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use tokio::time::Instant;

use super::links::Links;
use super::net::Net;
use super::supervisor::{Deaths, Program, Supervisor};
use super::{End, tool, wait};

use files::Plan;
use names::Names;
use node::Node;

pub(crate) use control::Alarm;

/// Hosts of the corner: nodes from here on.
const FIRST_NODE: u8 = 10;
/// Links between nodes from here on, ten for each node that connects.
const FIRST_LINK: u8 = 100;
/// How long a node may take to come back. After a partition, RabbitMQ 3.10 can wait for the tables of its peers for ever although they
/// run; nodes that are slow to start must not be taken for such ones.
const STUCK_AFTER: Duration = Duration::from_secs(150);
const PROGRAMS: [&str; 3] = ["/usr/lib/rabbitmq/bin", "/usr/local/sbin", "/opt/rabbitmq/sbin"];

pub(crate) struct Broker {
    plan: Arc<Plan>,
    _names: Supervisor,
    _relays: Vec<Names>,
    nodes: Vec<Supervisor>,
}

/// The daemon that tells nodes each other's ports. They would start one themselves, which the run could not end again.
struct Epmd {
    plan: Arc<Plan>,
}

impl Program for Epmd {
    fn name(&self) -> String {
        "epmd".to_owned()
    }

    fn log(&self) -> PathBuf {
        self.plan.logs.join("epmd.log")
    }

    fn command(&self) -> Command {
        let hosts: Vec<String> = self.plan.hosts.iter().map(Ipv4Addr::to_string).collect();
        let mut command = Command::new("epmd");
        command
            .args(["-port", &self.plan.names_port.to_string()])
            .args(["-address", &hosts.join(",")]);
        command
    }
}

impl Broker {
    /// Starts the nodes, which find each other; does not wait for them.
    pub(crate) async fn start(
        folder: &Path,
        logs: &Path,
        count: usize,
        net: &Net,
        links: &mut Links,
        deaths: &Deaths,
    ) -> anyhow::Result<Self> {
        anyhow::ensure!([1, 3].contains(&count), "a broker has 1 or 3 nodes, not {count}");
        let plan = Arc::new(plan(folder, logs, count, net)?);
        let mut relays = Vec::new();
        for from in 0..count {
            for to in (0..count).filter(|to| *to != from) {
                relays.push(link(&plan, links, from, to).await?);
            }
            files::write(&plan, from)?;
        }
        files::write_control(&plan)?;
        let names = Supervisor::start(Arc::new(Epmd { plan: plan.clone() }), deaths.clone());
        wait::until("the name daemon of the broker", async || {
            std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, plan.names_port)).is_ok()
        })
        .await?;
        let nodes = (0..count).map(|number| {
            let node = Node {
                plan: plan.clone(),
                number,
            };
            Supervisor::start(Arc::new(node), deaths.clone())
        });
        Ok(Self {
            nodes: nodes.collect(),
            plan,
            _names: names,
            _relays: relays,
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn node(&self, number: usize) -> Option<&Supervisor> {
        self.nodes.get(number)
    }

    /// Where a node takes clients.
    pub(crate) fn address(&self, number: usize) -> SocketAddr {
        (self.plan.hosts[number], self.plan.client_port).into()
    }

    /// A node, reached at `address`.
    pub(crate) fn url(&self, address: SocketAddr) -> String {
        format!("amqp://{}:{}@{address}/%2f", files::USER, self.plan.password)
    }

    /// Waits until every node runs and knows all others, takes clients, and no alarm is left. A node that does not come back by
    /// itself is started again, as a supervisor would do.
    pub(crate) async fn ready(&self) -> anyhow::Result<()> {
        for number in 0..self.count() {
            let mut stuck_at = Instant::now() + STUCK_AFTER;
            wait::until(&format!("rabbit-{number} to be one of the cluster"), async || {
                let whole = self.is_whole(number).await;
                if !whole && Instant::now() >= stuck_at {
                    self.restart_absent();
                    stuck_at = Instant::now() + STUCK_AFTER;
                }
                whole
            })
            .await?;
        }
        Ok(())
    }

    fn restart_absent(&self) {
        for (number, node) in self.nodes.iter().enumerate() {
            if !self.takes_clients(number) {
                node.kill();
            }
        }
    }

    fn takes_clients(&self, number: usize) -> bool {
        std::net::TcpStream::connect(self.address(number)).is_ok()
    }

    async fn is_whole(&self, number: usize) -> bool {
        // Costs less than asking, and is false for most of the time.
        if !self.takes_clients(number) {
            return false;
        }
        let Ok(status) = self.status(number).await else {
            return false;
        };
        let running = status["running_nodes"].as_array().map_or(0, Vec::len);
        running == self.count() && status["alarms"].as_array().is_none_or(Vec::is_empty)
    }

    async fn status(&self, number: usize) -> anyhow::Result<Value> {
        self.ask(number, &["cluster_status"]).await
    }

    /// The messages of each queue.
    pub(crate) async fn depths(&self) -> anyhow::Result<Vec<(String, u64)>> {
        let mut depths = Vec::new();
        for number in 0..self.count() {
            depths.extend(self.led_by(number).await?);
        }
        Ok(depths)
    }

    /// Which node leads a queue; `None` when no node that answers does.
    pub(crate) async fn leader(&self, queue: &str) -> Option<usize> {
        for number in 0..self.count() {
            let led = self.led_by(number).await.unwrap_or_default();
            if led.iter().any(|(name, _)| name == queue) {
                return Some(number);
            }
        }
        None
    }

    /// The queues that a node leads, and the messages that wait in them. A list of all queues would be gathered by nodes that cannot reach the
    /// asking tool: over their links they find each other, and nothing else. What is not ready is with a consumer; RabbitMQ 3.10 keeps some of it
    /// for consumers that a partition has taken away, where it does no harm, since a message is a hint.
    async fn led_by(&self, number: usize) -> anyhow::Result<Vec<(String, u64)>> {
        let queues = self
            .ask(number, &["list_queues", "--local", "name", "messages_ready"])
            .await?;
        let queues = queues.as_array().into_iter().flatten();
        Ok(queues
            .filter_map(|queue| {
                Some((
                    queue["name"].as_str()?.to_owned(),
                    queue["messages_ready"].as_u64()?,
                ))
            })
            .collect())
    }

    async fn ask(&self, number: usize, question: &[&str]) -> anyhow::Result<Value> {
        let words = [question, &["--silent", "--formatter", "json"]].concat();
        let output = self.control(number, &words).await?;
        let said = || {
            format!(
                "rabbitmqctl {} printed what is not understood: {output}",
                question.join(" ")
            )
        };
        serde_json::from_str(&output).with_context(said)
    }

    async fn control(&self, number: usize, words: &[&str]) -> anyhow::Result<String> {
        let mut command = control::command(&self.plan, number);
        command.args(words);
        tool::output(command).await
    }

    /// Ends all nodes, those that would stay without the others last of all together.
    pub(crate) async fn retire(&self) -> anyhow::Result<()> {
        futures::future::try_join_all(self.nodes.iter().map(Supervisor::retire)).await?;
        Ok(())
    }
}

/// What one node uses to reach another: where it asks for the port, and where it is sent.
async fn link(plan: &Plan, links: &mut Links, from: usize, to: usize) -> anyhow::Result<Names> {
    let (one, other) = (End::BrokerNode(from), End::BrokerNode(to));
    let near = plan.links[from][to];
    let peer = SocketAddr::from((plan.hosts[to], plan.peer_ports[to]));
    let door = links.lay_at(one, other, (near, 0).into(), Some(peer)).await?;
    let daemon = SocketAddr::from((plan.hosts[to], plan.names_port));
    let names = Names::telling(door.port(), daemon).await?;
    let asked_at = SocketAddr::from((near, plan.names_port));
    links.lay_at(one, other, asked_at, Some(names.address)).await?;
    Ok(names)
}

fn plan(folder: &Path, logs: &Path, count: usize, net: &Net) -> anyhow::Result<Plan> {
    let hosts: Vec<Ipv4Addr> = (FIRST_NODE..).take(count).map(|host| net.host(host)).collect();
    let links: Vec<Vec<Ipv4Addr>> = (FIRST_LINK..)
        .step_by(10)
        .take(count)
        .map(|first| (first..).take(count).map(|host| net.host(host)).collect())
        .collect();
    let everywhere: Vec<Ipv4Addr> = hosts.iter().chain(links.iter().flatten()).copied().collect();
    let mut peer_ports = Vec::new();
    while peer_ports.len() < count {
        // A node does not start while its port is used at any address of the host.
        let port = net.free_port(&[Ipv4Addr::UNSPECIFIED])?;
        if !peer_ports.contains(&port) {
            peer_ports.push(port);
        }
    }
    let local = [everywhere, vec![Ipv4Addr::LOCALHOST]].concat();
    Ok(Plan {
        programs: PROGRAMS
            .iter()
            .map(PathBuf::from)
            .find(|programs| programs.join("rabbitmq-server").exists())
            .context("RabbitMQ is not installed: apt-get install rabbitmq-server")?,
        folder: folder.to_owned(),
        logs: logs.to_owned(),
        names_port: net.free_port(&local)?,
        client_port: net.free_port(&hosts)?,
        password: format!("{:032x}", rand::random::<u128>()),
        cookie: format!("{:032x}", rand::random::<u128>()),
        hosts,
        links,
        peer_ports,
    })
}
