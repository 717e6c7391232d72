//! Starting an example and reading what it prints.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use testkit::eventually;

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Flask,
    SmallestPython,
    Go,
}

/// An example with a folder for its files, started again whenever its secrets change.
pub(crate) struct Example {
    kind: Kind,
    folder: tempfile::TempDir,
    program: PathBuf,
    process: Option<Process>,
    /// Of all processes, the earliest first.
    lines: Arc<Mutex<Vec<String>>>,
}

struct Process {
    child: Child,
    reader: Option<JoinHandle<()>>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails when it has ended, which is all that is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Example {
    pub(crate) fn prepare(kind: Kind) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let program = match kind {
            Kind::Flask | Kind::SmallestPython => interpreter(),
            Kind::Go => build_go(folder.path()),
        };
        Self {
            kind,
            folder,
            program,
            process: None,
            lines: Arc::default(),
        }
    }

    /// Starts it with these secrets, in place of the process that ran; returns where it listens.
    pub(crate) async fn start(&mut self, secrets: &[&str]) -> SocketAddr {
        self.stop().await;
        let heard = self.lines().len();
        let mut child = self
            .command(secrets)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the example can be run");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let lines = Arc::clone(&self.lines);
        let reader = std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                lines.lock().expect("no thread panics with it").push(line);
            }
        });
        self.process = Some(Process {
            child,
            reader: Some(reader),
        });
        eventually("the example to listen", async || {
            let lines = self.lines();
            let address = lines[heard..]
                .iter()
                .find_map(|line| line.strip_prefix("listening on "));
            address.map(|address| {
                let address = address.trim_start_matches("http://");
                address.parse().expect("an address")
            })
        })
        .await
    }

    /// Ends the process as a service manager would, and waits for it.
    pub(crate) async fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            kill_process(Pid::from_child(&process.child), Signal::TERM).expect("the process is there");
            eventually("the example to end", async || {
                process.child.try_wait().expect("a child of ours")
            })
            .await;
        }
    }

    /// Everything printed so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("no thread panics with it").clone()
    }

    /// What it prints of a notification that it processes.
    pub(crate) fn says_new(&self, event_type: &str, id: &str) -> String {
        match self.kind {
            Kind::Flask | Kind::SmallestPython => format!("new {event_type} {id}"),
            Kind::Go => format!("processed {id} {event_type}"),
        }
    }

    /// What it prints of a notification that it has processed before.
    pub(crate) fn says_seen(&self, event_type: &str, id: &str) -> String {
        match self.kind {
            Kind::Flask | Kind::SmallestPython => format!("seen {event_type} {id}"),
            Kind::Go => format!("repeated {id}"),
        }
    }

    /// What it says of what was signed with a secret that it does not know.
    pub(crate) const REFUSED: &'static str = "refused no_match";

    /// Whether a new process knows what an earlier one has processed.
    pub(crate) fn remembers(&self) -> bool {
        self.kind != Kind::SmallestPython
    }

    /// What a query of its database answers, one line for each row; `None` for an example that has none.
    pub(crate) fn query(&self, sql: &str) -> Option<String> {
        const ASK: &str = "import sqlite3, sys\n\
            for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]): print(*row)";
        if self.kind != Kind::Flask {
            return None;
        }
        let mut ask = Command::new(&self.program);
        ask.args(["-c", ASK]).arg(self.database()).arg(sql);
        Some(output(&mut ask))
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("seen.db")
    }

    fn command(&self, secrets: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let secrets_file = self.folder.path().join("secrets");
        std::fs::write(&secrets_file, secrets.join("\n")).expect("the folder can be written to");
        command
            .current_dir(self.folder.path())
            .env("DATABASE", self.database())
            .env("WEBHOOK_SECRETS", secrets.join(" "))
            .env("WEBHOOK_SECRETS_FILE", secrets_file)
            .env("PORT", "0")
            .env("LISTEN", "127.0.0.1:0");
        let script = match self.kind {
            Kind::Flask => "sdks/examples/python/flask_app.py",
            Kind::SmallestPython => "sdks/examples/python/minimal.py",
            Kind::Go => return command,
        };
        command
            .arg(checkout().join(script))
            .env("PYTHONPATH", checkout().join("sdks/python/src"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// The Python of this checkout, with Flask.
fn interpreter() -> PathBuf {
    PathBuf::from(output(&mut Command::new(checkout().join("scripts/python"))).trim_end())
}

fn build_go(folder: &Path) -> PathBuf {
    let program = folder.join("receiver");
    output(
        Command::new("go")
            .args(["build", "-o"])
            .arg(&program)
            .arg("./receiver")
            .current_dir(checkout().join("sdks/examples/go"))
            // Nothing is to be had from anywhere: there are no dependencies.
            .env("GOPROXY", "off")
            .env("GOFLAGS", "-buildvcs=false"),
    );
    program
}

fn output(command: &mut Command) -> String {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .unwrap_or_else(|error| panic!("{command:?} cannot be run, try scripts/sdks: {error}"));
    assert!(output.status.success(), "{command:?} failed: {}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the crate is in its checkout")
}
