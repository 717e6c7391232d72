//! Tests of what a reseller is told.

use domain::notification::NotificationStatus;
use domain::subscription::PausedBy;

use super::{Story, Teller, notification};
use crate::tests::{context, notification as row, now};
use store::timeline::NotificationTimeline;

fn told(history: &NotificationTimeline, paused_by: Option<PausedBy>) -> Story {
    let context = context();
    let teller = Teller {
        now: now(),
        rules: &context.rules,
        paused_by,
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
