//! What `deploy/prometheus/alerts.yml` looks at: the same thresholds, and a warning at least for whatever it pages for.

use std::time::Duration;

use broker::ConnectionState;
use chrono::TimeDelta;
use domain::subscription::SubscriptionState;
use runtime::connections::Counters;
use serde_json::Value;

use super::scene::{depth, has_done, hears, hold, now, one, running, sends, tables, trouble, webpush_month};
use super::{Severity, evaluate};
use crate::status::facts::{Database, Facts};
use crate::status::thresholds::{
    FAILING_WIDELY, INGEST_ERROR_SHARE, INGEST_ERRORS_PER_SECOND, LATELY, LOST, MONTHS_AHEAD,
    NOTIFICATIONS_LATE, OVERDUE, PUSHES_LATE, SWRVE_ATTEMPTS_PER_SECOND, SWRVE_FAILING_SHARE,
    WEBPUSH_ERROR_SHARE, WEBPUSH_ERRORS_PER_SECOND, WEBPUSH_MANY, WEBPUSH_OLD,
};

const ALERTS: &str = include_str!("../../../../../deploy/prometheus/alerts.yml");

/// What `status` says of what a rule looks at.
enum Told {
    /// This finding, a warning at least, of a system in which what the rule looks at has been so for as long as the rule waits.
    Finding(&'static str, fn(&mut Facts, Duration)),
    /// Nothing, or no more than a notice, and why.
    Not(&'static str),
}

use Told::{Finding, Not};

/// The rules by their names, each with the thresholds that it shares with `status`.
fn rules() -> Vec<(&'static str, Vec<f64>, Told)> {
    let seconds = |duration: Duration| duration.as_secs_f64();
    let each = "it is about one process, and others of its kind do its work";
    let watched = "it needs what only Prometheus keeps: how something has changed over time";
    vec![
        (
            "PostriderServiceDown",
            vec![],
            Finding("service-missing", |f, lasts| one(f, "dispatcher").age = lasts),
        ),
        ("PostriderProcessDown", vec![], Not(each)),
        (
            "PostriderNothingScraped",
            vec![],
            Not("it is about Prometheus, which the services do not know"),
        ),
        ("PostriderRestarting", vec![], Not(watched)),
        (
            "PostriderNotReady",
            vec![],
            Finding("process-not-ready", |f, _| {
                let failing = &mut one(f, "dispatcher").report.failing;
                failing.insert("queue".to_owned(), "the capacity differs".to_owned());
            }),
        ),
        ("PostriderMemoryHigh", vec![], Not(each)),
        ("PostriderCpuHigh", vec![], Not(each)),
        ("PostriderFilesRunOut", vec![], Not(each)),
        (
            "PostriderIngestErrors",
            vec![INGEST_ERROR_SHARE, INGEST_ERRORS_PER_SECOND],
            Finding("ingest-errors", |f, _| {
                let errors = just_above(INGEST_ERRORS_PER_SECOND * LATELY.as_secs_f64());
                let done = Counters {
                    ingest_requests: (errors as f64 / INGEST_ERROR_SHARE) as u64 - 1,
                    ingest_errors: errors,
                    ..Counters::default()
                };
                has_done(f, done);
            }),
        ),
        ("PostriderIngestSlow", vec![], Not(watched)),
        (
            "PostriderApiErrors",
            vec![],
            Not("routes besides those that hand something in concern who asked, and are told in the log"),
        ),
        (
            "PostriderKeysRefused",
            vec![],
            Not("what is refused concerns who asked, and is told in the log"),
        ),
        (
            "PostriderGateClosed",
            vec![],
            Not("a full queue is a notice: what comes waits, and when it is late that is told"),
        ),
        (
            "PostriderNoLeader",
            vec![],
            Finding("no-leader", |f, lasts| {
                tables(f).leader.as_mut().unwrap().renewed = lasts
            }),
        ),
        ("PostriderLeaderFlapping", vec![], Not(watched)),
        (
            "PostriderPushStalled",
            vec![seconds(OVERDUE)],
            Finding("lane-stalled", |f, lasts| {
                has_done(f, Counters::default());
                depth(f, broker::Queue::PushReady, 1, 1);
                tables(f).push.depths.queued_for = Some(lasts);
            }),
        ),
        (
            "PostriderPushLag",
            vec![seconds(PUSHES_LATE)],
            Finding("pushes-overdue", |f, _| {
                // At full pace, which excuses less.
                sends(f, 1_200, 0);
                tables(f).push.overdue.pending_for = Some(PUSHES_LATE);
            }),
        ),
        ("PostriderSendGapTooShort", vec![], Not(watched)),
        (
            "PostriderPushPoolSaturated",
            vec![],
            Not("sending slows down by itself, and what is late by that is told"),
        ),
        (
            "PostriderSwrveHeld",
            vec![],
            Finding("swrve-held", |f, _| tables(f).holds = vec![hold()]),
        ),
        (
            "PostriderSwrveFailing",
            vec![SWRVE_ATTEMPTS_PER_SECOND, SWRVE_FAILING_SHARE],
            Finding("swrve-fails", |f, _| {
                let attempts = just_above(SWRVE_ATTEMPTS_PER_SECOND * LATELY.as_secs_f64());
                let done = Counters {
                    push_attempts: attempts,
                    swrve_errors: just_above(attempts as f64 * SWRVE_FAILING_SHARE),
                    ..Counters::default()
                };
                has_done(f, done);
                hears(f, None);
                tables(f).push.depths.retry = 1;
            }),
        ),
        (
            "PostriderPushesRefused",
            vec![],
            Not("what is refused becomes dead letters, and those are told"),
        ),
        (
            "PostriderPrototypeWithoutKey",
            vec![],
            Not("what has no key becomes dead letters, and those are told"),
        ),
        (
            "PostriderOwnErrors",
            vec![],
            Not("the log has the reason, and what is given up becomes dead letters, which are told"),
        ),
        (
            "PostriderNotificationsStalled",
            vec![seconds(OVERDUE)],
            Finding("lane-stalled", |f, lasts| {
                has_done(f, Counters::default());
                depth(f, broker::Queue::ResellerReady, 1, 1);
                tables(f).reseller.depths.queued_for = Some(lasts);
            }),
        ),
        (
            "PostriderNotificationLag",
            vec![seconds(NOTIFICATIONS_LATE)],
            Finding("notifications-overdue", |f, _| {
                let waiting = &mut tables(f).reseller.waiting;
                waiting.subscriptions = 1;
                waiting.overdue.pending_for = Some(NOTIFICATIONS_LATE);
            }),
        ),
        (
            "PostriderDeliveriesHeld",
            vec![],
            Finding("deliveries-held", |f, _| {
                let mut hold = hold();
                "DNS".clone_into(&mut hold.class);
                tables(f).holds = vec![hold];
            }),
        ),
        (
            "PostriderDeliveriesFailingWidely",
            vec![FAILING_WIDELY.1, FAILING_WIDELY.0 as f64],
            Finding("subscriptions-in-trouble", |f, _| {
                let (failing, share) = FAILING_WIDELY;
                tables(f).subscriptions[0].count = (failing as f64 / share) as u64;
                tables(f).in_trouble = vec![trouble(SubscriptionState::Active)];
                tables(f).failing = failing;
            }),
        ),
        ("PostriderClientErrorWave", vec![], Not(watched)),
        (
            "PostriderDeliverySlotsTaken",
            vec![],
            Not("others are served in turns, and what is late by that is told"),
        ),
        (
            "PostriderResellerFloods",
            vec![],
            Not("others do not notice, and what is late of the one is told"),
        ),
        ("PostriderSubscriptionsDeactivated", vec![], Not(watched)),
        (
            "PostriderSecretsUnreadable",
            vec![],
            Finding("secrets-unreadable", |f, _| {
                one(f, "retry-worker").report.stale_secrets = 1
            }),
        ),
        (
            "PostriderMailsStuck",
            vec![],
            Not("status tells of mails that do not get out long before"),
        ),
        ("PostriderQueueGrowing", vec![], Not(watched)),
        (
            "PostriderQueueFull",
            vec![],
            Not("a full queue is a notice: what comes waits, and when it is late that is told"),
        ),
        (
            "PostriderDeadQueueWaiting",
            vec![],
            Not("it is told when no process takes them, and many wait"),
        ),
        (
            "PostriderPoisonMessages",
            vec![],
            Not("they are dead letters, and those are told"),
        ),
        ("PostriderDeadLettersGrowing", vec![], Not(watched)),
        (
            "PostriderLostNotRescued",
            vec![seconds(LOST)],
            Finding("not-rescued", |f, _| {
                let depths = &mut tables(f).push.depths;
                (depths.lost, depths.lost_for) = (1, Some(LOST));
            }),
        ),
        (
            "PostriderNothingMeasured",
            vec![],
            Finding("lanes-not-measured", |f, _| {
                one(f, "retry-worker").report.measures = Some(false);
            }),
        ),
        (
            "PostriderJobNotRunning",
            vec![],
            Not("what a job does not do is told where it is missed"),
        ),
        (
            "PostriderJobFailing",
            vec![],
            Not("what a job does not do is told where it is missed"),
        ),
        (
            "PostriderPartitionsMissing",
            vec![f64::from(MONTHS_AHEAD)],
            Finding("partitions-missing", |f, _| {
                tables(f).months_ahead = MONTHS_AHEAD - 1
            }),
        ),
        (
            "PostriderLanePaused",
            vec![],
            Not("a pause is what an operator wants: it is a notice"),
        ),
        (
            "PostriderDatabaseAway",
            vec![],
            Finding("database-away", |f, _| {
                f.database = Database::Away("it does not answer".to_owned())
            }),
        ),
        ("PostriderDatabaseErrors", vec![], Not(watched)),
        ("PostriderDatabasePoolSaturated", vec![], Not(each)),
        (
            "PostriderBrokerAway",
            vec![],
            Finding("broker-away", |f, _| {
                f.broker.state = ConnectionState::Connecting {
                    last_error: Some("connection refused".to_owned()),
                };
            }),
        ),
        (
            "PostriderBrokerBlocked",
            vec![],
            Finding("broker-blocked", |f, _| {
                f.broker.state = ConnectionState::Blocked {
                    generation: 1,
                    reason: "low on disk".to_owned(),
                };
            }),
        ),
        ("PostriderLeasesLost", vec![], Not(watched)),
        (
            "PostriderDrillIsOld",
            vec![],
            Not("it is about a machine beside the installation, which the services do not know"),
        ),
        (
            "PostriderBreakGlass",
            vec![],
            Not("it is a notice, for a day: nothing is out of order but who came in"),
        ),
        ("PostriderPolicyViolations", vec![], Not(watched)),
        (
            "PostriderWebpushNoConnectionNode",
            vec![],
            Finding("service-missing", |f, lasts| {
                one(f, "webpush-connection").age = lasts
            }),
        ),
        (
            "PostriderWebpushErrors",
            vec![WEBPUSH_ERROR_SHARE, WEBPUSH_ERRORS_PER_SECOND],
            Finding("webpush-errors", |f, _| {
                let errors = just_above(WEBPUSH_ERRORS_PER_SECOND * LATELY.as_secs_f64());
                let done = Counters {
                    webpush_stored: (errors as f64 / WEBPUSH_ERROR_SHARE) as u64 - errors - 1,
                    webpush_errors: errors,
                    ..Counters::default()
                };
                has_done(f, done);
            }),
        ),
        ("PostriderWebpushNodesFail", vec![], Not(watched)),
        ("PostriderWebpushClientStorm", vec![], Not(watched)),
        (
            "PostriderWebpushMessagesMany",
            vec![WEBPUSH_MANY as f64],
            Finding("webpush-messages-many", |f, _| {
                tables(f).webpush.months = vec![webpush_month(0, WEBPUSH_MANY + 1)];
            }),
        ),
        (
            "PostriderWebpushMessagesOld",
            vec![WEBPUSH_OLD as f64],
            Finding("webpush-messages-old", |f, _| {
                tables(f).webpush.months = vec![webpush_month(2, WEBPUSH_OLD + 1)];
            }),
        ),
        ("PostriderAcceptedBudgetBurnsFast", vec![], Not(watched)),
        ("PostriderAcceptedBudgetBurns", vec![], Not(watched)),
        ("PostriderPushesBudgetBurnsFast", vec![], Not(watched)),
        ("PostriderPushesBudgetBurns", vec![], Not(watched)),
        ("PostriderNotificationsBudgetBurnsFast", vec![], Not(watched)),
        ("PostriderNotificationsBudgetBurns", vec![], Not(watched)),
    ]
}

fn just_above(threshold: f64) -> u64 {
    threshold.floor() as u64 + 1
}

fn alerts() -> Vec<Value> {
    let file: Value = serde_saphyr::from_str(ALERTS).unwrap();
    let groups = file["groups"].as_array().unwrap();
    groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap().clone())
        .collect()
}

/// A duration as Prometheus writes it: `5m`.
fn duration(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.len() - 1);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => panic!("{text}"),
    };
    Duration::from_secs(number.parse::<u64>().unwrap() * seconds)
}

/// What an expression compares with, but for whether something is at all.
fn thresholds(expression: &str) -> Vec<f64> {
    let words: Vec<&str> = expression.split_whitespace().collect();
    let compared = words
        .windows(2)
        .filter(|pair| matches!(pair[0], ">" | "<" | ">=" | "<="));
    compared
        .filter_map(|pair| pair[1].trim_end_matches(')').parse().ok())
        .filter(|number| *number != 0.0)
        .collect()
}

#[test]
fn alerts_and_status_have_the_same_thresholds() {
    let alerts = alerts();
    let rules = rules();
    let names: Vec<&str> = alerts
        .iter()
        .map(|alert| alert["alert"].as_str().unwrap())
        .collect();
    let listed: Vec<&str> = rules.iter().map(|(name, ..)| *name).collect();
    assert_eq!(listed, names, "each rule needs its line here");
    for (alert, (name, shared, told)) in alerts.iter().zip(&rules) {
        if matches!(told, Finding(..)) {
            let mut found = thresholds(alert["expr"].as_str().unwrap());
            found.dedup();
            assert_eq!(found, *shared, "{name}");
        }
    }
}

#[test]
fn rates_of_alerts_look_back_as_far_as_status_does() {
    let looks_back = format!("{}m", LATELY.as_secs() / 60);
    for name in [
        "PostriderIngestErrors",
        "PostriderPushStalled",
        "PostriderSwrveFailing",
        "PostriderNotificationsStalled",
        "PostriderWebpushErrors",
    ] {
        let alerts = alerts();
        let alert = alerts.iter().find(|alert| alert["alert"] == name).unwrap();
        let expression = alert["expr"].as_str().unwrap();
        let window = [format!("[{looks_back}]"), format!("rate{looks_back}")];
        assert!(
            window.iter().any(|window| expression.contains(window)),
            "{name}: {expression}"
        );
    }
}

#[test]
fn what_pages_is_a_warning_at_least() {
    for (alert, (name, _, told)) in alerts().iter().zip(rules()) {
        let pages = alert["labels"]["severity"] == "page";
        let (id, disturb) = match told {
            Finding(id, disturb) => (id, disturb),
            Not(why) => {
                let blind = name == "PostriderNothingScraped";
                assert!(!pages || blind, "{name} pages, and status does not tell: {why}");
                continue;
            }
        };
        let mut facts = running();
        disturb(&mut facts, duration(alert["for"].as_str().unwrap_or("0s")));
        let findings = evaluate(&facts);
        let found = findings.iter().find(|finding| finding.id == id);
        let found = found.unwrap_or_else(|| panic!("{name}: no {id} in {findings:#?}"));
        assert!(found.severity <= Severity::Warning, "{name}: {found:?}");
    }
}

/// The other half of both rules about lanes that stand still: what is due.
#[test]
fn what_is_due_for_as_long_as_a_page_looks_is_a_warning() {
    for lane in ["pushes-overdue", "notifications-overdue"] {
        let mut facts = running();
        let due = Some(now() - TimeDelta::from_std(OVERDUE).unwrap());
        tables(&mut facts).push.overdue.due_at = due;
        tables(&mut facts).reseller.waiting.overdue.due_at = due;
        let findings = evaluate(&facts);
        let found = findings.iter().find(|finding| finding.id == lane).unwrap();
        assert_eq!(found.severity, Severity::Warning, "{found:?}");
    }
}
