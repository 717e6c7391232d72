//! One child process: started with its output in a file, ended by its own id.

use std::fs::File;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::tell;

/// How long a process may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(30);
/// How much of a log is shown when its process fails, in bytes.
const LOG_TAIL: usize = 4_000;

/// A process that this run started.
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) pid: u32,
    child: Mutex<Child>,
    /// Whether this run has asked it to end.
    stopped: AtomicBool,
    log: PathBuf,
}

impl Process {
    pub(crate) fn spawn(name: &str, mut command: Command, log: PathBuf) -> Result<Self> {
        let file = File::create(&log).context("failed to create a log file")?;
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .kill_on_drop(true);
        let child = command
            .spawn()
            .with_context(|| format!("failed to start {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            pid: child.id().context("the process ended at once")?,
            child: Mutex::new(child),
            stopped: AtomicBool::new(false),
            log,
        })
    }

    /// How it ended by itself; `None` while it runs, and of one that was asked to end.
    pub(crate) async fn ended(&self) -> Option<ExitStatus> {
        if self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        self.child.lock().await.try_wait().ok().flatten()
    }

    /// Asks it to end, and makes it when it does not in time. An ended one is left alone, as its id may be another's.
    pub(crate) async fn stop(&self) {
        let mut child = self.child.lock().await;
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        self.stopped.store(true, Ordering::Relaxed);
        signal(self.pid, Signal::TERM);
        if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
            tell(format_args!(
                "{} did not end within {GRACE:?} of SIGTERM",
                self.name
            ));
            let _ = child.kill().await;
        }
    }

    /// SIGKILL. Returns as soon as the signal is sent, so that the moment can be taken.
    pub(crate) async fn kill(&self) -> Result<()> {
        self.child
            .lock()
            .await
            .start_kill()
            .with_context(|| format!("failed to kill {}", self.name))
    }

    /// The end of what it wrote.
    pub(crate) fn log_tail(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let tail = &log[log.len().saturating_sub(LOG_TAIL)..];
        format!("--- {}\n{}", self.name, String::from_utf8_lossy(tail))
    }
}

/// The child has not been waited for, so its id is still its own.
fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended just now.
        let _ = kill_process(pid, signal);
    }
}
