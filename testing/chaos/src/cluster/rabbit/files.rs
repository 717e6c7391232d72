//! What a node reads when it starts. All of it is private to the run: no file of the system's broker is looked at.

use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::cluster::using;

pub(super) const USER: &str = "postrider";

/// Who is where.
pub(crate) struct Plan {
    pub(super) programs: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) logs: PathBuf,
    /// Where each node listens.
    pub(super) hosts: Vec<Ipv4Addr>,
    /// `links[a][b]`: where node a finds node b.
    pub(super) links: Vec<Vec<Ipv4Addr>>,
    /// Of the name daemon.
    pub(super) names_port: u16,
    /// For clients, at every node.
    pub(super) client_port: u16,
    /// For peers, one of each node.
    pub(super) peer_ports: Vec<u16>,
    pub(super) password: String,
    pub(super) cookie: String,
}

impl Plan {
    /// What Erlang calls a node. The part before the `@` tells nodes apart at the name daemon, the part after it is a host.
    pub(super) fn name(&self, number: usize) -> String {
        format!("rabbit{number}@{}", host_name(number))
    }

    pub(super) fn node_folder(&self, number: usize) -> PathBuf {
        self.folder.join(format!("node-{number}"))
    }

    pub(super) fn control_folder(&self) -> PathBuf {
        self.folder.join("control")
    }

    pub(super) fn count(&self) -> usize {
        self.hosts.len()
    }
}

fn host_name(number: usize) -> String {
    format!("chaos{number}")
}

/// The folder of a node, with everything that it needs.
pub(super) fn write(plan: &Plan, number: usize) -> anyhow::Result<()> {
    let folder = plan.node_folder(number);
    // A node finds itself where it listens, and its peers at the near ends of links.
    let hosts = (0..plan.count()).map(|other| {
        if other == number {
            plan.hosts[number]
        } else {
            plan.links[number][other]
        }
    });
    write_home(plan, &folder, hosts)?;
    put(&folder.join("rabbitmq.conf"), &config(plan, number))
}

/// A folder for commands to nodes, which reach them without links.
pub(super) fn write_control(plan: &Plan) -> anyhow::Result<()> {
    write_home(plan, &plan.control_folder(), plan.hosts.iter().copied())
}

fn write_home(plan: &Plan, folder: &Path, hosts: impl Iterator<Item = Ipv4Addr>) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(using(folder))?;
    let cookie = folder.join(".erlang.cookie");
    put(&cookie, &plan.cookie)?;
    // Erlang refuses one that others may read.
    fs::set_permissions(&cookie, fs::Permissions::from_mode(0o400)).with_context(using(&cookie))?;
    let mut names = String::from("{lookup, [file]}.\n{host, {127,0,0,1}, [\"localhost\"]}.\n");
    for (number, host) in hosts.enumerate() {
        let _ = writeln!(names, "{{host, {}, [\"{}\"]}}.", erlang(host), host_name(number));
    }
    put(&folder.join("inetrc"), &names)
}

/// An address as Erlang writes it.
pub(super) fn erlang(host: Ipv4Addr) -> String {
    let [a, b, c, d] = host.octets();
    format!("{{{a},{b},{c},{d}}}")
}

/// A write-ahead log of 64 MiB instead of 512 keeps the memory of quorum queues low; limits are absolute, since the machine is
/// shared. Peers that fall silent are given up after 8 seconds instead of a minute, so that a short fault shows its effect.
fn config(plan: &Plan, number: usize) -> String {
    let mut config = format!(
        "listeners.tcp.1 = {}:{}\n\
         default_user = {USER}\n\
         default_pass = {}\n\
         default_user_tags.administrator = true\n\
         disk_free_limit.absolute = 50MB\n\
         vm_memory_high_watermark.absolute = 1GB\n\
         raft.wal_max_size_bytes = 67108864\n\
         cluster_name = chaos\n\
         net_ticktime = 8\n",
        plan.hosts[number], plan.client_port, plan.password
    );
    if plan.count() > 1 {
        config.push_str(
            "cluster_partition_handling = pause_minority\ncluster_formation.peer_discovery_backend = classic_config\n",
        );
        for peer in 0..plan.count() {
            let _ = writeln!(
                config,
                "cluster_formation.classic_config.nodes.{} = {}",
                peer + 1,
                plan.name(peer)
            );
        }
    }
    config
}

fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(using(path))
}
