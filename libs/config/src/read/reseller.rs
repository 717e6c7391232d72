//! The keys of the reseller lane: `portal`, `reseller`, `mail`.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use chrono_tz::Tz;
use ipnet::IpNet;

use super::{CONNECTIONS, MINUTES_10, TIME_ZONE, address};
use crate::model::sealing_key;
use crate::reader::Reader;
use crate::unit::Unit;
use crate::{
    Egress, Health, Mail, Portal, Queue, Quota, Replay, Reseller, ResellerDelivery, ResellerEvent,
    ResellerRetry, Secrets, SubscriptionDefaults, Verification,
};

const NETWORKS: &str = "networks such as 192.0.2.0/24, as a list or with commas between them";
const PORTS: &str =
    "ports or ranges of them such as 1024-65535, as a list of texts or with commas between them";
const SEALING_KEY: &str = "base64 of 32 bytes";
const SEALING_KEYS: &str = "base64 of 32 bytes each, as a list or with commas between them";
const SMTP_URL: &str = "an smtp:// or smtps:// URL";
const FOLDER: &str = "an absolute path of a folder";
const MAILBOX: &str = "an e-mail address, with a name or without";
const WEEK_IN_SECONDS: u64 = 604_800;
const YEAR_IN_HOURS: u64 = 8760;

pub(super) fn portal(reader: &mut Reader) -> Portal {
    Portal {
        listen: address(reader, "portal.listen"),
        max_body_bytes: reader.integer("portal.maxBodyBytes", 1024..=16_777_216),
        request_timeout: reader.duration("portal.requestTimeoutMillis", Unit::Millis, 10..=MINUTES_10),
        max_connections: reader.integer("portal.maxConnections", CONNECTIONS),
        max_connections_per_peer: reader.integer("portal.maxConnectionsPerPeer", CONNECTIONS),
        trusted_proxies: reader.list("portal.trustedProxies", NETWORKS, network),
        docs_directory: reader.optional("portal.docsDirectory", FOLDER, absolute_folder),
    }
}

pub(super) fn reseller(reader: &mut Reader) -> Reseller {
    Reseller {
        queue: Queue {
            capacity: reader.integer("reseller.queue.capacity", 2..=10_000_000),
        },
        event: event(reader),
        delivery: delivery(reader),
        retry: retry(reader),
        subscription: subscription(reader),
        quota: Quota {
            time_zone: reader.parsed("reseller.quota.timeZone", TIME_ZONE, Tz::UTC, |name| {
                name.parse().ok()
            }),
            // A day can be an hour shorter than others.
            release_window: reader.duration("reseller.quota.releaseWindowInMinutes", Unit::Minutes, 0..=1380),
        },
        health: health(reader),
        verification: Verification {
            retry_delay: reader.duration(
                "reseller.verification.retryDelayInSeconds",
                Unit::Seconds,
                1..=86_400,
            ),
            max_attempts: reader.integer("reseller.verification.maxAttempts", 1..=1000),
        },
        egress: Egress {
            allow_networks: reader.list("reseller.egress.allowNetworks", NETWORKS, network),
            allow_http: reader.boolean("reseller.egress.allowHttp"),
            deny_networks: reader.list("reseller.egress.denyNetworks", NETWORKS, network),
            allow_ports: reader.list("reseller.egress.allowPorts", PORTS, ports),
            allow_wide_networks: reader.boolean("reseller.egress.allowWideNetworks"),
        },
        secrets: secrets(reader),
        replay: Replay {
            per_second: reader.integer("reseller.replay.perSecond", 1..=100_000),
            max_age: reader.duration("reseller.replay.maxAgeInDays", Unit::Days, 1..=3650),
            after_outage: reader.boolean("reseller.replay.afterOutage"),
        },
        sending_ips: reader.list("reseller.sendingIps", NETWORKS, network),
    }
}

fn event(reader: &mut Reader) -> ResellerEvent {
    ResellerEvent {
        max_data_bytes: reader.integer("reseller.event.maxDataBytes", 1..=1_048_576),
        batch_max: reader.integer("reseller.event.batchMax", 1..=10_000),
        key_retention: reader.duration("reseller.event.keyRetentionInDays", Unit::Days, 1..=3650),
    }
}

fn delivery(reader: &mut Reader) -> ResellerDelivery {
    ResellerDelivery {
        timeout: reader.duration("reseller.delivery.timeoutMillis", Unit::Millis, 100..=MINUTES_10),
        max_timeout: reader.duration(
            "reseller.delivery.maxTimeoutMillis",
            Unit::Millis,
            100..=MINUTES_10,
        ),
        max_in_flight: reader.integer("reseller.delivery.maxInFlight", 1..=65_535),
        max_in_flight_per_subscription: reader
            .integer("reseller.delivery.maxInFlightPerSubscription", 1..=65_535),
        response_body_bytes: reader.integer("reseller.delivery.responseBodyBytes", 0..=1_048_576),
        max_age: reader.duration("reseller.delivery.maxAgeInDays", Unit::Days, 1..=365),
    }
}

fn retry(reader: &mut Reader) -> ResellerRetry {
    ResellerRetry {
        max_retries: reader.integer("reseller.retry.maxRetries", 0..=100),
        initial_delay: reader.duration(
            "reseller.retry.initialDelayInSeconds",
            Unit::Seconds,
            0..=WEEK_IN_SECONDS,
        ),
        max_delay: reader.duration(
            "reseller.retry.maxDelayInSeconds",
            Unit::Seconds,
            0..=WEEK_IN_SECONDS,
        ),
        max_retry_after: reader.duration(
            "reseller.retry.maxRetryAfterInSeconds",
            Unit::Seconds,
            0..=WEEK_IN_SECONDS,
        ),
        strict_client_errors: reader.boolean("reseller.retry.strictClientErrors"),
        max_in_flight: reader.integer("reseller.retry.maxInFlight", 1..=65_535),
    }
}

fn subscription(reader: &mut Reader) -> SubscriptionDefaults {
    let rate = reader.integer("reseller.subscription.requestsPerSecond", 0..=100_000);
    SubscriptionDefaults {
        maximum: reader.integer("reseller.subscription.maximum", 1..=10_000),
        daily_quota: reader.integer("reseller.subscription.dailyQuota", 1..=2_147_483_647),
        requests_per_second: Some(rate).filter(|rate| *rate > 0),
    }
}

fn health(reader: &mut Reader) -> Health {
    Health {
        degraded_after: reader.duration(
            "reseller.health.degradedAfterInHours",
            Unit::Hours,
            1..=YEAR_IN_HOURS,
        ),
        deactivated_after: reader.duration(
            "reseller.health.deactivatedAfterInHours",
            Unit::Hours,
            1..=YEAR_IN_HOURS,
        ),
        evidence_after: reader.duration(
            "reseller.health.evidenceAfterInHours",
            Unit::Hours,
            0..=YEAR_IN_HOURS,
        ),
    }
}

fn secrets(reader: &mut Reader) -> Secrets {
    const MAKE: &str = "`openssl rand -base64 32` makes one";
    let is_key = |text: &str| sealing_key(text).is_some();
    let secrets = Secrets {
        key: reader.optional_secret("reseller.secrets.key", SEALING_KEY, is_key),
        previous_keys: reader.secret_list("reseller.secrets.previousKeys", SEALING_KEYS, is_key),
        overlap: reader.duration("reseller.secrets.overlapInHours", Unit::Hours, 0..=YEAR_IN_HOURS),
        allow_viewing: reader.boolean("reseller.secrets.allowViewing"),
        allow_choosing: reader.boolean("reseller.secrets.allowChoosing"),
    };
    reader.reason("reseller.secrets.key", MAKE);
    secrets
}

pub(super) fn mail(reader: &mut Reader) -> Mail {
    Mail {
        smtp_url: reader.optional_secret("mail.smtpUrl", SMTP_URL, is_smtp_url),
        from: reader.parsed("mail.from", MAILBOX, String::new(), mailbox),
        timeout: reader.duration("mail.timeoutMillis", Unit::Millis, 100..=20_000),
        retry_delay: reader.duration("mail.retryDelayInSeconds", Unit::Seconds, 1..=86_400),
        max_age: reader.duration("mail.maxAgeInDays", Unit::Days, 1..=365),
        confirm_addresses: reader.boolean("mail.confirmAddresses"),
    }
}

/// A network, or a single address as the network of only that one.
fn network(text: &str) -> Option<IpNet> {
    let single = || text.parse::<IpAddr>().ok().map(IpNet::from);
    text.parse().ok().or_else(single)
}

/// A range of ports, or a single one.
fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (0 < first && first <= last).then_some(first..=last)
}

/// Absolute, since services start in whatever folder; whether it is there is seen when it is read.
fn absolute_folder(text: &str) -> Option<PathBuf> {
    let path = PathBuf::from(text);
    path.is_absolute().then_some(path)
}

fn is_smtp_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("smtp://")
        .or_else(|| text.strip_prefix("smtps://"));
    let Some(rest) = rest else { return false };
    let host = rest.rsplit('@').next().unwrap_or_default();
    !host.is_empty() && !host.starts_with([':', '/']) && !rest.contains(char::is_whitespace)
}

/// Only what no mailbox can be is refused here; the crate that sends the mail reads it thoroughly.
fn mailbox(text: &str) -> Option<String> {
    let address = text.trim().rsplit_once('<').map_or(text.trim(), |(_, address)| {
        address.strip_suffix('>').unwrap_or_default()
    });
    let (user, host) = address.split_once('@')?;
    let plain = !text.contains(char::is_control) && !address.contains(char::is_whitespace);
    (plain && !user.is_empty() && !host.is_empty()).then(|| text.trim().to_owned())
}
