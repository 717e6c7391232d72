//! What the scenarios stand on: a database and queues of this run alone, and the processes that were started.
//!
//! Everything that is made here is also removed here, whatever happened in between.

mod database;
mod lane;
mod process;
mod queues;
pub(crate) mod servers;
mod services;
mod subscriptions;
mod usage;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, process as this};

use anyhow::{Context as _, Result, bail, ensure};
use sqlx::PgPool;
use store::{Settings, Store};

pub(crate) use lane::{Lane, Setup, settings};
pub(crate) use process::Process;
pub(crate) use services::{Overrides, Service, Swrve, overrides};
pub(crate) use subscriptions::{SEALING_KEY, Subscriber, answering};
pub(crate) use usage::{MACHINE, RECEIVER_THREAD, Usage};

use crate::tell;

/// The servers, the binary, and what this run has made of and on them.
pub(crate) struct Rig {
    pub(crate) program: PathBuf,
    server_url: String,
    pub(crate) amqp_url: String,
    /// The name of the database, the folder of the logs, and the prefix of the queues.
    name: String,
    pub(crate) database_url: String,
    pub(crate) pool: PgPool,
    servers: servers::ServerProcesses,
    key: Mutex<String>,
    serial: Arc<AtomicU64>,
    processes: Mutex<Vec<Arc<Process>>>,
}

/// What a run is made on.
pub(crate) struct Place<'a> {
    pub(crate) database_url: Option<&'a String>,
    pub(crate) amqp_url: Option<&'a String>,
    pub(crate) postrider: &'a Path,
}

impl Rig {
    /// Creates the database; nothing else is touched yet.
    pub(crate) async fn new(place: Place<'_>) -> Result<Self> {
        let need = |url: Option<&String>, name| {
            url.cloned()
                .filter(|url| !url.is_empty())
                .with_context(|| format!("{name} is not set; scripts/bench sets it"))
        };
        let server_url = need(place.database_url, "DATABASE_URL")?;
        let amqp_url = need(place.amqp_url, "AMQP_URL")?;
        let program = fs::canonicalize(place.postrider).with_context(|| {
            format!(
                "{} is not there; build it with cargo build --release --package cli",
                place.postrider.display()
            )
        })?;
        let name = format!("bench_{:x}_{}", uuid::Uuid::now_v7().as_u128() >> 80, this::id());
        let (pool, database_url) = database::create(&server_url, &name).await?;
        let logs = fs::create_dir(std::env::temp_dir().join(&name));
        if logs.is_err() {
            database::drop(&server_url, &name).await?;
        }
        logs.context("failed to make a folder for the logs")?;
        let servers = servers::processes(&pool, &amqp_url).await;
        Ok(Self {
            program,
            server_url,
            amqp_url,
            name,
            database_url,
            pool,
            servers,
            key: Mutex::default(),
            serial: Arc::default(),
            processes: Mutex::default(),
        })
    }

    /// Migrates the database and makes an API key, both with the program itself. Finds out early whether the broker is
    /// there.
    pub(crate) async fn prepare(&self) -> Result<()> {
        self.call(&["migrate"]).await?;
        self.empty().await?;
        let key = self.new_key("ingest", &[]).await?;
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = key;
        Ok(())
    }

    /// An API key of an operator who only looks.
    pub(crate) async fn viewer_key(&self) -> Result<String> {
        self.new_key("viewer", &[]).await
    }

    /// An API key of an operator who also acts.
    pub(crate) async fn operator_key(&self) -> Result<String> {
        self.new_key("operator", &[]).await
    }

    /// An API key of a reseller.
    pub(crate) async fn reseller_key(&self, reseller: &str) -> Result<String> {
        self.new_key("reseller", &["--reseller", reseller]).await
    }

    async fn new_key(&self, role: &str, more: &[&str]) -> Result<String> {
        let name = format!("bench-{role}");
        let arguments = ["keys", "create", "--name", &name, "--role", role];
        let said = self.call(&[&arguments, more].concat()).await?;
        let key = said.split_ascii_whitespace().find(|word| word.starts_with("pr_"));
        Ok(key.context("postrider keys create printed no key")?.to_owned())
    }

    /// Ends all processes and forgets all pushes, events and messages.
    pub(crate) async fn restart(&self) -> Result<()> {
        self.stop_all().await;
        self.empty().await
    }

    /// Brings the planner up to date, at the end of a warm-up.
    pub(crate) async fn analyze(&self) -> Result<()> {
        database::analyze(&self.pool).await
    }

    /// Has the server write down what it holds in memory.
    pub(crate) async fn checkpoint(&self) {
        database::checkpoint(&self.pool).await;
    }

    /// Forgets all pushes and messages. No service may be running.
    async fn empty(&self) -> Result<()> {
        database::empty(&self.pool).await?;
        queues::delete(&self.amqp_url, &self.queue_prefix()).await
    }

    /// Ends all processes that still run.
    pub(crate) async fn stop_all(&self) {
        let processes = std::mem::take(&mut *self.processes.lock().unwrap_or_else(PoisonError::into_inner));
        for process in processes {
            process.stop().await;
        }
    }

    /// The processes that were started and not ended since.
    fn running(&self) -> Vec<Arc<Process>> {
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Fails when one of the processes has ended by itself.
    pub(crate) async fn expect_all_alive(&self) -> Result<()> {
        for process in self.running() {
            self.expect_alive(&process).await?;
        }
        Ok(())
    }

    /// The store of this run, for calls that are timed without a service around them.
    pub(crate) fn store(&self) -> Result<Store> {
        let settings = Settings {
            url: self.database_url.clone(),
            max_connections: 2,
            lease_connections: 1,
            acquire_timeout: Duration::from_secs(5),
            application_name: "bench".to_owned(),
            line_terms: store::webhook::LineTerms::default(),
        };
        Ok(Store::open(&settings)?)
    }

    /// Removes everything.
    pub(crate) async fn close(self) -> Result<()> {
        self.stop_all().await;
        let queues = queues::delete(&self.amqp_url, &self.queue_prefix()).await;
        self.pool.close().await;
        let database = database::drop(&self.server_url, &self.name).await;
        let logs = fs::remove_dir_all(self.logs()).context("failed to remove the logs");
        queues.and(database).and(logs)
    }

    /// A name on the broker that is this run's alone.
    pub(crate) fn name_of(&self, what: &str) -> String {
        format!("{}{what}", self.queue_prefix())
    }

    fn logs(&self) -> PathBuf {
        std::env::temp_dir().join(&self.name)
    }

    fn queue_prefix(&self) -> String {
        format!("{}.", self.name)
    }

    /// Runs a command of the program to its end; returns what it printed.
    pub(crate) async fn call(&self, arguments: &[&str]) -> Result<String> {
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(arguments)
            .env("DATABASE_URL", &self.database_url)
            .env("AMQP_URL", &self.amqp_url)
            .kill_on_drop(true);
        let output = command.output().await.context("failed to start postrider")?;
        ensure!(
            output.status.success(),
            "postrider {} failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Starts a process, and remembers to end it.
    fn spawn(&self, name: &str, command: tokio::process::Command) -> Result<Arc<Process>> {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let log = self.logs().join(format!("{name}-{}.log", processes.len()));
        let process = Arc::new(Process::spawn(name, command, log)?);
        processes.push(Arc::clone(&process));
        Ok(process)
    }

    /// Fails when a process that should run has ended.
    pub(crate) async fn expect_alive(&self, process: &Process) -> Result<()> {
        if let Some(how) = process.ended().await {
            tell(process.log_tail());
            bail!("{} ended by itself: {how}", process.name);
        }
        Ok(())
    }
}
