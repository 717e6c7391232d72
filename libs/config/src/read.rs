//! Every key with its type, unit and range: from the layered values to [`Config`].
//!
//! It deliberately does not explain the keys; `config/default.yaml` does, and a test compares the ranges there with these.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

use crate::layers::Layers;
use crate::reader::Reader;
use crate::unit::Unit;
use crate::{
    Admin, Amqp, Config, Cron, Database, Errors, Idempotency, Ingest, Job, Jobs, Leader, LogFormat, Operator,
    Origin, Partitions, Push, Queue, Rescue, Retention, Retry, ShutdownConfig, Sources, Swrve, Telemetry,
    render, rules, urls,
};

mod push_keys;
mod reseller;

const HTTP_URL: &str = "an http:// or https:// URL";
const ADDRESS: &str = "an address and port such as 127.0.0.1:8080";
const TIME_ZONE: &str = "a time zone of the IANA database such as Europe/Riga";
const AVERAGE_PROCESSING: &str = "swrve.averageProcessingMillis";
const MINUTES_10: u64 = 600_000;
const CONNECTIONS: RangeInclusive<u64> = 1..=1_000_000;
const HOUR: u64 = 3_600_000;

/// Reads the configuration: the defaults, the file over them, the environment over that.
pub fn load(sources: &Sources) -> Result<Config, Errors> {
    load_with(sources, rules::check)
}

/// Reads the configuration and asks, besides, for what an installation needs before others rely on it.
pub fn load_for_production(sources: &Sources) -> Result<Config, Errors> {
    load_with(sources, |config, reader| {
        rules::check(config, reader);
        rules::check_for_production(config, reader);
    })
}

/// `swrve.averageProcessingMillis`, when the file or the environment sets it. What else a service needs may be missing.
pub fn given_average_processing(sources: &Sources) -> Result<Option<Duration>, Errors> {
    let mut reader = Reader::new(Layers::of(sources));
    let given = reader.layers().entry(AVERAGE_PROCESSING).origin != Origin::Default;
    let average = average_processing(&mut reader);
    let problems = reader.into_problems();
    if problems.is_empty() {
        Ok(given.then_some(average))
    } else {
        Err(Errors::new(problems))
    }
}

fn load_with(sources: &Sources, check: impl FnOnce(&Config, &mut Reader)) -> Result<Config, Errors> {
    let mut reader = Reader::new(Layers::of(sources));
    let mut config = config(&mut reader);
    check(&config, &mut reader);
    config.redacted_yaml = render::redacted(reader.layers());
    let problems = reader.into_problems();
    if problems.is_empty() {
        Ok(config)
    } else {
        Err(Errors::new(problems))
    }
}

pub(crate) fn config(reader: &mut Reader) -> Config {
    Config {
        database: database(reader),
        amqp: amqp(reader),
        ingest: ingest(reader),
        portal: reseller::portal(reader),
        operator: operator(reader),
        admin: Admin {
            listen: address(reader, "admin.listen"),
        },
        swrve: swrve(reader),
        push: push(reader),
        reseller: reseller::reseller(reader),
        mail: reseller::mail(reader),
        retention: retention(reader),
        telemetry: telemetry(reader),
        shutdown: ShutdownConfig {
            grace_period: reader.duration("shutdown.gracePeriodMillis", Unit::Millis, 0..=MINUTES_10),
        },
        redacted_yaml: String::new(),
    }
}

fn database(reader: &mut Reader) -> Database {
    Database {
        url: reader.required_secret("database.url", "a postgres:// URL", |url| {
            url.starts_with("postgres://") || url.starts_with("postgresql://")
        }),
        max_connections: reader.integer("database.maxConnections", 2..=1000),
        push_connections: reader.integer("database.pushConnections", 2..=1000),
        lease_connections: reader.integer("database.leaseConnections", 1..=100),
        acquire_timeout: reader.duration("database.acquireTimeoutMillis", Unit::Millis, 10..=MINUTES_10),
    }
}

fn amqp(reader: &mut Reader) -> Amqp {
    const URLS_FORM: &str =
        "an amqp:// or amqps:// URL, or several of them separated by commas, one for each node of a cluster";
    const PREFIX_FORM: &str = "up to 64 letters, digits, dots, hyphens and underscores";
    Amqp {
        url: reader.required_secret("amqp.url", URLS_FORM, urls::are_amqp),
        queue_prefix: reader.parsed("amqp.queuePrefix", PREFIX_FORM, String::new(), |prefix| {
            let valid = prefix
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
            (valid && prefix.len() <= 64).then(|| prefix.to_owned())
        }),
        confirm_timeout: reader.duration("amqp.confirmTimeoutMillis", Unit::Millis, 10..=MINUTES_10),
        max_unconfirmed: reader.integer("amqp.maxUnconfirmed", 1..=100_000),
    }
}

fn ingest(reader: &mut Reader) -> Ingest {
    Ingest {
        listen: address(reader, "ingest.listen"),
        max_body_bytes: reader.integer("ingest.maxBodyBytes", 1024..=16_777_216),
        request_timeout: reader.duration("ingest.requestTimeoutMillis", Unit::Millis, 10..=MINUTES_10),
        max_connections: reader.integer("ingest.maxConnections", CONNECTIONS),
        writers: reader.integer("ingest.writers", 1..=256),
        batch_rows: reader.integer("ingest.batchRows", 1..=5000),
    }
}

fn operator(reader: &mut Reader) -> Operator {
    Operator {
        listen: address(reader, "operator.listen"),
        max_body_bytes: reader.integer("operator.maxBodyBytes", 1024..=16_777_216),
        max_connections: reader.integer("operator.maxConnections", CONNECTIONS),
        request_timeout: reader.duration("operator.requestTimeoutMillis", Unit::Millis, 10..=MINUTES_10),
    }
}

fn retention(reader: &mut Reader) -> Retention {
    let mut days = |key| reader.duration(key, Unit::Days, 1..=36_500);
    Retention {
        dead_letters: days("retention.deadLettersInDays"),
        open_dead_letters: days("retention.openDeadLettersInDays"),
        mails: days("retention.mailsInDays"),
        statistics: days("retention.statisticsInDays"),
        replays: days("retention.replaysInDays"),
        secrets: days("retention.secretsInDays"),
        subscriptions: days("retention.subscriptionsInDays"),
        audit: days("retention.auditInDays"),
    }
}

fn average_processing(reader: &mut Reader) -> Duration {
    reader.duration(AVERAGE_PROCESSING, Unit::Millis, 4..=MINUTES_10)
}

fn swrve(reader: &mut Reader) -> Swrve {
    let swrve = Swrve {
        url: reader.parsed("swrve.url", HTTP_URL, String::new(), http_url),
        delay: reader.duration("swrve.delayMillis", Unit::Millis, 4..=60_000),
        average_processing: average_processing(reader),
        timeout: reader.duration("swrve.timeoutMillis", Unit::Millis, 100..=MINUTES_10),
        retry_on_timeout: reader.boolean("swrve.retryOnTimeout"),
        test: reader.boolean("swrve.test"),
        message_prototype_push_keys: push_keys::push_keys(reader),
    };
    reader.reason(
        "swrve.delayMillis",
        "Swrve answers more than 300 requests per second with 429, Rate Limit Exceeded",
    );
    swrve
}

fn push(reader: &mut Reader) -> Push {
    let push = Push {
        time_zone: reader.parsed("push.timeZone", TIME_ZONE, chrono_tz::Tz::UTC, |name| {
            name.parse().ok()
        }),
        message_max_bytes: reader.integer("push.messageMaxBytes", 1..=1_048_576),
        push_key_max_bytes: reader.integer("push.pushKeyMaxBytes", 1..=65_536),
        queue: Queue {
            capacity: reader.integer("push.queue.capacity", 2..=10_000_000),
        },
        retry: Retry {
            delay: reader.duration("push.retry.delayInSeconds", Unit::Seconds, 0..=604_800),
            max_attempts: reader.integer("push.retry.maxAttempts", 1..=1000),
        },
        cron: Cron {
            grace: reader.duration("push.cron.graceMillis", Unit::Millis, 0..=HOUR),
        },
        leader: Leader {
            ttl: reader.duration("push.leader.ttlMillis", Unit::Millis, 100..=4000),
            poll: reader.duration("push.leader.pollMillis", Unit::Millis, 10..=4000),
        },
        job: jobs(reader),
        rescue: Rescue {
            repeat_interval: reader.duration("push.rescue.repeatInterval", Unit::Millis, 10..=HOUR),
        },
        partitions: Partitions {
            months_ahead: reader.integer("push.partitions.monthsAhead", 1..=24),
            retention_months: reader.integer("push.partitions.retentionMonths", 1..=1200),
        },
        idempotency: Idempotency {
            retention: reader.duration("push.idempotency.retentionHours", Unit::Hours, 1..=8760),
        },
    };
    reader.reason("push.leader.ttlMillis", "a standby must take over within 5 s");
    push
}

fn jobs(reader: &mut Reader) -> Jobs {
    Jobs {
        send_scheduled: Job {
            start_delay: reader.duration("push.job.sendScheduled.startDelay", Unit::Millis, 0..=HOUR),
            repeat_interval: reader.duration(
                "push.job.sendScheduled.repeatInterval",
                Unit::Millis,
                10..=HOUR,
            ),
            portion_size: reader.integer("push.job.sendScheduled.portionSize", 1..=1_000_000),
        },
        send_pending: Job {
            start_delay: reader.duration("push.job.sendPending.startDelay", Unit::Millis, 0..=HOUR),
            repeat_interval: reader.duration("push.job.sendPending.repeatInterval", Unit::Millis, 10..=HOUR),
            portion_size: reader.integer("push.job.sendPending.portionSize", 1..=1_000_000),
        },
    }
}

fn telemetry(reader: &mut Reader) -> Telemetry {
    Telemetry {
        log_format: reader.parsed(
            "telemetry.logFormat",
            "human or json",
            LogFormat::Human,
            |name| match name {
                "human" => Some(LogFormat::Human),
                "json" => Some(LogFormat::Json),
                _ => None,
            },
        ),
        log_filter: reader.parsed(
            "telemetry.logFilter",
            "directives such as info or info,dispatcher=debug",
            String::new(),
            |directives| {
                EnvFilter::builder()
                    .parse(directives)
                    .ok()
                    .map(|_| directives.to_owned())
            },
        ),
        otlp_endpoint: reader.optional("telemetry.otlpEndpoint", HTTP_URL, http_url),
        sample_ratio: reader.ratio("telemetry.sampleRatio"),
    }
}

fn address(reader: &mut Reader, key: &'static str) -> SocketAddr {
    reader.parsed(key, ADDRESS, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), |text| {
        text.parse().ok()
    })
}

/// A base URL, without the slash at its end.
fn http_url(text: &str) -> Option<String> {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"))?;
    let host = rest.split('/').next().unwrap_or_default();
    let plain = !rest.contains(['?', '#']) && !rest.contains(char::is_whitespace);
    (plain && !host.is_empty()).then(|| text.trim_end_matches('/').to_owned())
}
