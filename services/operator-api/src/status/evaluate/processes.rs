//! The services: whether they run, what they are missing, who leads, and what their clocks show.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::clock::CLOCKS_APART_MAX;

use super::{Finding, Known, SETTLING, Severity};
use crate::status::facts::Process;
use crate::status::thresholds::{INGEST_ERROR_SHARE, INGEST_ERRORS_PER_SECOND, LATELY};
use explain::words::{length, number, of};

/// The services without which nothing is delivered, and what happens without them.
const NEEDED: [(&str, &str); 3] = [
    ("ingest-api", "Pushes and events are not accepted."),
    (
        "dispatcher",
        "No push is sent and no notification gets its first attempt. What is accepted waits.",
    ),
    (
        "retry-worker",
        "Nothing that waits is put into the queues, nothing lost is found, nothing is tried again.",
    ),
];
/// For how long a service that fell silent is news while another one of its name runs.
const NEWS: Duration = Duration::from_secs(10 * 60);
/// How far clocks may be apart. Signatures are judged by receivers within minutes, due times to the second.
const CLOCKS_APART: i64 = 2_000;
/// From here on receivers refuse signatures, and nothing is forgotten because of its age.
const CLOCKS_FAR_APART: i64 = CLOCKS_APART_MAX.num_milliseconds();

pub(super) fn evaluate(known: &Known<'_>, findings: &mut Vec<Finding>) {
    for (service, meaning) in NEEDED {
        findings.extend(missing(known, service, meaning));
    }
    findings.extend(portal_missing(known));
    findings.extend(unmeasured(known));
    findings.extend(ingest_errors(known));
    findings.extend(no_leader(known));
    for process in &known.tables.processes {
        if process.is_silent() {
            findings.extend(silent(known, process));
        } else {
            findings.extend(not_ready(known, process));
            findings.extend(own_faults(process));
        }
    }
    findings.extend(unreadable_secrets(known));
    findings.extend(clocks(known));
}

fn missing(known: &Known<'_>, service: &str, meaning: &str) -> Option<Finding> {
    if known.runs(service) {
        return None;
    }
    Some(not_there(known, service, meaning, Severity::Critical))
}

pub(super) fn not_there(known: &Known<'_>, service: &str, meaning: &str, severity: Severity) -> Finding {
    let seen = last_seen(known, service).map_or(String::new(), |process| {
        format!(
            "; the last one, process {} on {}, was heard of {} ago",
            process.pid,
            process.host,
            length(process.age)
        )
    });
    let finding = Finding::new(
        ("service-missing", severity, "a-process-is-down"),
        format!("No {service} runs{seen}."),
        meaning,
    );
    let last = last_seen(known, service);
    finding
        .naming("service", service)
        .naming("pid", last.map(|process| process.pid))
        .naming("host", last.map(|process| &process.host))
        .naming("agoSeconds", last.map(|process| process.age.as_secs()))
        .with(format!("postrider serve {service}"))
}

pub(super) fn last_seen<'a>(known: &Known<'a>, service: &str) -> Option<&'a Process> {
    let of_it = known
        .tables
        .processes
        .iter()
        .filter(|process| process.service == service);
    of_it.min_by_key(|process| process.age)
}

/// An installation may have none; one that fell silent was not taken away on purpose.
fn portal_missing(known: &Known<'_>) -> Option<Finding> {
    let service = "reseller-portal";
    if known.runs(service) {
        return None;
    }
    last_seen(known, service)?;
    let meaning = "Resellers reach neither their subscriptions nor their notifications. What is delivered is not concerned.";
    Some(not_there(known, service, meaning, Severity::Warning))
}

/// Retry workers run, and none of them measures the lanes: most alerts are blind.
fn unmeasured(known: &Known<'_>) -> Option<Finding> {
    let mut workers = known
        .tables
        .processes
        .iter()
        .filter(|process| process.service == "retry-worker" && !process.is_silent())
        .peekable();
    let settled = workers.peek()?.uptime() >= LATELY;
    if !settled || !workers.all(|process| process.report.measures == Some(false)) {
        return None;
    }
    Some(Finding::new(
        (
            "lanes-not-measured",
            Severity::Warning,
            "a-periodic-job-does-not-run",
        ),
        "No retry-worker measures the lanes, although one runs.",
        "Alerts about lag, queues, dead letters and mails are blind. Its log says why its jobs fail.",
    ))
}

/// Callers are answered with 5xx, as the alert has it.
fn ingest_errors(known: &Known<'_>) -> Option<Finding> {
    let lately = known.tables.lately();
    let share = lately.share(lately.ingest_errors, lately.ingest_requests);
    if !lately.exceeds(lately.ingest_errors, INGEST_ERRORS_PER_SECOND) || share <= INGEST_ERROR_SHARE {
        return None;
    }
    let finding = Finding::new(
        ("ingest-errors", Severity::Warning, "ingest-answers-with-errors"),
        format!(
            "{} of the last {} to hand in pushes or events, within {}, were answered with 5xx.",
            number(lately.ingest_errors),
            of(lately.ingest_requests, "request", "requests"),
            length(lately.span)
        ),
        "Callers keep what was not taken, and have to try again.",
    );
    Some(
        finding
            .naming("failed", lately.ingest_errors)
            .naming("requests", lately.ingest_requests)
            .naming("withinSeconds", lately.span.as_secs()),
    )
}

fn silent(known: &Known<'_>, process: &Process) -> Option<Finding> {
    // Without another one it is told as missing; later on it is history.
    if !known.runs(&process.service) || process.age > NEWS {
        return None;
    }
    let finding = Finding::new(
        ("process-silent", Severity::Notice, "a-process-is-down"),
        format!(
            "A {} has fallen silent: process {} on {}, {} ago.",
            process.service,
            process.pid,
            process.host,
            length(process.age)
        ),
        "It was killed, or does not reach the database. Others of its kind go on; what it was doing is found by its leases.",
    );
    Some(about(process, finding).naming("agoSeconds", process.age.as_secs()))
}

fn not_ready(known: &Known<'_>, process: &Process) -> Option<Finding> {
    let told = |condition: &str| condition == "broker" && known.broker_fails;
    let failing = process.report.failing.iter();
    let failing: BTreeMap<_, _> = failing.filter(|(condition, _)| !told(condition)).collect();
    if failing.is_empty() || process.uptime() < SETTLING {
        return None;
    }
    let said = failing
        .iter()
        .map(|(condition, reason)| format!("{condition} ({reason})"));
    let said: Vec<String> = said.collect();
    let finding = Finding::new(
        ("process-not-ready", Severity::Warning, "a-process-is-not-ready"),
        format!(
            "The {} with process id {} on {} is not ready: {}.",
            process.service,
            process.pid,
            process.host,
            said.join(", ")
        ),
        "It does what it can without that, and goes on when it has it.",
    );
    Some(about(process, finding).naming("failing", failing))
}

/// What it could not try since the report before, if that is one of the same process.
fn own_faults(process: &Process) -> Option<Finding> {
    let before = process.report.previous.as_ref()?.counters?.own_faults;
    let count = process.report.counters.own_faults.checked_sub(before)?;
    if count == 0 {
        return None;
    }
    let finding = Finding::new(
        (
            "own-faults",
            Severity::Critical,
            "a-process-cannot-open-connections",
        ),
        format!(
            "The {} with process id {} on {} lately had no descriptor, port, memory, route or resolver for {}.",
            process.service,
            process.pid,
            process.host,
            of(count, "attempt", "attempts")
        ),
        "They are handed back and tried again in seconds; no attempt is used, and no endpoint is blamed.",
    );
    Some(about(process, finding).naming("attempts", count))
}

/// The same finding, which names the process.
fn about(process: &Process, finding: Finding) -> Finding {
    finding
        .naming("service", &process.service)
        .naming("pid", process.pid)
        .naming("host", &process.host)
}

/// Without a dispatcher or a broker there can be no leader, and a paused lane needs none.
fn no_leader(known: &Known<'_>) -> Option<Finding> {
    let tables = known.tables;
    if known.broker_fails || tables.lane_is_paused("push") || !known.has_settled("dispatcher") {
        return None;
    }
    let patience = (known.facts.settings.leader_ttl * 5).max(Duration::from_secs(15));
    let (none, without) = match &tables.leader {
        Some(leader) if leader.renewed < patience => return None,
        Some(leader) => (
            format!("had no leader for {}", length(leader.renewed)),
            Some(leader.renewed.as_secs()),
        ),
        None => ("no leader".to_owned(), None),
    };
    Some(
        Finding::new(
            ("no-leader", Severity::Critical, "nothing-is-sent"),
            format!("The push lane has {none}, although a dispatcher runs."),
            "No push is sent. What is accepted is stored and waits.",
        )
        .naming("withoutSeconds", without)
        .with("postrider status --json"),
    )
}

/// One retry worker looks for them, once a minute.
fn unreadable_secrets(known: &Known<'_>) -> Option<Finding> {
    let heard = known
        .tables
        .processes
        .iter()
        .filter(|process| !process.is_silent());
    let secrets = heard.map(|process| process.report.stale_secrets).max()?;
    if secrets == 0 {
        return None;
    }
    let said = of(
        secrets,
        "valid signing secret was sealed with a key that is",
        "valid signing secrets were sealed with a key that is",
    );
    let finding = Finding::new(
        (
            "secrets-unreadable",
            Severity::Warning,
            "the-key-of-the-secrets-is-lost-or-is-to-be-changed",
        ),
        format!("{said} not in reseller.secrets."),
        "Nothing can be sent to their subscriptions: each attempt fails on our side, and what is out of attempts is given up. The log of the \
         retry worker names the first ten.",
    );
    Some(finding.naming("secrets", secrets))
}

fn clocks(known: &Known<'_>) -> Option<Finding> {
    let living = known.tables.living();
    let (process, ahead) = living
        .filter_map(|process| Some((process, process.report.clock_ahead_millis?)))
        .max_by_key(|(_, ahead)| ahead.abs())?;
    if ahead.abs() <= CLOCKS_APART {
        return None;
    }
    let severity = if ahead.abs() > CLOCKS_FAR_APART {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let apart = length(Duration::from_millis(ahead.unsigned_abs()));
    let side = if ahead > 0 { "ahead of" } else { "behind" };
    let finding = Finding::new(
        ("clocks-differ", severity, "clocks"),
        format!(
            "The clock of {} is {apart} {side} that of the database (process {}, {}).",
            process.host, process.pid, process.service
        ),
        if severity == Severity::Critical {
            "Due times, quotas and signatures go by the clock of each process. Receivers refuse what is signed at a wrong time. \
                 Nothing is dropped, expired or forgotten by a retry worker meanwhile."
        } else {
            "Due times, quotas and signatures go by the clock of each process. Receivers refuse what is signed at a wrong time."
        },
    );
    Some(
        about(process, finding)
            .naming("aheadMillis", ahead)
            .with("timedatectl"),
    )
}

/// How long the present leader has led; `None` when there is none.
pub(super) fn led_for(known: &Known<'_>) -> Option<Duration> {
    let leader = known.tables.leader.as_ref()?;
    let taken = leader.taken_at?;
    leader.holder?;
    (known.facts.now - taken).to_std().ok()
}
