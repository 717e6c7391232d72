//! One process of the binary, seen through its log and its admin endpoints. It is only ever ended by its id, and does
//! not outlive its test.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use testkit::{Leftover, eventually, leaves};

use super::metrics::Metrics;

/// A process at work. Dropped, it is killed with SIGKILL and waited for, and leaves what it has claimed.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    http: Client,
    admin: String,
}

impl Process {
    /// Starts `command` with its log in the file `log`, and waits until it says where its admin endpoints are.
    pub(crate) async fn start(command: &mut Command, log: PathBuf, http: Client) -> Self {
        let file = File::create(&log).expect("a log can be made");
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .expect("the binary can be run");
        let mut process = Self {
            child,
            log,
            http,
            admin: String::new(),
        };
        process.admin = process
            .address_logged_with("serving /healthz, /readyz and /metrics")
            .await;
        process
    }

    /// The field `address` of the log line that says `message`.
    pub(crate) async fn address_logged_with(&mut self, message: &str) -> String {
        eventually(&format!("the log line {message:?}"), async || {
            self.assert_alive();
            logged_address(&self.log, message)
        })
        .await
    }

    pub(crate) async fn ready(&mut self) {
        let url = format!("http://{}/readyz", self.admin);
        eventually("a process to become ready", async || {
            self.assert_alive();
            let answer = self.http.get(&url).send().await.ok()?;
            answer.status().is_success().then_some(())
        })
        .await;
    }

    /// Waits until it says that it is not ready, for this reason among others.
    pub(crate) async fn unready_for(&mut self, reason: &str) {
        let url = format!("http://{}/readyz", self.admin);
        eventually(&format!("a process to say {reason:?}"), async || {
            self.assert_alive();
            let answer = self.http.get(&url).send().await.ok()?;
            let unready = !answer.status().is_success();
            (unready && answer.text().await.ok()?.contains(reason)).then_some(())
        })
        .await;
    }

    fn assert_alive(&mut self) {
        let ended = self.child.try_wait().expect("a child of ours");
        assert!(ended.is_none(), "ended early: {ended:?}; see {:?}", self.log);
    }

    pub(crate) async fn metrics(&self) -> Metrics {
        let url = format!("http://{}/metrics", self.admin);
        let text = eventually("a process to show its metrics", async || {
            self.http.get(&url).send().await.ok()?.text().await.ok()
        })
        .await;
        Metrics::read(&text)
    }

    /// Waits until one of its metrics is at least this.
    pub(crate) async fn shows(&self, series: &str, at_least: f64) {
        eventually(&format!("{series} to reach {at_least}"), async || {
            (self.metrics().await.value(series) >= at_least).then_some(())
        })
        .await;
    }

    /// Waits until it is the dispatcher that sends.
    pub(crate) async fn leads(&self) {
        self.shows("postrider_push_leader", 1.0).await;
    }

    /// `kill -9`.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// SIGSTOP: it keeps its connections and does nothing.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// SIGTERM.
    pub(crate) fn ask_to_stop(&self) {
        self.signal(Signal::TERM);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the process is there");
    }

    /// Waits for its end.
    pub(crate) async fn ended(mut self) -> ExitStatus {
        eventually("a process to end", async || {
            self.child.try_wait().expect("a child of ours")
        })
        .await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            leaves(Leftover::Claims);
        }
        // Fails when it has ended, which is all that is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line that is still being written is no JSON yet and found by the next look.
fn logged_address(log: &Path, message: &str) -> Option<String> {
    let text = fs::read_to_string(log).expect("the log can be read");
    text.lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find(|line| line["message"] == message)
        .and_then(|line| Some(line["address"].as_str()?.to_owned()))
}
