//! The configuration as the services see it: checked, typed, with durations as `Duration`.
//!
//! Each key is declared here once, with its name, type, unit and range; what it means to an operator is explained in
//! `config/default.yaml`. It deliberately cannot be built from unchecked parts: [`crate::load`] is the only way.

use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use chrono_tz::Tz;
use ipnet::IpNet;

use crate::form::{
    ADDRESS, AMQP_URLS, CLAIM, CLAIM_VALUES, CLIENT_ID, CLIENT_SECRET, ISSUER, KEY_LOGIN, LOG_FILTER,
    LOG_FORMAT, NETWORKS, PAGE_URL, POSTGRES_URL, PUBLIC_URL, QUEUE_PREFIX, SECRET_HTTP_URL, TIME_ZONE,
    TRACE, TRACE_URL,
};
use crate::section::sections;
use crate::unit::Unit::{Days, Hours, Millis, Seconds};
use crate::{Errors, PushKeys, Secret, Sources};

mod reseller;
mod webpush;

pub use reseller::{
    Brand, Egress, Embed, Health, Mail, Portal, Quota, Replay, Reseller, ResellerDelivery, ResellerEvent,
    ResellerRetry, Secrets, SubscriptionDefaults, Verification,
};
pub use webpush::{Webpush, WebpushConnection, WebpushEndpoint};

const MINUTES_10: u64 = 600_000;
const HOUR: u64 = 3_600_000;
const WEEK_IN_SECONDS: u64 = 604_800;
const YEAR_IN_HOURS: u64 = 8760;

/// The key of tests, in base64url. Made for this process, since a key that stands in the sources could be copied into an installation, which it would
/// not protect.
static TEST_KEY: LazyLock<String> = LazyLock::new(|| {
    let words = (0..4_u64).map(|word| RandomState::new().hash_one(word));
    let bytes: Vec<u8> = words.flat_map(u64::to_be_bytes).collect();
    URL_SAFE.encode(bytes)
});

sections! {
    /// The whole configuration. `Debug` shows no secret.
    pub struct Config {
        pub database: Database = section("database"),
        pub amqp: Amqp = section("amqp"),
        pub ingest: Ingest = section("ingest"),
        pub portal: Portal = section("portal"),
        pub operator: Operator = section("operator"),
        pub admin: Admin = section("admin"),
        pub swrve: Swrve = section("swrve"),
        pub push: Push = section("push"),
        pub reseller: Reseller = section("reseller"),
        pub mail: Mail = section("mail"),
        pub webpush: Webpush = section("webpush"),
        pub retention: Retention = section("retention"),
        pub telemetry: Telemetry = section("telemetry"),
        pub shutdown: ShutdownConfig = section("shutdown"),
        /// Kept as loaded, because only then is it known where each value came from.
        pub(crate) redacted_yaml: String = redacted_yaml(""),
    }
}

impl Config {
    /// The defaults with these two servers, with ports that the operating system chooses, and with a reseller lane that is on and
    /// may talk to this machine, with keys that are random and the same for all of a process. For tests, which may change any field afterwards.
    pub fn for_tests(database_url: &str, amqp_url: &str) -> Result<Self, Errors> {
        let sealing_key = TEST_KEY.replace('-', "+").replace('_', "/");
        crate::load(
            &Sources::default()
                .with_variable("DATABASE_URL", database_url)
                .with_variable("AMQP_URL", amqp_url)
                .with_variable("POSTRIDER__INGEST__LISTEN", "127.0.0.1:0")
                .with_variable("POSTRIDER__ADMIN__LISTEN", "127.0.0.1:0")
                .with_variable("POSTRIDER__PORTAL__LISTEN", "127.0.0.1:0")
                .with_variable("POSTRIDER__OPERATOR__LISTEN", "127.0.0.1:0")
                .with_variable("POSTRIDER__WEBPUSH__CONNECTION__LISTEN", "127.0.0.1:0")
                .with_variable("POSTRIDER__WEBPUSH__ENDPOINT__LISTEN", "127.0.0.1:0")
                .with_variable("POSTRIDER__WEBPUSH__CONNECTION__ROUTER_LISTEN", "127.0.0.1:0")
                .with_variable("POSTRIDER__WEBPUSH__KEYS", TEST_KEY.as_str())
                .with_variable("POSTRIDER__RESELLER__SECRETS__KEY", sealing_key)
                .with_variable(
                    "POSTRIDER__RESELLER__EGRESS__ALLOW_NETWORKS",
                    "127.0.0.0/8,::1/128",
                )
                .with_variable("POSTRIDER__RESELLER__EGRESS__ALLOW_HTTP", "true"),
        )
    }

    /// The most sends to Swrve that may be in flight, besides the reader's own one: `swrve.averageProcessingMillis / swrve.delayMillis`.
    pub fn pool_size(&self) -> usize {
        let size = self.swrve.average_processing.as_millis() / self.swrve.delay.as_millis().max(1);
        usize::try_from(size).unwrap_or(usize::MAX)
    }

    /// How long a full queue takes to be sent: `push.queue.capacity * swrve.delayMillis`.
    pub fn queue_drain(&self) -> Duration {
        self.swrve.delay.saturating_mul(self.push.queue.capacity)
    }

    /// The effective configuration as it was loaded, as YAML without secrets, each value that is not the default with a note where
    /// it came from. It can be given back as a configuration file once the secrets are filled in.
    pub fn redacted_yaml(&self) -> &str {
        &self.redacted_yaml
    }
}

sections! {
    /// The PostgreSQL server.
    pub struct Database {
        /// A `postgres://` URL.
        pub url: Secret = required("url", &POSTGRES_URL, "DATABASE_URL"),
        /// Most connections this process holds for everything that has none of its own.
        pub max_connections: u32 = integer("maxConnections", 2..=1000),
        /// Most connections that a dispatcher holds for the push lane.
        pub push_connections: u32 = integer("pushConnections", 2..=1000),
        /// Most connections that this process holds for leases.
        pub lease_connections: u32 = integer("leaseConnections", 1..=100),
        /// Longest wait for a free connection.
        pub acquire_timeout: Duration = duration("acquireTimeoutMillis", Millis, 10..=MINUTES_10),
    }

    /// The RabbitMQ server.
    pub struct Amqp {
        /// An `amqp://` or `amqps://` URL, or several of them separated by commas, one for each node of a cluster.
        pub url: Secret = required("url", &AMQP_URLS, "AMQP_URL"),
        /// Put before the name of every queue and exchange; empty in production.
        pub queue_prefix: String = text("queuePrefix", &QUEUE_PREFIX),
        /// Longest wait for a publisher confirm.
        pub confirm_timeout: Duration = duration("confirmTimeoutMillis", Millis, 10..=MINUTES_10),
        /// Most messages published but not confirmed yet.
        pub max_unconfirmed: u32 = integer("maxUnconfirmed", 1..=100_000),
    }

    /// The service that receives pushes.
    pub struct Ingest {
        /// Where it listens.
        pub listen: SocketAddr = text("listen", &ADDRESS),
        /// Largest request body in bytes.
        pub max_body_bytes: usize = integer("maxBodyBytes", 1024..=16_777_216),
        /// Longest time for one request.
        pub request_timeout: Duration = duration("requestTimeoutMillis", Millis, 10..=MINUTES_10),
        /// Most connections at once.
        pub max_connections: usize = integer("maxConnections", 1..=1_000_000),
        /// How many group commits may run at once.
        pub writers: usize = integer("writers", 1..=256),
        /// Most rows in one group commit.
        pub batch_rows: usize = integer("batchRows", 1..=5000),
    }

    /// The service that the operators of the installation talk to.
    pub struct Operator {
        /// Where it listens.
        pub listen: SocketAddr = text("listen", &ADDRESS),
        /// Largest request body in bytes.
        pub max_body_bytes: usize = integer("maxBodyBytes", 1024..=16_777_216),
        /// Most connections at once.
        pub max_connections: usize = integer("maxConnections", 1..=1_000_000),
        /// Longest time for one request.
        pub request_timeout: Duration = duration("requestTimeoutMillis", Millis, 10..=MINUTES_10),
        /// Whether it serves the pages of the on-call console, under `/console`.
        pub console: bool = boolean("console"),
        /// Where browsers reach it, without a trailing slash.
        pub public_url: Option<String> = optional("publicUrl", &PUBLIC_URL),
        /// Where traces are looked at, if that is said; see [`Operator::trace_at`].
        pub trace_url: Option<String> = optional("traceUrl", &TRACE_URL),
        /// Where the runbook is read, without a trailing slash; the section that is meant is a fragment of it.
        pub runbook_url: Option<String> = optional("runbookUrl", &PAGE_URL),
        /// The proxies whose `X-Forwarded-For` is believed.
        pub trusted_proxies: Vec<IpNet> = list("trustedProxies", &NETWORKS),
        /// When the console takes API keys from people, if that is said; see [`Operator::key_login`].
        pub key_login_setting: Option<KeyLogin> = optional("keyLogin", &KEY_LOGIN),
        /// Signing in to the console with a provider.
        pub oidc: Oidc = section("oidc"),
    }

    /// Signing in with a provider of OpenID Connect.
    pub struct Oidc {
        /// Its identifier, to the last slash; `None` when only keys open the console.
        pub issuer: Option<String> = optional("issuer", &ISSUER),
        /// What the provider calls us.
        pub client_id: Option<String> = optional("clientId", &CLIENT_ID),
        /// What proves that it is us; `None` of a public client.
        pub client_secret: Option<Secret> = optional("clientSecret", &CLIENT_SECRET),
        /// The claim whose values say what a person may.
        pub roles_claim: String = text("rolesClaim", &CLAIM),
        /// Which values they are.
        pub roles: OidcRoles = section("roles"),
    }

    /// The values of the claim by role.
    pub struct OidcRoles {
        /// Those of viewers.
        pub viewer: Vec<String> = list("viewer", &CLAIM_VALUES),
        /// Those of operators.
        pub operator: Vec<String> = list("operator", &CLAIM_VALUES),
        /// Those of administrators.
        pub admin: Vec<String> = list("admin", &CLAIM_VALUES),
    }

    /// The listener for `/healthz`, `/readyz` and `/metrics` that each process has.
    pub struct Admin {
        /// Where it listens.
        pub listen: SocketAddr = text("listen", &ADDRESS),
    }

    /// The Swrve push API.
    pub struct Swrve {
        /// Base URL without a trailing slash.
        pub url: Secret = text("url", &SECRET_HTTP_URL),
        /// Least time between two send starts.
        pub delay: Duration = duration("delayMillis", Millis, 4..=60_000)
            because "Swrve answers more than 300 requests per second with 429, Rate Limit Exceeded",
        /// Expected average response time; with `delay` it gives [`Config::pool_size`].
        pub average_processing: Duration = duration("averageProcessingMillis", Millis, 4..=MINUTES_10),
        /// Longest wait for one answer.
        pub timeout: Duration = duration("timeoutMillis", Millis, 100..=MINUTES_10),
        /// Whether a push is tried again after a timeout or a broken connection; otherwise it has failed.
        pub retry_on_timeout: bool = boolean("retryOnTimeout"),
        /// Whether pushes are sent as test pushes.
        pub test: bool = boolean("test"),
        /// Push keys by message prototype and platform.
        pub message_prototype_push_keys: PushKeys = push_keys("messagePrototypePushKeys"),
    }

    /// The push lane.
    pub struct Push {
        /// In which cron expressions are read.
        pub time_zone: Tz = text("timeZone", &TIME_ZONE),
        /// Largest message in bytes of UTF-8.
        pub message_max_bytes: usize = integer("messageMaxBytes", 1..=1_048_576),
        /// Largest device id (`pushKey` of a request) in bytes of UTF-8.
        pub push_key_max_bytes: usize = integer("pushKeyMaxBytes", 1..=65_536),
        /// The queue of pushes to send.
        pub queue: Queue = section("queue"),
        /// Repeated attempts.
        pub retry: Retry = section("retry"),
        /// Sending windows.
        pub cron: Cron = section("cron"),
        /// The lease of the one sender.
        pub leader: Leader = section("leader"),
        /// The two periodic jobs.
        pub job: Jobs = section("job"),
        /// The search for lost pushes.
        pub rescue: Rescue = section("rescue"),
        /// Monthly partitions.
        pub partitions: Partitions = section("partitions"),
        /// Idempotency keys.
        pub idempotency: Idempotency = section("idempotency"),
    }

    /// A queue of work at the broker.
    pub struct Queue {
        /// Most messages in it.
        pub capacity: u32 = integer("capacity", 2..=10_000_000),
    }

    /// Repeated attempts to send a push.
    pub struct Retry {
        /// Least time between two attempts.
        pub delay: Duration = duration("delayInSeconds", Seconds, 0..=WEEK_IN_SECONDS),
        /// Most attempts, the first one included.
        pub max_attempts: u32 = integer("maxAttempts", 1..=1000),
    }

    /// Sending windows given by cron expressions.
    pub struct Cron {
        /// How long after its window a push that waited in the queue may still be sent.
        pub grace: Duration = duration("graceMillis", Millis, 0..=HOUR),
    }

    /// The lease of the one sender.
    pub struct Leader {
        /// How long it is valid without renewal.
        pub ttl: Duration = duration("ttlMillis", Millis, 100..=4000)
            because "a standby must take over within 5 s",
        /// How often it is renewed and watched.
        pub poll: Duration = duration("pollMillis", Millis, 10..=4000),
    }

    /// The two periodic jobs that fill the queue.
    pub struct Jobs {
        /// Puts scheduled pushes and due retries into the queue.
        pub send_scheduled: Job = section("sendScheduled"),
        /// Puts pushes that found the queue full into it.
        pub send_pending: Job = section("sendPending"),
    }

    /// A periodic job.
    pub struct Job {
        /// From the start of the process to the first execution.
        pub start_delay: Duration = duration("startDelay", Millis, 0..=HOUR),
        /// From one execution to the next.
        pub repeat_interval: Duration = duration("repeatInterval", Millis, 10..=HOUR),
        /// Most pushes handled in one execution.
        pub portion_size: u32 = integer("portionSize", 1..=1_000_000),
    }

    /// The search for pushes whose lease ran out.
    pub struct Rescue {
        /// From one search to the next.
        pub repeat_interval: Duration = duration("repeatInterval", Millis, 10..=HOUR),
    }

    /// How long is kept what no month is dropped with, from its end on.
    pub struct Retention {
        /// Dead letters that were resolved, and jobs on dead letters.
        pub dead_letters: Duration = duration("deadLettersInDays", Days, 1..=36_500),
        /// Dead letters that are still open, from their beginning on.
        pub open_dead_letters: Duration = duration("openDeadLettersInDays", Days, 1..=36_500),
        /// Mails.
        pub mails: Duration = duration("mailsInDays", Days, 1..=36_500),
        /// The hours of the statistics of deliveries.
        pub statistics: Duration = duration("statisticsInDays", Days, 1..=36_500),
        /// Replays.
        pub replays: Duration = duration("replaysInDays", Days, 1..=36_500),
        /// Signing secrets that were revoked or expired, and those of deleted subscriptions.
        pub secrets: Duration = duration("secretsInDays", Days, 1..=36_500),
        /// Deleted subscriptions.
        pub subscriptions: Duration = duration("subscriptionsInDays", Days, 1..=36_500),
        /// The audit log, outages that are over, and quota requests that were decided.
        pub audit: Duration = duration("auditInDays", Days, 1..=36_500),
    }

    /// Monthly partitions of the big tables, of both lanes.
    pub struct Partitions {
        /// How many months are created ahead.
        pub months_ahead: u32 = integer("monthsAhead", 1..=24),
        /// How many past months are kept.
        pub retention_months: u32 = integer("retentionMonths", 1..=1200),
    }

    /// Idempotency keys of requests.
    pub struct Idempotency {
        /// How long an answer is remembered.
        pub retention: Duration = duration("retentionHours", Hours, 1..=YEAR_IN_HOURS),
    }

    /// Logs, metrics and traces.
    pub struct Telemetry {
        /// How log lines look.
        pub log_format: LogFormat = text("logFormat", &LOG_FORMAT),
        /// Which log lines are written, as `tracing` directives.
        pub log_filter: String = text("logFilter", &LOG_FILTER),
        /// Base URL of an OTLP/HTTP collector; `None` switches traces off.
        pub otlp_endpoint: Option<Secret> = optional("otlpEndpoint", &SECRET_HTTP_URL),
        /// Whether the collector gets the log lines too.
        pub otlp_logs: bool = boolean("otlpLogs"),
        /// Whether the collector gets the metrics too.
        pub otlp_metrics: bool = boolean("otlpMetrics"),
        /// How often it gets them.
        pub otlp_metrics_interval: Duration = duration("otlpMetricsIntervalMillis", Millis, 100..=HOUR),
        /// Share of new traces that is recorded, 0 to 1.
        pub sample_ratio: f64 = ratio("sampleRatio"),
    }

    /// How a process stops.
    pub struct ShutdownConfig {
        /// How long work in flight may take to finish.
        pub grace_period: Duration = duration("gracePeriodMillis", Millis, 0..=MINUTES_10),
    }
}

/// When the console takes API keys from people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLogin {
    /// At any time.
    Always,
    /// While the provider does not answer.
    Emergency,
    /// Not at all.
    Never,
}

impl Operator {
    /// When the console takes API keys from people: with a provider only in an emergency, unless it is said otherwise.
    pub fn key_login(&self) -> KeyLogin {
        let default = match self.oidc.issuer {
            Some(_) => KeyLogin::Emergency,
            None => KeyLogin::Always,
        };
        self.key_login_setting.unwrap_or(default)
    }

    /// Where the trace with this id is looked at; `None` where it is not known where traces are.
    pub fn trace_at(&self, id: &str) -> Option<String> {
        self.trace_url.as_ref().map(|url| url.replace(TRACE, id))
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Human,
    /// One JSON object per line.
    Json,
}
