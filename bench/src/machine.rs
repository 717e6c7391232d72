//! The machine and the servers: what a number is worth without them is nothing. It names no host and no path.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::cpu;
use crate::rig::{Rig, servers};

/// For how long the machine is watched before anything is started.
const WATCHED: Duration = Duration::from_secs(2);
/// The share of the machine that may be busy with other work before that is a warning.
const QUIET: f64 = 0.05;
/// The settings of PostgreSQL that decide about speed and durability.
const SETTINGS: [&str; 14] = [
    "autovacuum",
    "autovacuum_naptime",
    "checkpoint_timeout",
    "commit_delay",
    "effective_cache_size",
    "fsync",
    "full_page_writes",
    "max_connections",
    "max_wal_size",
    "shared_buffers",
    "synchronous_commit",
    "wal_compression",
    "wal_level",
    "work_mem",
];

/// Hardware, kernel, servers, and whether anything else ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) processor: String,
    pub(crate) memory_gigabytes: f64,
    pub(crate) kernel: String,
    pub(crate) postgres: Server,
    pub(crate) rabbitmq: Server,
    /// Processes that were ready to run, on average over 1, 5 and 15 minutes before the start.
    pub(crate) load: String,
    /// The share of all cores that others took just before the start.
    pub(crate) others: f64,
    /// Whether that was too much for numbers to be trusted.
    pub(crate) disturbed: bool,
}

/// A server's version, and the settings that matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Server {
    pub(crate) version: String,
    pub(crate) settings: BTreeMap<String, String>,
}

impl Machine {
    /// Looks at everything. Takes a moment, in which nothing of this run may be going on.
    pub(crate) async fn look(rig: &Rig) -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let memory = field(&read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.strip_suffix("kB")?.trim().parse::<f64>().ok())
            .map_or(0.0, |kilobytes| (kilobytes * 1024.0 / 1e9).round());
        let load = read("/proc/loadavg");
        let others = others_share(cores).await;
        Ok(Self {
            cores,
            processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or("unknown processor".to_owned()),
            memory_gigabytes: memory,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            postgres: postgres(rig).await?,
            rabbitmq: servers::rabbitmq(&rig.amqp_url).await,
            load: load
                .split_ascii_whitespace()
                .take(3)
                .collect::<Vec<_>>()
                .join(" "),
            others: (others * 1_000.0).round() / 1_000.0,
            disturbed: others > QUIET,
        })
    }

    /// What numbers of two runs need to have in common.
    pub(crate) fn hardware(&self) -> (usize, &str, f64, &str) {
        (self.cores, &self.processor, self.memory_gigabytes, &self.kernel)
    }

    pub(crate) fn servers(&self) -> (&Server, &Server) {
        (&self.postgres, &self.rabbitmq)
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cores of {}, {:.0} GB of memory, Linux {}. PostgreSQL {}. RabbitMQ {}. Servers, services, load generator and \
             simulator share the machine. Load average at the start: {}.",
            self.cores,
            self.processor,
            self.memory_gigabytes,
            self.kernel,
            self.postgres,
            self.rabbitmq,
            self.load
        )?;
        if self.disturbed {
            let percent = self.others * 100.0;
            write!(
                f,
                "\n\n**Other work took {percent:.0} % of the machine before the start: the numbers are disturbed.**"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.version)?;
        for (index, (name, value)) in self.settings.iter().enumerate() {
            write!(f, "{} {name}={value}", if index == 0 { " with" } else { "," })?;
        }
        Ok(())
    }
}

async fn postgres(rig: &Rig) -> Result<Server> {
    let version: String = sqlx::query_scalar("SELECT current_setting('server_version')")
        .fetch_one(&rig.pool)
        .await?;
    let settings: Vec<(String, String)> =
        sqlx::query_as("SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY ($1)")
            .bind(&SETTINGS[..])
            .fetch_all(&rig.pool)
            .await?;
    Ok(Server {
        version,
        settings: settings.into_iter().collect(),
    })
}

/// The share of all cores that is busy while this program does nothing.
async fn others_share(cores: usize) -> f64 {
    let before = cpu::of_machine();
    tokio::time::sleep(WATCHED).await;
    let busy = cpu::of_machine().since(before).total();
    busy / WATCHED.as_secs_f64() / cores.max(1) as f64
}

/// The value of the first `name : value` line.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_field_of_a_name_is_taken() {
        let text = "processor\t: 0\nmodel name\t: A Processor\nmodel name\t: Another\n";
        assert_eq!(field(text, "model name").as_deref(), Some("A Processor"));
        assert_eq!(field(text, "MemTotal"), None);
    }

    #[test]
    fn settings_follow_the_version_and_other_work_is_a_warning() {
        let settings = [("fsync", "on"), ("work_mem", "4MB")];
        let mut machine = Machine {
            postgres: Server {
                version: "15.1".to_owned(),
                settings: settings
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
            },
            ..Machine::default()
        };
        let text = machine.to_string();
        assert!(
            text.contains("PostgreSQL 15.1 with fsync=on, work_mem=4MB."),
            "{text}"
        );
        assert!(!text.contains("disturbed"), "{text}");
        (machine.disturbed, machine.others) = (true, 0.4);
        assert!(machine.to_string().contains("Other work took 40 %"));
    }
}
