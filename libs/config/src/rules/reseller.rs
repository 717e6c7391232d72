//! The rules between the keys of the reseller lane.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use crate::Config;
use crate::reader::Reader;

/// Room for what an event says besides its data.
const EVENT_FRAME: u64 = 4096;
const DAYS_OF_SHORTEST_MONTH: u64 = 28;

pub(super) fn check(config: &Config, reader: &mut Reader) {
    body(reader);
    ordered(
        reader,
        "reseller.delivery.timeoutMillis",
        "reseller.delivery.maxTimeoutMillis",
    );
    age(reader);
    ordered(
        reader,
        "reseller.retry.initialDelayInSeconds",
        "reseller.retry.maxDelayInSeconds",
    );
    health(reader);
    secrets(config, reader);
    egress(config, reader);
}

/// Resellers open their firewalls for the addresses that are published.
pub(super) fn check_for_production(config: &Config, reader: &mut Reader) {
    const ADDRESSES: &str = "reseller.sendingIps";
    reader.rule(
        &[ADDRESSES],
        !reader.is_set("reseller.secrets.key") || !config.reseller.sending_ips.is_empty(),
        &format!(
            "{ADDRESSES} is empty although notifications are sent (reseller.secrets.key is set): resellers are told at \
             /.well-known/postrider-ips.json from which addresses they come, and open their firewalls for these"
        ),
        format!("set {ADDRESSES} to the public addresses of this installation, such as 192.0.2.0/24"),
    );
}

fn body(reader: &mut Reader) {
    const BODY: &str = "ingest.maxBodyBytes";
    const DATA: &str = "reseller.event.maxDataBytes";
    let (body, data) = (reader.number(BODY), reader.number(DATA));
    let least = data.saturating_add(EVENT_FRAME);
    reader.rule(
        &[BODY, DATA],
        body >= least,
        &format!(
            "{BODY} ({body}) must be at least {DATA} + {EVENT_FRAME} ({data} + {EVENT_FRAME} = {least}), \
             or no event of the allowed size could be received"
        ),
        format!("raise {BODY} to {least} or more, or lower {DATA}"),
    );
}

/// A month goes only when nothing in it waits any more.
fn age(reader: &mut Reader) {
    const AGE: &str = "reseller.delivery.maxAgeInDays";
    const MONTHS: &str = "push.partitions.retentionMonths";
    let (days, months) = (reader.number(AGE), reader.number(MONTHS));
    let kept = months.saturating_mul(DAYS_OF_SHORTEST_MONTH);
    reader.rule(
        &[AGE, MONTHS],
        days < kept,
        &format!(
            "{AGE} ({days}) must be less than {MONTHS} in days ({months} * {DAYS_OF_SHORTEST_MONTH} = {kept}), \
             or what waits would keep months that are past their retention"
        ),
        format!("lower {AGE}, or raise {MONTHS}"),
    );
}

fn health(reader: &mut Reader) {
    const DEGRADED: &str = "reseller.health.degradedAfterInHours";
    const DEACTIVATED: &str = "reseller.health.deactivatedAfterInHours";
    let (degraded, deactivated) = (reader.number(DEGRADED), reader.number(DEACTIVATED));
    reader.rule(
        &[DEGRADED, DEACTIVATED],
        degraded < deactivated,
        &format!(
            "{DEGRADED} ({degraded}) must be less than {DEACTIVATED} ({deactivated}), or no reseller would be warned"
        ),
        format!("raise {DEACTIVATED}, or lower {DEGRADED}"),
    );
    // Evidence that takes longer than the limit it is for would silently be the limit.
    ordered(reader, "reseller.health.evidenceAfterInHours", DEGRADED);
}

fn secrets(config: &Config, reader: &mut Reader) {
    const KEY: &str = "reseller.secrets.key";
    const PREVIOUS: &str = "reseller.secrets.previousKeys";
    reader.rule(
        &[PREVIOUS, KEY],
        reader.is_set(KEY) || config.reseller.secrets.previous_keys.is_empty(),
        &format!("{PREVIOUS} needs {KEY}: new secrets are sealed with that one"),
        format!("set {KEY}, or remove {PREVIOUS}"),
    );
}

/// What a slip of the pen opens: everything, or the machine that clouds keep their credentials on.
fn egress(config: &Config, reader: &mut Reader) {
    const ALLOW: &str = "reseller.egress.allowNetworks";
    const WIDE: &str = "reseller.egress.allowWideNetworks";
    let egress = &config.reseller.egress;
    let metadata = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));
    let wide = egress
        .allow_networks
        .iter()
        .find(|network| network.prefix_len() < 8 || network.contains(&metadata));
    let found = wide.map_or_else(String::new, IpNet::to_string);
    reader.rule(
        &[ALLOW, WIDE],
        wide.is_none() || egress.allow_wide_networks,
        &format!(
            "{ALLOW} opens {found}, but may not open more than a /8, nor 169.254.169.254, where clouds keep credentials: \
             a reseller could have anything in it called"
        ),
        format!("open the networks that are needed alone, or set {WIDE} to true"),
    );
}

/// The rule that one key's value is at most another's, both in one unit.
fn ordered(reader: &mut Reader, low_key: &str, high_key: &str) {
    let (low, high) = (reader.number(low_key), reader.number(high_key));
    reader.rule(
        &[low_key, high_key],
        low <= high,
        &format!("{low_key} ({low}) must be at most {high_key} ({high})"),
        format!("lower {low_key} to {high} or less, or raise {high_key}"),
    );
}
