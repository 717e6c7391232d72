//! A system for tests of what its state amounts to: one that is well, and what can be changed about it.

use std::time::Duration;

use broker::{ConnectionState, Queue};
use chrono::{DateTime, TimeDelta, TimeZone as _, Utc};
use domain::dead_letter_job::{JobAction, JobStatus};
use domain::month::Month;
use domain::reason::StateReason;
use domain::subscription::SubscriptionState;
use runtime::connections::{Counters, Earlier, Previous, Report, SwrveReport};
use store::BrokenGlass;
use store::status::{
    Deactivated, JobInProgress, Leadership, MailsInTrouble, QuotaWaiting, SubscriptionCount,
    SubscriptionInTrouble, SwrveFailure,
};
use store::webhook::Outbox;
use store::webpush::StoredMonth;
use uuid::Uuid;

use crate::status::facts::{
    BrokerFacts, Database, Depth, Facts, Process, PushFacts, QueueFacts, ResellerFacts, Settings, Tables,
    WebpushFacts,
};
use crate::status::thresholds::LATELY;

pub(super) const MINUTE: Duration = Duration::from_secs(60);

pub(super) fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap()
}

pub(super) fn process(service: &str, uptime: Duration) -> Process {
    Process {
        id: Uuid::from_u128(1),
        service: service.to_owned(),
        host: "one".to_owned(),
        pid: 17,
        version: "0.1.0".to_owned(),
        started_at: now() - uptime,
        beat_at: now(),
        age: Duration::from_secs(2),
        report: Report::default(),
    }
}

/// A system at work, all of whose services have been running for `uptime`.
pub(super) fn system(uptime: Duration) -> Facts {
    let services = [
        "dispatcher",
        "ingest-api",
        "operator-api",
        "reseller-portal",
        "retry-worker",
        "webpush-connection",
        "webpush-endpoint",
    ];
    let queues = Queue::ALL.map(|queue| QueueFacts {
        queue,
        capacity: Some(10_000),
        depth: Some(Depth {
            messages: 0,
            consumers: 1,
        }),
    });
    Facts {
        now: now(),
        settings: Settings {
            has_mail_server: true,
            has_sealing_key: true,
            opens_egress: false,
            has_webpush_keys: true,
            leader_ttl: Duration::from_secs(3),
        },
        broker: BrokerFacts {
            state: ConnectionState::Connected { generation: 1 },
            queues: queues.to_vec(),
        },
        database: Database::Known(Box::new(Tables {
            processes: services.map(|service| process(service, uptime)).to_vec(),
            leader: Some(Leadership {
                holder: Some(Uuid::from_u128(2)),
                epoch: 3,
                taken_at: Some(now() - uptime),
                renewed: Duration::from_secs(1),
            }),
            pauses: Vec::new(),
            resumed: Vec::new(),
            paused: Vec::new(),
            holds: Vec::new(),
            push: PushFacts::default(),
            reseller: ResellerFacts::default(),
            subscriptions: vec![SubscriptionCount {
                state: SubscriptionState::Active,
                count: 10,
                paused: 0,
                paused_by_reseller: 0,
            }],
            in_trouble: Vec::new(),
            deactivated: None,
            failing: 0,
            outbox: Outbox::default(),
            mails: MailsInTrouble::default(),
            months_ahead: 2,
            has_this_month: true,
            webpush: WebpushFacts {
                months_ahead: 2,
                has_this_month: true,
                months: vec![webpush_month(0, 10)],
            },
            jobs: Vec::new(),
            broken_glass: BrokenGlass::default(),
            ending_keys: Vec::new(),
            last_look: None,
            last_hold_end: None,
        })),
    }
}

/// What is stored of Web Push in the month so many before the present one.
pub(super) fn webpush_month(before: u32, messages: u64) -> StoredMonth {
    StoredMonth {
        month: Month::containing(now()).minus(before),
        clients: 3,
        with_node: 1,
        messages,
    }
}

pub(super) fn running() -> Facts {
    system(10 * MINUTE)
}

pub(super) fn tables(facts: &mut Facts) -> &mut Tables {
    match &mut facts.database {
        Database::Known(tables) => tables,
        Database::Away(_) | Database::NotMigrated => panic!("nothing is known of the tables"),
    }
}

pub(super) fn one<'a>(facts: &'a mut Facts, service: &str) -> &'a mut Process {
    let mut processes = tables(facts).processes.iter_mut();
    processes.find(|process| process.service == service).unwrap()
}

pub(super) fn depth(facts: &mut Facts, queue: Queue, messages: u32, consumers: u32) {
    let found = facts
        .broker
        .queues
        .iter_mut()
        .find(|it| it.queue == queue)
        .unwrap();
    found.depth = Some(Depth { messages, consumers });
}

pub(super) fn pause(scope: &str, key: &str) -> store::PauseView {
    store::PauseView {
        scope: scope.to_owned(),
        key: key.to_owned(),
        reseller: None,
        name: None,
        note: "incident 17".to_owned(),
        paused_by: "ann (1)".to_owned(),
        paused_at: now() - TimeDelta::hours(2),
        until: None,
        by_reseller: false,
    }
}

/// So many notifications of so many subscriptions that wait for the next day.
pub(super) fn used_up(notifications: u64, subscriptions: u64) -> QuotaWaiting {
    QuotaWaiting {
        notifications,
        subscriptions,
        most: Uuid::from_u128(5),
        at_least: false,
        again_at: now() + TimeDelta::hours(12),
    }
}

pub(super) fn ending_key(ends_in: TimeDelta) -> store::ApiKey {
    store::ApiKey {
        expires_at: Some(now() + ends_in),
        ..store::ApiKey::new("shop".to_owned(), vec![domain::key::Role::Ingest], None, now())
    }
}

pub(super) fn hold() -> store::push::HoldView {
    store::push::HoldView {
        class: store::push::SWRVE.to_owned(),
        since: now() - TimeDelta::hours(1),
        probes: 17,
        probed_at: Some(now()),
        last_answer: "503 Service Unavailable".to_owned(),
        answered_at: None,
    }
}

pub(super) fn trouble(state: SubscriptionState) -> SubscriptionInTrouble {
    SubscriptionInTrouble {
        id: Uuid::from_u128(5),
        reseller: "acme".to_owned(),
        url: "https://acme.example/hook?secret=1".to_owned(),
        state,
        reason: StateReason::Failing.to_string(),
        since: now() - TimeDelta::hours(1),
        failing_since: Some(now() - TimeDelta::days(3)),
    }
}

/// So many subscriptions of which the first was deactivated three days ago.
pub(super) fn deactivated(count: u64) -> Deactivated {
    let mut oldest = trouble(SubscriptionState::Deactivated);
    oldest.since = now() - TimeDelta::days(3);
    Deactivated { count, oldest }
}

pub(super) fn sends(facts: &mut Facts, sent: u64, retried: u64) {
    for process in &mut tables(facts).processes {
        process.report.counters = Counters {
            pushes_sent: sent,
            pushes_retried: retried,
            ..Counters::default()
        };
        process.report.previous = Some(Previous {
            at: now() - TimeDelta::seconds(5),
            counters: Some(Counters::default()),
        });
    }
}

/// What Swrve said to pushes that wait, the first of them a minute ago.
pub(super) fn failures() -> Vec<SwrveFailure> {
    let failure = |code, message: &str, pushes| SwrveFailure {
        code,
        message: Some(message.to_owned()),
        pushes,
        since: now() - TimeDelta::minutes(1),
    };
    vec![
        failure(Some(503), "503 Service Unavailable", 41),
        failure(None, "no answer within 6000 ms", 3),
    ]
}

/// The leader has had nothing but failures for this long, or its last one was none.
pub(super) fn hears(facts: &mut Facts, failing_for: Option<Duration>) {
    let leader = &mut one(facts, "dispatcher").report;
    leader.leading = Some(3);
    leader.swrve = Some(SwrveReport {
        failing_since: failing_for.map(|lasting| now() - lasting),
    });
    tables(facts).push.failures = failures();
}

/// What every process has counted in all of the time at which alerts look back.
pub(super) fn has_done(facts: &mut Facts, done: Counters) {
    for process in &mut tables(facts).processes {
        process.report.counters = done;
        process.report.earlier = Some(Earlier {
            seconds: LATELY.as_secs(),
            counters: Counters::default(),
        });
    }
}

pub(super) fn job(status: JobStatus, idle: Duration) -> JobInProgress {
    JobInProgress {
        id: Uuid::from_u128(9),
        action: JobAction::Replay,
        status,
        paused_because: None,
        matching: 40,
        examined: 10,
        by: "ann (1)".to_owned(),
        idle,
    }
}
