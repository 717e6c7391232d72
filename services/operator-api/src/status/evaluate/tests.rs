//! That each state has its finding, that none has more, and where findings lead.

use broker::{ConnectionState, Queue};
use chrono::TimeDelta;
use domain::dead_letter_job::{JobPause, JobStatus};
use domain::subscription::SubscriptionState;
use runtime::connections::Counters;
use store::status::{LastLook, PausedWaiting};
use uuid::Uuid;

use super::cases::cases;
use super::scene::{
    MINUTE, deactivated, depth, has_done, hears, hold, job, now, one, pause, running, sends, system, tables,
    trouble, used_up,
};
use super::*;
use crate::console::place;
use crate::status::StatusDocument;

#[test]
fn every_disorder_has_its_finding() {
    for (id, severity, disturb, said) in cases() {
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
    // Nothing is wrong, and the first line says why nothing is sent.
    let document = StatusDocument::of(&facts, findings);
    assert_eq!(document.headline, "Healthy, with the lane push paused");

    let mut facts = running();
    let known = tables(&mut facts);
    known.pauses = vec![pause("lane", "reseller")];
    known.reseller.quotas = Some(used_up(29, 1));
    let findings = evaluate(&facts);
    let ids: Vec<&str> = findings.iter().map(|finding| finding.id).collect();
    assert_eq!(
        ids,
        ["paused"],
        "a higher quota would send nothing: {findings:#?}"
    );
}

#[test]
fn of_one_severity_what_is_lost_comes_first_the_longest_before_the_rest_and_settings_last() {
    let mut facts = running();
    facts.settings.opens_egress = true;
    let known = tables(&mut facts);
    known.reseller.quotas = Some(used_up(29, 1));
    known.reseller.requests.count = 1;
    (known.push.deaths.open, known.push.deaths.oldest) = (41, Some(now() - TimeDelta::days(1)));
    known.reseller.deaths.open = 7;
    let mut failing = trouble(SubscriptionState::Active);
    failing.failing_since = Some(now() - TimeDelta::days(2));
    known.in_trouble = vec![failing];
    known.deactivated = Some(deactivated(1));
    known.pauses = vec![pause("reseller", "acme")];
    let ids = |facts: &Facts| -> Vec<&'static str> { evaluate(facts).iter().map(|it| it.id).collect() };
    let expected = [
        "subscriptions-deactivated",
        "subscriptions-in-trouble",
        "dead-letters-open",
        "dead-letters-open",
        "paused",
        "quotas-used-up",
        "quota-requests-open",
        "egress-open",
    ];
    assert_eq!(ids(&facts), expected);
    // Of a lane that is paused nothing is sent at all.
    tables(&mut facts).pauses = vec![pause("lane", "push")];
    let found = ids(&facts);
    assert_eq!((found[0], found.len()), ("paused", expected.len()), "{found:?}");
    // What is worse than a notice still comes before all of them.
    tables(&mut facts).months_ahead = 0;
    assert_eq!(ids(&facts)[0], "partitions-missing");
}

#[test]
fn what_pauses_hold_stands_in_the_headline_and_before_what_is_only_set_so() {
    let counted = |scope: &str, key: &str, waiting| PausedWaiting {
        scope: scope.to_owned(),
        key: key.to_owned(),
        waiting,
    };
    let mut facts = running();
    facts.settings.opens_egress = true;
    let mut headline = |pauses: Vec<store::PauseView>, paused: Vec<PausedWaiting>| {
        let known = tables(&mut facts);
        (known.pauses, known.paused) = (pauses, paused);
        let findings = evaluate(&facts);
        assert_eq!(findings[0].id, "paused", "{findings:#?}");
        StatusDocument::of(&facts, findings).headline
    };
    let demo = pause("reseller", "demo");
    assert_eq!(
        headline(vec![demo.clone()], vec![counted("reseller", "demo", 181)]),
        "Healthy, with a pause that holds 181 notifications of the reseller demo"
    );
    assert_eq!(
        headline(vec![demo.clone()], vec![counted("reseller", "demo", 0)]),
        "Healthy"
    );
    let of = |reseller: &str, key: &str| store::PauseView {
        reseller: Some(reseller.to_owned()),
        ..pause("subscription", key)
    };
    assert_eq!(
        headline(
            vec![pause("lane", "push"), of("acme", "5")],
            vec![counted("subscription", "5", 10_001)]
        ),
        "Healthy, with the lane push paused, and a pause that holds at least 10,000 notifications of a subscription of acme"
    );
    assert_eq!(
        headline(
            vec![demo.clone(), of("acme", "5"), of("acme", "7")],
            vec![counted("reseller", "demo", 0), counted("subscription", "5", 5)]
        ),
        "Healthy, with a pause that holds 5 notifications of a subscription of acme, and 1 pause of which it is not counted what waits"
    );
    // What waits for the pause of its reseller is not counted twice.
    assert_eq!(
        headline(
            vec![demo, of("acme", "5"), of("demo", "6")],
            vec![
                counted("reseller", "demo", 180),
                counted("subscription", "5", 1),
                counted("subscription", "6", 40)
            ]
        ),
        "Healthy, with 2 pauses that hold 181 notifications"
    );
}

#[test]
fn a_lane_that_was_resumed_a_moment_ago_is_not_off() {
    for (lane, queue, off) in [
        (
            Lane::Reseller,
            Queue::ResellerReady,
            &["queue-not-consumed", "reseller-lane-off"][..],
        ),
        (Lane::Reseller, Queue::ResellerRetry, &["queue-not-consumed"]),
        (Lane::Push, Queue::PushReady, &["queue-not-consumed"]),
    ] {
        let mut facts = running();
        depth(&mut facts, queue, 1, 0);
        tables(&mut facts).resumed = vec![(lane, now() - TimeDelta::milliseconds(500))];
        assert_eq!(evaluate(&facts), [], "{queue}");
        tables(&mut facts).resumed = vec![(lane, now() - TimeDelta::seconds(11))];
        let findings = evaluate(&facts);
        let ids: Vec<&str> = findings.iter().map(|finding| finding.id).collect();
        assert_eq!(ids, off, "{queue}");
    }
}

#[test]
fn several_subscriptions_that_fail_are_listed_by_the_command_and_one_has_its_groups() {
    let command = |count: usize| {
        let mut facts = running();
        tables(&mut facts).in_trouble = (0..count).map(|_| trouble(SubscriptionState::Active)).collect();
        let findings = evaluate(&facts);
        let command = findings.iter().find_map(|finding| finding.command.clone());
        command.expect("a command")
    };
    assert!(command(1).starts_with("postrider dead-letters groups --subscription "));
    assert_eq!(command(2), "postrider subscriptions list --failing");
}

#[test]
fn the_finding_of_used_up_quotas_leads_to_what_waits_for_them() {
    let mut facts = running();
    tables(&mut facts).reseller.quotas = Some(used_up(29, 1));
    let findings = evaluate(&facts);
    let found = findings.iter().find(|finding| finding.id == "quotas-used-up");
    let (path, _) = place(found.expect("the finding")).expect("a page");
    assert_eq!(
        path,
        "/console/waiting?lane=reseller&status=SCHEDULED&reason=QUOTA"
    );
}

/// Retries a minute apart: between them a push waits, is queued, or is being tried, and nothing is counted in most reports.
#[test]
fn that_swrve_fails_is_told_until_it_has_accepted_something() {
    let mut facts = running();
    for second in 10..600 {
        hears(&mut facts, Some(Duration::from_secs(second)));
        let depths = &mut tables(&mut facts).push.depths;
        *depths = store::status::Depths::default();
        *match second % 60 {
            0 => &mut depths.pending,
            1 => &mut depths.queued,
            2..10 => &mut depths.sending,
            _ => &mut depths.retry,
        } = 46;
        sends(&mut facts, 0, if second % 60 < 5 { 46 } else { 0 });
        let findings = evaluate(&facts);
        let found = findings.iter().find(|finding| finding.id == "swrve-fails");
        assert_eq!(
            found.map(|it| it.severity),
            Some(Severity::Warning),
            "after {second} s"
        );
    }
    tables(&mut facts).push.depths = store::status::Depths::default();
    hears(&mut facts, None);
    tables(&mut facts).push.failures = Vec::new();
    assert_eq!(evaluate(&facts), []);
}

#[test]
fn a_failing_swrve_leads_to_the_retries_where_some_wait_and_to_the_list_of_them_where_none_does() {
    for (retry, sending, command) in [
        (2, 2, "postrider retry-now lane push"),
        (0, 2, "postrider push list --status RETRY"),
        // No push is left to look at.
        (0, 0, "postrider history push"),
    ] {
        let mut facts = running();
        hears(&mut facts, Some(MINUTE));
        let known = tables(&mut facts);
        (known.push.depths.retry, known.push.depths.sending) = (retry, sending);
        known.push.overdue.due_at = Some(now() + TimeDelta::seconds(20));
        let findings = evaluate(&facts);
        let found = findings.iter().find(|finding| finding.id == "swrve-fails");
        let found = found.expect("the finding");
        assert_eq!(found.command.as_deref(), Some(command));
        // The next attempt is under way.
        assert!(!found.text.contains("the next attempt is due"), "{}", found.text);
    }
}

/// Two pushes between which nothing is tried are too few for the alerts, which look at rates, and for the lane to be held.
#[test]
fn an_outage_that_few_pushes_meet_is_not_healthy() {
    let mut facts = running();
    for second in 5..120 {
        hears(&mut facts, Some(Duration::from_secs(second)));
        let depths = &mut tables(&mut facts).push.depths;
        (depths.retry, depths.sending) = if second % 60 < 2 { (0, 2) } else { (2, 0) };
        let findings = evaluate(&facts);
        let said = "; 2 pushes wait or are being tried.";
        let is_told = |it: &Finding| it.id == "swrve-fails" && it.text.ends_with(said);
        assert!(findings.iter().any(is_told), "after {second} s: {findings:#?}");
        let expected = if second < 30 {
            "Healthy"
        } else {
            "Something is wrong"
        };
        let headline = StatusDocument::of(&facts, findings).headline;
        assert_eq!(headline, expected, "after {second} s");
    }
}

#[test]
fn what_was_held_between_two_looks_was_not_well() {
    let mut facts = running();
    let look = |healthy| LastLook {
        healthy,
        since: now() - TimeDelta::hours(1),
        looked_at: now(),
    };
    let known = tables(&mut facts);
    known.last_look = Some(look(true));
    known.last_hold_end = Some(now() - TimeDelta::minutes(10) + TimeDelta::milliseconds(700));
    let since = StatusDocument::of(&facts, evaluate(&facts)).since;
    assert_eq!(since, Some(now() - TimeDelta::minutes(10)));
    // One that ended before, and what is not well, change nothing.
    tables(&mut facts).last_hold_end = Some(now() - TimeDelta::hours(2));
    let since = StatusDocument::of(&facts, evaluate(&facts)).since;
    assert_eq!(since, Some(look(true).since));
    tables(&mut facts).last_hold_end = Some(now());
    tables(&mut facts).last_look = Some(look(false));
    tables(&mut facts).holds = vec![hold()];
    let since = StatusDocument::of(&facts, evaluate(&facts)).since;
    assert_eq!(since, Some(look(false).since));
}

#[test]
fn an_idle_lane_that_gets_its_first_message_has_not_stalled() {
    let mut facts = running();
    has_done(&mut facts, Counters::default());
    for queue in [Queue::PushReady, Queue::ResellerReady] {
        depth(&mut facts, queue, 1, 1);
    }
    let known = tables(&mut facts);
    known.push.depths.queued_for = Some(Duration::from_millis(3));
    known.reseller.depths.queued_for = Some(Duration::from_secs(1));
    assert_eq!(evaluate(&facts), []);
}

#[test]
fn a_failure_between_successes_is_not_that_swrve_accepts_nothing() {
    let mut facts = running();
    sends(&mut facts, 1_200, 3);
    hears(&mut facts, Some(Duration::from_secs(1)));
    tables(&mut facts).push.failures = Vec::new();
    tables(&mut facts).push.depths.queued = 5_000;
    assert_eq!(evaluate(&facts), []);
}

#[test]
fn a_pause_says_how_much_waits_and_leads_to_the_page_about_its_kind() {
    let mut facts = running();
    let known = tables(&mut facts);
    known.pauses = vec![
        pause("lane", "push"),
        pause("reseller", "acme"),
        pause("subscription", "5"),
    ];
    (known.push.depths.pending, known.push.depths.retry) = (1_200, 4);
    known.paused = vec![PausedWaiting {
        scope: "reseller".to_owned(),
        key: "acme".to_owned(),
        waiting: 1,
    }];
    let findings = evaluate(&facts);
    let told: Vec<_> = findings
        .iter()
        .map(|it| (it.runbook, it.meaning.rsplit(". ").next().unwrap()))
        .collect();
    let other = "a-subscription-or-a-reseller-is-paused";
    assert_eq!(
        told,
        [
            ("a-lane-is-paused", "1,204 pushes wait now."),
            (other, "1 notification waits now."),
            (other, "What comes is stored and waits."),
        ]
    );
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
    for (id, _, disturb, _) in cases() {
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

#[test]
fn a_job_that_paused_itself_leads_to_what_failed_and_one_that_was_paused_to_going_on() {
    for (because, command) in [(Some(JobPause::CanaryFailed), "show"), (None, "resume")] {
        let mut facts = running();
        let mut paused = job(JobStatus::Paused, MINUTE);
        paused.paused_because = because;
        let leads_to = format!("postrider jobs {command} {}", paused.id);
        tables(&mut facts).jobs = vec![paused];
        let findings = evaluate(&facts);
        assert_eq!(findings[0].command.as_deref(), Some(leads_to.as_str()));
        for other in ["resume", "cancel"] {
            let said = findings[0].meaning.contains(&format!("postrider jobs {other} "));
            assert_eq!(said, because.is_some(), "{findings:?}");
        }
    }
}

#[test]
fn every_finding_leads_to_its_page_and_that_of_a_job_to_the_job() {
    for (id, _, disturb, _) in cases() {
        let mut facts = running();
        disturb(&mut facts);
        for finding in evaluate(&facts) {
            let found = place(&finding);
            let (path, _) = found.unwrap_or_else(|| panic!("{id}: {} has no page", finding.id));
            if finding.id.starts_with("job-") {
                assert_eq!(path, format!("/console/jobs/{}", Uuid::from_u128(9)));
            }
        }
    }
}
