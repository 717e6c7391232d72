//! Postrider's services as processes of their own, on ports of their own, and the Swrve simulator.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use hyper::StatusCode;
use simulators::swrve::Report;
use tokio::process::Command;

use super::{Process, Rig};
use crate::exposition::Exposition;
use crate::load::{Target, What};
use crate::{http, tell};

/// How long a service may take to become ready.
const READY_LIMIT: Duration = Duration::from_secs(60);
const READY_POLL: Duration = Duration::from_millis(50);
/// The prototype that the load generator names, with a push key for both platforms.
const PUSH_KEYS: &str = r#"{"Hello": {"IOS": "d36ae023-010c-4f3a-9bd7-9924a754b4b4", "ANDROID": "f31690cb-a763-4259-af18-6aed41afd9ed"}}"#;

/// What push endpoints are made with.
const FERNET_KEY: &str = "bqLMhQhHQwzNS0cYpYpwGYLhvzjSRbBMQnXEEYYZ1Rk=";

/// Configuration that a scenario wants to be different: names and values of environment variables.
pub(crate) type Overrides = Vec<(&'static str, String)>;

/// [`Overrides`] from pairs; each name is given without its prefix.
pub(crate) fn overrides<const N: usize>(pairs: [(&'static str, &str); N]) -> Overrides {
    pairs.map(|(name, value)| (name, value.to_owned())).into()
}

/// A running service.
pub(crate) struct Service {
    pub(crate) process: Arc<Process>,
    admin: SocketAddr,
}

impl Service {
    pub(crate) async fn metrics(&self) -> Result<Exposition> {
        http::get_text(self.admin, "/metrics").await.map(Exposition::new)
    }
}

/// The running simulator.
pub(crate) struct Swrve {
    pub(crate) address: SocketAddr,
}

impl Swrve {
    pub(crate) async fn report(&self) -> Result<Report> {
        http::get_json(self.address, "/report").await
    }
}

impl Rig {
    /// Starts ingest-api; also returns where to put load.
    pub(crate) async fn ingest(&self, overrides: &Overrides) -> Result<(Service, Target)> {
        let address = free_address()?;
        let mut own = overrides.clone();
        own.push(("POSTRIDER__INGEST__LISTEN", address.to_string()));
        let service = self.serve("ingest-api", &own).await?;
        Ok((service, self.target(address)))
    }

    /// Where the pushes of this run go when something listens at `address`.
    pub(crate) fn target(&self, address: SocketAddr) -> Target {
        Target {
            addresses: vec![address],
            key: self.key.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            serial: Arc::clone(&self.serial),
            what: What::Push,
            gate: None,
        }
    }

    /// Starts a dispatcher that sends to `swrve`.
    pub(crate) async fn dispatcher(&self, swrve: &Swrve, overrides: &Overrides) -> Result<Service> {
        let mut own = overrides.clone();
        own.push(("POSTRIDER__SWRVE__URL", format!("http://{}", swrve.address)));
        own.push((
            "POSTRIDER__SWRVE__MESSAGE_PROTOTYPE_PUSH_KEYS",
            PUSH_KEYS.to_owned(),
        ));
        self.serve("dispatcher", &own).await
    }

    /// Starts a dispatcher whose push lane has nothing to do.
    pub(crate) async fn reseller_dispatcher(&self, overrides: &Overrides) -> Result<Service> {
        self.serve("dispatcher", overrides).await
    }

    /// Starts a retry-worker.
    pub(crate) async fn retry_worker(&self, overrides: &Overrides) -> Result<Service> {
        self.serve("retry-worker", overrides).await
    }

    /// Starts reseller-portal; also returns where it listens.
    pub(crate) async fn portal(&self, overrides: &Overrides) -> Result<(Service, SocketAddr)> {
        let address = free_address()?;
        let mut own = overrides.clone();
        own.push(("POSTRIDER__PORTAL__LISTEN", address.to_string()));
        Ok((self.serve("reseller-portal", &own).await?, address))
    }

    /// Starts operator-api; also returns where it listens.
    pub(crate) async fn operator_api(&self) -> Result<(Service, SocketAddr)> {
        let address = free_address()?;
        let own = vec![("POSTRIDER__OPERATOR__LISTEN", address.to_string())];
        let service = self.serve("operator-api", &own).await?;
        Ok((service, address))
    }

    /// Starts the two nodes of Web Push; also returns where user agents and where senders go.
    pub(crate) async fn webpush(&self) -> Result<(Service, SocketAddr, Service, SocketAddr)> {
        let (agents, senders, router) = (free_address()?, free_address()?, free_address()?);
        let own = vec![
            ("POSTRIDER__WEBPUSH__KEYS", FERNET_KEY.to_owned()),
            ("POSTRIDER__WEBPUSH__ENDPOINT_URL", format!("http://{senders}")),
            ("POSTRIDER__WEBPUSH__CONNECTION__LISTEN", agents.to_string()),
            (
                "POSTRIDER__WEBPUSH__CONNECTION__ROUTER_LISTEN",
                router.to_string(),
            ),
            ("POSTRIDER__WEBPUSH__ENDPOINT__LISTEN", senders.to_string()),
            (
                "POSTRIDER__WEBPUSH__ENDPOINT__MESSAGES_PER_SECOND",
                "1000000".to_owned(),
            ),
            (
                "POSTRIDER__WEBPUSH__ENDPOINT__MESSAGE_BURST",
                "1000000".to_owned(),
            ),
        ];
        let connection = self.serve("webpush-connection", &own).await?;
        let endpoint = self.serve("webpush-endpoint", &own).await?;
        Ok((connection, agents, endpoint, senders))
    }

    /// Starts the simulator with the response times measured at Swrve, and Swrve's own limit of 300 requests a second.
    pub(crate) async fn swrve(&self) -> Result<Swrve> {
        let address = free_address()?;
        let listen = address.to_string();
        let mut command = Command::new(&self.program);
        command.args(["sim", "swrve", "--listen", &listen]).args([
            "--response-time",
            "seed",
            "--rate-limit",
            "300",
        ]);
        let process = self.spawn("swrve-sim", command)?;
        self.ready(&process, address, "/healthz").await?;
        Ok(Swrve { address })
    }

    /// Starts the bare HTTP server of the floors, which is this program.
    pub(crate) async fn echo(&self) -> Result<(Arc<Process>, Target)> {
        let address = free_address()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--echo-server", &address.to_string()]);
        let process = self.spawn("echo-server", command)?;
        self.ready(&process, address, "/").await?;
        Ok((process, self.target(address)))
    }

    async fn serve(&self, name: &str, overrides: &Overrides) -> Result<Service> {
        let admin = free_address()?;
        let mut command = Command::new(&self.program);
        command
            .args(["serve", name])
            .env("DATABASE_URL", &self.database_url)
            .env("AMQP_URL", &self.amqp_url)
            .env("POSTRIDER__AMQP__QUEUE_PREFIX", self.queue_prefix())
            .env("POSTRIDER__ADMIN__LISTEN", admin.to_string())
            .envs(overrides.iter().map(|(name, value)| (name, value)));
        let process = self.spawn(name, command)?;
        self.ready(&process, admin, "/readyz").await?;
        Ok(Service { process, admin })
    }

    async fn ready(&self, process: &Process, address: SocketAddr, path: &str) -> Result<()> {
        let start = Instant::now();
        let mut last = String::from("no answer");
        while start.elapsed() < READY_LIMIT {
            self.expect_alive(process).await?;
            if let Ok(answer) = http::get(address, path).await {
                if matches!(answer.status, StatusCode::OK | StatusCode::ACCEPTED) {
                    return Ok(());
                }
                last = String::from_utf8_lossy(&answer.body).into_owned();
            }
            tokio::time::sleep(READY_POLL).await;
        }
        tell(process.log_tail());
        bail!("{} did not become ready: {last}", process.name)
    }
}

/// A loopback port that no process listens on. Another could take it before it is used; then the service says so.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
    Ok(listener.local_addr()?)
}
