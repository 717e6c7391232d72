//! Every state of a push, and the story that is told of it.

use chrono::TimeDelta;
use domain::push::{AttemptStatus, ErrorType, PushStatus};
use domain::reason::PushReason;
use serde_json::json;
use store::DeadLetterState;
use store::push::Ahead;
use store::timeline::PushTimeline;
use uuid::Uuid;

use super::{Codes, act, context, dead_letter, now, paused, push};
use crate::Context;

/// A case of the push lane: what makes it, what the headline says, what is next, and the codes of both.
type PushCase = (
    PushStatus,
    u32,
    fn(&mut PushTimeline),
    &'static str,
    &'static str,
    Codes,
);

const PUSHES: &[PushCase] = &[
    (
        PushStatus::Scheduled,
        0,
        |it| it.push.next_attempt_at = Some(now() + TimeDelta::hours(2)),
        "Waits for its sending window, which opens at 2026-11-21 14:00:00 UTC (in 2 h), and is sent once.",
        "The retry-worker puts it into the queue, and it is sent if its window is still open then.",
        ("waits-window", "queued-in-window"),
    ),
    (
        PushStatus::Scheduled,
        0,
        |it| it.push.next_attempt_at = Some(now() - TimeDelta::seconds(2)),
        "Its sending window is open; it waits to be put into the queue.",
        "The retry-worker puts it into the queue within seconds, as soon as there is room.",
        ("window-open", "queued-soon"),
    ),
    (
        PushStatus::Pending,
        0,
        |_| {},
        "Waits for room in the queue.",
        "The retry-worker puts it into the queue as soon as there is room, the oldest first.",
        ("waits-room", "queued"),
    ),
    (
        PushStatus::Pending,
        0,
        |it| {
            it.ahead = Some(Ahead {
                pushes: 12_161,
                are_all: true,
            })
        },
        "Waits for room in the queue; 12,161 pushes are before it, which takes at least 48 s.",
        "The retry-worker puts it into the queue as soon as there is room, the oldest first.",
        ("waits-room", "queued"),
    ),
    (
        PushStatus::InMemory,
        0,
        |it| {
            it.push.leased_until = Some(now() + TimeDelta::minutes(1));
            it.ahead = Some(Ahead {
                pushes: 100_000,
                are_all: false,
            });
        },
        "Is in the queue, since 2026-11-21 11:59:00 UTC (1 min ago); more than 100,000 pushes are before it, which takes more than 6 min 40 s.",
        "The dispatcher that leads sends it when its turn comes.",
        ("in-queue", "sent-in-turn"),
    ),
    (
        PushStatus::Pending,
        0,
        |it| it.push.cron_expression = Some("0 0 13 * * ?".to_owned()),
        "Waits for room in the queue.",
        "The retry-worker puts it into the queue as soon as there is room, the oldest first. Its sending window opens at 2026-11-21 13:00:00 UTC (in 1 h).",
        ("waits-room", "queued"),
    ),
    (
        PushStatus::Pending,
        2,
        |_| {},
        "Waits for room in the queue, to be sent again: attempt 2 failed: Swrve answered 503.",
        "The retry-worker puts it into the queue as soon as there is room, the oldest first.",
        ("waits-room-again", "queued"),
    ),
    (
        PushStatus::Pending,
        5,
        |it| (it.push.reason, it.push.replayed_after) = (Some(PushReason::Replayed), 5),
        "It was replayed and waits for room in the queue.",
        "The retry-worker puts it into the queue as soon as there is room, the oldest first.",
        ("replayed", "queued"),
    ),
    (
        PushStatus::InMemory,
        0,
        |it| it.push.leased_until = Some(now() + TimeDelta::minutes(1)),
        "Is in the queue, since 2026-11-21 11:59:00 UTC (1 min ago).",
        "The dispatcher that leads sends it when its turn comes.",
        ("in-queue", "sent-in-turn"),
    ),
    (
        PushStatus::InMemory,
        0,
        |it| it.push.leased_until = Some(now() - TimeDelta::minutes(1)),
        "Was in the queue and is overdue since 2026-11-21 11:59:00 UTC (1 min ago): its message is lost.",
        "A retry-worker rescues it: it is put into the queue again.",
        ("message-lost", "message-rescued"),
    ),
    (
        PushStatus::InMemory,
        1,
        |it| (it.push.claimed, it.push.leased_until) = (true, Some(now() + TimeDelta::minutes(1))),
        "Is being sent: attempt 1.",
        "Swrve's answer decides.",
        ("sending", "answer-decides"),
    ),
    (
        PushStatus::InMemory,
        1,
        |it| (it.push.claimed, it.push.leased_until) = (true, Some(now() - TimeDelta::minutes(1))),
        "The outcome of attempt 1 is overdue since 2026-11-21 11:59:00 UTC (1 min ago): its sender has died, or does not reach the database.",
        "A retry-worker rescues it: it is sent again if attempts are left.",
        ("outcome-overdue", "attempt-rescued"),
    ),
    (
        PushStatus::Retry,
        2,
        |it| it.push.next_attempt_at = Some(now() + TimeDelta::seconds(30)),
        "Is tried again at 2026-11-21 12:00:30 UTC (in 30 s): attempt 2 of 5 failed: Swrve answered 503.",
        "The retry-worker puts it into the queue again.",
        ("retry", "queued-again"),
    ),
    (
        PushStatus::Retry,
        6,
        |it| (it.push.replayed_after, it.push.next_attempt_at) = (5, Some(now())),
        "Is due to be tried again: attempt 1 of 5 failed: Swrve answered 503.",
        "The retry-worker puts it into the queue as soon as there is room.",
        ("retry-due", "queued-again"),
    ),
    (
        PushStatus::Sent,
        1,
        |it| it.push.finished_at = Some(now() - TimeDelta::minutes(1)),
        "Swrve accepted it at attempt 1.",
        "Nothing: it is done.",
        ("delivered", "done"),
    ),
    (
        PushStatus::Failed,
        1,
        |it| {
            it.push.history[0].error_type = Some(ErrorType::MessagePrototypeKey);
            it.dead_letters = vec![dead_letter(Some(Uuid::from_u128(1)), None)];
        },
        "Will not be sent: attempt 1 failed: no Swrve push key is configured for its platform and prototype.",
        "Nothing, until an operator replays or discards its dead letter.",
        ("failed", "dead-letter"),
    ),
    (
        PushStatus::Failed,
        1,
        |it| {
            it.push.history[0].error_type = Some(ErrorType::MessagePrototypeKey);
            it.push.message_prototype_key = None;
        },
        "Will not be sent: attempt 1 failed: it names no message prototype, by which its Swrve push key would be found.",
        "Nothing: it will not be sent.",
        ("failed", "not-sent"),
    ),
    (
        PushStatus::GivenUp,
        5,
        |_| {},
        "Given up: the last of 5 attempts failed: Swrve answered 503.",
        "Nothing: it will not be sent.",
        ("given-up", "not-sent"),
    ),
    (
        PushStatus::GivenUp,
        0,
        |it| (it.push.reason, it.acts) = (Some(PushReason::Cancelled), vec![act("push.cancel")]),
        "Was cancelled by ann (1), 2 min ago, with the note \"wrong text\".",
        "Nothing: it will not be sent.",
        ("cancelled", "not-sent"),
    ),
    (
        PushStatus::GivenUp,
        1,
        |it| {
            let mut letter = dead_letter(Some(Uuid::from_u128(1)), None);
            letter.fingerprint = "recovery/possibly-sent/retry".to_owned();
            it.dead_letters = vec![letter];
        },
        "May have been sent: the database was restored to a moment at which it had not ended.",
        "Nothing, until an operator replays or discards its dead letter.",
        ("possibly-sent", "dead-letter"),
    ),
    (
        PushStatus::GivenUp,
        1,
        |it| {
            let mut letter = dead_letter(Some(Uuid::from_u128(1)), None);
            letter.fingerprint = "recovery/possibly-sent/retry".to_owned();
            letter.state = DeadLetterState::Discarded;
            it.dead_letters = vec![letter];
        },
        "May have been sent: the database was restored to a moment at which it had not ended.",
        "Nothing: it will not be sent.",
        ("possibly-sent", "not-sent"),
    ),
];

#[test]
fn every_state_of_a_push_has_its_story() {
    for (status, attempts, shape, headline, next, codes) in PUSHES {
        let mut history = push(*status, *attempts);
        shape(&mut history);
        let prototype = history.push.message_prototype_key.as_deref();
        let prototype = prototype.map_or("without a prototype".to_owned(), |key| {
            format!("with the prototype {key}")
        });
        let story = crate::push(&history, &context());
        assert_eq!(
            (story.headline.as_str(), story.next.text.as_str()),
            (*headline, *next)
        );
        assert_eq!((story.headline_code, story.next.code), *codes, "{headline}");
        assert!(
            story.story[0]
                .text
                .starts_with(&format!("Accepted for IOS {prototype}")),
            "{story:?}"
        );
        assert!(story.story.is_sorted_by_key(|line| line.at), "{story:?}");
        assert_eq!(story.state, status.as_str());
    }
}

#[test]
fn a_paused_lane_explains_every_push_that_waits_and_says_how_to_go_on() {
    for status in [
        PushStatus::Scheduled,
        PushStatus::Pending,
        PushStatus::InMemory,
        PushStatus::Retry,
    ] {
        let story = crate::push(&push(status, 0), &paused("lane", "push"));
        assert_eq!(
            story.headline,
            "Is held back: the lane push is paused by ann (1) since 2026-11-21 11:30:00 UTC: incident 17."
        );
        assert_eq!(story.commands[0], "postrider resume lane push");
        assert_eq!((story.headline_code, story.next.code), ("paused", "resumed"));
        assert_eq!(story.headline_params["by"], "ann (1)");
        assert_eq!(
            (&story.next.params["scope"], &story.next.params["key"]),
            (&json!("lane"), &json!("push"))
        );
    }
}

#[test]
fn what_happened_to_a_push_has_a_code_and_what_it_names() {
    let mut history = push(PushStatus::Retry, 1);
    history.push.history[0].response_status = Some(500);
    let story = crate::push(&history, &context());
    let codes: Vec<_> = story.story.iter().map(|line| line.code).collect();
    assert_eq!(codes, ["accepted", "attempt-failed"]);
    assert_eq!(story.headline_params["errorType"], "SWRVE");
    assert_eq!(story.headline_params["status"], 500);
    let params = &story.story[1].params;
    for (name, value) in [
        ("errorType", json!("SWRVE")),
        ("status", json!(500)),
        ("swrveErrorCode", json!(503)),
        ("attempt", json!(1)),
    ] {
        assert_eq!(params[name], value, "{name}");
    }
    let told = "Attempt 1 failed after 31 ms: Swrve answered 500 Internal Server Error, code 503.";
    assert_eq!(story.story[1].text, told);
}

#[test]
fn a_push_of_an_expression_that_repeats_is_said_to_be_sent_once_and_when() {
    let mut history = push(PushStatus::Scheduled, 0);
    history.push.cron_expression = Some("0 0 9 ? * MON-FRI".to_owned());
    history.push.next_attempt_at = Some(now() + TimeDelta::hours(45));
    let story = crate::push(&history, &context());
    assert_eq!(
        story.story[0].text,
        "Accepted for IOS with the prototype Hello, to be sent once, at the first time of `0 0 9 ? * MON-FRI` (UTC) that it gets to: \
         2026-11-23 09:00:00 UTC."
    );
    assert!(story.headline.ends_with(", and is sent once."), "{story:?}");
}

#[test]
fn a_push_that_began_to_wait_during_a_pause_was_not_short_of_room() {
    let mut context = paused("lane", "push");
    let told = |context: &Context| {
        let story = crate::push(&push(PushStatus::Pending, 0), context);
        story.story.last().unwrap().text.clone()
    };
    assert_eq!(told(&context), "Was held back: the lane was paused.");
    context.pauses[0].paused_at = now();
    assert_eq!(
        told(&context),
        "Found no room in the queue and began to wait for it."
    );
}

#[test]
fn an_outage_of_swrve_explains_every_push_that_waits_for_it() {
    let hold = store::push::HoldView {
        class: store::push::SWRVE.to_owned(),
        since: now() - TimeDelta::minutes(30),
        probes: 1_799,
        probed_at: Some(now()),
        last_answer: "503 Service Unavailable".to_owned(),
        answered_at: None,
    };
    let held = |hold| Context {
        holds: vec![hold],
        ..context()
    };
    for status in [PushStatus::Pending, PushStatus::InMemory, PushStatus::Retry] {
        let story = crate::push(&push(status, 0), &held(hold.clone()));
        assert_eq!(
            story.headline,
            "Is held back: Swrve is out of order since 2026-11-21 11:30:00 UTC (30 min ago). 1,799 probes have failed; its last \
             answer was: 503 Service Unavailable."
        );
        assert!(story.next.text.starts_with("It is sent by itself"), "{story:?}");
        assert_eq!((story.headline_code, story.next.code), ("held", "released"));
        let mut due_later = push(status, 0);
        due_later.push.next_attempt_at = Some(now() + TimeDelta::minutes(1));
        let story = crate::push(&due_later, &held(hold.clone()));
        assert!(
            !format!("{:?}", story.commands).contains("retry-now"),
            "{story:?}"
        );
        let mut both = held(hold.clone());
        both.pauses = paused("lane", "push").pauses;
        both.pauses[0].until = Some(now() + TimeDelta::minutes(10));
        let story = crate::push(&push(status, 0), &both);
        assert_eq!((story.headline_code, story.next.at), ("paused", None));
        assert!(
            story.next.text.contains("Swrve is out of order as well"),
            "{story:?}"
        );
        let over = store::push::HoldView {
            answered_at: Some(now()),
            ..hold.clone()
        };
        let story = crate::push(&push(status, 0), &held(over));
        assert!(!story.headline.starts_with("Is held back"), "{story:?}");
    }
    // The one that is tried meanwhile.
    let mut probe = push(PushStatus::InMemory, 2);
    (probe.push.claimed, probe.push.leased_until) = (true, Some(now() + TimeDelta::minutes(1)));
    let story = crate::push(&probe, &held(hold));
    let headline = "Is being sent as a probe: Swrve is out of order, and the lane held, since 2026-11-21 11:30:00 UTC (30 min ago).";
    assert_eq!(story.headline, headline);
    assert_eq!((story.headline_code, story.next.code), ("probe", "probe-decides"));
    assert!(story.next.text.ends_with("no attempt is used up."), "{story:?}");
}

#[test]
fn attempts_are_told_with_outcome_and_time() {
    let mut history = push(PushStatus::Sent, 3);
    history.push.finished_at = Some(now());
    history.push.history[0].error_type = Some(ErrorType::Other);
    history.push.history[0].other_error = Some("the lease ran out before an outcome was recorded".to_owned());
    history.push.history[1].swrve_error_code = None;
    history.push.history[1].swrve_error_message = Some("the connection was refused".to_owned());
    history.push.history[2].status = AttemptStatus::Ok;
    history.push.history[2].error_type = None;
    history.push.history[2].response_status = Some(202);
    let told: Vec<String> = crate::push(&history, &context())
        .story
        .into_iter()
        .map(|line| line.text)
        .collect();
    assert_eq!(
        told[1],
        "Attempt 1 began, and its outcome was never recorded; it was rescued and may have been sent."
    );
    assert_eq!(
        told[2],
        "Attempt 2 failed after 31 ms: Swrve gave no answer (the connection was refused)."
    );
    assert_eq!(told[3], "Attempt 3: Swrve accepted it with 202 after 31 ms.");
}
