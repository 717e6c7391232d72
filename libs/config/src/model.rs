//! The configuration as the services see it: checked, typed, with durations as `Duration`.
//!
//! The meaning and the range of every field are explained once, in `config/default.yaml`; here stands only what a reader of the
//! code needs. It deliberately cannot be built from unchecked parts: [`crate::load`] is the only way.

use std::net::SocketAddr;
use std::time::Duration;

use chrono_tz::Tz;

use crate::{Errors, PushKeys, Secret, Sources};

mod reseller;

pub(crate) use reseller::sealing_key;
pub use reseller::{
    Egress, Health, Mail, Portal, Quota, Replay, Reseller, ResellerDelivery, ResellerEvent, ResellerRetry,
    Secrets, SubscriptionDefaults, Verification,
};

/// Seals the signing secrets of tests. It is public, so it protects nothing.
const TEST_SEALING_KEY: &str = "cG9zdHJpZGVyLXRlc3QtcG9zdHJpZGVyLXRlc3QtMDA=";

/// The whole configuration. `Debug` shows no secret.
#[derive(Clone, Debug)]
pub struct Config {
    /// `database`
    pub database: Database,
    /// `amqp`
    pub amqp: Amqp,
    /// `ingest`
    pub ingest: Ingest,
    /// `portal`
    pub portal: Portal,
    /// `operator`
    pub operator: Operator,
    /// `admin`
    pub admin: Admin,
    /// `swrve`
    pub swrve: Swrve,
    /// `push`
    pub push: Push,
    /// `reseller`
    pub reseller: Reseller,
    /// `mail`
    pub mail: Mail,
    /// `retention`
    pub retention: Retention,
    /// `telemetry`
    pub telemetry: Telemetry,
    /// `shutdown`
    pub shutdown: ShutdownConfig,
    /// Kept as loaded, because only then is it known where each value came from.
    pub(crate) redacted_yaml: String,
}

impl Config {
    /// The defaults with these two servers, with ports that the operating system chooses, and with a reseller lane that is on and
    /// may talk to this machine. For tests, which may change any field afterwards.
    pub fn for_tests(database_url: &str, amqp_url: &str) -> Result<Self, Errors> {
        crate::load(
            &Sources::default()
                .with_variable("DATABASE_URL", database_url)
                .with_variable("AMQP_URL", amqp_url)
                .with_variable("POSTRIDER__INGEST__LISTEN", "127.0.0.1:0")
                .with_variable("POSTRIDER__ADMIN__LISTEN", "127.0.0.1:0")
                .with_variable("POSTRIDER__PORTAL__LISTEN", "127.0.0.1:0")
                .with_variable("POSTRIDER__OPERATOR__LISTEN", "127.0.0.1:0")
                .with_variable("POSTRIDER__RESELLER__SECRETS__KEY", TEST_SEALING_KEY)
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

/// The PostgreSQL server.
#[derive(Clone, Debug)]
pub struct Database {
    /// A `postgres://` URL.
    pub url: Secret,
    /// Most connections this process holds for everything that has none of its own.
    pub max_connections: u32,
    /// Most connections that a dispatcher holds for the push lane.
    pub push_connections: u32,
    /// Most connections that this process holds for leases.
    pub lease_connections: u32,
    /// Longest wait for a free connection.
    pub acquire_timeout: Duration,
}

/// The RabbitMQ server.
#[derive(Clone, Debug)]
pub struct Amqp {
    /// An `amqp://` or `amqps://` URL, or several of them separated by commas, one for each node of a cluster.
    pub url: Secret,
    /// Put before the name of every queue and exchange; empty in production.
    pub queue_prefix: String,
    /// Longest wait for a publisher confirm.
    pub confirm_timeout: Duration,
    /// Most messages published but not confirmed yet.
    pub max_unconfirmed: u32,
}

/// The service that receives pushes.
#[derive(Clone, Debug)]
pub struct Ingest {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Largest request body in bytes.
    pub max_body_bytes: usize,
    /// Longest time for one request.
    pub request_timeout: Duration,
    /// Most connections at once.
    pub max_connections: usize,
    /// How many group commits may run at once.
    pub writers: usize,
    /// Most rows in one group commit.
    pub batch_rows: usize,
}

/// The service that the operators of the installation talk to.
#[derive(Clone, Debug)]
pub struct Operator {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Largest request body in bytes.
    pub max_body_bytes: usize,
    /// Most connections at once.
    pub max_connections: usize,
    /// Longest time for one request.
    pub request_timeout: Duration,
}

/// The listener for `/healthz`, `/readyz` and `/metrics` that each process has.
#[derive(Clone, Debug)]
pub struct Admin {
    /// Where it listens.
    pub listen: SocketAddr,
}

/// The Swrve push API.
#[derive(Clone, Debug)]
pub struct Swrve {
    /// Base URL without a trailing slash.
    pub url: String,
    /// Least time between two send starts.
    pub delay: Duration,
    /// Expected average response time; with `delay` it gives [`Config::pool_size`].
    pub average_processing: Duration,
    /// Longest wait for one answer.
    pub timeout: Duration,
    /// Whether a push is tried again after a timeout or a broken connection; otherwise it has failed.
    pub retry_on_timeout: bool,
    /// Whether pushes are sent as test pushes.
    pub test: bool,
    /// Push keys by message prototype and platform.
    pub message_prototype_push_keys: PushKeys,
}

/// The push lane.
#[derive(Clone, Debug)]
pub struct Push {
    /// In which cron expressions are read.
    pub time_zone: Tz,
    /// Largest message in bytes of UTF-8.
    pub message_max_bytes: usize,
    /// Largest device id (`pushKey` of a request) in bytes of UTF-8.
    pub push_key_max_bytes: usize,
    /// The queue of pushes to send.
    pub queue: Queue,
    /// Repeated attempts.
    pub retry: Retry,
    /// Sending windows.
    pub cron: Cron,
    /// The lease of the one sender.
    pub leader: Leader,
    /// The two periodic jobs.
    pub job: Jobs,
    /// The search for lost pushes.
    pub rescue: Rescue,
    /// Monthly partitions.
    pub partitions: Partitions,
    /// Idempotency keys.
    pub idempotency: Idempotency,
}

/// A queue of work at the broker.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Most messages in it.
    pub capacity: u32,
}

/// Repeated attempts to send a push.
#[derive(Clone, Debug)]
pub struct Retry {
    /// Least time between two attempts.
    pub delay: Duration,
    /// Most attempts, the first one included.
    pub max_attempts: u32,
}

/// Sending windows given by cron expressions.
#[derive(Clone, Debug)]
pub struct Cron {
    /// How long after its window a push that waited in the queue may still be sent.
    pub grace: Duration,
}

/// The lease of the one sender.
#[derive(Clone, Debug)]
pub struct Leader {
    /// How long it is valid without renewal.
    pub ttl: Duration,
    /// How often it is renewed and watched.
    pub poll: Duration,
}

/// The two periodic jobs that fill the queue.
#[derive(Clone, Debug)]
pub struct Jobs {
    /// Puts scheduled pushes and due retries into the queue.
    pub send_scheduled: Job,
    /// Puts pushes that found the queue full into it.
    pub send_pending: Job,
}

/// A periodic job.
#[derive(Clone, Debug)]
pub struct Job {
    /// From the start of the process to the first execution.
    pub start_delay: Duration,
    /// From one execution to the next.
    pub repeat_interval: Duration,
    /// Most pushes handled in one execution.
    pub portion_size: u32,
}

/// The search for pushes whose lease ran out.
#[derive(Clone, Debug)]
pub struct Rescue {
    /// From one search to the next.
    pub repeat_interval: Duration,
}

/// How long is kept what no month is dropped with, from its end on.
#[derive(Clone, Debug)]
pub struct Retention {
    /// Dead letters that were resolved, and jobs on dead letters.
    pub dead_letters: Duration,
    /// Dead letters that are still open, from their beginning on.
    pub open_dead_letters: Duration,
    /// Mails.
    pub mails: Duration,
    /// The hours of the statistics of deliveries.
    pub statistics: Duration,
    /// Replays.
    pub replays: Duration,
    /// Signing secrets that were revoked or expired, and those of deleted subscriptions.
    pub secrets: Duration,
    /// Deleted subscriptions.
    pub subscriptions: Duration,
    /// The audit log, and quota requests that were decided.
    pub audit: Duration,
}

/// Monthly partitions of the big tables, of both lanes.
#[derive(Clone, Debug)]
pub struct Partitions {
    /// How many months are created ahead.
    pub months_ahead: u32,
    /// How many past months are kept.
    pub retention_months: u32,
}

/// Idempotency keys of requests.
#[derive(Clone, Debug)]
pub struct Idempotency {
    /// How long an answer is remembered.
    pub retention: Duration,
}

/// Logs and traces.
#[derive(Clone, Debug)]
pub struct Telemetry {
    /// How log lines look.
    pub log_format: LogFormat,
    /// Which log lines are written, as `tracing` directives.
    pub log_filter: String,
    /// Base URL of an OTLP/HTTP collector; `None` switches traces off.
    pub otlp_endpoint: Option<String>,
    /// Share of new traces that is recorded, 0 to 1.
    pub sample_ratio: f64,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Human,
    /// One JSON object per line.
    Json,
}

/// How a process stops.
#[derive(Clone, Debug)]
pub struct ShutdownConfig {
    /// How long work in flight may take to finish.
    pub grace_period: Duration,
}
