//! The rules between keys: each value is right by itself, but together they would not work.
//!
//! It deliberately holds no ranges of single keys; those are in `model`.

use crate::reader::Reader;
use crate::{Config, KeyLogin};

mod reseller;

/// In which time a standby must have taken over the sending, seen from the last sign of life of its predecessor, in milliseconds.
const TAKEOVER: u64 = 5_000;

pub(crate) fn check(config: &Config, reader: &mut Reader) {
    pool(reader);
    job("push.job.sendScheduled", reader);
    job("push.job.sendPending", reader);
    leader(reader);
    body(reader);
    sign_in(config, reader);
    collector(config, reader);
    reseller::check(config, reader);
}

/// What only an installation needs that others rely on.
pub(crate) fn check_for_production(config: &Config, reader: &mut Reader) {
    reseller::check_for_production(config, reader);
}

fn pool(reader: &mut Reader) {
    const AVERAGE: &str = "swrve.averageProcessingMillis";
    const DELAY: &str = "swrve.delayMillis";
    let (average, delay) = (reader.number(AVERAGE), reader.number(DELAY));
    reader.rule(
        &[AVERAGE, DELAY],
        average >= delay,
        &format!("{AVERAGE} ({average}) must be at least {DELAY} ({delay}), or no send could be in flight"),
        format!("set {AVERAGE} to {delay} or more"),
    );
}

fn job(name: &str, reader: &mut Reader) {
    const CAPACITY: &str = "push.queue.capacity";
    const DELAY: &str = "swrve.delayMillis";
    let (portion_key, interval_key) = (format!("{name}.portionSize"), format!("{name}.repeatInterval"));
    let (portion, interval) = (reader.number(&portion_key), reader.number(&interval_key));
    let (capacity, delay) = (reader.number(CAPACITY), reader.number(DELAY));
    let most = capacity.saturating_sub(1);
    reader.rule(
        &[&portion_key, CAPACITY],
        portion < capacity,
        &format!("{portion_key} ({portion}) must be less than {CAPACITY} ({capacity})"),
        format!("lower {portion_key} to {most} or less, or raise {CAPACITY}"),
    );
    let busy = portion.saturating_mul(delay);
    let fitting = interval.saturating_sub(1) / delay.max(1);
    let lower = if fitting > 0 {
        format!("lower {portion_key} to {fitting} or less, or ")
    } else {
        String::new()
    };
    reader.rule(
        &[&portion_key, DELAY, &interval_key],
        busy < interval,
        &format!("{portion_key} * {DELAY} ({portion} * {delay} = {busy}) must be less than {interval_key} ({interval})"),
        format!("{lower}raise {interval_key} above {busy}"),
    );
}

fn leader(reader: &mut Reader) {
    const TTL: &str = "push.leader.ttlMillis";
    const POLL: &str = "push.leader.pollMillis";
    let (ttl, poll) = (reader.number(TTL), reader.number(POLL));
    reader.rule(
        &[POLL, TTL],
        poll < ttl,
        &format!(
            "{POLL} ({poll}) must be less than {TTL} ({ttl}), or the lease would run out between two renewals"
        ),
        format!("lower {POLL} to a tenth of {TTL}"),
    );
    // A standby sees the last renewal up to one poll late, watches for one ttl, and notices its end up to one poll late.
    let takeover = ttl.saturating_add(poll.saturating_mul(2));
    reader.rule(
        &[TTL, POLL],
        poll >= ttl || takeover <= TAKEOVER,
        &format!(
            "{TTL} + 2 * {POLL} ({ttl} + 2 * {poll} = {takeover}) must be at most {TAKEOVER}, or a standby takes over too late"
        ),
        format!("lower {TTL} or {POLL}"),
    );
}

fn body(reader: &mut Reader) {
    const BODY: &str = "ingest.maxBodyBytes";
    const MESSAGE: &str = "push.messageMaxBytes";
    const PUSH_KEY: &str = "push.pushKeyMaxBytes";
    let (body, message, push_key) = (
        reader.number(BODY),
        reader.number(MESSAGE),
        reader.number(PUSH_KEY),
    );
    let least = message.saturating_add(push_key);
    reader.rule(
        &[BODY, MESSAGE, PUSH_KEY],
        body >= least,
        &format!(
            "{BODY} ({body}) must be at least {MESSAGE} + {PUSH_KEY} ({message} + {push_key} = {least}), \
             or no push of the allowed size could be received"
        ),
        format!("raise {BODY} to {least} or more"),
    );
}

/// Logs and metrics have no collector of their own.
fn collector(config: &Config, reader: &mut Reader) {
    const ENDPOINT: &str = "telemetry.otlpEndpoint";
    let has_endpoint = reader.is_set(ENDPOINT);
    for (key, is_on) in [
        ("telemetry.otlpLogs", config.telemetry.otlp_logs),
        ("telemetry.otlpMetrics", config.telemetry.otlp_metrics),
    ] {
        reader.rule(
            &[key, ENDPOINT],
            !is_on || has_endpoint,
            &format!("{key} needs {ENDPOINT}: nothing could be sent without it"),
            format!("set {ENDPOINT} to the base URL of the collector, or {key} to false"),
        );
    }
}

/// With a provider all of it is needed, and without one keys are the only way in.
fn sign_in(config: &Config, reader: &mut Reader) {
    const ISSUER: &str = "operator.oidc.issuer";
    const KEY_LOGIN: &str = "operator.keyLogin";
    let has_issuer = reader.is_set(ISSUER);
    for (key, what) in [
        (
            "operator.oidc.clientId",
            "the identifier that the provider gave this installation",
        ),
        (
            "operator.publicUrl",
            "the address that browsers reach the operator API at",
        ),
    ] {
        reader.rule(
            &[ISSUER, key],
            !has_issuer || reader.is_set(key),
            &format!("{ISSUER} needs {key}: no sign-in could begin without it"),
            format!("set {key} to {what}, or remove {ISSUER}"),
        );
    }
    let roles = &config.operator.oidc.roles;
    let has_roles = [&roles.viewer, &roles.operator, &roles.admin]
        .iter()
        .any(|values| !values.is_empty());
    reader.rule(
        &[
            ISSUER,
            "operator.oidc.roles.viewer",
            "operator.oidc.roles.operator",
            "operator.oidc.roles.admin",
        ],
        !has_issuer || has_roles,
        &format!("{ISSUER} needs a value in operator.oidc.roles, or no sign-in would have a role"),
        "name the values of operator.oidc.rolesClaim that make an operator in operator.oidc.roles.operator"
            .to_owned(),
    );
    let key_login = config.operator.key_login();
    reader.rule(
        &[KEY_LOGIN, ISSUER],
        has_issuer || key_login == KeyLogin::Always,
        &format!("{KEY_LOGIN} must be always without {ISSUER}: keys are the only way into the console then"),
        format!(
            "set {KEY_LOGIN} to always, or set {ISSUER}; operator.console: false switches the console off"
        ),
    );
}
