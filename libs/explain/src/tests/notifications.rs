//! Every state of a notification, and the story that is told of it.

use chrono::TimeDelta;
use domain::notification::{NotificationStatus, OutageClass};
use domain::push::AttemptStatus;
use domain::reason::{NotificationReason, StateReason};
use domain::subscription::SubscriptionState;
use store::timeline::NotificationTimeline;
use store::{DeadLetterState, DeadLetterView};
use uuid::Uuid;

use super::{Codes, act, context, dead_letter, notification, now, paused};
use crate::Context;

#[test]
fn an_outage_explains_every_notification_that_waits_for_it() {
    let hold = store::push::HoldView {
        class: "DNS".to_owned(),
        since: now() - TimeDelta::minutes(30),
        probes: 1_799,
        probed_at: Some(now()),
        last_answer: "the name servers did not answer".to_owned(),
        answered_at: None,
    };
    let held = Context {
        holds: vec![hold],
        ..context()
    };
    for status in [NotificationStatus::Pending, NotificationStatus::Retry] {
        let mut it = notification(status, 0);
        let story = crate::notification(&it, &held);
        assert!(
            !story.headline.contains("endpoints fail"),
            "its own answers: {story:?}"
        );
        it.subscription.withheld_for = Some(OutageClass::Dns);
        let story = crate::notification(&it, &held);
        assert_eq!(
            story.headline,
            "Is held back: most endpoints fail in the class DNS since 2026-11-21 11:30:00 UTC (30 min ago), its own among them. \
             1,799 probes have been sent; the last answer was: the name servers did not answer."
        );
        assert!(story.next.text.starts_with("It is sent by itself"), "{story:?}");
        assert_eq!((story.headline_code, story.next.code), ("withheld", "released"));
    }
}

/// A case of the reseller lane: what makes it, what the headline says, what is next, and the codes of both.
type DeliveryCase = (
    NotificationStatus,
    u32,
    fn(&mut NotificationTimeline),
    &'static str,
    &'static str,
    Codes,
);

const DELIVERIES: &[DeliveryCase] = &[
    (
        NotificationStatus::Scheduled,
        0,
        |it| {
            it.reason = Some(NotificationReason::Quota);
            it.next_attempt_at = Some(now() + TimeDelta::hours(13));
            (it.subscription.budget_day, it.subscription.budget_used) =
                (Some(now().date_naive()), Some(10_000));
        },
        "Waits in line until tomorrow: quota 10,000 of 10,000 used today. By the quota as it is now, its turn comes at 2026-11-22 01:00:00 UTC (in 13 h).",
        "The retry-worker puts it into the queue.",
        ("quota", "queued"),
    ),
    // The quota was lowered since.
    (
        NotificationStatus::Scheduled,
        0,
        |it| {
            it.reason = Some(NotificationReason::Quota);
            it.next_attempt_at = Some(now() + TimeDelta::hours(13));
            it.subscription.daily_quota = Some(2);
            (it.subscription.budget_day, it.subscription.budget_used) = (Some(now().date_naive()), Some(12));
        },
        "Waits in line until tomorrow: quota 12 of 2 used today. By the quota as it is now, its turn comes at 2026-11-22 01:00:00 UTC (in 13 h).",
        "The retry-worker puts it into the queue.",
        ("quota", "queued"),
    ),
    (
        NotificationStatus::Scheduled,
        0,
        |it| {
            it.reason = Some(NotificationReason::Rate);
            it.subscription.requests_per_second = Some(5);
            it.next_attempt_at = Some(now() + TimeDelta::seconds(20));
        },
        "Waits in line for its subscription's requests per second, 5: its turn comes at 2026-11-21 12:00:20 UTC (in 20 s).",
        "The retry-worker puts it into the queue.",
        ("rate", "queued"),
    ),
    (
        NotificationStatus::Pending,
        0,
        |_| {},
        "Waits for room in the queue.",
        "The retry-worker puts it into the queue in the turn of its subscription.",
        ("waits-room", "queued-in-turn"),
    ),
    (
        NotificationStatus::Pending,
        0,
        |it| it.reason = Some(NotificationReason::Busy),
        "Waits because as many notifications of its subscription are being sent as may be at once.",
        "The retry-worker puts it into the queue in the turn of its subscription.",
        ("busy", "queued-in-turn"),
    ),
    (
        NotificationStatus::Pending,
        0,
        |it| it.subscription.paused_at = Some(now() - TimeDelta::hours(3)),
        "Is held back: its reseller has paused the subscription, 2026-11-21 09:00:00 UTC (3 h ago).",
        "It goes on when the reseller resumes the subscription, unless it is too old by then.",
        ("paused-by-reseller", "resumed-by-reseller"),
    ),
    (
        NotificationStatus::Pending,
        0,
        |it| it.subscription.state = SubscriptionState::PendingVerification,
        "Is held back: the endpoint of its subscription is not verified.",
        "It goes on when the endpoint has answered its challenge.",
        ("unverified", "verified"),
    ),
    (
        NotificationStatus::Pending,
        0,
        |it| {
            (it.subscription.state, it.subscription.reason) =
                (SubscriptionState::Deactivated, StateReason::Failing)
        },
        "Will not be sent: its subscription is deactivated (FAILING).",
        "A retry-worker gives it up within a minute. A replay sends it when the subscription is active again.",
        ("deactivated", "given-up"),
    ),
    (
        NotificationStatus::InMemory,
        0,
        |it| it.leased_until = Some(now() + TimeDelta::minutes(1)),
        "Is in the queue, since 2026-11-21 11:59:00 UTC (1 min ago).",
        "It is sent in the turn of its subscription.",
        ("in-queue", "sent-in-turn"),
    ),
    (
        NotificationStatus::InMemory,
        0,
        |it| it.leased_until = Some(now() - TimeDelta::minutes(1)),
        "Was in the queue and is overdue since 2026-11-21 11:59:00 UTC (1 min ago): its message is lost.",
        "A retry-worker rescues it: it is put into the queue again.",
        ("message-lost", "message-rescued"),
    ),
    (
        NotificationStatus::InMemory,
        1,
        |it| (it.claimed, it.leased_until) = (true, Some(now() + TimeDelta::minutes(1))),
        "Is being sent: attempt 1.",
        "The endpoint's answer decides.",
        ("sending", "answer-decides"),
    ),
    (
        NotificationStatus::InMemory,
        1,
        |it| (it.claimed, it.leased_until) = (true, Some(now() - TimeDelta::minutes(1))),
        "The outcome of attempt 1 is overdue since 2026-11-21 11:59:00 UTC (1 min ago): its sender has died, or does not reach the database.",
        "A retry-worker rescues it: it is sent again if retries are left.",
        ("outcome-overdue", "attempt-rescued"),
    ),
    (
        NotificationStatus::Retry,
        2,
        |it| it.next_attempt_at = Some(now() + TimeDelta::minutes(4)),
        "Retry 2 of 3 is at 2026-11-21 12:04:00 UTC (in 4 min): attempt 2 failed: the endpoint answered 503.",
        "The retry-worker sends it again.",
        ("retry", "retried"),
    ),
    (
        NotificationStatus::Retry,
        5,
        |it| (it.resent_after, it.next_attempt_at) = (4, Some(now())),
        "Retry 1 of 3 is due: attempt 5 failed: the endpoint answered 503.",
        "The retry-worker sends it again in the turn of its subscription.",
        ("retry-due", "retried-in-turn"),
    ),
    (
        NotificationStatus::Retry,
        4,
        |it| (it.resent_after, it.resent_at, it.next_attempt_at) = (4, Some(now()), Some(now())),
        "It was asked to be sent again, and is due.",
        "The retry-worker puts it into the queue within seconds.",
        ("resent", "queued-soon"),
    ),
    (
        NotificationStatus::Sent,
        1,
        |it| it.finished_at = Some(now() - TimeDelta::minutes(1)),
        "The endpoint accepted it at attempt 1.",
        "Nothing: it is done.",
        ("delivered", "done"),
    ),
    (
        NotificationStatus::Failed,
        1,
        |it| it.dead_letters = vec![dead_letter(None, Some(Uuid::from_u128(2)))],
        "Will not be sent again: attempt 1 failed: the endpoint answered 503.",
        "Nothing, until an operator replays or discards its dead letter, or its reseller asks for it.",
        ("failed", "dead-letter"),
    ),
    (
        NotificationStatus::GivenUp,
        4,
        |it| it.reason = "delivery/http/503/json".parse().ok(),
        "Given up: the last of 4 attempts failed: the endpoint answered 503.",
        "Nothing, unless its reseller asks for it again.",
        ("given-up", "resend"),
    ),
    (
        NotificationStatus::GivenUp,
        4,
        |it| (it.reason, it.outage) = ("delivery/http/503/json".parse().ok(), true),
        "Given up: the last of 4 attempts failed: the endpoint answered 503.",
        "Is sent again by itself within minutes after the endpoint has taken another one, three times at most.",
        ("given-up", "after-outage"),
    ),
    (
        NotificationStatus::GivenUp,
        4,
        |it| {
            (it.reason, it.outage) = ("delivery/http/503/json".parse().ok(), true);
            it.subscription.resend_after_outage = Some(false);
        },
        "Given up: the last of 4 attempts failed: the endpoint answered 503.",
        "Nothing, unless its reseller asks for it again.",
        ("given-up", "resend"),
    ),
    (
        NotificationStatus::GivenUp,
        0,
        |it| it.reason = Some(NotificationReason::SubscriptionDeleted),
        "Given up: its subscription was deleted.",
        "Nothing, unless its reseller asks for it again.",
        ("given-up-deleted", "resend"),
    ),
    (
        NotificationStatus::GivenUp,
        0,
        |it| it.reason = Some(NotificationReason::SubscriptionDeactivated),
        "Given up: its subscription was deactivated. A replay of the subscription sends it.",
        "Nothing, unless its reseller asks for it again.",
        ("given-up-deactivated", "resend"),
    ),
    (
        NotificationStatus::GivenUp,
        0,
        |it| it.reason = Some(NotificationReason::Expired),
        "Given up: it had waited for too long.",
        "Nothing, unless its reseller asks for it again.",
        ("given-up-expired", "resend"),
    ),
    (
        NotificationStatus::GivenUp,
        1,
        |it| {
            it.reason = "delivery/possibly-sent".parse().ok();
            it.dead_letters = vec![dead_letter(None, Some(Uuid::from_u128(2)))];
        },
        "May have been sent: the database was restored to a moment at which it had not ended.",
        "Nothing, until an operator replays or discards its dead letter, or its reseller asks for it.",
        ("possibly-sent", "dead-letter"),
    ),
    (
        NotificationStatus::GivenUp,
        1,
        |it| {
            let mut letter = dead_letter(None, Some(Uuid::from_u128(2)));
            letter.state = DeadLetterState::Discarded;
            it.reason = "delivery/possibly-sent".parse().ok();
            it.dead_letters = vec![letter];
        },
        "May have been sent: the database was restored to a moment at which it had not ended.",
        "Nothing, unless its reseller asks for it again.",
        ("possibly-sent", "resend"),
    ),
    (
        NotificationStatus::GivenUp,
        0,
        |it| {
            (it.reason, it.acts) = (
                Some(NotificationReason::Cancelled),
                vec![act("notification.cancel")],
            )
        },
        "Was cancelled by ann (1), 2 min ago, with the note \"wrong text\".",
        "Nothing: what was cancelled is not sent any more.",
        ("cancelled", "not-sent"),
    ),
    (
        NotificationStatus::GivenUp,
        0,
        |it| {
            (it.reason, it.dead_letters) = (Some(NotificationReason::Cancelled), vec![cancelled("has left")])
        },
        "Was cancelled by ann (1), 1 min ago, with the note \"has left\".",
        "Nothing: what was cancelled is not sent any more.",
        ("cancelled", "not-sent"),
    ),
    (
        NotificationStatus::GivenUp,
        0,
        |it| {
            (it.reason, it.dead_letters) = (Some(NotificationReason::Cancelled), vec![cancelled("cancelled")])
        },
        "Was cancelled by ann (1), 1 min ago, without a note.",
        "Nothing: what was cancelled is not sent any more.",
        ("cancelled", "not-sent"),
    ),
];

/// The dead letter of one that was cancelled: the time of the act is before that of the letter.
fn cancelled(note: &str) -> DeadLetterView {
    let mut letter = dead_letter(None, Some(Uuid::from_u128(2)));
    letter.fingerprint = "delivery/cancelled".to_owned();
    letter.state = DeadLetterState::Discarded;
    letter.resolved_at = Some(letter.created_at - TimeDelta::milliseconds(3));
    (letter.resolved_by, letter.note) = (Some("ann (1)".to_owned()), Some(note.to_owned()));
    letter
}

#[test]
fn what_stays_delivered_says_who_cancelled_sending_it_again() {
    let mut history = notification(NotificationStatus::Sent, 2);
    (history.history[0].status, history.history[0].error_type) = (AttemptStatus::Ok, None);
    (history.resent_after, history.resent_at) = (1, Some(now() - TimeDelta::minutes(8)));
    history.finished_at = Some(history.history[0].started_at + TimeDelta::seconds(5));
    history.updated_at = now() - TimeDelta::minutes(2);
    for action in ["notification.cancel", "notification.cancel-many"] {
        history.acts = vec![act(action)];
        let story = crate::notification(&history, &context());
        assert_eq!(story.headline_code, "stays-delivered");
        assert_eq!(
            story.headline,
            "It stays delivered: the endpoint accepted it at attempt 1, 2026-11-21 11:52:05 UTC (7 min 55 s ago). \
             Sending it again was cancelled by ann (1), 2 min ago, with the note \"wrong text\"."
        );
        let told: Vec<_> = story.story.iter().map(|line| line.text.as_str()).collect();
        assert!(
            told.contains(&"Sending it again was cancelled; it stays delivered."),
            "{told:?}"
        );
    }
    // It has waited for too long, or its subscription has ended.
    history.acts.clear();
    let given_up = crate::notification(&history, &context());
    assert!(
        given_up
            .headline
            .contains("It was not sent again after all: it had waited for too long"),
        "{}",
        given_up.headline
    );
    history.history[1].status = AttemptStatus::Ok;
    let again = crate::notification(&history, &context());
    assert_eq!(again.headline, "The endpoint accepted it at attempt 2.");
}

#[test]
fn what_is_cancelled_gets_its_dead_letter_before_that_is_discarded() {
    let mut history = notification(NotificationStatus::GivenUp, 0);
    history.reason = Some(NotificationReason::Cancelled);
    history.dead_letters = vec![cancelled("has left")];
    let story = crate::notification(&history, &context()).story;
    let told: Vec<_> = story.iter().map(|line| line.text.as_str()).collect();
    assert!(
        told[1].starts_with("It got the dead letter")
            && told[2] == "ann (1) discarded the dead letter: has left.",
        "{told:?}"
    );
}

#[test]
fn what_a_replay_has_made_tells_its_own_time_from_that_of_its_event() {
    let mut replayed = notification(NotificationStatus::Pending, 0);
    replayed.accepted_at = Some(now() - TimeDelta::days(2));
    let told = crate::notification(&replayed, &context());
    let times: Vec<_> = told.story.iter().map(|line| line.at).collect();
    assert_eq!(times[..2], [now() - TimeDelta::days(2), replayed.created_at]);
    assert!(
        told.story[0].text.starts_with("Its event was accepted")
            && told.story[1]
                .text
                .starts_with("Replayed: made of the event order-17"),
        "{told:?}"
    );
    let delay = told.delay.expect("ten minutes").text;
    assert!(delay.starts_with("10 min since it was replayed: "), "{delay}");
}

#[test]
fn what_was_made_with_its_event_or_whose_event_is_forgotten_was_not_replayed() {
    for accepted in [Some(now() - TimeDelta::minutes(10)), None] {
        let mut made = notification(NotificationStatus::Pending, 0);
        made.accepted_at = accepted;
        let told = crate::notification(&made, &context());
        assert!(told.story[0].text.starts_with("Made of the event"), "{told:?}");
    }
}

#[test]
fn every_state_of_a_notification_has_its_story() {
    for (status, attempts, shape, headline, next, codes) in DELIVERIES {
        let mut history = notification(*status, *attempts);
        shape(&mut history);
        let story = crate::notification(&history, &context());
        assert_eq!(
            (story.headline.as_str(), story.next.text.as_str()),
            (*headline, *next)
        );
        assert_eq!((story.headline_code, story.next.code), *codes, "{headline}");
        assert!(
            story.story[0]
                .text
                .starts_with("Made of the event order-17 (domain.created"),
            "{story:?}"
        );
        assert!(story.story.is_sorted_by_key(|line| line.at), "{story:?}");
        assert!(!format!("{story:?}").contains("secret"), "{story:?}");
    }
}

#[test]
fn a_pause_has_no_end_that_the_reseller_or_the_quota_outlasts() {
    let mut context = paused("lane", "reseller");
    let (until, turn) = (now() + TimeDelta::hours(2), now() + TimeDelta::hours(13));
    context.pauses[0].until = Some(until);
    let mut waiting = notification(NotificationStatus::Scheduled, 0);
    waiting.next_attempt_at = Some(turn);
    assert_eq!(crate::notification(&waiting, &context).next.at, Some(until));
    waiting.reason = Some(NotificationReason::Quota);
    let story = crate::notification(&waiting, &context);
    assert!(
        story
            .headline
            .contains(": incident 17. Waits in line until tomorrow: quota 10,000 of 10,000 used today."),
        "{}",
        story.headline
    );
    assert_eq!(story.next.at, Some(turn));
    let said = "It is not sent before its turn comes, at 2026-11-22 01:00:00 UTC (in 13 h).";
    assert!(story.next.text.ends_with(said), "{story:?}");
    waiting.subscription.paused_at = Some(now() - TimeDelta::hours(1));
    let story = crate::notification(&waiting, &context);
    assert!(
        story.headline.contains(
            " Its reseller has paused the subscription as well, 2026-11-21 11:00:00 UTC (1 h ago)."
        ),
        "{}",
        story.headline
    );
    let said = "Its reseller has to resume the subscription as well.";
    assert!(
        story.next.at.is_none() && story.next.text.contains(said),
        "{story:?}"
    );
}

#[test]
fn whatever_is_paused_explains_a_notification_that_waits() {
    let subscription = Uuid::from_u128(5).to_string();
    for (scope, key) in [
        ("lane", "reseller"),
        ("reseller", "acme"),
        ("subscription", subscription.as_str()),
    ] {
        let waiting = [
            NotificationStatus::Scheduled,
            NotificationStatus::Pending,
            NotificationStatus::InMemory,
            NotificationStatus::Retry,
        ];
        for status in waiting {
            let story = crate::notification(&notification(status, 0), &paused(scope, key));
            let said = format!("Is held back: the {scope} {key} is paused by ann (1)");
            assert!(story.headline.starts_with(&said), "{}", story.headline);
            assert_eq!(story.commands[0], format!("postrider resume {scope} {key}"));
        }
        let other = crate::notification(
            &notification(NotificationStatus::Pending, 0),
            &paused(scope, "another"),
        );
        assert_eq!(other.headline, "Waits for room in the queue.");
    }
}
