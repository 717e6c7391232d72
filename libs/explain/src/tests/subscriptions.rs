//! The states of a subscription, and the story that is told of it.

use chrono::TimeDelta;
use domain::notification::{NotificationStatus, RetryPlan};
use domain::quota::{Budget, day_of};
use domain::reason::{NotificationReason, StateReason};
use domain::subscription::SubscriptionState;
use store::AuditView;
use store::webhook::{StateEntry, SubscriptionView, WaitingSum};
use uuid::Uuid;

use super::{act, context, now, paused};
use crate::SubscriptionFacts;
use crate::subscription::describe;

pub(super) fn facts() -> SubscriptionFacts {
    let made = now() - TimeDelta::days(9);
    SubscriptionFacts {
        view: SubscriptionView {
            id: Uuid::from_u128(5),
            reseller: "acme".to_owned(),
            description: String::new(),
            url: "https://acme.example/hook".to_owned(),
            event_types: vec!["domain.*".to_owned()],
            email: "ops@acme.example".to_owned(),
            email_confirmed_at: None,
            state: SubscriptionState::Active,
            state_reason: StateReason::Verified,
            state_changed_at: made,
            paused_at: None,
            held_at: None,
            timeout_millis: None,
            daily_quota: Some(100),
            requests_per_second: Some(5),
            resend_after_outage: None,
            retry_plan: RetryPlan::Short,
            retry_client_errors: false,
            failing_since: None,
            verification_due_at: None,
            verification_attempts: 0,
            verification_error: None,
            verified_at: Some(made),
            created_at: made,
            updated_at: made,
        },
        states: vec![StateEntry {
            id: Uuid::from_u128(6),
            at: made,
            state: SubscriptionState::Active,
            reason: StateReason::Verified,
            paused: false,
            held: false,
        }],
        acts: Vec::new(),
        waiting: Vec::new(),
        counted_up_to: 1_000,
        budget: None,
    }
}

fn sum(status: NotificationStatus, reason: Option<NotificationReason>, count: u64) -> WaitingSum {
    WaitingSum {
        status,
        reason,
        day: None,
        first_at: None,
        last_at: None,
        count,
    }
}

#[test]
fn one_with_nothing_to_do_says_its_state_and_its_limits() {
    let told = describe(&facts(), &context());
    assert_eq!((told.kind, told.state.as_str()), ("subscription", "ACTIVE"));
    assert_eq!(
        told.headline,
        "Active since 2026-11-12 12:00:00 UTC (9 days ago). Nothing waits for it. Of its daily quota of 100 it has used 0 today; at \
         most 5 attempts a second."
    );
    let lines: Vec<&str> = told.story.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(
        lines,
        [
            "Made by acme; it sends domain.* to https://acme.example/hook.",
            "ACTIVE: its endpoint answered its challenge."
        ]
    );
    assert_eq!(told.next.text, "The next event that it matches is sent.");
    assert_eq!((told.headline_code, told.next.code), ("active", "next-event"));
}

#[test]
fn a_pause_and_its_end_are_no_new_challenge() {
    let mut facts = facts();
    for (minute, paused, held) in [
        (1, false, true),
        (2, true, true),
        (3, true, false),
        (4, false, false),
        (5, true, false),
    ] {
        let mut entry = facts.states[0].clone();
        entry.at += TimeDelta::minutes(minute);
        (entry.paused, entry.held) = (paused, held);
        facts.states.push(entry);
    }
    let mut failing = facts.states[5].clone();
    failing.at += TimeDelta::minutes(1);
    failing.reason = StateReason::Failing;
    facts.states.push(failing);
    // The newest come first.
    facts.states.reverse();
    let told = describe(&facts, &context());
    let lines: Vec<&str> = told.story.iter().skip(1).map(|line| line.text.as_str()).collect();
    assert_eq!(
        lines,
        [
            "ACTIVE: its endpoint answered its challenge.",
            "ACTIVE: an operator paused it.",
            "ACTIVE: its reseller paused it; paused by an operator.",
            "ACTIVE: an operator let it go on; paused by its reseller.",
            "ACTIVE: its reseller let it go on.",
            "ACTIVE: its reseller paused it.",
            "ACTIVE: every attempt has failed for days; paused by its reseller.",
        ]
    );
}

#[test]
fn a_pause_by_an_operator_is_told_with_whose_it_is_and_a_change_of_limits_too() {
    let mut facts = facts();
    let made = facts.states[0].at;
    for (minute, held) in [(1, true), (2, false), (3, true)] {
        let mut entry = facts.states[0].clone();
        entry.at += TimeDelta::minutes(minute);
        entry.held = held;
        facts.states.push(entry);
    }
    facts.acts = [
        ("reseller.pause", "reseller/acme", 1, "they asked us to."),
        ("reseller.resume", "reseller/acme", 2, ""),
        ("quota-request.approve", "subscription/5", 4, "a merger"),
        ("quota-request.approve", "subscription/5", 5, ""),
    ]
    .map(|(action, subject, minute, note)| AuditView {
        at: made + TimeDelta::minutes(minute),
        subject: subject.to_owned(),
        note: Some(note.to_owned()),
        ..act(action)
    })
    .to_vec();
    facts.acts[2].details = serde_json::json!({
        "dailyQuota": {"from": null, "to": 20_000},
        "requestsPerSecond": {"from": 5, "to": null},
    });
    // What it had already was approved with what it had not.
    facts.acts[3].details = serde_json::json!({
        "dailyQuota": null,
        "requestsPerSecond": {"from": null, "to": 10},
    });
    let told = describe(&facts, &context());
    let lines: Vec<&str> = told.story.iter().skip(2).map(|line| line.text.as_str()).collect();
    assert_eq!(
        lines,
        [
            "ACTIVE: ann (1) paused all of its reseller: they asked us to.",
            "ACTIVE: ann (1) let all of its reseller go on.",
            // Which is not in the audit log any more.
            "ACTIVE: an operator paused it.",
            "ann (1) changed its daily quota from 10,000 to 20,000 and its attempts a second from 5 to no limit: a merger.",
            "ann (1) changed its attempts a second from no limit to 10.",
        ]
    );
    assert_eq!(told.story[2].params["subject"], "reseller/acme");
}

#[test]
fn what_waits_is_told_with_what_it_waits_for() {
    let mut facts = facts();
    facts.waiting = vec![
        sum(
            NotificationStatus::Scheduled,
            Some(NotificationReason::Quota),
            1_000,
        ),
        WaitingSum {
            first_at: Some(now() + TimeDelta::minutes(2)),
            ..sum(NotificationStatus::Retry, None, 2)
        },
    ];
    let today = day_of(now(), chrono_tz::Tz::UTC);
    facts.budget = Some((
        Budget {
            day: today,
            used: 120,
        },
        // The quota was lowered since.
        120,
    ));
    let told = describe(&facts, &context());
    assert!(
        told.headline.contains(
            "At least 1,002 notifications wait: 1,000 for the daily quota, 2 for another attempt after a failed one. Of its daily \
             quota of 100 it has used 120 today"
        ),
        "{}",
        told.headline
    );
    assert_eq!(told.next.at, Some(now() + TimeDelta::minutes(2)));
    assert_eq!(told.next.code, "next-attempt");
    assert_eq!(
        (
            &told.headline_params["waiting"],
            &told.headline_params["usedToday"]
        ),
        (&1_002.into(), &120.into())
    );
    assert_eq!(
        told.commands[0],
        format!("postrider retry-now subscription {}", facts.view.id)
    );
}

#[test]
fn a_pause_is_told_with_whose_it_is_and_what_waits_for_it() {
    let mut facts = facts();
    facts.waiting = vec![sum(NotificationStatus::Pending, None, 1)];
    let told = describe(&facts, &paused("reseller", "acme"));
    assert!(
        told.headline
            .starts_with("Is held back: the reseller acme is paused by ann (1) since ")
            && told
                .headline
                .contains(": incident 17. 1 notification waits for the end of that."),
        "{}",
        told.headline
    );
    assert_eq!(told.commands[0], "postrider resume reseller acme");
    facts.view.paused_at = Some(now() - TimeDelta::hours(1));
    let told = describe(&facts, &context());
    assert!(
        told.headline
            .starts_with("Is held back: its reseller has paused it since 2026-11-21 11:00:00 UTC"),
        "{}",
        told.headline
    );
    assert_eq!(told.next.text, "It goes on when its reseller resumes it.");
    assert_eq!(told.headline_code, "paused-by-reseller");
    let both = describe(&facts, &paused("lane", "reseller"));
    assert_eq!(
        (both.headline_code, both.next.code),
        ("paused-by-both", "resumed")
    );
    let both = both.headline;
    assert!(
        both.contains("(1 h ago), and the lane reseller is paused by "),
        "{both}"
    );
}

#[test]
fn a_pause_has_no_end_that_its_reseller_or_its_quota_outlasts() {
    let mut facts = facts();
    let mut context = paused("lane", "reseller");
    let until = now() + TimeDelta::hours(2);
    context.pauses[0].until = Some(until);
    let next = |facts: &SubscriptionFacts| describe(facts, &context).next;
    assert_eq!(next(&facts).at, Some(until));
    facts.view.paused_at = Some(now() - TimeDelta::hours(1));
    let both = next(&facts);
    assert!(
        both.at.is_none() && both.text.ends_with(" Its reseller has to resume it as well."),
        "{both:?}"
    );
    facts.view.paused_at = None;
    let day = day_of(now(), chrono_tz::Tz::UTC);
    facts.budget = Some((Budget { day, used: 100 }, 100));
    let out = next(&facts);
    assert!(
        out.at.is_none() && out.text.ends_with(" Its daily quota is used up for today."),
        "{out:?}"
    );
}

#[test]
fn one_that_is_deactivated_says_why() {
    let mut facts = facts();
    (facts.view.state, facts.view.state_reason) = (SubscriptionState::Deactivated, StateReason::Gone);
    let told = describe(&facts, &paused("reseller", "acme"));
    assert!(
        told.headline
            .contains(": its endpoint says that it is gone. Nothing is sent to it."),
        "{}",
        told.headline
    );
    assert_eq!(told.next.text, "Nothing, until its reseller activates it.");
    assert_eq!((told.headline_code, told.next.code), ("deactivated", "activated"));
}
