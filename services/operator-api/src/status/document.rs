//! The status as callers get it. Its shape is documented in docs/cli.md and stable: fields may be added, none is changed.

mod headline;
mod lane;
mod webpush;

use std::collections::BTreeMap;

use broker::ConnectionState;
use chrono::{DateTime, SubsecRound as _, Utc};
use serde::Serialize;
use store::status::{LOOKS_APART_MAX, SubscriptionInTrouble};
use utoipa::ToSchema;
use uuid::Uuid;

use self::headline::{headline, held};
use self::lane::lanes;
use self::webpush::webpush;
use super::evaluate::is_healthy;
use super::facts::{Database, Facts, Process, Tables};
use super::finding::Finding;
use explain::words::endpoint;

pub(crate) use self::lane::LaneDocument;
pub(crate) use self::webpush::WebpushDocument;

/// How the system is. What could not be found out is null.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Status)]
pub(crate) struct StatusDocument {
    /// When it was so.
    pub(crate) at: DateTime<Utc>,
    /// Whether no finding is critical or a warning.
    pub(crate) healthy: bool,
    /// Since when that is so, by looks that are half a minute apart, and where it is well no earlier than the end of the last outage for which something was held; null where they, or an answer since, have just found it otherwise, or none was made for a while.
    pub(crate) since: Option<DateTime<Utc>>,
    /// That in words, with the lanes that operators have paused and what other pauses of theirs hold: that is meant to wait, and is no fault.
    #[schema(example = "Healthy, with the lane push paused")]
    pub(crate) headline: String,
    /// What pauses of subscriptions and resellers hold, for pages, which say the rest of the headline otherwise.
    #[serde(skip)]
    pub(crate) held: Option<String>,
    /// What is worth knowing, the worst first.
    pub(crate) findings: Vec<Finding>,
    /// Up to where rows are counted: a greater number means "more than that".
    pub(crate) counted_up_to: u64,
    /// Both lanes, push first; null while the database cannot be asked.
    pub(crate) lanes: Option<Vec<LaneDocument>>,
    /// The dispatcher that leads and sends pushes; null while none does.
    pub(crate) leader: Option<LeaderDocument>,
    /// The services that report themselves.
    pub(crate) processes: Option<Vec<ProcessDocument>>,
    pub(crate) broker: BrokerDocument,
    /// What operators have paused.
    pub(crate) pauses: Option<Vec<PauseDocument>>,
    pub(crate) subscriptions: Option<SubscriptionsDocument>,
    pub(crate) mails: Option<MailsDocument>,
    pub(crate) partitions: Option<PartitionsDocument>,
    /// Web Push; null where there is none.
    pub(crate) webpush: Option<WebpushDocument>,
    /// Bulk jobs on dead letters that have not ended.
    pub(crate) jobs: Option<Vec<JobDocument>>,
}

/// The leader of the push lane.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Leader)]
pub(crate) struct LeaderDocument {
    pub(crate) holder: Uuid,
    /// Of its term. Another begins when another process takes over, and also with a hold, after one, and after a pause of the lane.
    pub(crate) epoch: i64,
    /// When this epoch began; the process may have led before.
    pub(crate) since: Option<DateTime<Utc>>,
    pub(crate) renewed_seconds_ago: u64,
    /// The host of its process, if that reports itself.
    pub(crate) host: Option<String>,
    pub(crate) pid: Option<u32>,
}

/// A service that reports itself every few seconds.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ProcessStatus)]
pub(crate) struct ProcessDocument {
    /// Of the process; services that share one have the same.
    pub(crate) id: Uuid,
    pub(crate) service: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) started_at: DateTime<Utc>,
    /// How long ago it reported itself.
    pub(crate) seen_seconds_ago: u64,
    /// Whether it has not done so for too long.
    pub(crate) silent: bool,
    /// The readiness conditions that do not hold, and why.
    pub(crate) failing: BTreeMap<String, String>,
    pub(crate) leads: bool,
}

/// The broker.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BrokerStatus)]
pub(crate) struct BrokerDocument {
    /// `connected`, `connecting`, `blocked` or `closed`.
    #[schema(value_type = String, example = "connected")]
    pub(crate) state: &'static str,
    pub(crate) reason: Option<String>,
    pub(crate) queues: Vec<QueueDocument>,
}

/// A queue.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QueueStatus)]
pub(crate) struct QueueDocument {
    #[schema(value_type = String, example = "push.ready")]
    pub(crate) name: &'static str,
    pub(crate) messages: Option<u32>,
    pub(crate) consumers: Option<u32>,
    /// Most messages that it holds; null when there is no limit.
    pub(crate) capacity: Option<u32>,
}

/// A pause in force.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PauseStatus)]
pub(crate) struct PauseDocument {
    /// `lane`, `subscription` or `reseller`.
    pub(crate) scope: String,
    pub(crate) key: String,
    pub(crate) note: String,
    pub(crate) paused_by: String,
    pub(crate) paused_at: DateTime<Utc>,
    /// When it ends by itself; null when it lasts until it is resumed.
    pub(crate) until: Option<DateTime<Utc>>,
    /// How many pushes or notifications wait because of it, counted up to 10,000 (of a lane up to `countedUpTo` in each status); null
    /// where it is not counted.
    pub(crate) waiting: Option<u64>,
}

/// The subscriptions of all resellers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SubscriptionsStatus)]
pub(crate) struct SubscriptionsDocument {
    /// How many are in each state.
    pub(crate) states: BTreeMap<String, u64>,
    /// How many are paused, by whomever.
    pub(crate) paused: u64,
    /// How many of those their resellers have paused; `GET /pauses` names them.
    pub(crate) paused_by_reseller: u64,
    /// Those that are failing, degraded, or were deactivated within a day, the worst first; at most 100.
    pub(crate) in_trouble: Vec<TroubleDocument>,
}

/// A subscription in trouble.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SubscriptionInTrouble)]
pub(crate) struct TroubleDocument {
    pub(crate) id: Uuid,
    pub(crate) reseller_id: String,
    /// Scheme, host, port and path.
    pub(crate) endpoint: String,
    pub(crate) state: &'static str,
    pub(crate) reason: String,
    pub(crate) since: DateTime<Utc>,
    pub(crate) failing_since: Option<DateTime<Utc>>,
}

impl TroubleDocument {
    pub(crate) fn of(it: &SubscriptionInTrouble) -> Self {
        Self {
            id: it.id,
            reseller_id: it.reseller.clone(),
            endpoint: endpoint(&it.url),
            state: it.state.as_str(),
            reason: it.reason.clone(),
            since: it.since,
            failing_since: it.failing_since,
        }
    }
}

/// Mails to resellers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MailsStatus)]
pub(crate) struct MailsDocument {
    pub(crate) waiting: u64,
    /// Of them, tried in vain more than once.
    pub(crate) retried: u64,
    pub(crate) oldest_due: Option<DateTime<Utc>>,
    /// Given up within a day.
    pub(crate) failed: u64,
}

/// Monthly partitions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PartitionsStatus)]
pub(crate) struct PartitionsDocument {
    pub(crate) months_ahead: i32,
    pub(crate) this_month: bool,
}

/// A bulk job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = JobStatus)]
pub(crate) struct JobDocument {
    pub(crate) id: Uuid,
    pub(crate) action: String,
    pub(crate) status: String,
    pub(crate) matching: u64,
    pub(crate) examined: u64,
    pub(crate) created_by: String,
}

impl StatusDocument {
    pub(crate) fn of(facts: &Facts, findings: Vec<Finding>) -> Self {
        let tables = match &facts.database {
            Database::Known(tables) => Some(&**tables),
            Database::Away(_) | Database::NotMigrated => None,
        };
        let healthy = is_healthy(&findings);
        let held = tables.and_then(held);
        let look = tables
            .and_then(|tables| tables.last_look)
            .filter(|look| look.healthy == healthy && (facts.now - look.looked_at).abs() <= LOOKS_APART_MAX);
        Self {
            at: facts.now,
            since: look.map(|look| {
                // An outage can begin and end between two looks.
                let held_until = tables.and_then(|tables| tables.last_hold_end);
                match held_until {
                    Some(end) if healthy => look.since.max(end.trunc_subsecs(0)),
                    _ => look.since,
                }
            }),
            healthy,
            headline: headline(healthy, tables, held.as_deref()),
            held,
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
            webpush: tables.and_then(webpush),
            jobs: tables.map(jobs),
        }
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
        until: pause.until,
        waiting: tables.waiting_for(pause),
    });
    pauses.collect()
}

fn subscriptions(tables: &Tables) -> SubscriptionsDocument {
    let in_trouble = tables.in_trouble.iter().map(TroubleDocument::of);
    SubscriptionsDocument {
        states: tables
            .subscriptions
            .iter()
            .map(|it| (it.state.to_string(), it.count))
            .collect(),
        paused: tables.subscriptions.iter().map(|it| it.paused).sum(),
        paused_by_reseller: tables.subscriptions.iter().map(|it| it.paused_by_reseller).sum(),
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
