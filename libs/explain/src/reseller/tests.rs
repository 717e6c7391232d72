//! Tests of what a reseller is told.

use chrono::TimeDelta;
use domain::notification::NotificationStatus;
use domain::reason::{NotificationReason, StateReason};
use domain::subscription::{PausedBy, SubscriptionState};
use uuid::Uuid;

use super::{Story, Teller, notification};
use crate::tests::{context, notification as row, now};
use store::timeline::NotificationTimeline;
use store::webhook::StateEntry;

fn told(history: &NotificationTimeline, paused_by: Option<PausedBy>) -> Story {
    told_with(history, paused_by, &[])
}

fn told_with(history: &NotificationTimeline, paused_by: Option<PausedBy>, states: &[StateEntry]) -> Story {
    let context = context();
    let teller = Teller {
        now: now(),
        rules: &context.rules,
        paused_by,
        states,
        own_names: &["ann (1)".to_owned()],
    };
    notification(history, &teller)
}

#[test]
fn every_status_has_a_headline_and_what_comes_next() {
    for status in NotificationStatus::ALL {
        for attempts in [0, 2] {
            let story = told(&row(status, attempts), None);
            assert!(!story.headline.text.is_empty() && !story.next.sentence.text.is_empty());
            assert_eq!(story.status, status);
        }
    }
}

#[test]
fn faults_of_ours_are_ours_and_no_more() {
    let mut failed = row(NotificationStatus::GivenUp, 2);
    let last = &mut failed.history[1];
    last.error_type = Some("OTHER".to_owned());
    last.response_status = None;
    last.error = Some("the lease of worker-7 broke".to_owned());
    let story = told(&failed, None);
    assert_eq!(
        story.headline.text,
        "Given up: the last of 2 attempts failed: on our side."
    );
}

#[test]
fn what_may_have_been_delivered_is_not_told_as_a_failure() {
    let mut held = row(NotificationStatus::GivenUp, 1);
    held.reason = "delivery/possibly-sent".parse().ok();
    assert_eq!(told(&held, None).headline.code, "possibly-sent");
}

#[test]
fn a_pause_is_told_as_whose_it_is_and_without_a_note() {
    let waiting = row(NotificationStatus::Pending, 0);
    for by in PausedBy::ALL {
        let code = told(&waiting, Some(by)).headline.code;
        assert_eq!(
            code,
            if by == PausedBy::Reseller {
                "paused"
            } else {
                "held"
            }
        );
    }
}

#[test]
fn what_a_pause_holds_is_told_until_when_it_may_wait() {
    let waiting = row(NotificationStatus::Pending, 0);
    let given_up_at = waiting.created_at + TimeDelta::days(30);
    let next = told(&waiting, Some(PausedBy::Reseller)).next.sentence;
    let begin = "It goes on when you resume the subscription. If it still waits at ";
    assert!(
        next.text.starts_with(begin) && next.text.ends_with("it is given up."),
        "{next:?}"
    );
    assert_eq!(next.params["givenUpAt"], serde_json::json!(given_up_at));
    let mut resent = waiting;
    resent.resent_at = Some(now());
    let next = told(&resent, Some(PausedBy::Lane)).next.sentence;
    let from_then = serde_json::json!(now() + TimeDelta::days(30));
    assert_eq!(next.params["givenUpAt"], from_then);
}

#[test]
fn what_was_refused_for_its_signature_hints_at_the_secret() {
    for (status, code) in [(401, "check-secret"), (403, "check-secret"), (404, "resend")] {
        let mut refused = row(NotificationStatus::Failed, 1);
        refused.history[0].response_status = Some(status);
        let next = told(&refused, None).next.sentence;
        assert_eq!(next.code, code);
        assert_eq!(
            next.text.contains("a secret that is valid now"),
            status != 404,
            "{next:?}"
        );
    }
}

#[test]
fn a_failed_attempt_names_its_parts() {
    let story = told(&row(NotificationStatus::Retry, 1), None);
    let failed = &story.story[1].sentence;
    assert_eq!(
        failed.text,
        "Attempt 1 failed after 5 s: the endpoint answered 503."
    );
    assert_eq!(
        serde_json::to_string(&failed.params).unwrap(),
        r#"{"attempt":1,"errorType":"HTTP","millis":5000,"status":503}"#
    );
}

/// What the time went to, each cause with its seconds.
fn waited(story: &Story) -> Vec<(&str, i64)> {
    let causes = story.waited.iter();
    causes
        .map(|told| (told.code, told.params["millis"].as_i64().unwrap() / 1_000))
        .collect()
}

fn state(minutes_ago: i64, paused: bool, held: bool) -> StateEntry {
    StateEntry {
        id: Uuid::nil(),
        at: now() - TimeDelta::minutes(minutes_ago),
        state: SubscriptionState::Active,
        reason: StateReason::Verified,
        paused,
        held,
    }
}

#[test]
fn what_is_late_says_what_its_time_went_to() {
    // Ten minutes old, tried eight and seven minutes ago for five seconds each.
    let story = told(&row(NotificationStatus::Retry, 2), None);
    let causes = [
        ("waited-retry", 8 * 60 - 10),
        ("waited-turn", 2 * 60),
        ("waited-attempts", 10),
    ];
    assert_eq!(waited(&story), causes);
    assert_eq!(
        story.waited[0].text,
        "7 min: between attempts, since the one before had failed."
    );
    let mut quick = row(NotificationStatus::Pending, 0);
    quick.created_at = now() - TimeDelta::seconds(9);
    assert!(told(&quick, None).waited.is_empty());
}

#[test]
fn what_a_pause_took_is_not_told_as_anything_else() {
    let states = [
        state(3, false, false),
        state(4, false, true),
        state(6, true, false),
        state(60, false, false),
    ];
    let story = told_with(&row(NotificationStatus::Retry, 2), None, &states);
    let causes = [
        ("waited-retry", 5 * 60 - 10),
        ("waited-paused", 2 * 60),
        ("waited-turn", 2 * 60),
        ("waited-held", 60),
        ("waited-attempts", 10),
    ];
    assert_eq!(waited(&story), causes);
}

#[test]
fn what_is_in_line_waits_for_it_from_then_on() {
    let mut waiting = row(NotificationStatus::Scheduled, 0);
    waiting.reason = Some(NotificationReason::Quota);
    waiting.updated_at = waiting.created_at + TimeDelta::seconds(1);
    let causes = [("waited-quota", 599), ("waited-turn", 1)];
    assert_eq!(waited(&told(&waiting, None)), causes);
    waiting.finished_at = Some(waiting.created_at + TimeDelta::minutes(1));
    assert_eq!(waited(&told(&waiting, None))[0], ("waited-quota", 59));
}

#[test]
fn an_attempt_that_began_before_its_event_by_another_clock_counts_as_one() {
    let mut late = row(NotificationStatus::Retry, 1);
    late.history[0].started_at = late.created_at - TimeDelta::seconds(2);
    let causes = [("waited-retry", 10 * 60 - 3), ("waited-attempts", 3)];
    assert_eq!(waited(&told(&late, None)), causes);
}

#[test]
fn what_came_before_attempts_that_are_not_told_any_more_is_no_first_turn() {
    let mut late = row(NotificationStatus::Retry, 2);
    late.history.remove(0);
    let causes = [("waited-retry", 10 * 60 - 5), ("waited-attempts", 5)];
    assert_eq!(waited(&told(&late, None)), causes);
}
