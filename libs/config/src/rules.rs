//! The rules between keys: each value is right by itself, but together they would not work.
//!
//! It deliberately holds no ranges of single keys; those are in `read`.

use std::time::Duration;

use crate::reader::Reader;
use crate::{Config, Job};

mod reseller;

/// In which time a standby must have taken over the sending, seen from the last sign of life of its predecessor.
const TAKEOVER: Duration = Duration::from_secs(5);

pub(crate) fn check(config: &Config, reader: &mut Reader) {
    pool(config, reader);
    job(
        "push.job.sendScheduled",
        &config.push.job.send_scheduled,
        config,
        reader,
    );
    job(
        "push.job.sendPending",
        &config.push.job.send_pending,
        config,
        reader,
    );
    leader(config, reader);
    body(config, reader);
    reseller::check(config, reader);
}

/// What only an installation needs that others rely on.
pub(crate) fn check_for_production(config: &Config, reader: &mut Reader) {
    reseller::check_for_production(config, reader);
}

fn pool(config: &Config, reader: &mut Reader) {
    let (average, delay) = (
        config.swrve.average_processing.as_millis(),
        config.swrve.delay.as_millis(),
    );
    reader.rule(
        &["swrve.averageProcessingMillis", "swrve.delayMillis"],
        average >= delay,
        &format!(
            "swrve.averageProcessingMillis ({average}) must be at least swrve.delayMillis ({delay}), or no send could be in flight"
        ),
        format!("set swrve.averageProcessingMillis to {delay} or more"),
    );
}

fn job(name: &str, job: &Job, config: &Config, reader: &mut Reader) {
    let (portion, capacity) = (
        u128::from(job.portion_size),
        u128::from(config.push.queue.capacity),
    );
    let (delay, interval) = (config.swrve.delay.as_millis(), job.repeat_interval.as_millis());
    let (portion_key, interval_key) = (format!("{name}.portionSize"), format!("{name}.repeatInterval"));
    reader.rule(
        &[&portion_key, "push.queue.capacity"],
        portion < capacity,
        &format!("{portion_key} ({portion}) must be less than push.queue.capacity ({capacity})"),
        format!(
            "lower {portion_key} to {} or less, or raise push.queue.capacity",
            capacity.saturating_sub(1)
        ),
    );
    let busy = portion * delay;
    let fitting = interval.saturating_sub(1) / delay.max(1);
    let lower = if fitting > 0 {
        format!("lower {portion_key} to {fitting} or less, or ")
    } else {
        String::new()
    };
    reader.rule(
        &[&portion_key, "swrve.delayMillis", &interval_key],
        busy < interval,
        &format!(
            "{portion_key} * swrve.delayMillis ({portion} * {delay} = {busy}) must be less than {interval_key} ({interval})"
        ),
        format!("{lower}raise {interval_key} above {busy}"),
    );
}

fn leader(config: &Config, reader: &mut Reader) {
    const TTL: &str = "push.leader.ttlMillis";
    const POLL: &str = "push.leader.pollMillis";
    let (ttl, poll) = (
        config.push.leader.ttl.as_millis(),
        config.push.leader.poll.as_millis(),
    );
    reader.rule(
        &[POLL, TTL],
        poll < ttl,
        &format!(
            "{POLL} ({poll}) must be less than {TTL} ({ttl}), or the lease would run out between two renewals"
        ),
        format!("lower {POLL} to a tenth of {TTL}"),
    );
    // A standby sees the last renewal up to one poll late, watches for one ttl, and notices its end up to one poll late.
    let takeover = ttl + 2 * poll;
    let limit = TAKEOVER.as_millis();
    reader.rule(
        &[TTL, POLL],
        poll >= ttl || takeover <= limit,
        &format!(
            "{TTL} + 2 * {POLL} ({ttl} + 2 * {poll} = {takeover}) must be at most {limit}, or a standby takes over too late"
        ),
        format!("lower {TTL} or {POLL}"),
    );
}

fn body(config: &Config, reader: &mut Reader) {
    let (message, push_key) = (config.push.message_max_bytes, config.push.push_key_max_bytes);
    let (body, least) = (config.ingest.max_body_bytes, message.saturating_add(push_key));
    reader.rule(
        &["ingest.maxBodyBytes", "push.messageMaxBytes", "push.pushKeyMaxBytes"],
        body >= least,
        &format!(
            "ingest.maxBodyBytes ({body}) must be at least push.messageMaxBytes + push.pushKeyMaxBytes ({message} + {push_key} = {least}), \
             or no push of the allowed size could be received"
        ),
        format!("raise ingest.maxBodyBytes to {least} or more"),
    );
}
