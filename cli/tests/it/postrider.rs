//! Running the binary, with nothing of the environment but what a test gives it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use reqwest::{Client, RequestBuilder};
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{ConnectOptions as _, PgPool};
use testkit::{Installation, Leftover, PATIENCE, PATIENT, eventually, leaves};

/// Waits until the process with these admin endpoints is ready. They are asked directly: a process for each question
/// would keep a slow machine from anything else.
pub(crate) async fn until_ready(admin: &str) {
    lifecycle::crypto::install_default_provider();
    let client = Client::builder().no_proxy().build().expect("a client");
    eventually("the process to become ready", async || {
        let answer = client.get(format!("http://{admin}/readyz")).send().await.ok()?;
        answer.status().is_success().then_some(())
    })
    .await;
}

/// A call of the binary.
pub(crate) struct Postrider {
    command: Command,
}

/// What a call left behind.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Whether callers were told to come again: the database may be too slow for the services for a moment.
pub(crate) fn is_put_off(finished: &Finished) -> bool {
    let said = |text: &str| text.contains("cannot be stored now") || text.contains("cannot be read now");
    said(&finished.stdout) || said(&finished.stderr)
}

/// Arguments as one types them, separated by spaces.
pub(crate) fn postrider(arguments: &str) -> Postrider {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(arguments.split_whitespace()).env_clear();
    Postrider { command }
}

/// Hands something in with 202, and again whenever the service says that it should come later.
pub(crate) async fn until_accepted(request: RequestBuilder) {
    let status = eventually("an answer", async || {
        let request = request.try_clone().expect("it can be sent again");
        let status = request.send().await.expect("it answers").status();
        (status != 503).then_some(status)
    })
    .await;
    assert_eq!(status, 202);
}

/// A key of this role, which `postrider keys create` makes in the database.
pub(crate) fn key_of(pool: &PgPool, role: &str) -> String {
    let created = postrider(&format!("keys create --name test --role {role}"))
        .on(pool)
        .run();
    assert_eq!(created.code, Some(0), "{created:?}");
    created.stdout.trim().to_owned()
}

impl Postrider {
    /// One more argument, which may hold spaces.
    pub(crate) fn arg(mut self, argument: &str) -> Self {
        self.command.arg(argument);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.command.env(name, value.as_ref());
        self
    }

    /// On the database of a test, with the patience that a busy machine needs.
    pub(crate) fn on(self, pool: &PgPool) -> Self {
        let patient = PATIENT
            .iter()
            .fold(self, |call, (variable, value)| call.env(variable, value));
        patient.env("DATABASE_URL", pool.connect_options().to_url_lossy())
    }

    /// On everything of a test, with ports of its own and logs that can be read by a program.
    pub(crate) fn within(self, it: &Installation) -> Self {
        PATIENT
            .iter()
            .fold(self, |call, (variable, value)| call.env(variable, value))
            .env("DATABASE_URL", it.config.database.url.expose())
            .env("AMQP_URL", it.config.amqp.url.expose())
            .env("POSTRIDER__AMQP__QUEUE_PREFIX", &it.config.amqp.queue_prefix)
            .env("POSTRIDER__SWRVE__URL", it.config.swrve.url.expose())
            .env("POSTRIDER__ADMIN__LISTEN", "127.0.0.1:0")
            .env("POSTRIDER__INGEST__LISTEN", "127.0.0.1:0")
            .env("POSTRIDER__PORTAL__LISTEN", "127.0.0.1:0")
            .env("POSTRIDER__OPERATOR__LISTEN", "127.0.0.1:0")
            .env("POSTRIDER__TELEMETRY__LOG_FORMAT", "json")
    }

    /// With the reseller lane on, which may deliver to this machine, and tries again at once.
    pub(crate) fn with_reseller_lane(self) -> Self {
        self.env(
            "POSTRIDER__RESELLER__SECRETS__KEY",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        )
        .env("POSTRIDER__RESELLER__EGRESS__ALLOW_NETWORKS", "127.0.0.0/8")
        .env("POSTRIDER__RESELLER__EGRESS__ALLOW_HTTP", "true")
        .env("POSTRIDER__MAIL__CONFIRM_ADDRESSES", "false")
        .env("POSTRIDER__RESELLER__RETRY__INITIAL_DELAY_IN_SECONDS", "0")
    }

    /// Runs it to its end.
    pub(crate) fn run(mut self) -> Finished {
        let output = self.command.output().expect("the binary can be run");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Finished {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Starts it, with its logs from standard error.
    pub(crate) fn start(mut self) -> Running {
        let mut child = self
            .command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary can be run");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (sender, log) = channel();
        let reader = std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                // The test may have stopped listening, but the pipe must not fill up.
                let _ = sender.send(line);
            }
        });
        Running {
            child,
            stdout: Some(stdout),
            log,
            reader: Some(reader),
        }
    }
}

/// A process at work; killed when the test ends before it does, and leaves then what it has claimed.
pub(crate) struct Running {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    log: Receiver<String>,
    reader: Option<JoinHandle<()>>,
}

impl Running {
    /// The field `address` of the log line that says `message`.
    pub(crate) fn address_logged_with(&self, message: &str) -> String {
        loop {
            let line = self
                .log
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("waited in vain for the log line {message:?}"));
            let line: serde_json::Value = serde_json::from_str(&line).expect("JSON logs");
            if line["message"] == message {
                return line["address"].as_str().expect("an address").to_owned();
            }
        }
    }

    /// The next line on standard output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        let stdout = self.stdout.as_mut().expect("it is still read");
        stdout.read_line(&mut line).expect("standard output is text");
        line
    }

    /// Reads no more of standard output, as `head` does.
    pub(crate) fn read_no_more(&mut self) {
        self.stdout = None;
    }

    /// What is left on standard output, once the process has ended.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = String::new();
        if let Some(stdout) = &mut self.stdout {
            stdout.read_to_string(&mut rest).expect("standard output is text");
        }
        rest
    }

    /// Waits until a line on standard error holds this.
    pub(crate) fn until_said(&self, part: &str) {
        loop {
            let line = self
                .log
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("waited in vain for {part:?} on standard error"));
            if line.contains(part) {
                return;
            }
        }
    }

    /// Waits until it ends by itself, and gives its exit code.
    pub(crate) async fn end(mut self) -> Option<i32> {
        let status = eventually("the process to end", async || {
            self.child.try_wait().expect("a child of ours")
        })
        .await;
        status.code()
    }

    /// Sends SIGTERM and waits for the end; also gives what is left on standard output.
    pub(crate) async fn stop(mut self) -> (ExitStatus, String) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("the process is there");
        let status = eventually("the process to end", async || {
            self.child.try_wait().expect("a child of ours")
        })
        .await;
        let rest = self.rest();
        (status, rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            leaves(Leftover::Claims);
        }
        // Fails when it has ended, which is all that is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
