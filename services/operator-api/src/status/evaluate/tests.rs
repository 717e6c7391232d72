//! What each state of the system amounts to, as a table: the change of a healthy system, and the finding that it makes.

use broker::{ConnectionState, Queue};
use chrono::{DateTime, TimeDelta, TimeZone as _, Utc};
use domain::dead_letter_job::{JobAction, JobStatus};
use domain::reason::StateReason;
use domain::subscription::SubscriptionState;
use runtime::connections::{Counters, Previous, Report};
use store::status::{JobInProgress, Leadership, MailsInTrouble, SubscriptionCount, SubscriptionInTrouble};
use store::webhook::Outbox;
use uuid::Uuid;

use super::*;
use crate::status::facts::{BrokerFacts, Depth, Process, PushFacts, QueueFacts, ResellerFacts, Settings};

const MINUTE: Duration = Duration::from_secs(60);

fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap()
}

fn process(service: &str, uptime: Duration) -> Process {
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
fn system(uptime: Duration) -> Facts {
    let services = [
        "dispatcher",
        "ingest-api",
        "operator-api",
        "reseller-portal",
        "retry-worker",
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
            holds: Vec::new(),
            push: PushFacts::default(),
            reseller: ResellerFacts::default(),
            subscriptions: vec![SubscriptionCount {
                state: SubscriptionState::Active,
                count: 10,
                paused: 0,
            }],
            in_trouble: Vec::new(),
            outbox: Outbox::default(),
            mails: MailsInTrouble::default(),
            months_ahead: 2,
            has_this_month: true,
            jobs: Vec::new(),
        })),
    }
}

fn running() -> Facts {
    system(10 * MINUTE)
}

fn tables(facts: &mut Facts) -> &mut Tables {
    match &mut facts.database {
        Database::Known(tables) => tables,
        Database::Away(_) | Database::NotMigrated => panic!("nothing is known of the tables"),
    }
}

fn one<'a>(facts: &'a mut Facts, service: &str) -> &'a mut Process {
    let mut processes = tables(facts).processes.iter_mut();
    processes.find(|process| process.service == service).unwrap()
}

fn depth(facts: &mut Facts, queue: Queue, messages: u32, consumers: u32) {
    let found = facts
        .broker
        .queues
        .iter_mut()
        .find(|it| it.queue == queue)
        .unwrap();
    found.depth = Some(Depth { messages, consumers });
}

fn pause(scope: &str, key: &str) -> store::PauseView {
    store::PauseView {
        scope: scope.to_owned(),
        key: key.to_owned(),
        reseller: None,
        note: "incident 17".to_owned(),
        paused_by: "ann (1)".to_owned(),
        paused_at: now() - TimeDelta::hours(2),
    }
}

fn hold() -> store::push::HoldView {
    store::push::HoldView {
        class: store::push::SWRVE.to_owned(),
        since: now() - TimeDelta::hours(1),
        probes: 17,
        probed_at: Some(now()),
        last_answer: "503 Service Unavailable".to_owned(),
        answered_at: None,
    }
}

fn trouble(state: SubscriptionState) -> SubscriptionInTrouble {
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

fn sends(facts: &mut Facts, sent: u64, retried: u64) {
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

/// A case: its finding, what is changed about a running system, and what the sentence says.
type Case = (&'static str, Severity, fn(&mut Facts), &'static str);

const CASES: &[Case] = &[
    (
        "database-away",
        Severity::Critical,
        |f| f.database = Database::Away("it does not answer".to_owned()),
        "does not answer",
    ),
    (
        "migrations-missing",
        Severity::Critical,
        |f| f.database = Database::NotMigrated,
        "lacks migrations",
    ),
    (
        "broker-away",
        Severity::Critical,
        |f| {
            f.broker.state = ConnectionState::Connecting {
                last_error: Some("connection refused".to_owned()),
            }
        },
        "connection refused",
    ),
    (
        "broker-blocked",
        Severity::Critical,
        |f| {
            f.broker.state = ConnectionState::Blocked {
                generation: 1,
                reason: "low on disk".to_owned(),
            }
        },
        "low on disk",
    ),
    (
        "broker-blocked",
        Severity::Critical,
        |f| {
            let failing = &mut one(f, "ingest-api").report.failing;
            failing.insert("broker".to_owned(), "blocked: low on memory".to_owned());
        },
        "low on memory",
    ),
    (
        "own-faults",
        Severity::Critical,
        |f| {
            let report = &mut one(f, "dispatcher").report;
            report.counters.own_faults = 12;
            report.previous = Some(Previous {
                at: now(),
                counters: Some(Counters {
                    own_faults: 5,
                    ..Counters::default()
                }),
            });
        },
        "lately had no descriptor, port, memory, route or resolver for 7 attempts",
    ),
    (
        "service-missing",
        Severity::Critical,
        |f| one(f, "retry-worker").age = MINUTE,
        "No retry-worker runs; the last one, process 17 on one, was heard of 1 min ago",
    ),
    (
        "service-missing",
        Severity::Critical,
        |f| tables(f).processes.retain(|p| p.service != "dispatcher"),
        "No dispatcher runs.",
    ),
    (
        "service-missing",
        Severity::Critical,
        |f| tables(f).processes.retain(|p| p.service != "ingest-api"),
        "No ingest-api runs.",
    ),
    (
        "process-silent",
        Severity::Notice,
        |f| {
            let mut dead = process("dispatcher", MINUTE);
            dead.age = 2 * MINUTE;
            tables(f).processes.push(dead);
        },
        "has fallen silent: process 17 on one, 2 min ago",
    ),
    (
        "process-not-ready",
        Severity::Warning,
        |f| {
            let failing = &mut one(f, "dispatcher").report.failing;
            failing.insert("swrve".to_owned(), "no such host".to_owned());
        },
        "swrve (no such host)",
    ),
    (
        "no-leader",
        Severity::Critical,
        |f| tables(f).leader.as_mut().unwrap().renewed = MINUTE,
        "for 1 min",
    ),
    (
        "no-leader",
        Severity::Critical,
        |f| tables(f).leader = None,
        "has no leader",
    ),
    (
        "queue-not-consumed",
        Severity::Critical,
        |f| depth(f, Queue::PushReady, 5, 0),
        "push.ready holds 5 messages",
    ),
    (
        "queue-not-consumed",
        Severity::Critical,
        |f| depth(f, Queue::ResellerRetry, 1, 0),
        "reseller.retry holds 1 message",
    ),
    (
        "queue-not-consumed",
        Severity::Warning,
        |f| depth(f, Queue::PushDead, 101, 0),
        "push.dead",
    ),
    (
        "queue-full",
        Severity::Notice,
        |f| depth(f, Queue::PushReady, 10_000, 1),
        "push.ready is full",
    ),
    (
        "reseller-lane-off",
        Severity::Warning,
        |f| depth(f, Queue::ResellerReady, 0, 0),
        "no dispatcher delivers",
    ),
    (
        "reseller-lane-off",
        Severity::Warning,
        |f| {
            f.settings.has_sealing_key = false;
            depth(f, Queue::ResellerReady, 0, 0);
        },
        "knows no reseller.secrets.key",
    ),
    (
        "pushes-overdue",
        Severity::Warning,
        |f| tables(f).push.overdue.pending_for = Some(3 * MINUTE),
        "waited for 3 min",
    ),
    (
        "pushes-overdue",
        Severity::Warning,
        |f| tables(f).push.overdue.due_at = Some(now() - TimeDelta::minutes(4)),
        "waited for 4 min",
    ),
    (
        "pushes-overdue",
        Severity::Notice,
        |f| {
            sends(f, 1_200, 0);
            tables(f).push.overdue.pending_for = Some(10 * MINUTE);
        },
        "waited for 10 min",
    ),
    (
        "notifications-overdue",
        Severity::Warning,
        |f| {
            let waiting = &mut tables(f).reseller.waiting;
            waiting.overdue.pending_for = Some(20 * MINUTE);
            (waiting.subscriptions, waiting.worst) = (1, Some(Uuid::from_u128(5)));
        },
        "all of the subscription 00000000-0000-0000-0000-000000000005",
    ),
    (
        "not-rescued",
        Severity::Warning,
        |f| {
            let depths = &mut tables(f).push.depths;
            (depths.lost, depths.lost_for) = (3, Some(5 * MINUTE));
        },
        "3 pushes with leases that ran out, the first 5 min ago",
    ),
    (
        "not-rescued",
        Severity::Warning,
        |f| {
            let depths = &mut tables(f).reseller.depths;
            (depths.lost, depths.lost_for) = (1, Some(5 * MINUTE));
        },
        "1 notification with",
    ),
    (
        "swrve-fails",
        Severity::Warning,
        |f| {
            sends(f, 0, 40);
            tables(f).push.depths.retry = 300;
        },
        "300 pushes wait to be tried again",
    ),
    (
        "swrve-held",
        Severity::Critical,
        |f| {
            tables(f).holds = vec![hold()];
            // What follows from it is not told twice.
            tables(f).push.overdue.pending_for = Some(20 * MINUTE);
            depth(f, Queue::PushReady, 10_000, 0);
        },
        "17 probes have failed, the last one with: 503 Service Unavailable.",
    ),
    (
        "deliveries-held",
        Severity::Critical,
        |f| {
            tables(f).holds = vec![store::push::HoldView {
                class: "DNS".to_owned(),
                last_answer: "the name servers did not answer".to_owned(),
                ..hold()
            }];
            // What follows from it is not told twice.
            tables(f).reseller.waiting.overdue.pending_for = Some(20 * MINUTE);
        },
        "Most endpoints fail in the class DNS since 2026-11-21",
    ),
    (
        "swrve-catching-up",
        Severity::Notice,
        |f| {
            tables(f).holds = vec![store::push::HoldView {
                answered_at: Some(now()),
                ..hold()
            }];
        },
        "Swrve was out of order from 2026-11-21",
    ),
    (
        "paused",
        Severity::Notice,
        |f| tables(f).pauses = vec![pause("lane", "push")],
        "The lane push is paused by ann (1), 2 h ago: incident 17",
    ),
    (
        "paused",
        Severity::Notice,
        |f| tables(f).pauses = (0..12).map(|_| pause("reseller", "acme")).collect(),
        "reseller acme",
    ),
    (
        "dead-letters-grow",
        Severity::Warning,
        |f| {
            let deaths = &mut tables(f).push.deaths;
            (deaths.open, deaths.recent) = (500, 300);
            deaths.fingerprint = Some("swrve/400".to_owned());
        },
        "500 open dead letters, 300 of them in the last 10 minutes, mostly swrve/400",
    ),
    (
        "dead-letters-open",
        Severity::Notice,
        |f| tables(f).reseller.deaths.open = 1,
        "reseller lane has 1 open dead letter.",
    ),
    (
        "subscriptions-in-trouble",
        Severity::Notice,
        |f| tables(f).in_trouble = vec![trouble(SubscriptionState::Degraded)],
        "https://acme.example fails for 3 days",
    ),
    (
        "subscriptions-in-trouble",
        Severity::Notice,
        |f| tables(f).in_trouble = vec![trouble(SubscriptionState::Deactivated)],
        "was deactivated 1 h ago (FAILING)",
    ),
    (
        "subscriptions-in-trouble",
        Severity::Warning,
        |f| tables(f).in_trouble = (0..4).map(|_| trouble(SubscriptionState::Active)).collect(),
        "4 failing",
    ),
    (
        "mails-stuck",
        Severity::Warning,
        |f| {
            (tables(f).mails.retried, tables(f).mails.last_error) = (2, Some("no route to host".to_owned()));
        },
        "no route to host",
    ),
    (
        "mails-stuck",
        Severity::Notice,
        |f| {
            f.settings.has_mail_server = false;
            tables(f).outbox = Outbox {
                waiting: 3,
                oldest_due: Some(now() - TimeDelta::hours(1)),
            };
        },
        "3 mails to resellers cannot be sent for 1 h: mail.smtpUrl is not set",
    ),
    (
        "egress-open",
        Severity::Notice,
        |f| f.settings.opens_egress = true,
        "more than public addresses",
    ),
    (
        "mails-failed",
        Severity::Notice,
        |f| tables(f).mails.failed = 2,
        "2 mails were given up",
    ),
    (
        "partitions-missing",
        Severity::Warning,
        |f| tables(f).months_ahead = 0,
        "coming month",
    ),
    (
        "partitions-missing",
        Severity::Critical,
        |f| tables(f).has_this_month = false,
        "present month",
    ),
    (
        "clocks-differ",
        Severity::Warning,
        |f| one(f, "dispatcher").report.clock_ahead_millis = Some(4_000),
        "4 s ahead of",
    ),
    (
        "clocks-differ",
        Severity::Critical,
        |f| one(f, "dispatcher").report.clock_ahead_millis = Some(-90_000),
        "1 min 30 s behind",
    ),
    (
        "job-paused",
        Severity::Notice,
        |f| tables(f).jobs = vec![job(JobStatus::Paused, MINUTE)],
        "paused at 10 of 40",
    ),
    (
        "job-stuck",
        Severity::Warning,
        |f| tables(f).jobs = vec![job(JobStatus::Running, 6 * MINUTE)],
        "nothing for 6 min",
    ),
];

fn job(status: JobStatus, idle: Duration) -> JobInProgress {
    JobInProgress {
        id: Uuid::from_u128(9),
        action: JobAction::Replay,
        status,
        matching: 40,
        examined: 10,
        by: "ann (1)".to_owned(),
        idle,
    }
}

#[test]
fn every_disorder_has_its_finding() {
    for (id, severity, disturb, said) in CASES {
        let mut facts = running();
        // Its own process, so that one service can have another clock than the others.
        one(&mut facts, "dispatcher").id = Uuid::from_u128(7);
        disturb(&mut facts);
        let findings = evaluate(&facts);
        let found = findings
            .iter()
            .find(|finding| finding.id == *id && finding.text.contains(said));
        let found = found.unwrap_or_else(|| panic!("no {id} that says {said:?} in {findings:#?}"));
        assert_eq!(found.severity, *severity, "{found:?}");
        let healthy = *severity == Severity::Notice;
        assert_eq!(is_healthy(&findings), healthy, "{findings:#?}");
        assert!(
            findings.is_sorted_by_key(|finding| finding.severity),
            "{findings:#?}"
        );
        for finding in &findings {
            assert!(finding.text.ends_with(['.', '7']), "{}", finding.text);
        }
    }
}

#[test]
fn a_cause_is_told_and_its_effects_are_not() {
    let mut facts = running();
    facts.broker.state = ConnectionState::Connecting {
        last_error: Some("connection refused".to_owned()),
    };
    for queue in &mut facts.broker.queues {
        queue.depth = None;
    }
    tables(&mut facts).leader.as_mut().unwrap().holder = None;
    tables(&mut facts).leader.as_mut().unwrap().renewed = MINUTE;
    for process in &mut tables(&mut facts).processes {
        process
            .report
            .failing
            .insert("broker".to_owned(), "connecting".to_owned());
    }
    let findings = evaluate(&facts);
    let ids: Vec<&str> = findings.iter().map(|finding| finding.id).collect();
    assert_eq!(ids, ["broker-away"], "{findings:#?}");
}

#[test]
fn an_idle_system_that_was_just_started_is_healthy() {
    let mut facts = system(Duration::from_secs(1));
    for queue in Queue::ALL {
        depth(&mut facts, queue, 3, 0);
    }
    tables(&mut facts).leader = None;
    for process in &mut tables(&mut facts).processes {
        process
            .report
            .failing
            .insert("broker".to_owned(), "starting".to_owned());
    }
    facts.broker.state = ConnectionState::Connecting { last_error: None };
    assert_eq!(evaluate(&facts), []);
}

#[test]
fn a_system_under_load_is_healthy() {
    let mut facts = running();
    sends(&mut facts, 1_240, 20);
    depth(&mut facts, Queue::PushReady, 4_000, 1);
    depth(&mut facts, Queue::ResellerReady, 9_000, 2);
    let known = tables(&mut facts);
    known.push.depths.pending = 100_001;
    known.push.depths.queued = 4_000;
    known.push.depths.retry = 900;
    known.push.overdue.pending_for = Some(MINUTE);
    known.push.overdue.due_at = Some(now() + TimeDelta::minutes(1));
    known.push.deaths.open = 3;
    known.push.deaths.recent = 3;
    let findings = evaluate(&facts);
    assert!(is_healthy(&findings), "{findings:#?}");
}

#[test]
fn a_paused_lane_is_expected_to_wait() {
    let mut facts = running();
    depth(&mut facts, Queue::PushReady, 500, 0);
    let known = tables(&mut facts);
    known.pauses = vec![pause("lane", "push")];
    known.push.overdue.pending_for = Some(60 * MINUTE);
    known.leader = None;
    let findings = evaluate(&facts);
    let ids: Vec<&str> = findings.iter().map(|finding| finding.id).collect();
    assert_eq!(ids, ["paused"], "{findings:#?}");
}

#[test]
fn services_that_share_a_process_count_once() {
    let mut facts = running();
    sends(&mut facts, 1_000, 0);
    assert!((tables(&mut facts).rates().pushes_sent - 200.0).abs() < 1e-9);
    one(&mut facts, "dispatcher").id = Uuid::from_u128(7);
    assert!((tables(&mut facts).rates().pushes_sent - 400.0).abs() < 1e-9);
    one(&mut facts, "dispatcher").age = MINUTE;
    assert!((tables(&mut facts).rates().pushes_sent - 200.0).abs() < 1e-9);
}

#[test]
fn every_finding_leads_to_a_section_of_the_runbook() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runbook.md");
    let runbook = std::fs::read_to_string(path).unwrap();
    let anchors: Vec<String> = runbook
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect();
    for (id, _, disturb, _) in CASES {
        let mut facts = running();
        disturb(&mut facts);
        for finding in evaluate(&facts) {
            assert!(
                anchors.iter().any(|anchor| anchor == finding.runbook),
                "{id}: {}",
                finding.runbook
            );
        }
    }
}
