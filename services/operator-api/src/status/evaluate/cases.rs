//! What each state of the system amounts to, as a table: the change of a healthy system, and the finding that it makes.

mod subscriptions;
mod swrve;

use broker::{ConnectionState, Queue};
use chrono::TimeDelta;
use domain::dead_letter_job::{JobPause, JobStatus};
use runtime::connections::{Counters, Previous};
use store::BrokenGlass;
use store::status::QuotaWaiting;
use store::webhook::Outbox;
use uuid::Uuid;

use super::Severity;
use super::scene::{
    MINUTE, depth, ending_key, has_done, hold, job, now, one, pause, process, sends, tables, used_up,
    webpush_month,
};
use crate::status::facts::{Database, Facts, OpenRequests};

/// A case: its finding, what is changed about a running system, and what the sentence says.
pub(super) type Case = (&'static str, Severity, fn(&mut Facts), &'static str);

/// All cases.
pub(super) fn cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().chain(subscriptions::CASES).chain(swrve::CASES)
}

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
        "secrets-unreadable",
        Severity::Warning,
        |f| one(f, "retry-worker").report.stale_secrets = 8,
        "8 valid signing secrets were sealed with a key that is not in reseller.secrets.",
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
            sends(f, 600, 0);
            tables(f).push.overdue.pending_for = Some(4 * MINUTE);
            tables(f).push.depths.pending = 12_161;
        },
        "waited for 4 min to be put into the queue; 12,161 pushes are PENDING; at 240 a second that takes 51 s.",
    ),
    (
        "pushes-overdue",
        Severity::Warning,
        |f| {
            sends(f, 600, 0);
            tables(f).push.overdue.pending_for = Some(14 * MINUTE);
            tables(f).push.depths.pending = 100_001;
        },
        "more than 100,000 pushes are PENDING; at 240 a second that takes more than 6 min 57 s.",
    ),
    (
        "lane-stalled",
        Severity::Critical,
        |f| {
            has_done(f, Counters::default());
            depth(f, Queue::PushReady, 5, 1);
            tables(f).push.depths.queued_for = Some(2 * MINUTE);
        },
        "Messages of the push lane wait in the queue, and none was claimed within the last 5 min",
    ),
    (
        "lane-stalled",
        Severity::Critical,
        |f| {
            has_done(f, Counters::default());
            depth(f, Queue::ResellerRetry, 5, 1);
            tables(f).reseller.depths.queued_for = Some(2 * MINUTE);
        },
        "Messages of the reseller lane",
    ),
    (
        "lanes-not-measured",
        Severity::Warning,
        |f| one(f, "retry-worker").report.measures = Some(false),
        "No retry-worker measures",
    ),
    (
        "ingest-errors",
        Severity::Warning,
        |f| {
            has_done(
                f,
                Counters {
                    ingest_requests: 200,
                    ingest_errors: 20,
                    ..Counters::default()
                },
            );
        },
        "40 of the last 400 requests to hand in pushes or events, within 5 min, were answered with 5xx.",
    ),
    (
        "service-missing",
        Severity::Warning,
        |f| one(f, "reseller-portal").age = MINUTE,
        "No reseller-portal runs",
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
        "quotas-used-up",
        Severity::Notice,
        |f| tables(f).reseller.quotas = Some(used_up(29, 1)),
        "29 notifications of 1 subscription wait because the daily quota is used up, the first until 2026-11-22 00:00:00 UTC (in 12 h); the \
         subscription is 00000000-0000-0000-0000-000000000005.",
    ),
    (
        "quotas-used-up",
        Severity::Notice,
        |f| tables(f).reseller.quotas = Some(used_up(1_001, 2)),
        "More than 1,000 notifications wait because the daily quota is used up, the first until 2026-11-22 00:00:00 UTC (in 12 h); \
         00000000-0000-0000-0000-000000000005 has the most of them.",
    ),
    (
        "quotas-used-up",
        Severity::Notice,
        |f| {
            tables(f).reseller.quotas = Some(QuotaWaiting {
                at_least: true,
                ..used_up(29, 1)
            });
        },
        "At least 29 notifications of 1 subscription wait because",
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
        "paused",
        Severity::Notice,
        |f| tables(f).pauses = vec![pause("lane", "push")],
        "The lane push is paused by ann (1) since 2026-11-21 10:00:00 UTC (2 h ago): incident 17",
    ),
    (
        "paused",
        Severity::Notice,
        |f| {
            let mut short = pause("lane", "push");
            short.until = Some(now() + TimeDelta::hours(1));
            tables(f).pauses = vec![short];
        },
        "since 2026-11-21 10:00:00 UTC (2 h ago) until 2026-11-21 13:00:00 UTC (in 1 h): incident 17",
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
            deaths.oldest = Some(now() - TimeDelta::hours(1));
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
        "dead-letters-open",
        Severity::Notice,
        |f| {
            let deaths = &mut tables(f).push.deaths;
            (deaths.open, deaths.recent) = (3, 1);
            deaths.fingerprint = Some("swrve/404".to_owned());
        },
        "3 open dead letters, 1 of them in the last 10 minutes, swrve/404.",
    ),
    (
        "dead-letters-open",
        Severity::Notice,
        |f| {
            let deaths = &mut tables(f).push.deaths;
            (deaths.open, deaths.oldest) = (41, Some(now() - TimeDelta::days(2)));
        },
        "41 open dead letters; the oldest was made at 2026-11-19 12:00:00 UTC (2 days ago).",
    ),
    (
        "quota-requests-open",
        Severity::Notice,
        |f| {
            tables(f).reseller.requests = OpenRequests {
                count: 2,
                oldest: Some(now() - TimeDelta::hours(3)),
            };
        },
        "2 quota requests wait for a decision, the oldest since 2026-11-21 09:00:00 UTC (3 h ago).",
    ),
    (
        "quota-requests-open",
        Severity::Notice,
        |f| {
            tables(f).reseller.requests = OpenRequests {
                count: 101,
                oldest: None,
            };
        },
        "More than 100 quota requests wait for a decision.",
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
        "3 mails to resellers have not been sent for 1 h: mail.smtpUrl is not set",
    ),
    (
        "egress-open",
        Severity::Notice,
        |f| f.settings.opens_egress = true,
        "more than public addresses",
    ),
    (
        "break-glass",
        Severity::Notice,
        |f| {
            tables(f).broken_glass = BrokenGlass {
                count: 2,
                last: Some(now() - TimeDelta::hours(3)),
            };
        },
        "2 visits to the console began in the last 24 hours with a key",
    ),
    (
        "key-ends",
        Severity::Notice,
        |f| tables(f).ending_keys = vec![ending_key(TimeDelta::days(3)), ending_key(TimeDelta::days(5))],
        ", and 1 more key within a week.",
    ),
    (
        "key-ends",
        Severity::Warning,
        |f| tables(f).ending_keys = vec![ending_key(TimeDelta::hours(2))],
        "The key shop ends at",
    ),
    (
        "paused",
        Severity::Warning,
        |f| {
            tables(f).pauses = vec![store::PauseView {
                until: Some(now() - TimeDelta::minutes(3)),
                ..pause("reseller", "acme")
            }];
        },
        "The reseller acme is paused",
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
        "job-paused",
        Severity::Notice,
        |f| {
            let mut paused = job(JobStatus::Paused, MINUTE);
            paused.paused_because = Some(JobPause::CanaryFailed);
            tables(f).jobs = vec![paused];
        },
        "paused at 10 of 40",
    ),
    (
        "job-stuck",
        Severity::Warning,
        |f| tables(f).jobs = vec![job(JobStatus::Running, 6 * MINUTE)],
        "nothing for 6 min",
    ),
    (
        "partitions-missing",
        Severity::Critical,
        |f| tables(f).webpush.has_this_month = false,
        "present month",
    ),
    (
        "service-missing",
        Severity::Critical,
        |f| one(f, "webpush-connection").age = 2 * MINUTE,
        "No webpush-connection runs",
    ),
    (
        "webpush-keys-missing",
        Severity::Warning,
        |f| f.settings.has_webpush_keys = false,
        "3 user agents are registered",
    ),
    (
        "webpush-errors",
        Severity::Warning,
        |f| {
            has_done(
                f,
                Counters {
                    webpush_stored: 100,
                    webpush_errors: 50,
                    ..Counters::default()
                },
            );
        },
        "could not be stored",
    ),
    (
        "webpush-messages-many",
        Severity::Warning,
        |f| tables(f).webpush.months = vec![webpush_month(0, 11_000_000)],
        "11,000,000 messages",
    ),
    (
        "webpush-messages-old",
        Severity::Warning,
        |f| tables(f).webpush.months = vec![webpush_month(2, 200_000)],
        "200,000 messages wait",
    ),
];
