//! Everything else: pauses, dead letters, subscriptions, mails, months, jobs.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::dead_letter_job::{JobPause, JobStatus};
use domain::subscription::SubscriptionState;
use store::PauseView;
use store::status::{COUNTED_MAX, Deaths, PAUSED_COUNTED_MAX, SubscriptionInTrouble};

use super::{Finding, Harm, Known, Severity};
use crate::status::document::TroubleDocument;
use crate::status::facts::OpenRequests;
use crate::status::thresholds::{LARGE_SHARE, MANY_SUBSCRIPTIONS, MONTHS_AHEAD};
use explain::words::{endpoint, length, number, of, when};

/// Open dead letters of the last ten minutes that are no longer a few.
const MANY_DEAD_LETTERS: u64 = 20;
/// How long after its end a pause should have been ended at the latest.
const PAUSE_OVERDUE: TimeDelta = TimeDelta::minutes(2);
/// How long before its end a key in use is more than worth knowing.
const KEY_ENDS_SOON: TimeDelta = TimeDelta::hours(24);
/// Most pauses that are told one by one.
const PAUSES_TOLD: usize = 10;
/// How long mails may wait without a mail server before it is worth a word.
const MAILS_OVERDUE: Duration = Duration::from_secs(15 * 60);
/// How long a running job may do nothing.
const JOB_IDLE: Duration = Duration::from_secs(5 * 60);

pub(super) fn evaluate(known: &Known<'_>, findings: &mut Vec<Finding>) {
    findings.extend(months(known));
    findings.extend(pauses(known));
    findings.extend(egress(known));
    findings.extend(break_glass(known));
    findings.extend(ending_keys(known));
    findings.extend(dead_letters(known, "push", &known.tables.push.deaths));
    findings.extend(dead_letters(known, "reseller", &known.tables.reseller.deaths));
    findings.extend(subscriptions(known));
    findings.extend(deactivated(known));
    findings.extend(quota_requests(known));
    findings.extend(mails(known));
    findings.extend(jobs(known));
}

fn months(known: &Known<'_>) -> Option<Finding> {
    let (tables, webpush) = (known.tables, &known.tables.webpush);
    let (severity, month) = if !(tables.has_this_month && webpush.has_this_month) {
        (Severity::Critical, "present")
    } else if tables.months_ahead.min(webpush.months_ahead) < MONTHS_AHEAD {
        (Severity::Warning, "coming")
    } else {
        return None;
    };
    let finding = Finding::new(
        ("partitions-missing", severity, "partitions"),
        format!("The {month} month has no partitions."),
        "Nothing can be accepted in a month without them. A retry-worker makes them ahead of time.",
    );
    Some(finding.naming("month", month).with("postrider migrate"))
}

fn egress(known: &Known<'_>) -> Option<Finding> {
    known.facts.settings.opens_egress.then(|| {
        Finding::new(
            ("egress-open", Severity::Notice, "egress-is-open"),
            "Requests to resellers' endpoints may go to more than public addresses over https.",
            "reseller.egress.allowNetworks or allowHttp is set, which is for development: a reseller can have anything in those \
             networks called.",
        )
        .harming(Harm::Setting, None)
    })
}

fn break_glass(known: &Known<'_>) -> Option<Finding> {
    let broken = known.tables.broken_glass;
    let last = broken.last?;
    let text = format!(
        "{} in the last 24 hours with a key instead of the provider, the last one at {}.",
        of(
            broken.count,
            "visit to the console began",
            "visits to the console began"
        ),
        when(last, known.facts.now)
    );
    let finding = Finding::new(
        ("break-glass", Severity::Notice, "break-glass"),
        text,
        "The audit log says whose key it was, and what was done meanwhile.",
    );
    Some(
        finding
            .naming("visits", broken.count)
            .naming("lastAt", last)
            .with("postrider audit --action visit.break-glass"),
    )
}

fn ending_keys(known: &Known<'_>) -> Option<Finding> {
    let keys = &known.tables.ending_keys;
    let next = keys.first()?;
    let at = next.expires_at?;
    let severity = if at - known.facts.now < KEY_ENDS_SOON {
        Severity::Warning
    } else {
        Severity::Notice
    };
    let more = match keys.len() - 1 {
        0 => String::new(),
        more => format!(", and {} within a week", of(more as u64, "more key", "more keys")),
    };
    let text = format!(
        "The key {} ends at {}{more}.",
        next.name,
        when(at, known.facts.now)
    );
    let finding = Finding::new(
        ("key-ends", severity, "a-key-is-about-to-end"),
        text,
        "It was used within the last week. From its end on its requests are answered 401.",
    );
    let more = keys.len() - 1;
    Some(
        finding
            .naming("key", &next.name)
            .naming("endsAt", at)
            .naming("more", (more > 0).then_some(more))
            .harming(Harm::Nothing, None)
            .with(format!("postrider keys rotate {}", next.id)),
    )
}

fn pauses(known: &Known<'_>) -> Vec<Finding> {
    let pauses = &known.tables.pauses;
    let told = pauses.iter().take(PAUSES_TOLD).map(|pause| {
        let at = |at| when(at, known.facts.now);
        let until = pause
            .until
            .map_or(String::new(), |until| format!(" until {}", at(until)));
        let text = format!(
            "The {} {} is paused by {} since {}{until}: {}",
            pause.scope,
            pause.key,
            pause.paused_by,
            at(pause.paused_at),
            pause.note
        );
        let waiting = known.tables.waiting_for(pause);
        let waits = waiting.map_or(String::new(), |waiting| {
            format!(" {} now.", waits(pause, waiting))
        });
        let is_overdue = pause
            .until
            .is_some_and(|until| until + PAUSE_OVERDUE < known.facts.now);
        let (severity, end) = match pause.until {
            None => (Severity::Notice, "until it is resumed"),
            Some(_) if is_overdue => (
                Severity::Warning,
                "until it is resumed: its end has passed, and no retry-worker has ended it",
            ),
            Some(_) => (Severity::Notice, "until then, unless it is resumed before"),
        };
        let meaning = format!("Nothing of it is sent {end}. What comes is stored and waits.{waits}");
        let finding = Finding::new(("paused", severity, page_of(&pause.scope)), text, meaning)
            .naming("scope", &pause.scope)
            .naming("key", &pause.key)
            .naming("by", &pause.paused_by)
            .naming("since", pause.paused_at)
            .naming("until", pause.until)
            .naming("note", &pause.note);
        // Of a lane that is paused nothing is sent, however short the pause.
        let finding = match pause.scope.as_str() {
            "lane" => finding.harming(Harm::Stops, None),
            _ => finding.harming(Harm::Delays, Some(pause.paused_at)),
        };
        let counted = match waiting {
            Some(waiting) => finding.counting("waiting", waiting, counted_up_to(pause)),
            None => finding,
        };
        counted.with(format!("postrider resume {} {}", pause.scope, pause.key))
    });
    let mut findings: Vec<Finding> = told.collect();
    if let Some(more) = pauses.len().checked_sub(PAUSES_TOLD).filter(|more| *more > 0) {
        let text = format!(
            "{} in force.",
            of(more as u64, "more pause is", "more pauses are")
        );
        let finding = Finding::new(("paused", Severity::Notice, page_of("reseller")), text, "");
        let finding = finding.naming("more", more).harming(Harm::Delays, None);
        findings.push(finding.with("postrider pauses"));
    }
    findings
}

/// Up to where what waits because of a pause is counted.
fn counted_up_to(pause: &PauseView) -> u64 {
    if is_of_pushes(pause) {
        COUNTED_MAX
    } else {
        PAUSED_COUNTED_MAX
    }
}

fn is_of_pushes(pause: &PauseView) -> bool {
    pause.scope == "lane" && pause.key == "push"
}

fn waits(pause: &PauseView, waiting: u64) -> String {
    let (one, many) = if is_of_pushes(pause) {
        ("push waits", "pushes wait")
    } else {
        ("notification waits", "notifications wait")
    };
    if waiting > PAUSED_COUNTED_MAX && !is_of_pushes(pause) {
        return format!("more than {}", of(PAUSED_COUNTED_MAX, one, many));
    }
    of(waiting, one, many)
}

fn page_of(scope: &str) -> &'static str {
    match scope {
        "lane" => "a-lane-is-paused",
        _ => "a-subscription-or-a-reseller-is-paused",
    }
}

fn dead_letters(known: &Known<'_>, lane: &str, deaths: &Deaths) -> Option<Finding> {
    if deaths.open == 0 {
        return None;
    }
    let open = of(deaths.open, "open dead letter", "open dead letters");
    let mostly = deaths
        .fingerprint
        .as_deref()
        .map_or(String::new(), |fingerprint| {
            let mostly = if deaths.recent == 1 { "" } else { "mostly " };
            format!(
                ", {} of them in the last 10 minutes, {mostly}{fingerprint}",
                number(deaths.recent)
            )
        });
    let oldest = deaths.oldest.map_or(String::new(), |at| {
        let it = if deaths.open == 1 { "it" } else { "the oldest" };
        format!("; {it} was made at {}", when(at, known.facts.now))
    });
    let growing = deaths.recent >= MANY_DEAD_LETTERS;
    let (id, severity) = if growing {
        ("dead-letters-grow", Severity::Warning)
    } else {
        ("dead-letters-open", Severity::Notice)
    };
    Some(
        Finding::new(
            (id, severity, "dead-letters-grow"),
            format!("The {lane} lane has {open}{mostly}{oldest}."),
            "Each is something that will not be delivered unless it is replayed.",
        )
        .naming("lane", lane)
        .counting("open", deaths.open, COUNTED_MAX)
        .naming("recent", deaths.fingerprint.as_ref().map(|_| deaths.recent))
        .naming("fingerprint", &deaths.fingerprint)
        .naming("oldestAt", deaths.oldest)
        .harming(Harm::Loses, deaths.oldest)
        .with(format!("postrider dead-letters groups --lane {lane}")),
    )
}

fn subscriptions(known: &Known<'_>) -> Option<Finding> {
    let trouble = &known.tables.in_trouble;
    let worst = trouble.first()?;
    let (ours, failing) = (fail_widely(known), known.tables.failing);
    let count = |state| trouble.iter().filter(|it| it.state == state).count() as u64;
    let kinds = [
        (
            "deactivated",
            count(SubscriptionState::Deactivated),
            "deactivated within a day",
        ),
        ("degraded", count(SubscriptionState::Degraded), "degraded"),
        // The list of them is bounded, and the count is not.
        (
            "failing",
            count(SubscriptionState::Active).max(failing.saturating_sub(count(SubscriptionState::Degraded))),
            "failing",
        ),
    ];
    let kinds = kinds.into_iter().filter(|(_, count, _)| *count > 0);
    let said: Vec<String> = kinds
        .clone()
        .map(|(_, count, kind)| format!("{} {kind}", number(count)))
        .collect();
    let meaning = if ours {
        "Many at once may have one cause on our side: look at the name servers, the way out, the clock. Where each answers something of \
         its own, it is its reseller's business."
    } else {
        "It is its reseller's business, who gets mails; others do not notice."
    };
    let severity = if ours { Severity::Warning } else { Severity::Notice };
    let runbook = match (ours, worst.state) {
        (true, _) => "many-endpoints-fail",
        (false, SubscriptionState::Deactivated) => "a-subscription-was-deactivated",
        (false, _) => "one-endpoint-fails",
    };
    // The worst is the oldest one; what has changed is the newest.
    let newest = trouble.iter().max_by_key(|it| began(it));
    let newest = newest.filter(|it| began(it) > began(worst));
    let newest_is = newest.map_or(String::new(), |it| {
        format!("; the newest is {}", said_of(known, it))
    });
    let worst_is = said_of(known, worst);
    let still_tried = |it: &&SubscriptionInTrouble| it.state != SubscriptionState::Deactivated;
    let command = if trouble.iter().filter(still_tried).count() > 1 {
        "postrider subscriptions list --failing".to_owned()
    } else {
        format!("postrider dead-letters groups --subscription {}", worst.id)
    };
    let finding = Finding::new(
        ("subscriptions-in-trouble", severity, runbook),
        format!(
            "Subscriptions: {}; the worst is {worst_is}{newest_is}.",
            said.join(", ")
        ),
        meaning,
    );
    let finding = kinds.fold(finding, |finding, (name, count, _)| finding.naming(name, count));
    Some(
        finding
            .naming("worst", TroubleDocument::of(worst))
            .naming("newest", newest.map(TroubleDocument::of))
            .harming(Harm::Loses, trouble.iter().map(began).min())
            .with(command),
    )
}

/// Those that have been off for longer than those in trouble tell of: they get nothing, and each day that passes can be replayed for one day less.
fn deactivated(known: &Known<'_>) -> Option<Finding> {
    let off = known.tables.deactivated.as_ref()?;
    let oldest = &off.oldest;
    let (count, gets, which) = match off.count {
        1 => ("1 subscription was".to_owned(), "gets", "it is"),
        more => (
            format!("{} subscriptions were", number(more)),
            "get",
            "the first is",
        ),
    };
    let finding = Finding::new(
        (
            "subscriptions-deactivated",
            Severity::Notice,
            "a-subscription-was-deactivated",
        ),
        format!(
            "{count} deactivated more than a day ago and {gets} no events; {which} {}.",
            said_of(known, oldest)
        ),
        "Events that come meanwhile are not delivered unless the reseller activates the subscription and replays them in time.",
    );
    Some(
        finding
            .naming("deactivated", off.count)
            .naming("oldest", TroubleDocument::of(oldest))
            .harming(Harm::Loses, Some(began(oldest)))
            .with("postrider subscriptions list --state DEACTIVATED"),
    )
}

/// Since when a subscription is in trouble.
fn began(it: &SubscriptionInTrouble) -> DateTime<Utc> {
    match it.state {
        SubscriptionState::Deactivated => it.since,
        _ => it.failing_since.unwrap_or(it.since),
    }
}

/// Whether so many fail at once that the cause is likely ours.
fn fail_widely(known: &Known<'_>) -> bool {
    let is_deactivated = |state| state == SubscriptionState::Deactivated;
    let trouble = &known.tables.in_trouble;
    let deactivated = trouble.iter().filter(|it| is_deactivated(it.state)).count() as u64;
    let failing = known.tables.failing.max(trouble.len() as u64 - deactivated);
    let served = known
        .tables
        .subscriptions
        .iter()
        .filter(|it| matches!(it.state, SubscriptionState::Active | SubscriptionState::Degraded));
    let served = served.map(|it| it.count).sum::<u64>();
    let (many, all) = (failing + deactivated, served + deactivated);
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share of subscriptions needs no more precision"
    )]
    let share = many as f64 / all.max(1) as f64;
    many >= MANY_SUBSCRIPTIONS && share >= LARGE_SHARE
}

fn said_of(known: &Known<'_>, it: &SubscriptionInTrouble) -> String {
    let degraded = if it.state == SubscriptionState::Degraded {
        format!(" is degraded since {} and", when(it.since, known.facts.now))
    } else {
        String::new()
    };
    let failing = it.failing_since.map_or(String::new(), |at| {
        format!("{degraded} fails since {}", when(at, known.facts.now))
    });
    let deactivated = if it.state == SubscriptionState::Deactivated {
        format!(
            " was deactivated at {}, {}",
            when(it.since, known.facts.now),
            it.reason
        )
    } else {
        failing
    };
    format!("{} of {}: {}{deactivated}", it.id, it.reseller, endpoint(&it.url))
}

/// What resellers have asked for and nothing decides by itself.
fn quota_requests(known: &Known<'_>) -> Option<Finding> {
    let open = known.tables.reseller.requests;
    let wait = match open.count {
        0 => return None,
        more if more > u64::from(OpenRequests::COUNTED) => {
            format!("More than {} quota requests wait", OpenRequests::COUNTED)
        }
        count => of(count, "quota request waits", "quota requests wait"),
    };
    let since = open.oldest.map_or(String::new(), |at| {
        let oldest = if open.count > 1 { "the oldest " } else { "" };
        format!(", {oldest}since {}", when(at, known.facts.now))
    });
    let finding = Finding::new(
        ("quota-requests-open", Severity::Notice, "quota-requests"),
        format!("{wait} for a decision{since}."),
        "Resellers ask for more than their quota or rate. An administrator decides, with postrider quotas approve or postrider quotas deny.",
    );
    Some(
        finding
            .counting("requests", open.count, OpenRequests::COUNTED.into())
            .naming("oldestAt", open.oldest)
            .with("postrider quotas requests --status REQUESTED"),
    )
}

fn mails(known: &Known<'_>) -> Vec<Finding> {
    let (outbox, trouble) = (&known.tables.outbox, &known.tables.mails);
    let overdue = outbox
        .oldest_due
        .and_then(|due| (known.facts.now - due).to_std().ok());
    let overdue = overdue.filter(|overdue| *overdue >= MAILS_OVERDUE);
    let runbook = "mails-to-resellers-do-not-arrive";
    let mut findings = Vec::new();
    let waiting = of(outbox.waiting, "mail", "mails");
    if let Some(overdue) = overdue {
        let setting = (!known.facts.settings.has_mail_server).then_some("mail.smtpUrl");
        let (severity, why) = match setting {
            None => (Severity::Warning, "no retry-worker sends them".to_owned()),
            Some(setting) => (Severity::Notice, format!("{setting} is not set")),
        };
        let text = format!(
            "{waiting} to resellers {} not been sent for {}: {why}.",
            if outbox.waiting == 1 { "has" } else { "have" },
            length(overdue)
        );
        let finding = Finding::new(
            ("mails-stuck", severity, runbook),
            text,
            "Resellers are not told what happens to them.",
        );
        findings.push(
            finding
                .naming("waiting", outbox.waiting)
                .naming("waitedSeconds", overdue.as_secs())
                .naming("setting", setting)
                .harming(Harm::Delays, Some(known.facts.now - overdue)),
        );
    } else if trouble.retried > 0 {
        let why = trouble
            .last_error
            .as_deref()
            .unwrap_or("for a reason that was not recorded");
        let tried = of(trouble.retried, "mail was", "mails were");
        let text = format!("{tried} tried in vain more than once: {why}.");
        let finding = Finding::new(
            ("mails-stuck", Severity::Warning, runbook),
            text,
            "The mail server is away or refuses them. They are tried again.",
        );
        findings.push(
            finding
                .naming("retried", trouble.retried)
                .naming("lastError", &trouble.last_error),
        );
    }
    if trouble.failed > 0 {
        let text = format!(
            "{} within a day.",
            of(trouble.failed, "mail was given up", "mails were given up")
        );
        let meaning =
            "The mail server refused their recipients; the resellers have to change their addresses.";
        let finding = Finding::new(("mails-failed", Severity::Notice, runbook), text, meaning);
        findings.push(
            finding
                .naming("failed", trouble.failed)
                .harming(Harm::Loses, None),
        );
    }
    findings
}

fn jobs(known: &Known<'_>) -> Vec<Finding> {
    let findings = known.tables.jobs.iter().filter_map(|job| {
        let progress = format!("{} of {}", number(job.examined), number(job.matching));
        let what = job.action.as_str().to_lowercase();
        let about = |finding: Finding| {
            finding
                .of_job(job.id)
                .naming("by", &job.by)
                .naming("action", job.action.as_str())
                .naming("examined", job.examined)
                .naming("matching", job.matching)
        };
        if job.status == JobStatus::Paused {
            let meaning = match job.paused_because {
                // It goes on by itself.
                Some(JobPause::Canary) => return None,
                Some(JobPause::CanaryFailed) => {
                    "It paused itself: of the first that it sent again, some failed again. postrider jobs resume lets it go on, postrider jobs cancel \
                     ends it."
                }
                Some(JobPause::FailedAgain) => {
                    "It paused itself: too much of what it sent again failed again. postrider jobs resume lets it go on, postrider jobs cancel ends \
                     it."
                }
                None => "",
            };
            let text = format!(
                "A job of {} to {what} dead letters is paused at {progress}.",
                job.by
            );
            let finding = Finding::new(
                ("job-paused", Severity::Notice, "dead-letters-grow"),
                text,
                meaning,
            );
            // What failed comes before what is done about it.
            let command = if job.paused_because.is_some() { "show" } else { "resume" };
            return Some(
                about(finding)
                    .naming("pausedBecause", job.paused_because.map(JobPause::as_str))
                    .harming(Harm::Delays, None)
                    .with(format!("postrider jobs {command} {}", job.id)),
            );
        }
        if job.idle < JOB_IDLE {
            return None;
        }
        let text = format!(
            "A job of {} to {what} dead letters has done nothing for {}; it stands at {progress}.",
            job.by,
            length(job.idle)
        );
        let meaning = "A retry-worker does it; none runs, or it fails and says so in its log.";
        let finding = Finding::new(
            ("job-stuck", Severity::Warning, "dead-letters-grow"),
            text,
            meaning,
        );
        Some(
            about(finding)
                .naming("idleSeconds", job.idle.as_secs())
                .with(format!("postrider jobs show {}", job.id)),
        )
    });
    findings.collect()
}
