//! The lanes: what waits in them, and whether a process takes it.

use std::time::Duration;

use broker::Queue;
use store::Lane;
use store::push::HoldView;
use store::status::{COUNTED_MAX, Depths, Overdue, QUOTA_COUNTED_MAX};

use super::processes::led_for;
use super::{Finding, Harm, Known, SETTLING, Severity};
use crate::status::facts::Process;
use crate::status::thresholds::{LATELY, LOST, NOTIFICATIONS_LATE, OVERDUE, PUSHES_LATE};
use explain::words::{length, number, of, time, when};

/// Pushes in a second from which on the lane does all it can; Swrve allows 250.
const FULL_PACE: f64 = 150.0;
/// How far back a report must look, in seconds, for nothing to have happened in all of [`LATELY`]: reports come every few seconds.
const NEARLY_LATELY: u64 = LATELY.as_secs() - 2 * runtime::connections::BEAT_INTERVAL.as_secs();
/// Messages of the broker's dead letters that may lie there for a moment.
const DEAD_MESSAGES: u32 = 100;

pub(super) fn evaluate(known: &Known<'_>, findings: &mut Vec<Finding>) {
    findings.extend(super::swrve::evaluate(known));
    findings.extend(known.tables.outages().map(deliveries_held));
    findings.extend(unconsumed(known));
    findings.extend(reseller_lane_off(known));
    findings.extend(pushes_overdue(known));
    findings.extend(notifications_overdue(known));
    findings.extend(quotas_used_up(known));
    findings.extend(stalled(known));
    let (push, reseller) = (&known.tables.push.depths, &known.tables.reseller.depths);
    findings.extend(lost(Lane::Push, push, "push", "pushes"));
    findings.extend(lost(Lane::Reseller, reseller, "notification", "notifications"));
    findings.extend(full_queues(known));
}

/// Most endpoints fail in one way at once.
fn deliveries_held(hold: &HoldView) -> Finding {
    Finding::new(
        ("deliveries-held", Severity::Critical, "many-endpoints-fail"),
        format!(
            "Most endpoints fail in the class {} since {}, so the fault is likely ours. {} been sent, the last answer is: {}.",
            hold.class,
            time(hold.since),
            of(hold.probes.unsigned_abs(), "probe has", "probes have"),
            hold.last_answer.trim_end_matches('.')
        ),
        "What fails so uses no attempt, gives up nothing and counts against no subscription. Each dispatcher and retry-worker sends \
         those that failed at most one notification a second, in turn; when endpoints answer, everything is sent by itself, the oldest first.",
    )
    .naming("class", &hold.class)
    .naming("since", hold.since)
    .naming("probes", hold.probes.unsigned_abs())
    .naming("lastAnswer", hold.last_answer.trim_end_matches('.'))
    .with("postrider status")
}

/// Queues that hold something and that no process takes from, although one should.
fn unconsumed(known: &Known<'_>) -> Vec<Finding> {
    if known.broker_fails {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for facts in &known.facts.broker.queues {
        let (service, lane, runbook) = match facts.queue {
            Queue::PushReady => ("dispatcher", Some(Lane::Push), "nothing-is-sent"),
            Queue::ResellerReady => ("dispatcher", Some(Lane::Reseller), "the-reseller-lane-is-off"),
            Queue::ResellerRetry => ("retry-worker", Some(Lane::Reseller), "the-reseller-lane-is-off"),
            Queue::PushDead | Queue::ResellerDead => ("retry-worker", None, "a-process-is-not-ready"),
        };
        let Some(depth) = facts.depth.filter(|depth| depth.consumers == 0) else {
            continue;
        };
        // While the lane is held, and until what waited is sent, the queue is left alone.
        let held = facts.queue == Queue::PushReady && known.tables.swrve_hold().is_some();
        let stopped = held || lane.is_some_and(|lane| known.is_paused_or_resuming(lane));
        let enough = if lane.is_some() { 0 } else { DEAD_MESSAGES };
        // While the sender changes, or is missing, no dispatcher consumes; that is told as what it is.
        let led = facts.queue != Queue::PushReady || led_for(known).is_some_and(|led| led >= SETTLING);
        if stopped || depth.messages <= enough || !known.has_settled(service) || !led {
            continue;
        }
        let severity = if lane.is_some() {
            Severity::Critical
        } else {
            Severity::Warning
        };
        let finding = Finding::new(
            ("queue-not-consumed", severity, runbook),
            format!(
                "The queue {} holds {} and no process takes them, although a {service} runs.",
                facts.queue,
                of(depth.messages.into(), "message", "messages")
            ),
            "They wait, and are put there again when their leases run out.",
        );
        findings.push(
            finding
                .naming("queue", facts.queue.name())
                .naming("messages", depth.messages)
                .naming("service", service),
        );
    }
    findings
}

/// The engine of first attempts does not consume at all: it was not started.
fn reseller_lane_off(known: &Known<'_>) -> Option<Finding> {
    let ready = known
        .facts
        .broker
        .queues
        .iter()
        .find(|facts| facts.queue == Queue::ResellerReady)?;
    let idle = ready.depth?;
    let dispatcher_lacks_broker = known.tables.processes.iter().any(|process| {
        process.service == "dispatcher"
            && !process.is_silent()
            && process.report.failing.contains_key("broker")
    });
    if known.broker_fails
        || dispatcher_lacks_broker
        || idle.consumers > 0
        || known.is_paused_or_resuming(Lane::Reseller)
        || !known.has_settled("dispatcher")
    {
        return None;
    }
    let finding = |why| {
        Finding::new(
            ("reseller-lane-off", Severity::Warning, "the-reseller-lane-is-off"),
            format!("The reseller lane is off: {why}."),
            "Events are accepted and stored, and their notifications wait.",
        )
    };
    // A new key where there is one already would make every secret unreadable.
    Some(if known.facts.settings.has_sealing_key {
        finding("no dispatcher delivers notifications; its log says why").with("postrider serve dispatcher")
    } else {
        finding("the operator API knows no reseller.secrets.key, and no dispatcher delivers notifications")
            .naming("setting", "reseller.secrets.key")
            .with("openssl rand -base64 32   # only if no service has a reseller.secrets.key yet")
    })
}

fn pushes_overdue(known: &Known<'_>) -> Option<Finding> {
    if known.tables.lane_is_paused("push") || known.tables.swrve_hold().is_some() {
        return None;
    }
    let full_pace = known.tables.rates().pushes_sent >= FULL_PACE;
    let waited = longest(known, &known.tables.push.overdue)?;
    let severity = severity(waited, full_pace, PUSHES_LATE)?;
    let text = format!(
        "Pushes have waited for {} to be put into the queue; {} PENDING{}.",
        length(waited),
        of(known.tables.push.depths.pending, "push is", "pushes are"),
        known.backlog_of_pushes()
    );
    let meaning = if full_pace {
        "More came than Swrve may be sent, 250 in a second. They are sent in the order in which they came."
    } else {
        "More comes than is sent, the queue is full, or no retry-worker promotes. Nothing is lost."
    };
    let finding = Finding::new(("pushes-overdue", severity, "pushes-are-late"), text, meaning)
        .naming("waitedSeconds", waited.as_secs())
        .counting("pending", known.tables.push.depths.pending, COUNTED_MAX)
        .naming("fullPace", full_pace)
        .harming(Harm::Delays, Some(known.facts.now - waited));
    Some(known.naming_backlog_of_pushes(finding))
}

fn notifications_overdue(known: &Known<'_>) -> Option<Finding> {
    if known.tables.lane_is_paused("reseller") || known.tables.outages().next().is_some() {
        return None;
    }
    let waiting = &known.tables.reseller.waiting;
    let waited = longest(known, &waiting.overdue)?;
    // One subscription that gets more than its endpoint takes is served in turns, and others do not notice.
    let severity = severity(waited, waiting.subscriptions == 1, NOTIFICATIONS_LATE)?;
    let whose = match (waiting.subscriptions, waiting.worst) {
        (0, _) | (_, None) => String::new(),
        (1, Some(worst)) => format!(", all of the subscription {worst}"),
        (count, Some(worst)) => {
            format!(
                ", of {}, longest of {worst}",
                of(count, "subscription", "subscriptions")
            )
        }
    };
    let finding = Finding::new(
        ("notifications-overdue", severity, "notifications-are-late"),
        format!(
            "Notifications have waited for {} to be sent{whose}.",
            length(waited)
        ),
        "More comes than the endpoint takes, the queue is full, or no retry-worker promotes. Nothing is lost, and other \
         subscriptions are served in turns.",
    )
    .naming("waitedSeconds", waited.as_secs())
    .naming("subscriptions", waiting.worst.map(|_| waiting.subscriptions))
    .naming("subscription", waiting.worst)
    .harming(Harm::Delays, Some(known.facts.now - waited));
    Some(match waiting.worst {
        Some(worst) => finding.with(format!("postrider pause subscription {worst} --note '…'")),
        None => finding,
    })
}

/// What waits as it should, until the next day.
fn quotas_used_up(known: &Known<'_>) -> Option<Finding> {
    if known.tables.lane_is_paused("reseller") {
        return None;
    }
    let waiting = known.tables.reseller.quotas?;
    let at = when(waiting.again_at, known.facts.now);
    let is_more = waiting.notifications > QUOTA_COUNTED_MAX;
    let waits = if is_more {
        // Counting ended before all of them, and maybe before all subscriptions.
        format!("More than {} notifications wait", number(QUOTA_COUNTED_MAX))
    } else {
        format!(
            "{}{} of {} {}",
            if waiting.at_least { "At least " } else { "" },
            of(waiting.notifications, "notification", "notifications"),
            of(waiting.subscriptions, "subscription", "subscriptions"),
            if waiting.notifications == 1 {
                "waits"
            } else {
                "wait"
            }
        )
    };
    let most = waiting.most;
    let whose = match waiting.subscriptions {
        1 => format!("the subscription is {most}"),
        _ => format!("{most} has the most of them"),
    };
    let text = format!("{waits} because the daily quota is used up, the first until {at}; {whose}.");
    let finding = Finding::new(
        ("quotas-used-up", Severity::Notice, "a-daily-quota-is-used-up"),
        text,
        format!(
            "They go as the next days have room, the oldest first. A higher quota lets them go at once: postrider quotas set {most} \
             --daily-quota N."
        ),
    );
    Some(
        finding
            .counting("notifications", waiting.notifications, QUOTA_COUNTED_MAX)
            .naming("subscriptions", (!is_more).then_some(waiting.subscriptions))
            .naming("atLeast", (waiting.at_least && !is_more).then_some(true))
            .naming("subscription", most)
            .naming("againAt", waiting.again_at)
            .harming(Harm::Delays, None)
            .with("postrider notifications list --all --reason QUOTA"),
    )
}

/// For how long the first of what is due has waited.
fn longest(known: &Known<'_>, overdue: &Overdue) -> Option<Duration> {
    let due = overdue
        .due_at
        .and_then(|due| (known.facts.now - due).to_std().ok());
    due.max(overdue.pending_for)
}

/// An excuse holds until what waits is `late`.
fn severity(waited: Duration, excused: bool, late: Duration) -> Option<Severity> {
    match waited {
        waited if waited < OVERDUE => None,
        waited if excused && waited < late => Some(Severity::Notice),
        _ => Some(Severity::Warning),
    }
}

/// Lanes in which nothing was claimed lately although something waits. What is overdue by then is told as that.
fn stalled(known: &Known<'_>) -> Vec<Finding> {
    let (tables, lately) = (known.tables, known.tables.lately());
    let settled = |service: &str| {
        let of_it = |process: &&Process| process.service == service && !process.is_silent();
        let mut living = tables.processes.iter().filter(of_it).peekable();
        let earlier = |process: &Process| process.report.earlier.map(|earlier| earlier.seconds);
        // All of them: one of a version before does not say what it claims.
        living.peek().is_some() && living.all(|process| earlier(process) >= Some(NEARLY_LATELY))
    };
    // What is on its way to an engine is in the queue for a moment, too.
    let waits = |depths: &Depths, queues: &[Queue]| {
        let mut taken = known
            .facts
            .broker
            .queues
            .iter()
            .filter(|it| queues.contains(&it.queue));
        depths.queued_for >= Some(OVERDUE)
            && taken.any(|it| {
                it.depth
                    .is_some_and(|depth| depth.messages > 0 && depth.consumers > 0)
            })
    };
    let finding = |lane: &str, runbook| {
        Finding::new(
            ("lane-stalled", Severity::Critical, runbook),
            format!(
                "Messages of the {lane} lane wait in the queue, and none was claimed within the last {}, although a process takes them.",
                length(LATELY)
            ),
            "Nothing of the lane is sent. The log of the process that takes them says why; restarting it lets another go on.",
        )
        .naming("lane", lane)
        .naming("withinSeconds", LATELY.as_secs())
        .with("postrider status")
    };
    let mut findings = Vec::new();
    if known.broker_fails {
        return findings;
    }
    let led = led_for(known).is_some_and(|led| led >= LATELY);
    let open = !tables.lane_is_paused("push") && tables.swrve_hold().is_none();
    if led
        && open
        && lately.pushes_claimed == 0
        && settled("dispatcher")
        && waits(&tables.push.depths, &[Queue::PushReady])
    {
        findings.push(finding("push", "pushes-are-late"));
    }
    let queues = [Queue::ResellerReady, Queue::ResellerRetry];
    let settled = settled("dispatcher") && settled("retry-worker");
    let open = !tables.lane_is_paused("reseller");
    if open && lately.notifications_claimed == 0 && settled && waits(&tables.reseller.depths, &queues) {
        findings.push(finding("reseller", "notifications-are-late"));
    }
    findings
}

fn lost(lane: Lane, depths: &Depths, one: &str, many: &str) -> Option<Finding> {
    let lost_for = depths.lost_for.filter(|lost_for| *lost_for >= LOST)?;
    Some(
        Finding::new(
            ("not-rescued", Severity::Warning, "nothing-is-rescued"),
            format!(
                "{} with leases that ran out, the first {} ago, and no retry-worker has rescued them.",
                of(depths.lost, one, many),
                length(lost_for)
            ),
            "Their messages are lost, or their sender has died. A retry-worker rescues them within seconds.",
        )
        .naming("lane", lane.as_str())
        .counting("lost", depths.lost, COUNTED_MAX)
        .naming("agoSeconds", lost_for.as_secs())
        .with("postrider rescue"),
    )
}

fn full_queues(known: &Known<'_>) -> Vec<Finding> {
    let full = |facts: &&crate::status::facts::QueueFacts| {
        facts
            .depth
            .zip(facts.capacity)
            .is_some_and(|(depth, capacity)| depth.messages >= capacity && depth.consumers > 0)
    };
    let queues = known.facts.broker.queues.iter().filter(full);
    let findings = queues.map(|facts| {
        Finding::new(
            ("queue-full", Severity::Notice, "a-queue-is-full"),
            format!("The queue {} is full.", facts.queue),
            "More comes than is sent. What comes is stored and put into the queue when there is room.",
        )
        .naming("queue", facts.queue.name())
    });
    findings.collect()
}
