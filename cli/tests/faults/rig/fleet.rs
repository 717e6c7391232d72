//! The services of one test: how they are configured, where their logs go, and where callers find them.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::push::Platform;
use reqwest::Client;
use serde_json::{Value, json};
use simulators::smtp::SmtpSink;
use testkit::{Installation, PATIENT, SWRVE_KEYS};
use tokio::net::TcpListener;

use super::callers::{Callers, Door, Submission};
use super::logs::Logs;
use super::portal::Portal;
use super::process::Process;

/// Longer than any request should take; callers ask again after it.
const REQUEST_LIMIT: Duration = Duration::from_secs(90);

/// What the services and a test that connects beside them must agree on.
pub(crate) const PUSH_QUEUE_CAPACITY: u32 = 1_000;

/// The services that can be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    IngestApi,
    Dispatcher,
    RetryWorker,
    ResellerPortal,
    OperatorApi,
    WebpushEndpoint,
    WebpushConnection,
}

impl Service {
    /// Those that everything goes through.
    pub(crate) const ALL: [Self; 3] = [Self::IngestApi, Self::Dispatcher, Self::RetryWorker];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::IngestApi => "ingest-api",
            Self::Dispatcher => "dispatcher",
            Self::RetryWorker => "retry-worker",
            Self::ResellerPortal => "reseller-portal",
            Self::OperatorApi => "operator-api",
            Self::WebpushEndpoint => "webpush-endpoint",
            Self::WebpushConnection => "webpush-connection",
        }
    }
}

/// What every process of a test is started with.
#[derive(Clone)]
pub(crate) struct Fleet {
    /// The one under test, unless some are of another version.
    binary: PathBuf,
    settings: Vec<(&'static str, String)>,
    logs: Arc<Logs>,
    http: Client,
    /// Where instances of ingest-api listened, the dead ones included.
    addresses: Arc<Mutex<Vec<String>>>,
    turns: Arc<AtomicUsize>,
    key: String,
    started: Rc<Cell<usize>>,
}

impl Fleet {
    /// Everything on the installation of the test, which must not change any more.
    pub(crate) async fn of(it: &Installation) -> Self {
        Self::running(Path::new(env!("CARGO_BIN_EXE_postrider")), it).await
    }

    /// [`Self::of`] with processes of another build.
    pub(crate) async fn running(binary: &Path, it: &Installation) -> Self {
        lifecycle::crypto::install_default_provider();
        let settings = known_to(binary, settings(it));
        let http = Client::builder()
            .timeout(REQUEST_LIMIT)
            .no_proxy()
            .build()
            .expect("a client can be built");
        let key = make_key(binary, "--name callers --role ingest", &settings).await;
        Self {
            binary: binary.to_owned(),
            settings,
            logs: Arc::new(Logs::new()),
            http,
            addresses: Arc::default(),
            turns: Arc::default(),
            key,
            started: Rc::default(),
        }
    }

    /// The same services of the build under test: callers cannot tell whose instance of ingest-api they have reached.
    pub(crate) fn of_this_version(&self, it: &Installation) -> Self {
        Self {
            binary: PathBuf::from(env!("CARGO_BIN_EXE_postrider")),
            settings: settings(it),
            ..self.clone()
        }
    }

    /// With another setting than usual.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "so that it can be a number as well as a text"
    )]
    pub(crate) fn with(mut self, variable: &'static str, value: impl ToString) -> Self {
        self.settings.push((variable, value.to_string()));
        self
    }

    /// With what the services of Web Push need.
    pub(crate) fn with_webpush(self) -> Self {
        self.with(
            "POSTRIDER__WEBPUSH__KEYS",
            "ahsxBmOXR-N04gL44_0nsRjzEQI_YdZ4xObdHcC0HVM=",
        )
        .with("POSTRIDER__WEBPUSH__ENDPOINT__LISTEN", "127.0.0.1:0")
        .with("POSTRIDER__WEBPUSH__CONNECTION__LISTEN", "127.0.0.1:0")
        .with("POSTRIDER__WEBPUSH__CONNECTION__ROUTER_LISTEN", "127.0.0.1:0")
    }

    /// Starts a process and waits until it is ready.
    pub(crate) async fn start(&self, service: Service) -> Process {
        self.start_with(service, &[]).await
    }

    /// [`Self::start`] with settings that the other processes do not have.
    pub(crate) async fn start_with(&self, service: Service, settings: &[(&'static str, String)]) -> Process {
        let mut process = self.start_unready(service, settings).await;
        process.ready().await;
        if service == Service::IngestApi {
            let address = process.address_logged_with("listening").await;
            let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            addresses.push(address);
        }
        process
    }

    /// Starts a process that need not be ready; callers do not know it.
    pub(crate) async fn start_unready(
        &self,
        service: Service,
        settings: &[(&'static str, String)],
    ) -> Process {
        let number = self.started.replace(self.started.get() + 1);
        let log = self.logs.dir.join(format!("{number}-{}.log", service.name()));
        let mut command = self.command(&format!("serve {}", service.name()));
        command.envs(settings.iter().map(|(variable, value)| (variable, value)));
        Process::start(&mut command, log, self.http.clone()).await
    }

    /// One process of each service, in the order of [`Service::ALL`].
    pub(crate) async fn start_all(&self) -> [Process; 3] {
        let [ingest, dispatcher, worker] = Service::ALL.map(|service| self.start(service));
        tokio::join!(ingest, dispatcher, worker).into()
    }

    /// With a mail server that keeps what comes.
    pub(crate) async fn with_mail_server(self) -> (Self, simulators::smtp::Running) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let sink = SmtpSink::start(listener, &self.logs.dir.join("mail")).expect("the sink starts");
        let url = format!("smtp://{}", sink.addr());
        (self.with("POSTRIDER__MAIL__SMTP_URL", url), sink)
    }

    /// Starts the portal and goes there as a reseller.
    pub(crate) async fn portal(&self, reseller: &str) -> Portal {
        let mut process = self.start(Service::ResellerPortal).await;
        let create = format!("--name {reseller} --role reseller --reseller {reseller}");
        Portal {
            address: process.address_logged_with("listening").await,
            process,
            http: self.http.clone(),
            key: make_key(&self.binary, &create, &self.settings).await,
            traceparent: None,
        }
    }

    /// A command of the binary, with the settings of the services.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        command(&self.binary, arguments, &self.settings)
    }

    /// From now on callers know none of the instances of ingest-api that were started so far.
    pub(crate) fn forget_addresses(&self) {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.clear();
    }

    /// The way in for callers.
    pub(crate) fn door(&self) -> Door {
        Door {
            http: self.http.clone(),
            key: self.key.clone(),
            addresses: Arc::clone(&self.addresses),
            turns: Arc::clone(&self.turns),
        }
    }

    /// Has pushes or events handed in by several callers at once, in the background.
    pub(crate) fn hand_in<S: Submission>(&self, submissions: Vec<S>) -> Callers {
        Callers::start(&self.door(), submissions)
    }
}

fn command(binary: &Path, arguments: &str, settings: &[(&'static str, String)]) -> Command {
    let mut command = Command::new(binary);
    command
        .args(arguments.split_whitespace())
        .env_clear()
        .envs(settings.iter().map(|(variable, value)| (variable, value)));
    command
}

/// Makes an API key with the arguments given.
async fn make_key(binary: &Path, arguments: &str, settings: &[(&'static str, String)]) -> String {
    let mut create = command(binary, &format!("keys create {arguments}"), settings);
    // Not on the test's own thread, on which the way to the database may be.
    let output = tokio::task::spawn_blocking(move || create.output()).await;
    let output = output.expect("it does not panic").expect("the binary can be run");
    assert!(output.status.success(), "{output:?}");
    let key = String::from_utf8(output.stdout).expect("a key is text");
    key.trim().to_owned()
}

/// What a build understands of these settings: it refuses what it does not know, and names it.
fn known_to(binary: &Path, mut settings: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    let check = command(binary, "config check", &settings).output();
    let said = String::from_utf8(check.expect("the binary can be run").stderr).expect("text");
    settings.retain(|(variable, _)| !said.contains(&format!("{variable}: unknown variable")));
    settings
}

fn settings(it: &Installation) -> Vec<(&'static str, String)> {
    let push_keys = |prototype: &str| {
        let keys = Platform::ALL.map(|platform| {
            let name = platform.as_str();
            (name.to_owned(), json!(format!("{prototype}-{name}")))
        });
        (prototype.to_owned(), Value::from_iter(keys))
    };
    let sealing_key = it.config.reseller.secrets.key.as_ref();
    let mut settings = vec![
        ("DATABASE_URL", it.config.database.url.expose().to_owned()),
        ("AMQP_URL", it.config.amqp.url.expose().to_owned()),
        (
            "POSTRIDER__AMQP__QUEUE_PREFIX",
            it.config.amqp.queue_prefix.clone(),
        ),
        ("POSTRIDER__SWRVE__URL", it.config.swrve.url.expose().to_owned()),
        (
            "POSTRIDER__SWRVE__MESSAGE_PROTOTYPE_PUSH_KEYS",
            Value::from_iter(SWRVE_KEYS.map(push_keys)).to_string(),
        ),
        ("POSTRIDER__DATABASE__MAX_CONNECTIONS", "4".to_owned()),
        ("POSTRIDER__INGEST__LISTEN", "127.0.0.1:0".to_owned()),
        ("POSTRIDER__PORTAL__LISTEN", "127.0.0.1:0".to_owned()),
        ("POSTRIDER__OPERATOR__LISTEN", "127.0.0.1:0".to_owned()),
        ("POSTRIDER__ADMIN__LISTEN", "127.0.0.1:0".to_owned()),
        ("POSTRIDER__TELEMETRY__LOG_FORMAT", "json".to_owned()),
        // A pool of 100, a lease of 19 s in the queue.
        ("POSTRIDER__SWRVE__AVERAGE_PROCESSING_MILLIS", "400".to_owned()),
        (
            "POSTRIDER__PUSH__QUEUE__CAPACITY",
            PUSH_QUEUE_CAPACITY.to_string(),
        ),
        ("POSTRIDER__PUSH__RETRY__DELAY_IN_SECONDS", "1".to_owned()),
        // A leader that gets no processor time for so long is taken for dead.
        ("POSTRIDER__PUSH__LEADER__TTL_MILLIS", "4000".to_owned()),
        // Whatever a slow machine makes of attempts, nothing is given up, unless a test is about that.
        ("POSTRIDER__PUSH__RETRY__MAX_ATTEMPTS", "100".to_owned()),
        ("POSTRIDER__RESELLER__RETRY__MAX_RETRIES", "100".to_owned()),
        (
            "POSTRIDER__RESELLER__SECRETS__KEY",
            sealing_key.expect("tests have a key").expose().to_owned(),
        ),
        (
            "POSTRIDER__RESELLER__EGRESS__ALLOW_NETWORKS",
            "127.0.0.0/8".to_owned(),
        ),
        ("POSTRIDER__RESELLER__EGRESS__ALLOW_HTTP", "true".to_owned()),
        ("POSTRIDER__MAIL__CONFIRM_ADDRESSES", "false".to_owned()),
        (
            "POSTRIDER__RESELLER__RETRY__INITIAL_DELAY_IN_SECONDS",
            "1".to_owned(),
        ),
        ("POSTRIDER__RESELLER__RETRY__MAX_DELAY_IN_SECONDS", "1".to_owned()),
    ];
    settings.extend(PATIENT.map(|(variable, value)| (variable, value.to_owned())));
    settings
}
