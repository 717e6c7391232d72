//! What can be known of the servers from outside: their versions, settings and processes on this machine.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use sqlx::PgPool;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::cpu;
use crate::machine::Server;

/// The settings of RabbitMQ that decide about speed and durability, as its own control program is asked for them.
const ASK: &str = r#"lists:foreach(fun({A, K}) -> io:format("~s=~0p~n", [K, case application:get_env(A, K) of {ok, V} -> V; _ -> default end]) end,
    [{rabbit, vm_memory_high_watermark}, {rabbit, disk_free_limit}, {rabbit, cluster_partition_handling},
     {rabbit, quorum_commands_soft_limit}, {ra, wal_max_size_bytes}]),
    io:format("nodes=~p~n", [length(rabbit_nodes:all_running())])."#;

/// The processes of the servers, as far as they run here.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ServerProcesses {
    /// The parent of all backends.
    pub(crate) postgres: Option<u32>,
    pub(crate) rabbitmq: Option<u32>,
}

/// Finds the servers' processes on this machine.
pub(super) async fn processes(pool: &PgPool, amqp_url: &str) -> ServerProcesses {
    let backend: Option<i32> = sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(pool)
        .await
        .ok();
    let backend = backend.and_then(|pid| u32::try_from(pid).ok());
    // A server elsewhere tells an id that no process has here, or that another has.
    let postgres = backend
        .filter(|pid| name_of(*pid).is_some_and(|name| name.starts_with("postgres")))
        .and_then(cpu::parent_of);
    let rabbitmq = address_of(amqp_url).and_then(|address| listener(address.1));
    ServerProcesses {
        postgres,
        rabbitmq: rabbitmq.filter(|pid| name_of(*pid).is_some_and(|name| name.starts_with("beam"))),
    }
}

fn name_of(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok()
}

/// The process that listens on a port, when it may be looked into.
fn listener(port: u16) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let socket = tables.iter().find_map(|table| socket_of(table, port))?;
    let wanted = format!("socket:[{socket}]");
    cpu::all_processes().find(|pid| {
        let open = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten();
        open.filter_map(|file| fs::read_link(file.path()).ok())
            .any(|link| link == Path::new(&wanted))
    })
}

/// The inode of the socket that listens on `port`, in a table as `/proc/net/tcp` has it.
fn socket_of(table: &str, port: u16) -> Option<u64> {
    const LISTENING: &str = "0A";
    let suffix = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let listens = fields.get(1)?.ends_with(&suffix) && *fields.get(3)? == LISTENING;
        listens.then(|| fields.get(9)?.parse().ok())?
    })
}

/// Host and port of an unencrypted broker.
fn address_of(url: &str) -> Option<(String, u16)> {
    let authority = url.strip_prefix("amqp://")?.split(['/', '?']).next()?;
    let host = authority.rsplit('@').next()?;
    match host.rsplit_once(':') {
        Some((host, port)) => Some((host.to_owned(), port.parse().ok()?)),
        None if host.is_empty() => Some((Ipv4Addr::LOCALHOST.to_string(), 5672)),
        None => Some((host.to_owned(), 5672)),
    }
}

/// The broker's version, and its settings when its control program is at hand.
pub(crate) async fn rabbitmq(url: &str) -> Server {
    let greeting = greeting(url).await.unwrap_or_default();
    let said = |name| text_field(&greeting, name);
    let platform = said("platform").map_or(String::new(), |platform| format!(" on {platform}"));
    Server {
        version: said("version").map_or("of unknown version".to_owned(), |version| version + &platform),
        settings: settings().await.unwrap_or_default(),
    }
}

async fn settings() -> Option<BTreeMap<String, String>> {
    let control = std::env::var_os("RABBITMQCTL")?;
    let output = Command::new(control).args(["eval", ASK]).output().await.ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    Some(
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    )
}

/// What the broker says of itself when it is greeted. `None` when that is encrypted, or no answer at all.
async fn greeting(url: &str) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(address_of(url)?).await.ok()?;
    stream.write_all(b"AMQP\x00\x00\x09\x01").await.ok()?;
    let mut start = vec![0; 4096];
    let length = stream.read(&mut start).await.ok()?;
    start.truncate(length);
    Some(start)
}

/// A text field of the server properties in a connection.start frame.
fn text_field(frame: &[u8], name: &str) -> Option<String> {
    let mut key = vec![u8::try_from(name.len()).ok()?];
    key.extend(name.as_bytes());
    key.push(b'S');
    let at = frame.windows(key.len()).position(|bytes| bytes == key)? + key.len();
    let length = u32::from_be_bytes(frame.get(at..at + 4)?.try_into().ok()?) as usize;
    String::from_utf8(frame.get(at + 4..)?.get(..length)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brokers_version_is_found_in_its_greeting() {
        let frame = b"\x01\x00...\x07productS\x00\x00\x00\x08RabbitMQ\x07versionS\x00\x00\x00\x063.10.8\x00";
        assert_eq!(text_field(frame, "version").as_deref(), Some("3.10.8"));
        assert_eq!(text_field(&frame[..38], "version"), None);
        assert_eq!(text_field(b"HTTP/1.1 400", "version"), None);
    }

    #[test]
    fn the_brokers_address_is_found_in_its_url() {
        for (url, host, port) in [
            ("amqp://u:p@h:7/%2f", "h", 7),
            ("amqp://h", "h", 5672),
            ("amqp://u:p@h?heartbeat=3", "h", 5672),
            ("amqp://", "127.0.0.1", 5672),
        ] {
            assert_eq!(address_of(url), Some((host.to_owned(), port)));
        }
        assert_eq!(address_of("amqps://h"), None);
    }

    #[test]
    fn the_socket_of_a_port_is_the_one_that_listens() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 11 1\n\
            1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22 1\n";
        assert_eq!(socket_of(table, 8080), Some(22));
        assert_eq!(socket_of(table, 8081), None);
    }
}
