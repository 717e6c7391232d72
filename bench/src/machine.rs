//! The machine and the servers, in a paragraph: what a number is worth without them is nothing. It names no host and no
//! path.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::cpu;
use crate::rig::Rig;

/// For how long the machine is watched before anything is started.
const WATCHED: Duration = Duration::from_secs(2);
/// The share of the machine that may be busy with other work before that is mentioned.
const QUIET: f64 = 0.05;

/// One line on hardware, kernel, servers and the settings that durability depends on.
pub(crate) async fn describe(rig: &Rig) -> Result<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = field(&read("/proc/cpuinfo"), "model name").unwrap_or("unknown processor".to_owned());
    let memory = field(&read("/proc/meminfo"), "MemTotal")
        .and_then(|text| text.strip_suffix("kB")?.trim().parse::<f64>().ok())
        .map_or("unknown".to_owned(), |kilobytes| {
            format!("{:.0} GB", kilobytes * 1024.0 / 1e9)
        });
    let kernel = read("/proc/sys/kernel/osrelease");
    let (version, fsync, commit): (String, String, String) = sqlx::query_as(
        "SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')",
    )
    .fetch_one(&rig.pool)
    .await?;
    let broker = broker_version(&rig.amqp_url)
        .await
        .unwrap_or("of unknown version".to_owned());
    let others = others_share(cores).await;
    let disturbed = if others > QUIET {
        format!(
            " Other work took {:.0} % of it before the start: the numbers are disturbed.",
            others * 100.0
        )
    } else {
        String::new()
    };
    Ok(format!(
        "{cores} cores of {processor}, {memory} of memory, Linux {kernel}; PostgreSQL {version} with fsync={fsync} and \
         synchronous_commit={commit}; RabbitMQ {broker}. Servers, services, load generator and simulator share the \
         machine.{disturbed}",
        kernel = kernel.trim(),
    ))
}

/// The share of all cores that is busy while this program does nothing.
async fn others_share(cores: usize) -> f64 {
    let before = cpu::time_of_machine();
    tokio::time::sleep(WATCHED).await;
    let busy = cpu::time_of_machine().saturating_sub(before);
    busy.as_secs_f64() / WATCHED.as_secs_f64() / cores.max(1) as f64
}

/// The value of the first `name : value` line.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// What the broker says of itself when it is greeted. `None` when that is encrypted, or no answer at all.
async fn broker_version(url: &str) -> Option<String> {
    let authority = url.strip_prefix("amqp://")?.split('/').next()?;
    let host = authority.rsplit('@').next()?;
    let address = if host.contains(':') {
        host.to_owned()
    } else {
        format!("{host}:5672")
    };
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(b"AMQP\x00\x00\x09\x01").await.ok()?;
    let mut start = vec![0; 4096];
    let length = stream.read(&mut start).await.ok()?;
    version_in(&start[..length])
}

/// The text field `version` of the server properties in a connection.start frame.
fn version_in(frame: &[u8]) -> Option<String> {
    const FIELD: &[u8] = b"\x07versionS";
    let at = frame.windows(FIELD.len()).position(|bytes| bytes == FIELD)? + FIELD.len();
    let length = u32::from_be_bytes(frame.get(at..at + 4)?.try_into().ok()?) as usize;
    String::from_utf8(frame.get(at + 4..)?.get(..length)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brokers_version_is_found_in_its_greeting() {
        let frame = b"\x01\x00...\x07productS\x00\x00\x00\x08RabbitMQ\x07versionS\x00\x00\x00\x063.10.8\x00";
        assert_eq!(version_in(frame).as_deref(), Some("3.10.8"));
        assert_eq!(version_in(&frame[..38]), None);
        assert_eq!(version_in(b"HTTP/1.1 400"), None);
    }

    #[test]
    fn the_first_field_of_a_name_is_taken() {
        let text = "processor\t: 0\nmodel name\t: A Processor\nmodel name\t: Another\n";
        assert_eq!(field(text, "model name").as_deref(), Some("A Processor"));
        assert_eq!(field(text, "MemTotal"), None);
    }
}
