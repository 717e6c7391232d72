//! Taking the servers down and starting them again.
//!
//! Only those that `scripts/servers` has started for this checkout are touched. Any other is only
//! cut off, which is said on standard error.

use std::process::{Command, Stdio};

use config::{Config, Secret};
use testkit::FaultProxy;

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A server that can be taken away from the services.
pub(crate) enum Server {
    /// The checkout's own.
    Own(Own),
    /// Not the checkout's own: the services reach it through this.
    Elsewhere(FaultProxy),
}

/// What is done to a server of the checkout: shell lines, for its folder. They ask for process ids at the last moment,
/// because an old one may be another process's by then.
#[derive(Clone, Copy)]
pub(crate) struct Own {
    name: &'static str,
    /// What `scripts/servers env` prints of it and of no other server.
    sign: &'static str,
    down: &'static str,
    up: &'static str,
}

const POSTGRES: Own = Own {
    name: "postgres",
    sign: "POSTGRES_PID=",
    down: r#"eval "$(scripts/servers env postgres)" && kill -9 "$POSTGRES_PID""#,
    up: "scripts/servers start postgres",
};
const RABBITMQ: Own = Own {
    name: "rabbitmq",
    sign: "RABBITMQCTL=",
    down: r#"eval "$(scripts/servers env rabbitmq)" && "$RABBITMQCTL" stop_app"#,
    up: r#"eval "$(scripts/servers env rabbitmq)" && "$RABBITMQCTL" start_app"#,
};

impl Server {
    /// The database server of a configuration, which may lead through a proxy afterwards.
    pub(crate) async fn postgres(config: &mut Config) -> Self {
        Self::of(POSTGRES, &mut config.database.url).await
    }

    /// The broker of a configuration, which may lead through a proxy afterwards.
    pub(crate) async fn rabbitmq(config: &mut Config) -> Self {
        Self::of(RABBITMQ, &mut config.amqp.url).await
    }

    #[expect(
        clippy::print_stderr,
        reason = "a test that proves less than it could should say so"
    )]
    async fn of(own: Own, url: &mut Secret) -> Self {
        let found = shell(&format!("scripts/servers env {}", own.name)).await;
        if found.is_ok_and(|lines| lines.contains(own.sign)) {
            return Self::Own(own);
        }
        eprintln!(
            "{} is not this checkout's own: it is cut off instead of taken down",
            own.name
        );
        let (proxy, through) = FaultProxy::for_url(url.expose()).await;
        *url = Secret::new(through);
        Self::Elsewhere(proxy)
    }

    /// Takes it down until the result is dropped.
    pub(crate) async fn take_down(&self) -> Down<'_> {
        let down = Down(self);
        match self {
            Self::Own(own) => {
                shell(own.down).await.expect("the server can be taken down");
            }
            Self::Elsewhere(proxy) => proxy.cut(),
        }
        down
    }
}

/// A server that is down. It is started again when this is dropped, also when the test fails meanwhile.
pub(crate) struct Down<'a>(&'a Server);

impl Down<'_> {
    /// Starts it and waits until it answers; nothing else of the test goes on until then.
    pub(crate) fn start_again(self) {
        drop(self);
    }
}

impl Drop for Down<'_> {
    fn drop(&mut self) {
        match self.0 {
            Server::Own(own) => {
                let started = run(own.up);
                assert!(
                    started.is_ok() || std::thread::panicking(),
                    "{} did not come back: {started:?}",
                    own.name
                );
            }
            Server::Elsewhere(proxy) => proxy.heal(),
        }
    }
}

/// Runs a line in the checkout while the test's other tasks go on.
async fn shell(line: &str) -> Result<String, String> {
    let line = line.to_owned();
    let ran = tokio::task::spawn_blocking(move || run(&line)).await;
    ran.expect("it does not panic")
}

/// Standard output, or what went wrong.
fn run(line: &str) -> Result<String, String> {
    let output = Command::new("bash")
        .args(["-c", line])
        .current_dir(CHECKOUT)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}

/// The broker's disk, of which there is never enough while it is full.
pub(crate) struct Full(());

const FILL: &str = r#"eval "$(scripts/servers env rabbitmq)" && "$RABBITMQCTL" set_disk_free_limit 100000GB"#;
const EMPTY: &str = r#"eval "$(scripts/servers env rabbitmq)" && "$RABBITMQCTL" set_disk_free_limit 50MB"#;

impl Full {
    /// That of the broker; `None` when the broker is not the checkout's own.
    pub(crate) async fn disk_of_the_broker() -> Option<Self> {
        let found = shell("scripts/servers env rabbitmq").await;
        found
            .is_ok_and(|lines| lines.contains(RABBITMQ.sign))
            .then_some(Self(()))
    }

    /// Makes the broker take it for full, until the result is dropped.
    pub(crate) async fn fill(self) -> Filled {
        let filled = Filled(());
        shell(FILL).await.expect("the broker can be told");
        filled
    }
}

/// A disk that is taken for full.
pub(crate) struct Filled(());

impl Filled {
    /// There is room again.
    pub(crate) fn make_room(self) {
        drop(self);
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        let emptied = run(EMPTY);
        assert!(
            emptied.is_ok() || std::thread::panicking(),
            "the broker stays blocked: {emptied:?}"
        );
    }
}
