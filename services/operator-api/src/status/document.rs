//! The status as callers get it. Its shape is documented in docs/cli.md and stable: fields may be added, none is changed.

use std::collections::BTreeMap;

use broker::ConnectionState;
use chrono::{DateTime, Utc};
use serde::Serialize;
use store::status::{Deaths, Depths, Overdue};
use utoipa::ToSchema;
use uuid::Uuid;

use super::evaluate::is_healthy;
use super::facts::{Database, Facts, Process, Rates, Tables, time_to_send};
use super::finding::Finding;
use explain::words::origin;

/// How the system is. What could not be found out is null.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Status)]
pub(crate) struct StatusDocument {
    /// When it was so.
    at: DateTime<Utc>,
    /// Whether no finding is critical or a warning.
    healthy: bool,
    /// What is worth knowing, the worst first.
    findings: Vec<Finding>,
    /// Up to where rows are counted: a greater number means "more than that".
    counted_up_to: u64,
    /// Both lanes, push first; null while the database cannot be asked.
    lanes: Option<Vec<LaneDocument>>,
    /// The dispatcher that leads and sends pushes; null while none does.
    leader: Option<LeaderDocument>,
    /// The services that report themselves.
    processes: Option<Vec<ProcessDocument>>,
    broker: BrokerDocument,
    /// What operators have paused.
    pauses: Option<Vec<PauseDocument>>,
    subscriptions: Option<SubscriptionsDocument>,
    mails: Option<MailsDocument>,
    partitions: Option<PartitionsDocument>,
    /// Bulk jobs on dead letters that have not ended.
    jobs: Option<Vec<JobDocument>>,
}

/// A lane.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LaneStatus)]
struct LaneDocument {
    #[schema(value_type = String, example = "push")]
    lane: &'static str,
    paused: bool,
    /// SCHEDULED: waiting for a time.
    scheduled: u64,
    /// PENDING: waiting for room in the queue.
    pending: u64,
    /// IN_MEMORY, and not claimed yet.
    queued: u64,
    /// Claimed.
    in_flight: u64,
    /// RETRY: waiting to be tried again.
    retry: u64,
    /// IN_MEMORY with a lease that ran out; rescued within seconds.
    lost: u64,
    /// For how long the first PENDING one has waited.
    oldest_pending_seconds: Option<u64>,
    /// How long ago the first of what waits for a time came due; 0 when that lies ahead.
    oldest_due_seconds: Option<u64>,
    /// How long ago the first lease ran out.
    oldest_lost_seconds: Option<u64>,
    rate_per_second: RateDocument,
    /// How long what is pending and queued takes at the present rate, or at least, where more is pending than is counted; null while
    /// nothing waits or hardly anything is delivered.
    backlog_seconds: Option<u64>,
    dead_letters: DeathsDocument,
}

/// What a lane does in a second, over the last few seconds.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LaneRate)]
struct RateDocument {
    accepted: f64,
    delivered: f64,
    failed: f64,
    retried: f64,
}

/// Dead letters of a lane.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LaneDeadLetters)]
struct DeathsDocument {
    open: u64,
    newest: Option<DateTime<Utc>>,
    /// Open ones of the last ten minutes.
    recent: u64,
}

/// The leader of the push lane.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Leader)]
struct LeaderDocument {
    holder: Uuid,
    epoch: i64,
    since: Option<DateTime<Utc>>,
    renewed_seconds_ago: u64,
    /// The host of its process, if that reports itself.
    host: Option<String>,
    pid: Option<u32>,
}

/// A service that reports itself every few seconds.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ProcessStatus)]
struct ProcessDocument {
    /// Of the process; services that share one have the same.
    id: Uuid,
    service: String,
    host: String,
    pid: u32,
    version: String,
    started_at: DateTime<Utc>,
    /// How long ago it reported itself.
    seen_seconds_ago: u64,
    /// Whether it has not done so for too long.
    silent: bool,
    /// The readiness conditions that do not hold, and why.
    failing: BTreeMap<String, String>,
    leads: bool,
}

/// The broker.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BrokerStatus)]
struct BrokerDocument {
    /// `connected`, `connecting`, `blocked` or `closed`.
    #[schema(value_type = String, example = "connected")]
    state: &'static str,
    reason: Option<String>,
    queues: Vec<QueueDocument>,
}

/// A queue.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QueueStatus)]
struct QueueDocument {
    #[schema(value_type = String, example = "push.ready")]
    name: &'static str,
    messages: Option<u32>,
    consumers: Option<u32>,
    /// Most messages that it holds; null when there is no limit.
    capacity: Option<u32>,
}

/// A pause in force.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PauseStatus)]
struct PauseDocument {
    /// `lane`, `subscription` or `reseller`.
    scope: String,
    key: String,
    note: String,
    paused_by: String,
    paused_at: DateTime<Utc>,
    /// How many pushes or notifications wait because of it, counted up to 10,000 (of a lane up to `countedUpTo` in each status); null
    /// where it is not counted.
    waiting: Option<u64>,
}

/// The subscriptions of all resellers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SubscriptionsStatus)]
struct SubscriptionsDocument {
    /// How many are in each state.
    states: BTreeMap<String, u64>,
    /// How many are paused, by whomever.
    paused: u64,
    /// Those that are failing, degraded, or were deactivated within a day, the worst first; at most 100.
    in_trouble: Vec<TroubleDocument>,
}

/// A subscription in trouble.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SubscriptionInTrouble)]
struct TroubleDocument {
    id: Uuid,
    reseller_id: String,
    /// Scheme, host and port.
    endpoint: String,
    state: &'static str,
    reason: String,
    since: DateTime<Utc>,
    failing_since: Option<DateTime<Utc>>,
}

/// Mails to resellers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MailsStatus)]
struct MailsDocument {
    waiting: u64,
    /// Of them, tried in vain more than once.
    retried: u64,
    oldest_due: Option<DateTime<Utc>>,
    /// Given up within a day.
    failed: u64,
}

/// Monthly partitions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PartitionsStatus)]
struct PartitionsDocument {
    months_ahead: i32,
    this_month: bool,
}

/// A bulk job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = JobStatus)]
struct JobDocument {
    id: Uuid,
    action: String,
    status: String,
    matching: u64,
    examined: u64,
    created_by: String,
}

impl StatusDocument {
    pub(crate) fn of(facts: &Facts, findings: Vec<Finding>) -> Self {
        let tables = match &facts.database {
            Database::Known(tables) => Some(&**tables),
            Database::Away(_) | Database::NotMigrated => None,
        };
        Self {
            at: facts.now,
            healthy: is_healthy(&findings),
            findings,
            counted_up_to: store::status::COUNTED_MAX,
            lanes: tables.map(|tables| lanes(tables, facts.now)),
            leader: tables.and_then(leader),
            processes: tables.map(|tables| tables.processes.iter().map(|it| process(tables, it)).collect()),
            broker: broker(facts),
            pauses: tables.map(pauses),
            subscriptions: tables.map(subscriptions),
            mails: tables.map(|tables| MailsDocument {
                waiting: tables.outbox.waiting,
                retried: tables.mails.retried,
                oldest_due: tables.outbox.oldest_due,
                failed: tables.mails.failed,
            }),
            partitions: tables.map(|tables| PartitionsDocument {
                months_ahead: tables.months_ahead,
                this_month: tables.has_this_month,
            }),
            jobs: tables.map(jobs),
        }
    }
}

fn lanes(tables: &Tables, now: DateTime<Utc>) -> Vec<LaneDocument> {
    let rates = tables.rates();
    let push = &tables.push;
    let reseller = &tables.reseller;
    vec![
        lane(
            ("push", tables),
            (&push.depths, &push.overdue, &push.deaths),
            push_rate(&rates),
            now,
        ),
        lane(
            ("reseller", tables),
            (&reseller.depths, &reseller.waiting.overdue, &reseller.deaths),
            reseller_rate(&rates),
            now,
        ),
    ]
}

fn lane(
    (lane, tables): (&'static str, &Tables),
    (depths, overdue, deaths): (&Depths, &Overdue, &Deaths),
    rate_per_second: RateDocument,
    now: DateTime<Utc>,
) -> LaneDocument {
    LaneDocument {
        lane,
        paused: tables.lane_is_paused(lane),
        scheduled: depths.scheduled,
        pending: depths.pending,
        queued: depths.queued,
        in_flight: depths.sending,
        retry: depths.retry,
        lost: depths.lost,
        oldest_pending_seconds: overdue.pending_for.map(|age| age.as_secs()),
        oldest_due_seconds: overdue
            .due_at
            .map(|due| (now - due).to_std().unwrap_or_default().as_secs()),
        oldest_lost_seconds: depths.lost_for.map(|age| age.as_secs()),
        backlog_seconds: time_to_send(depths.backlog(), rate_per_second.delivered)
            .map(|takes| takes.as_secs()),
        rate_per_second,
        dead_letters: DeathsDocument {
            open: deaths.open,
            newest: deaths.newest,
            recent: deaths.recent,
        },
    }
}

fn push_rate(rates: &Rates) -> RateDocument {
    RateDocument {
        accepted: tenths(rates.pushes_accepted),
        delivered: tenths(rates.pushes_sent),
        failed: tenths(rates.pushes_failed),
        retried: tenths(rates.pushes_retried),
    }
}

fn reseller_rate(rates: &Rates) -> RateDocument {
    RateDocument {
        accepted: tenths(rates.events_accepted),
        delivered: tenths(rates.notifications_delivered),
        failed: tenths(rates.notifications_failed),
        retried: tenths(rates.notifications_retried),
    }
}

fn tenths(rate: f64) -> f64 {
    (rate * 10.0).round() / 10.0
}

fn leader(tables: &Tables) -> Option<LeaderDocument> {
    let leader = tables.leader?;
    let process = tables.leading();
    Some(LeaderDocument {
        holder: leader.holder?,
        epoch: leader.epoch,
        since: leader.taken_at,
        renewed_seconds_ago: leader.renewed.as_secs(),
        host: process.map(|process| process.host.clone()),
        pid: process.map(|process| process.pid),
    })
}

fn process(tables: &Tables, process: &Process) -> ProcessDocument {
    let leads = tables
        .leading()
        .is_some_and(|leading| leading.id == process.id && leading.service == process.service);
    ProcessDocument {
        id: process.id,
        service: process.service.clone(),
        host: process.host.clone(),
        pid: process.pid,
        version: process.version.clone(),
        started_at: process.started_at,
        seen_seconds_ago: process.age.as_secs(),
        silent: process.is_silent(),
        failing: process.report.failing.clone(),
        leads,
    }
}

fn broker(facts: &Facts) -> BrokerDocument {
    let (state, reason) = match &facts.broker.state {
        ConnectionState::Connected { .. } => ("connected", None),
        ConnectionState::Connecting { last_error } => ("connecting", last_error.clone()),
        ConnectionState::Blocked { reason, .. } => ("blocked", Some(reason.clone())),
        ConnectionState::Closed => ("closed", None),
    };
    let queues = facts.broker.queues.iter().map(|queue| QueueDocument {
        name: queue.queue.name(),
        messages: queue.depth.map(|depth| depth.messages),
        consumers: queue.depth.map(|depth| depth.consumers),
        capacity: queue.capacity,
    });
    BrokerDocument {
        state,
        reason,
        queues: queues.collect(),
    }
}

fn pauses(tables: &Tables) -> Vec<PauseDocument> {
    let pauses = tables.pauses.iter().map(|pause| PauseDocument {
        scope: pause.scope.clone(),
        key: pause.key.clone(),
        note: pause.note.clone(),
        paused_by: pause.paused_by.clone(),
        paused_at: pause.paused_at,
        waiting: tables.waiting_for(pause),
    });
    pauses.collect()
}

fn subscriptions(tables: &Tables) -> SubscriptionsDocument {
    let in_trouble = tables.in_trouble.iter().map(|it| TroubleDocument {
        id: it.id,
        reseller_id: it.reseller.clone(),
        endpoint: origin(&it.url),
        state: it.state.as_str(),
        reason: it.reason.clone(),
        since: it.since,
        failing_since: it.failing_since,
    });
    SubscriptionsDocument {
        states: tables
            .subscriptions
            .iter()
            .map(|it| (it.state.to_string(), it.count))
            .collect(),
        paused: tables.subscriptions.iter().map(|it| it.paused).sum(),
        in_trouble: in_trouble.collect(),
    }
}

fn jobs(tables: &Tables) -> Vec<JobDocument> {
    let jobs = tables.jobs.iter().map(|job| JobDocument {
        id: job.id,
        action: job.action.to_string(),
        status: job.status.to_string(),
        matching: job.matching,
        examined: job.examined,
        created_by: job.by.clone(),
    });
    jobs.collect()
}
