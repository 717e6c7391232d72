//! What the scenarios stand on: a database and queues of this run alone, and the processes that were started.
//!
//! Everything that is made here is also removed here, whatever happened in between.

mod database;
mod process;
mod queues;
mod services;
mod subscriptions;

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, process as this};

use anyhow::{Context as _, Result, bail, ensure};
use sqlx::PgPool;

pub(crate) use process::Process;
pub(crate) use services::{Overrides, Service, Swrve, overrides};
pub(crate) use subscriptions::{SEALING_KEY, Subscriber};

use crate::args::Args;
use crate::tell;

/// The servers, the binary, and what this run has made of and on them.
pub(crate) struct Rig {
    program: PathBuf,
    server_url: String,
    pub(crate) amqp_url: String,
    /// The name of the database, the folder of the logs, and the prefix of the queues.
    name: String,
    pub(crate) database_url: String,
    pub(crate) pool: PgPool,
    key: Mutex<String>,
    serial: Arc<AtomicU64>,
    processes: Mutex<Vec<Arc<Process>>>,
}

impl Rig {
    /// Creates the database; nothing else is touched yet.
    pub(crate) async fn new(args: &Args) -> Result<Self> {
        let need = |url: &Option<String>, name| {
            url.clone()
                .filter(|url| !url.is_empty())
                .with_context(|| format!("{name} is not set; scripts/bench sets it"))
        };
        let server_url = need(&args.database_url, "DATABASE_URL")?;
        let amqp_url = need(&args.amqp_url, "AMQP_URL")?;
        let program = fs::canonicalize(&args.postrider).with_context(|| {
            format!(
                "{} is not there; build it with cargo build --release --package cli",
                args.postrider.display()
            )
        })?;
        let name = format!("bench_{:x}_{}", uuid::Uuid::now_v7().as_u128() >> 80, this::id());
        let (pool, database_url) = database::create(&server_url, &name).await?;
        let logs = fs::create_dir(std::env::temp_dir().join(&name));
        if logs.is_err() {
            database::drop(&server_url, &name).await?;
        }
        logs.context("failed to make a folder for the logs")?;
        Ok(Self {
            program,
            server_url,
            amqp_url,
            name,
            database_url,
            pool,
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
        let key = self.new_key("ingest").await?;
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = key;
        Ok(())
    }

    /// An API key of somebody who looks.
    pub(crate) async fn viewer_key(&self) -> Result<String> {
        self.new_key("viewer").await
    }

    async fn new_key(&self, role: &str) -> Result<String> {
        let name = format!("bench-{role}");
        let said = self
            .call(&["keys", "create", "--name", &name, "--role", role])
            .await?;
        let key = said.split_ascii_whitespace().find(|word| word.starts_with("pr_"));
        Ok(key.context("postrider keys create printed no key")?.to_owned())
    }

    /// Forgets all pushes and messages. No service may be running.
    pub(crate) async fn empty(&self) -> Result<()> {
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
    async fn call(&self, arguments: &[&str]) -> Result<String> {
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
