//! A process that is kept running: started again when it ends, as a service manager does, killed, frozen, held down. What it runs
//! is said by its [`Program`].
//!
//! No process outlives the harness: each is killed when its supervisor is dropped, and by the kernel when the harness dies.

use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::Death;
use super::log::Log;

/// Between the end of a process and its next start.
const RESTART_DELAY: Duration = Duration::from_secs(1);
/// Longest wait for an end in good order.
const END_LIMIT: Duration = Duration::from_secs(240);
/// A process that ends over and over is told of only so often.
const DEATHS_KEPT: usize = 100;
/// What a Rust program exits with after a panic.
const PANICKED: i32 = 101;

/// What a kept process runs.
pub(crate) trait Program: Send + Sync + 'static {
    /// For messages.
    fn name(&self) -> String;
    /// Where its output goes, over all incarnations.
    fn log(&self) -> PathBuf;
    /// How it is started.
    fn command(&self) -> Command;
    /// The signal that ends it in good order.
    fn farewell(&self) -> Signal {
        Signal::TERM
    }
    /// What must be done before each start.
    fn before(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
    /// Runs beside each incarnation. `log` begins where its output does.
    fn beside(&self, _log: Log) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// Ends that the run had not asked for.
#[derive(Clone, Default)]
pub(crate) struct Deaths(Arc<Mutex<Vec<Death>>>);

impl Deaths {
    pub(crate) fn all(&self) -> Vec<Death> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, death: Death) {
        let mut deaths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if deaths.len() < DEATHS_KEPT {
            deaths.push(death);
        }
    }
}

pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

struct Shared {
    name: String,
    farewell: Signal,
    state: watch::Sender<State>,
    deaths: Deaths,
}

#[derive(Default)]
struct State {
    pid: Option<Pid>,
    asked: Asked,
    /// How many want it to be down.
    holds: usize,
    /// How many want it to stand still.
    freezes: usize,
    /// It is not started again.
    retired: bool,
    last: Option<ExitStatus>,
}

/// Which end was asked for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Asked {
    #[default]
    Nothing,
    Kill,
    Stop,
}

impl Supervisor {
    /// Starts it, and again whenever it ends.
    pub(crate) fn start<P: Program>(program: Arc<P>, deaths: Deaths) -> Self {
        let shared = Arc::new(Shared {
            name: program.name(),
            farewell: program.farewell(),
            state: watch::Sender::default(),
            deaths,
        });
        let task = tokio::spawn(keep(program, shared.clone()));
        Self {
            shared,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// SIGKILL; `false` when it is down already.
    pub(crate) fn kill(&self) -> bool {
        self.shared.end(Asked::Kill, Signal::KILL)
    }

    /// The signal that ends it in good order; `false` when it is down already.
    pub(crate) fn ask_to_stop(&self) -> bool {
        self.shared.end(Asked::Stop, self.shared.farewell)
    }

    /// Keeps it down once it has ended, until what is returned is dropped.
    pub(crate) fn hold(&self) -> Held {
        self.shared.state.send_modify(|state| state.holds += 1);
        Held(self.shared.clone())
    }

    /// SIGSTOP, and SIGCONT when what is returned is dropped; `None` when it is down.
    pub(crate) fn freeze(&self) -> Option<Frozen> {
        let mut frozen = false;
        self.shared.state.send_modify(|state| {
            if let Some(pid) = state.pid {
                frozen = kill_process(pid, Signal::STOP).is_ok();
                state.freezes += usize::from(frozen);
            }
        });
        frozen.then(|| Frozen(self.shared.clone()))
    }

    pub(crate) fn pid(&self) -> Option<Pid> {
        self.shared.state.borrow().pid
    }

    /// Ends it in good order, and for good.
    pub(crate) async fn retire(&self) -> anyhow::Result<()> {
        let name = &self.shared.name;
        let mut ran = false;
        self.shared.state.send_modify(|state| {
            state.retired = true;
            ran = state.pid.is_some();
        });
        self.ask_to_stop();
        let mut states = self.shared.state.subscribe();
        let ended = states.wait_for(|state| state.pid.is_none());
        let last = match tokio::time::timeout(END_LIMIT, ended).await {
            Ok(state) => state.ok().and_then(|state| state.last),
            Err(_) => {
                self.kill();
                anyhow::bail!("{name} did not end in good order: it had to be killed after {END_LIMIT:?}");
            }
        };
        match last {
            Some(status) if ran && !status.success() => {
                anyhow::bail!("{name} did not end in good order: {status}")
            }
            _ => Ok(()),
        }
    }
}

impl Shared {
    fn end(&self, asked: Asked, signal: Signal) -> bool {
        let mut sent = false;
        self.state.send_modify(|state| {
            let Some(pid) = state.pid else { return };
            // A kill explains every end; a request to stop does not make a kill milder.
            if state.asked != Asked::Kill {
                state.asked = asked;
            }
            sent = kill_process(pid, signal).is_ok();
        });
        sent
    }

    fn ended(&self, status: Option<ExitStatus>, log: &Log) {
        let mut asked = Asked::Nothing;
        self.state.send_modify(|state| {
            state.pid = None;
            state.last = status;
            asked = std::mem::take(&mut state.asked);
        });
        let crashed =
            status.is_none_or(|status| status.signal().is_some() || status.code() == Some(PANICKED));
        let unplanned = match asked {
            Asked::Nothing => true,
            Asked::Kill => false,
            // While other faults last, a drain may fail; it must not crash.
            Asked::Stop => crashed,
        };
        if unplanned {
            self.deaths.add(Death {
                process: self.name.clone(),
                at: SystemTime::now(),
                status: status.map_or_else(
                    || "it could not be started".to_owned(),
                    |status| status.to_string(),
                ),
                log_tail: log.tail(),
            });
        }
    }
}

/// Something is down until this is dropped.
pub(crate) struct Held(Arc<Shared>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.holds -= 1);
    }
}

/// Something stands still until this is dropped, unless it is killed before.
pub(crate) struct Frozen(Arc<Shared>);

impl Drop for Frozen {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| {
            state.freezes = state.freezes.saturating_sub(1);
            if let (0, Some(pid)) = (state.freezes, state.pid) {
                // Fails when it has ended.
                let _ = kill_process(pid, Signal::CONT);
            }
        });
    }
}

async fn keep<P: Program>(program: Arc<P>, shared: Arc<Shared>) {
    let mut states = shared.state.subscribe();
    loop {
        // The sender lives in `shared`, so this cannot fail.
        let retired = states
            .wait_for(|state| state.holds == 0 || state.retired)
            .await
            .is_ok_and(|state| state.retired);
        if retired {
            return;
        }
        program.before().await;
        let log = Log::at_end_of(program.log());
        let status = match spawn(&program.command(), &program.log()) {
            Err(_) => None,
            Ok(mut child) => {
                shared.state.send_modify(|state| {
                    state.pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
                    state.freezes = 0;
                    if let (true, Some(pid)) = (state.retired, state.pid) {
                        let _ = kill_process(pid, Signal::TERM);
                    }
                });
                let beside = async {
                    program.beside(log.clone()).await;
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    status = child.wait() => status.ok(),
                    () = beside => unreachable!("invariant: pending never ends"),
                }
            }
        };
        shared.ended(status, &log);
        let retired = states.wait_for(|state| state.retired);
        let _ = tokio::time::timeout(RESTART_DELAY, retired).await;
    }
}

/// In a group of its own, so that Ctrl-C reaches the harness alone, which ends things in order.
fn spawn(command: &Command, log: &PathBuf) -> std::io::Result<Child> {
    let output = OpenOptions::new().create(true).append(true).open(log)?;
    let mut bound = dying_with_us(command);
    bound
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    let mut bound = tokio::process::Command::from(bound);
    bound.process_group(0).kill_on_drop(true).spawn()
}

/// The same command, which the kernel kills when the harness is gone. Of our environment it gets no more than where programs are.
fn dying_with_us(command: &Command) -> Command {
    let mut bound = Command::new("setpriv");
    bound.args(["--pdeathsig", "KILL", "--"]);
    bound.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        bound.current_dir(folder);
    }
    bound.env_clear().env("PATH", programs());
    bound.envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    bound
}

/// Where programs are found.
pub(crate) fn programs() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}
