//! Swrve: whether it takes pushes, since when it does not, and what it says.

use std::time::Duration;

use chrono::{DateTime, Utc};
use runtime::connections::SwrveReport;
use serde_json::{Value, json};
use store::status::{COUNTED_MAX, SwrveFailure};
use telemetry::pace::Answer;

use super::{Finding, Harm, Known, Severity};
use crate::status::facts::Process;
use crate::status::thresholds::{SWRVE_ATTEMPTS_PER_SECOND, SWRVE_FAILING, SWRVE_FAILING_SHARE};
use explain::words::{length, number, of, time, when};

/// Pushes that wait and say little about Swrve.
const FEW_PUSHES: u64 = 10;
/// One failure between many successes is the last answer at the moment of a report now and then: at the pace of a lane that is busy, nothing
/// but failures for as long as this is an outage.
const LASTING: Duration = Duration::from_secs(5);
/// For how long what waits may have failed, where the sender has asked Swrve for nothing since it began: it does so when the next retry is due.
const NOT_ASKED: Duration = Duration::from_secs(5 * 60);

/// At most one: while the lane is held, or makes up for it, the failures that led to that are told as what they are.
pub(super) fn evaluate(known: &Known<'_>) -> Option<Finding> {
    if known.tables.swrve_hold().is_some() {
        return held(known);
    }
    let nothing = accepts_nothing(known);
    match fails_mostly(known) {
        Some(mostly) if nothing.as_ref().is_none_or(|it| it.severity == Severity::Notice) => Some(mostly),
        _ => nothing.or_else(|| fails_some(known)),
    }
}

/// The push lane holds itself, or is making up for it.
fn held(known: &Known<'_>) -> Option<Finding> {
    let hold = known.tables.swrve_hold()?;
    let since = time(hold.since);
    // The lane is held some time after the first failure. A process that took over meanwhile has not seen that one, and one that held the
    // lane again has seen a push accepted since the hold began.
    let failing_since = heard(known).and_then(|(swrve, _)| swrve.failing_since);
    let or_longer = failing_since.is_some_and(|at| at >= hold.since);
    let failing = failing_since.map_or(String::new(), |at| {
        let longer = if or_longer { " or longer" } else { "" };
        format!(", it has accepted nothing since {}{longer}", time(at))
    });
    let answer = hold.last_answer.trim_end_matches('.');
    let probes = match hold.probes {
        0 => format!("No probe has ended yet; what failed before ended with: {answer}"),
        probes => format!(
            "{} failed, the last one{} with: {answer}",
            of(probes.unsigned_abs(), "probe has", "probes have"),
            hold.probed_at
                .map_or(String::new(), |at| format!(" at {}", when(at, known.facts.now)))
        ),
    };
    let finding = match hold.answered_at {
        None => Finding::new(
            ("swrve-held", Severity::Critical, "swrve-is-down"),
            format!(
                "The push lane is held since {since}: Swrve is out of order{failing}; {}. {probes}.",
                of(waiting(known), "push waits", "pushes wait"),
            ),
            "One push at a time is tried, the next when Swrve has answered it (or swrve.timeoutMillis are over), at most one a second. \
             No attempt is used up and nothing is given up; when Swrve works, everything is sent by itself, the oldest first, what waits for a \
             retry too.",
        )
        .naming("failingSince", failing_since)
        .naming("orLonger", or_longer.then_some(true))
        .counting("waiting", waiting(known), COUNTED_MAX)
        .naming("probes", hold.probes.unsigned_abs())
        .naming("probedAt", hold.probed_at.filter(|_| hold.probes != 0))
        .naming("lastAnswer", answer),
        Some(at) => {
            let finding = Finding::new(
                ("swrve-catching-up", Severity::Notice, "swrve-is-down"),
                format!(
                    "Swrve was out of order and the push lane held from {since} to {}; failures before that led to it.",
                    time(at)
                ),
                format!(
                    "What waited meanwhile is being sent, the oldest first{}.",
                    known.backlog_of_pushes()
                ),
            );
            let finding = finding.naming("answeredAt", at).harming(Harm::Delays, None);
            known.naming_backlog_of_pushes(finding)
        }
    };
    Some(finding.naming("since", hold.since).with("postrider history push"))
}

/// Swrve has accepted nothing since some time, however seldom it is asked: this ends with a success, and not between two attempts.
fn accepts_nothing(known: &Known<'_>) -> Option<Finding> {
    let (since, lasting, is_heard) = failing_since(known)?;
    let waiting = waiting(known);
    // What was tried may have been given up meanwhile: that nothing waits says nothing of Swrve.
    let matters = if is_heard {
        waiting >= FEW_PUSHES || lasting >= SWRVE_FAILING
    } else {
        waiting > 0 && lasting >= NOT_ASKED
    };
    let severity = if matters {
        Severity::Warning
    } else {
        Severity::Notice
    };
    let left = match waiting {
        0 => "no push waits or is being tried".to_owned(),
        some => {
            of(
                some,
                "push waits or is being tried",
                "pushes wait or are being tried",
            ) + &next_attempt(known)
        }
    };
    let finding = finding(
        known,
        severity,
        format!(
            "{} {}{}; {left}.",
            if is_heard {
                "Swrve has accepted nothing since"
            } else {
                "The sender has asked Swrve for nothing yet; what waits has failed there since"
            },
            when(since, known.facts.now),
            answers(&known.tables.push.failures)
        ),
    );
    Some(
        finding
            .naming("failingSince", since)
            .naming("notAsked", (!is_heard).then_some(true))
            .counting("waiting", waiting, COUNTED_MAX)
            .naming("nextAttemptAt", next_attempt_at(known).filter(|_| waiting > 0)),
    )
}

/// Since when nothing but failures came, and for how long. The leader knows; one that has just begun knows nothing before its first answer,
/// and then the attempts on record decide.
fn failing_since(known: &Known<'_>) -> Option<(DateTime<Utc>, Duration, bool)> {
    let leader = known.tables.leading().filter(|leader| !leader.is_silent());
    let heard = heard(known);
    let is_heard = heard.is_some();
    let (since, seen_at) = match heard {
        Some((swrve, process)) => (swrve.failing_since?, process.beat_at),
        // Of a version that does not tell what it hears.
        None if leader.is_some_and(|leader| leader.report.earlier.is_none())
            || known.tables.rates().pushes_sent > 0.0 =>
        {
            return None;
        }
        None => {
            let since = known.tables.push.failures.iter().map(|failure| failure.since);
            (since.min()?, known.facts.now)
        }
    };
    let lasting = (seen_at - since).to_std().unwrap_or_default();
    (lasting >= LASTING).then_some((since, lasting, is_heard))
}

/// What the leader has heard of Swrve, and the process that said so. Between taking over and the first report of that, the process that led last
/// says it: when the lane is held that is the same one.
fn heard<'a>(known: &Known<'a>) -> Option<(SwrveReport, &'a Process)> {
    let dispatchers = known.tables.processes.iter();
    let led = dispatchers.filter(|it| it.service == "dispatcher" && it.report.leading.is_some());
    let last_led = led.max_by_key(|it| it.report.leading);
    let leader = known.tables.leading().or(last_led)?;
    if leader.is_silent() {
        return None;
    }
    Some((leader.report.swrve?, leader))
}

/// What is known of the last attempt, which succeeded.
struct Success {
    /// When that was, where that is known.
    at: Option<DateTime<Utc>>,
    said: String,
}

/// None where the last attempt failed, or nothing was heard of it.
fn success(known: &Known<'_>) -> Option<Success> {
    let (swrve, process) = heard(known)?;
    if swrve.failing_since.is_some() {
        return None;
    }
    // A refusal for good shows that Swrve works, too.
    let last = process.report.answers.last();
    let accepted = last.filter(|second| second.1[Answer::Taken as usize] > 0);
    let at = accepted.and_then(|second| DateTime::from_timestamp(second.0, 0));
    let said = match at {
        Some(at) => format!("The last attempt succeeded at {}", when(at, known.facts.now)),
        None => "The last attempt did not fail".to_owned(),
    };
    Some(Success { at, said })
}

/// When the next attempt is due; none where one is due or under way, or none will be.
fn next_attempt_at(known: &Known<'_>) -> Option<DateTime<Utc>> {
    let (tables, now) = (known.tables, known.facts.now);
    let depths = &tables.push.depths;
    let is_next = depths.retry > 0
        && depths.pending + depths.queued + depths.sending == 0
        && !tables.lane_is_paused("push");
    tables.push.overdue.due_at.filter(|due| is_next && *due > now)
}

/// The same, as it follows what waits.
fn next_attempt(known: &Known<'_>) -> String {
    next_attempt_at(known).map_or(String::new(), |due| {
        format!(", the next attempt is due at {}", when(due, known.facts.now))
    })
}

/// More fails than succeeds, as the alert has it, and for as long as that has it.
fn fails_mostly(known: &Known<'_>) -> Option<Finding> {
    let lately = known.tables.lately();
    let enough = lately.exceeds(lately.push_attempts, SWRVE_ATTEMPTS_PER_SECOND);
    let share = lately.share(lately.swrve_errors, lately.push_attempts);
    if !enough || share <= SWRVE_FAILING_SHARE {
        return None;
    }
    let success = success(known);
    let retry = known.tables.push.depths.retry;
    let finding = finding(
        known,
        Severity::Warning,
        format!(
            "Swrve has failed {} of {} within the last {}{}; {} to be tried again{}.{}",
            number(lately.swrve_errors),
            of(lately.push_attempts, "attempt", "attempts"),
            length(lately.span),
            answers(&known.tables.push.failures),
            of(retry, "push waits", "pushes wait"),
            next_attempt(known),
            success
                .as_ref()
                .map_or(String::new(), |success| format!(" {}.", success.said)),
        ),
    );
    Some(naming_retries(
        known,
        finding
            .naming("failed", lately.swrve_errors)
            .naming("attempts", lately.push_attempts)
            .naming("withinSeconds", lately.span.as_secs()),
        success.as_ref(),
    ))
}

/// Some fail, be it that others are accepted or that it is too early to tell.
fn fails_some(known: &Known<'_>) -> Option<Finding> {
    let failures = &known.tables.push.failures;
    let retry = known.tables.push.depths.retry;
    if failures.is_empty() || retry < FEW_PUSHES {
        return None;
    }
    let success = success(known);
    let fails = match &success {
        Some(success) => format!("{}; before that Swrve failed some pushes", success.said),
        None => "Swrve fails some pushes".to_owned(),
    };
    let finding = finding(
        known,
        Severity::Notice,
        format!(
            "{fails}{}; {} to be tried again{}.",
            answers(failures),
            of(retry, "push waits", "pushes wait"),
            next_attempt(known)
        ),
    );
    Some(naming_retries(known, finding, success.as_ref()))
}

/// The same finding, which names what waits to be tried again, when that is, and the last attempt where that succeeded.
fn naming_retries(known: &Known<'_>, finding: Finding, success: Option<&Success>) -> Finding {
    finding
        .counting("retry", known.tables.push.depths.retry, COUNTED_MAX)
        .naming("nextAttemptAt", next_attempt_at(known))
        .naming("lastSucceeded", success.map(|_| true))
        .naming("succeededAt", success.and_then(|success| success.at))
}

fn finding(known: &Known<'_>, severity: Severity, text: String) -> Finding {
    let meaning = "Each is tried again until its attempts are used up, and is given up then; a dead letter remains, which can be \
                   replayed. When nothing but failures come for half a minute, of five pushes at least, the lane is held and no attempt is used up.";
    let (meaning, command) = if known.tables.push.depths.retry > 0 {
        (
            format!(
                "{meaning} The command tries at once what waits for its next attempt, which that uses up."
            ),
            "postrider retry-now lane push",
        )
    } else if waiting(known) > 0 {
        (meaning.to_owned(), "postrider push list --status RETRY")
    } else {
        (meaning.to_owned(), "postrider history push")
    };
    let failures = known.tables.push.failures.iter();
    let answers = failures.map(|it| json!({"answer": said(it), "pushes": it.pushes}));
    let answers: Vec<Value> = answers.collect();
    let finding = Finding::new(("swrve-fails", severity, "swrve-is-down"), text, meaning)
        .naming("answers", answers)
        .with(command);
    match severity {
        Severity::Notice => finding.harming(Harm::Delays, None),
        Severity::Critical | Severity::Warning => finding,
    }
}

/// Every push that is still to be accepted, wherever it is between two attempts.
fn waiting(known: &Known<'_>) -> u64 {
    let depths = &known.tables.push.depths;
    depths.pending + depths.queued + depths.sending + depths.retry
}

/// What Swrve said, as it follows that it fails.
fn answers(failures: &[SwrveFailure]) -> String {
    if failures.is_empty() {
        return String::new();
    }
    let answers = failures
        .iter()
        .map(|failure| format!("{} ({})", said(failure), number(failure.pushes)));
    let answers: Vec<String> = answers.collect();
    format!(
        ", its last answers to pushes that wait are: {}",
        answers.join(", ")
    )
}

/// What Swrve said to these pushes.
fn said(failure: &SwrveFailure) -> String {
    let message = failure
        .message
        .as_deref()
        .unwrap_or_default()
        .trim_end_matches('.');
    let code = failure.code.map(|code| code.to_string()).unwrap_or_default();
    match (code.is_empty(), message.is_empty()) {
        (true, true) => "no answer".to_owned(),
        (true, false) => message.to_owned(),
        (false, true) => code,
        (false, false) if message.starts_with(&code) => message.to_owned(),
        (false, false) => format!("{code} {message}"),
    }
}
