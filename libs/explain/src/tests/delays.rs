//! Where the time went.

use chrono::TimeDelta;
use domain::notification::NotificationStatus;
use domain::push::PushStatus;
use domain::reason::NotificationReason;
use store::push::{HoldPeriod, HoldView};
use store::timeline::NotificationTimeline;
use store::{DeadLetterState, PausePeriod};
use uuid::Uuid;

use super::{act, context, dead_letter, notification, now, paused, push};
use crate::{Context, Explanation};

/// A pause that is over.
fn pause(scope: &str, from: i64, until: i64) -> PausePeriod {
    PausePeriod {
        scope: scope.to_owned(),
        paused_by: "ann (1)".to_owned(),
        note: "incident 17".to_owned(),
        paused_at: now() - TimeDelta::seconds(from),
        resumed_at: Some(now() - TimeDelta::seconds(until)),
        until: None,
    }
}

/// An outage that is over.
fn hold(from: i64, until: i64) -> HoldPeriod {
    let until = Some(now() - TimeDelta::seconds(until));
    HoldPeriod {
        class: store::push::SWRVE.to_owned(),
        since: now() - TimeDelta::seconds(from),
        answered_at: until,
        ended_at: until,
        probes: 27,
        last_answer: "503 Service Unavailable".to_owned(),
    }
}

#[test]
fn a_story_says_where_the_time_went_and_what_it_waits_for() {
    let delay = |story: Explanation| story.delay.map(|delay| delay.text).unwrap_or_default();
    let pending = push(PushStatus::Pending, 2);
    assert_eq!(
        delay(crate::push(&pending, &context())),
        "10 min since it was accepted: 6 min 59 s waiting for its turn in the queue, 2 min before the first attempt, \
         59 s between attempts."
    );
    let story = crate::push(&pending, &paused("lane", "push"));
    assert!(delay(story).contains("waiting while the lane sends nothing"));
    let mut deferred = notification(NotificationStatus::Scheduled, 0);
    deferred.reason = Some(NotificationReason::Quota);
    assert_eq!(
        delay(crate::notification(&deferred, &context())),
        "10 min since it was accepted: 10 min waiting for the daily quota."
    );
    let story = crate::notification(&deferred, &paused("reseller", "acme"));
    assert!(delay(story).ends_with("10 min waiting for the end of a pause."));
    let mut sent = notification(NotificationStatus::Sent, 2);
    sent.finished_at = Some(now() - TimeDelta::minutes(7) + TimeDelta::seconds(5));
    assert_eq!(
        delay(crate::notification(&sent, &context())),
        "3 min 5 s until it ended: 2 min before the first attempt, 55 s between attempts, 10 s in 2 attempts."
    );
}

#[test]
fn a_wait_for_the_quota_is_told_after_its_end_with_what_ended_it() {
    let mut sent = notification(NotificationStatus::Sent, 1);
    sent.reason = Some(NotificationReason::Quota);
    let first = sent.history[0].started_at;
    sent.finished_at = Some(first + TimeDelta::seconds(5));
    sent.pauses = vec![pause("lane", 590, 589)];
    let story = crate::notification(&sent, &context());
    let delay = story.delay.expect("a delay");
    assert_eq!(
        delay.text,
        "2 min 5 s until it ended: 1 min 59 s waiting for the daily quota, 5 s in 1 attempt, 1 s paused by an operator."
    );
    assert_eq!(delay.parts[0].cause, "QUOTA");
    let said = |it: &NotificationTimeline, text: &str| {
        let lines = crate::notification(it, &context()).story;
        let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
        assert!(texts.contains(&text), "{texts:#?}");
    };
    said(&sent, "Was deferred: its subscription's daily quota was used up.");
    said(&sent, "Its turn came in the line for the daily quota.");
    let mut raise = act("subscription.limits");
    raise.at = first - TimeDelta::seconds(2);
    raise.details = serde_json::json!({"dailyQuota": {"from": null, "to": 20_000}});
    let mut rate = act("subscription.limits");
    rate.at = first - TimeDelta::seconds(1);
    rate.details = serde_json::json!({"requestsPerSecond": {"from": null, "to": 5}});
    sent.limit_changes = vec![rate, raise];
    said(
        &sent,
        "Its turn came: the daily quota had been raised from 10,000 to 20,000 by ann (1).",
    );
    sent.limit_changes.clear();
    sent.created_at -= TimeDelta::days(1);
    said(&sent, "Its turn came with the daily quota of 2026-11-21.");
    sent.reason = None;
    let delay = crate::notification(&sent, &context()).delay.expect("a delay");
    assert_eq!(delay.parts[0].cause, "BEFORE_FIRST_ATTEMPT");
}

#[test]
fn what_was_cancelled_before_its_first_attempt_says_what_is_known_of_its_wait() {
    let mut cancelled = notification(NotificationStatus::GivenUp, 0);
    cancelled.reason = Some(NotificationReason::Cancelled);
    cancelled.finished_at = Some(now() - TimeDelta::minutes(1));
    let waited = |it: &NotificationTimeline| {
        let delay = crate::notification(it, &context()).delay;
        delay.map(|delay| delay.text).unwrap_or_default()
    };
    assert_eq!(waited(&cancelled), "9 min until it ended: 9 min waiting.");
    cancelled.subscription.budget_day = Some(now().date_naive());
    cancelled.subscription.budget_used = Some(10_000);
    assert_eq!(
        waited(&cancelled),
        "9 min until it ended: 9 min waiting on a day whose quota is used up."
    );
    let mut cancel = act("notification.cancel");
    cancel.details = serde_json::json!({"status": "SCHEDULED"});
    cancelled.acts = vec![cancel];
    assert_eq!(
        waited(&cancelled),
        "9 min until it ended: 9 min waiting in line, on a day whose quota is used up."
    );
    cancelled.subscription.budget_used = Some(9_999);
    assert_eq!(waited(&cancelled), "9 min until it ended: 9 min waiting in line.");
}

#[test]
fn a_pause_of_the_lane_is_told_after_its_end() {
    let mut sent = push(PushStatus::Sent, 1);
    sent.push.created_at = now() - TimeDelta::seconds(41);
    sent.push.history[0].started_at = now() - TimeDelta::seconds(20);
    sent.push.finished_at = Some(now() - TimeDelta::seconds(20));
    sent.pauses = vec![pause("lane", 60, 21)];
    let story = crate::push(&sent, &context());
    assert_eq!(
        story.delay.map(|delay| delay.text).as_deref(),
        Some("21 s until it ended: 20 s paused by an operator, 1 s before the first attempt.")
    );
    assert_eq!(
        story.story[1].text,
        "The lane was paused from 2026-11-21 11:59:00 UTC to 2026-11-21 11:59:39 UTC by ann (1): incident 17."
    );
    sent.pauses[0].note.clear();
    let told = crate::push(&sent, &context()).story;
    assert!(told[1].text.ends_with(" by ann (1)."), "not recorded: {told:?}");
}

#[test]
fn an_outage_of_swrve_is_told_after_its_end() {
    let mut sent = push(PushStatus::Sent, 2);
    (sent.push.replayed_after, sent.holds) = (1, vec![hold(460, 70)]);
    sent.push.history[1].started_at = now() - TimeDelta::minutes(1);
    sent.push.finished_at = Some(now() - TimeDelta::minutes(1));
    let story = crate::push(&sent, &context());
    // Its attempt was given back, and so it was due from then on.
    assert_eq!(
        story.delay.map(|delay| delay.text).as_deref(),
        Some(
            "9 min until it ended: 6 min 30 s held while Swrve was out of order, 2 min before the first attempt, \
             29 s between attempts."
        )
    );
    let said = "Swrve was out of order and the lane held from 2026-11-21 11:52:20 UTC to 2026-11-21 11:58:50 UTC, with 27 probes; \
                the last failure was: 503 Service Unavailable.";
    assert!(
        story.story.iter().any(|line| line.text == said),
        "{:?}",
        story.story
    );
}

#[test]
fn what_stopped_the_lane_while_a_push_was_given_up_is_not_of_its_story() {
    let mut sent = push(PushStatus::Sent, 1);
    (sent.push.attempts, sent.push.replayed_after) = (2, 1);
    let mut letter = dead_letter(Some(Uuid::from_u128(1)), None);
    letter.state = DeadLetterState::Replayed;
    letter.created_at = now() - TimeDelta::seconds(400);
    letter.resolved_at = Some(now() - TimeDelta::seconds(100));
    sent.dead_letters = vec![letter];
    // One of each in between, and one that had begun before or ended after.
    sent.pauses = vec![pause("lane", 500, 399), pause("lane", 390, 300)];
    sent.holds = vec![hold(290, 101), hold(110, 90)];
    let story = crate::push(&sent, &context());
    let codes = |code: &str| {
        let lines = story.story.iter().filter(|line| line.code == code);
        lines.map(|line| line.at).collect::<Vec<_>>()
    };
    assert_eq!(codes("paused"), [now() - TimeDelta::seconds(500)]);
    assert_eq!(codes("held"), [now() - TimeDelta::seconds(110)]);
}

#[test]
fn an_outage_that_goes_on_has_taken_time_and_no_end_to_tell() {
    let mut waiting = push(PushStatus::Pending, 0);
    let mut hold = hold(400, 0);
    (hold.answered_at, hold.ended_at) = (None, None);
    waiting.holds = vec![hold];
    let story = crate::push(&waiting, &context());
    assert!(
        !format!("{:?}", story.story).contains("out of order"),
        "{story:?}"
    );
    let parts = story.delay.map(|delay| delay.parts).unwrap_or_default();
    let causes: Vec<_> = parts.iter().map(|part| part.cause).collect();
    assert_eq!(causes, ["HELD", "WAITING"]);
}

#[test]
fn the_wait_for_a_retry_before_it_was_due_is_not_of_the_outage() {
    let mut waiting = push(PushStatus::Retry, 1);
    let due = now() - TimeDelta::minutes(3);
    waiting.push.next_attempt_at = Some(due);
    let mut outage = hold(450, 0);
    (outage.answered_at, outage.ended_at) = (None, None);
    let context = Context {
        holds: vec![HoldView {
            class: outage.class.clone(),
            since: outage.since,
            probes: outage.probes,
            probed_at: None,
            last_answer: outage.last_answer.clone(),
            answered_at: None,
        }],
        ..context()
    };
    waiting.holds = vec![outage];
    let story = crate::push(&waiting, &context);
    let told = story.delay.map(|delay| delay.text).unwrap_or_default();
    assert_eq!(
        told,
        "10 min since it was accepted: 4 min 59 s waiting for another attempt, 3 min held while Swrve was out of order, 2 min before \
         the first attempt."
    );
}

#[test]
fn whatever_kept_a_notification_back_is_told_after_its_end() {
    for scope in ["lane", "reseller", "subscription"] {
        let mut waiting = notification(NotificationStatus::Pending, 0);
        waiting.pauses = vec![pause(scope, 700, 60)];
        let story = crate::notification(&waiting, &context());
        let told = story.delay.map(|delay| delay.text).unwrap_or_default();
        assert!(told.contains("9 min paused by an operator"), "{told}");
        let said = format!("The {scope} was paused from ");
        assert!(
            story.story.iter().any(|line| line.text.starts_with(&said)),
            "{:?}",
            story.story
        );
    }
}
