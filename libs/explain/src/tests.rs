//! Every state of both lanes, and the story that is told of it.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, TimeZone as _, Utc};
use chrono_tz::Tz;
use domain::notification::{NotificationId, NotificationStatus, OutageClass, RetryPlan};
use domain::push::{AttemptStatus, ErrorType, Platform, PushId, PushStatus};
use domain::reason::{NotificationReason, PushReason, StateReason};
use domain::subscription::{HeldBack, Miss, PausedBy, SubscriptionState};
use store::push::{Ahead, AttemptView, PushView};
use store::timeline::{NotificationTimeline, PushTimeline, Recipient};
use store::webhook::{DeliveryAttemptView, EventNotification, EventView, MissedSubscription};
use store::{AuditView, DeadLetterLane, DeadLetterReason, DeadLetterState, DeadLetterView, PauseView};
use uuid::Uuid;

use super::*;

pub(crate) fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap()
}

pub(crate) fn context() -> Context {
    Context {
        now: now(),
        pauses: Vec::new(),
        holds: Vec::new(),
        rules: Rules {
            push_attempts: 5,
            push_pace: Duration::from_millis(4),
            push_zone: Tz::UTC,
            window_grace: Duration::from_secs(60),
            delivery_retries: 3,
            delivery_max_age: Duration::from_hours(30 * 24),
            daily_quota: 10_000,
            after_outage: true,
            requests_per_second: None,
            quota_zone: Tz::UTC,
        },
    }
}

pub(crate) fn paused(scope: &str, key: &str) -> Context {
    let pause = PauseView {
        scope: scope.to_owned(),
        key: key.to_owned(),
        reseller: None,
        name: None,
        note: "incident 17".to_owned(),
        paused_by: "ann (1)".to_owned(),
        paused_at: now() - TimeDelta::minutes(30),
        until: None,
        by_reseller: false,
    };
    Context {
        pauses: vec![pause],
        ..context()
    }
}

fn push(status: PushStatus, attempts: u32) -> PushTimeline {
    PushTimeline {
        push: PushView {
            id: PushId::from(Uuid::from_u128(1)),
            status,
            claimed: false,
            platform: Platform::Ios,
            message_prototype_key: Some("Hello".to_owned()),
            cron_expression: None,
            attempts,
            replayed_after: 0,
            reason: None,
            next_attempt_at: None,
            leased_until: None,
            created_at: now() - TimeDelta::minutes(10),
            updated_at: now() - TimeDelta::minutes(1),
            finished_at: None,
            history: (1..=attempts).map(failed_send).collect(),
        },
        ahead: None,
        dead_letters: Vec::new(),
        acts: Vec::new(),
    }
}

fn failed_send(number: u32) -> AttemptView {
    AttemptView {
        number,
        status: AttemptStatus::Error,
        started_at: now() - TimeDelta::minutes(9) + TimeDelta::minutes(number.into()),
        millis: Some(31),
        error_type: Some(ErrorType::Swrve),
        swrve_error_code: Some(503),
        swrve_error_message: None,
        other_error: None,
    }
}

fn dead_letter(push: Option<Uuid>, notification: Option<Uuid>) -> DeadLetterView {
    DeadLetterView {
        id: Uuid::from_u128(9),
        lane: DeadLetterLane::Push,
        reason: DeadLetterReason::Failed,
        fingerprint: "swrve/400".to_owned(),
        detail: "bad push key".to_owned(),
        target: String::new(),
        subscription: None,
        reseller: None,
        event_type: None,
        prototype: None,
        attempts: None,
        error_type: None,
        created_at: now() - TimeDelta::minutes(1),
        state: DeadLetterState::Open,
        resolved_at: None,
        resolved_by: None,
        note: None,
        job: None,
        outcome: None,
        push,
        notification,
    }
}

fn act(action: &str) -> AuditView {
    AuditView {
        id: Uuid::from_u128(4),
        at: now() - TimeDelta::minutes(2),
        actor: "ann (1)".to_owned(),
        action: action.to_owned(),
        subject: "push/1".to_owned(),
        note: Some("wrong text".to_owned()),
        details: serde_json::json!({}),
    }
}

/// A case of the push lane: what makes it, what the headline says, what is next.
type PushCase = (PushStatus, u32, fn(&mut PushTimeline), &'static str, &'static str);

const PUSHES: &[PushCase] = &[
    (
        PushStatus::Scheduled,
        0,
        |it| it.push.next_attempt_at = Some(now() + TimeDelta::hours(2)),
        "Waits for its sending window, which opens at 2026-11-21 14:00:00 UTC (in 2 h).",
        "The retry-worker puts it into the queue, and it is sent if its window is still open then.",
    ),
    (
        PushStatus::Scheduled,
        0,
        |it| it.push.next_attempt_at = Some(now() - TimeDelta::seconds(2)),
        "Its sending window is open; it waits to be put into the queue.",
        "The retry-worker puts it into the queue within seconds, as soon as there is room.",
    ),
    (
        PushStatus::Pending,
        0,
        |_| {},
        "Waits for room in the queue.",
        "The retry-worker puts it into the queue as soon as there is room, the oldest first.",
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
    ),
    (
        PushStatus::Pending,
        0,
        |it| it.push.cron_expression = Some("0 0 13 * * ?".to_owned()),
        "Waits for room in the queue.",
        "The retry-worker puts it into the queue as soon as there is room, the oldest first. Its sending window opens at 2026-11-21 13:00:00 UTC (in 1 h).",
    ),
    (
        PushStatus::Pending,
        2,
        |_| {},
        "Waits for room in the queue, to be sent again: attempt 2 failed: Swrve answered 503.",
        "The retry-worker puts it into the queue as soon as there is room, the oldest first.",
    ),
    (
        PushStatus::Pending,
        5,
        |it| (it.push.reason, it.push.replayed_after) = (Some(PushReason::Replayed), 5),
        "It was replayed and waits for room in the queue.",
        "The retry-worker puts it into the queue as soon as there is room, the oldest first.",
    ),
    (
        PushStatus::InMemory,
        0,
        |it| it.push.leased_until = Some(now() + TimeDelta::minutes(1)),
        "Is in the queue, since 2026-11-21 11:59:00 UTC (1 min ago).",
        "The dispatcher that leads sends it when its turn comes.",
    ),
    (
        PushStatus::InMemory,
        0,
        |it| it.push.leased_until = Some(now() - TimeDelta::minutes(1)),
        "Was in the queue and is overdue since 2026-11-21 11:59:00 UTC (1 min ago): its message is lost.",
        "A retry-worker rescues it: it is put into the queue again.",
    ),
    (
        PushStatus::InMemory,
        1,
        |it| (it.push.claimed, it.push.leased_until) = (true, Some(now() + TimeDelta::minutes(1))),
        "Is being sent: attempt 1.",
        "Swrve's answer decides.",
    ),
    (
        PushStatus::InMemory,
        1,
        |it| (it.push.claimed, it.push.leased_until) = (true, Some(now() - TimeDelta::minutes(1))),
        "The outcome of attempt 1 is overdue since 2026-11-21 11:59:00 UTC (1 min ago): its sender has died, or does not reach the database.",
        "A retry-worker rescues it: it is sent again if attempts are left.",
    ),
    (
        PushStatus::Retry,
        2,
        |it| it.push.next_attempt_at = Some(now() + TimeDelta::seconds(30)),
        "Is tried again at 2026-11-21 12:00:30 UTC (in 30 s): attempt 2 of 5 failed: Swrve answered 503.",
        "The retry-worker puts it into the queue again.",
    ),
    (
        PushStatus::Retry,
        6,
        |it| (it.push.replayed_after, it.push.next_attempt_at) = (5, Some(now())),
        "Is due to be tried again: attempt 1 of 5 failed: Swrve answered 503.",
        "The retry-worker puts it into the queue as soon as there is room.",
    ),
    (
        PushStatus::Sent,
        1,
        |it| it.push.finished_at = Some(now() - TimeDelta::minutes(1)),
        "Swrve accepted it at attempt 1.",
        "Nothing: it is done.",
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
    ),
    (
        PushStatus::GivenUp,
        5,
        |_| {},
        "Given up: the last of 5 attempts failed: Swrve answered 503.",
        "Nothing: it will not be sent.",
    ),
    (
        PushStatus::GivenUp,
        0,
        |it| (it.push.reason, it.acts) = (Some(PushReason::Cancelled), vec![act("push.cancel")]),
        "Was cancelled by ann (1), 2 min ago: wrong text.",
        "Nothing: it will not be sent.",
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
    ),
];

#[test]
fn every_state_of_a_push_has_its_story() {
    for (status, attempts, shape, headline, next) in PUSHES {
        let mut history = push(*status, *attempts);
        shape(&mut history);
        let prototype = history.push.message_prototype_key.as_deref();
        let prototype = prototype.map_or("without a prototype".to_owned(), |key| {
            format!("with the prototype {key}")
        });
        let story = super::push(&history, &context());
        assert_eq!(
            (story.headline.as_str(), story.next.text.as_str()),
            (*headline, *next)
        );
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
        let story = super::push(&push(status, 0), &paused("lane", "push"));
        assert_eq!(
            story.headline,
            "Is held back: the lane push is paused by ann (1) since 2026-11-21 11:30:00 UTC: incident 17."
        );
        assert_eq!(story.commands[0], "postrider resume lane push");
    }
}

#[test]
fn a_push_that_began_to_wait_during_a_pause_was_not_short_of_room() {
    let mut context = paused("lane", "push");
    let told = |context: &Context| {
        let story = super::push(&push(PushStatus::Pending, 0), context);
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
        let story = super::push(&push(status, 0), &held(hold.clone()));
        assert_eq!(
            story.headline,
            "Is held back: Swrve is out of order since 2026-11-21 11:30:00 UTC (30 min ago). 1,799 probes have failed; its last \
             answer was: 503 Service Unavailable."
        );
        assert!(story.next.text.starts_with("It is sent by itself"), "{story:?}");
        let over = store::push::HoldView {
            answered_at: Some(now()),
            ..hold.clone()
        };
        let story = super::push(&push(status, 0), &held(over));
        assert!(!story.headline.starts_with("Is held back"), "{story:?}");
    }
    // The one that is tried meanwhile.
    let mut probe = push(PushStatus::InMemory, 2);
    (probe.push.claimed, probe.push.leased_until) = (true, Some(now() + TimeDelta::minutes(1)));
    let story = super::push(&probe, &held(hold));
    let headline = "Is being sent as a probe: Swrve is out of order, and the lane held, since 2026-11-21 11:30:00 UTC (30 min ago).";
    assert_eq!(story.headline, headline);
    assert!(story.next.text.ends_with("no attempt is used up."), "{story:?}");
}

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
        let story = super::notification(&it, &held);
        assert!(
            !story.headline.contains("endpoints fail"),
            "its own answers: {story:?}"
        );
        it.subscription.withheld_for = Some(OutageClass::Dns);
        let story = super::notification(&it, &held);
        assert_eq!(
            story.headline,
            "Is held back: most endpoints fail in the class DNS since 2026-11-21 11:30:00 UTC (30 min ago), its own among them. \
             1,799 probes have been sent; the last answer was: the name servers did not answer."
        );
        assert!(story.next.text.starts_with("It is sent by itself"), "{story:?}");
    }
}

#[test]
fn attempts_are_told_with_outcome_and_time() {
    let mut history = push(PushStatus::Sent, 3);
    history.push.finished_at = Some(now());
    history.push.history[0].error_type = Some(ErrorType::Other);
    history.push.history[0].other_error = Some("the lease ran out before an outcome was recorded".to_owned());
    history.push.history[1].swrve_error_code = None;
    history.push.history[1].swrve_error_message = Some("connection refused".to_owned());
    history.push.history[2].status = AttemptStatus::Ok;
    history.push.history[2].error_type = None;
    let told: Vec<String> = super::push(&history, &context())
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
        "Attempt 2 failed after 31 ms: Swrve could not be reached (connection refused)."
    );
    assert_eq!(told[3], "Attempt 3: Swrve accepted it after 31 ms.");
}

pub(crate) fn notification(status: NotificationStatus, attempts: u32) -> NotificationTimeline {
    NotificationTimeline {
        id: NotificationId::from(Uuid::from_u128(2)),
        event: Uuid::from_u128(3),
        event_id: Some("order-17".to_owned()),
        event_type: "domain.created".to_owned(),
        reseller: "acme".to_owned(),
        subscription: Recipient {
            id: Uuid::from_u128(5),
            url: "https://acme.example/hook?secret=1".to_owned(),
            state: SubscriptionState::Active,
            reason: StateReason::Verified,
            since: now() - TimeDelta::days(9),
            paused_at: None,
            held_at: None,
            deleted_at: None,
            daily_quota: None,
            requests_per_second: None,
            withheld_for: None,
            resend_after_outage: None,
            retry_plan: RetryPlan::Short,
            budget_day: None,
            budget_used: None,
        },
        status,
        claimed: false,
        reason: None,
        attempts,
        resent_after: 0,
        resent_at: None,
        next_attempt_at: None,
        leased_until: None,
        created_at: now() - TimeDelta::minutes(10),
        updated_at: now() - TimeDelta::minutes(1),
        finished_at: None,
        outage: false,
        history: (1..=attempts).map(failed_delivery).collect(),
        dead_letters: Vec::new(),
        acts: Vec::new(),
    }
}

fn failed_delivery(number: u32) -> DeliveryAttemptView {
    DeliveryAttemptView {
        number,
        status: AttemptStatus::Error,
        started_at: now() - TimeDelta::minutes(9) + TimeDelta::minutes(number.into()),
        millis: Some(5_000),
        url: "https://acme.example/hook?secret=1".to_owned(),
        response_status: Some(503),
        response_body: None,
        error_type: Some("HTTP".to_owned()),
        error: None,
    }
}

/// A case of the reseller lane.
type DeliveryCase = (
    NotificationStatus,
    u32,
    fn(&mut NotificationTimeline),
    &'static str,
    &'static str,
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
    ),
    (
        NotificationStatus::Pending,
        0,
        |_| {},
        "Waits for room in the queue.",
        "The retry-worker puts it into the queue in the turn of its subscription.",
    ),
    (
        NotificationStatus::Pending,
        0,
        |it| it.reason = Some(NotificationReason::Busy),
        "Waits because as many notifications of its subscription are being sent as may be at once.",
        "The retry-worker puts it into the queue in the turn of its subscription.",
    ),
    (
        NotificationStatus::Pending,
        0,
        |it| it.subscription.paused_at = Some(now() - TimeDelta::hours(3)),
        "Is held back: its reseller has paused the subscription, 2026-11-21 09:00:00 UTC (3 h ago).",
        "It goes on when the reseller resumes the subscription, unless it is too old by then.",
    ),
    (
        NotificationStatus::Pending,
        0,
        |it| it.subscription.state = SubscriptionState::PendingVerification,
        "Is held back: the endpoint of its subscription is not verified.",
        "It goes on when the endpoint has answered its challenge.",
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
    ),
    (
        NotificationStatus::InMemory,
        0,
        |it| it.leased_until = Some(now() + TimeDelta::minutes(1)),
        "Is in the queue, since 2026-11-21 11:59:00 UTC (1 min ago).",
        "It is sent in the turn of its subscription.",
    ),
    (
        NotificationStatus::InMemory,
        0,
        |it| it.leased_until = Some(now() - TimeDelta::minutes(1)),
        "Was in the queue and is overdue since 2026-11-21 11:59:00 UTC (1 min ago): its message is lost.",
        "A retry-worker rescues it: it is put into the queue again.",
    ),
    (
        NotificationStatus::InMemory,
        1,
        |it| (it.claimed, it.leased_until) = (true, Some(now() + TimeDelta::minutes(1))),
        "Is being sent: attempt 1.",
        "The endpoint's answer decides.",
    ),
    (
        NotificationStatus::InMemory,
        1,
        |it| (it.claimed, it.leased_until) = (true, Some(now() - TimeDelta::minutes(1))),
        "The outcome of attempt 1 is overdue since 2026-11-21 11:59:00 UTC (1 min ago): its sender has died, or does not reach the database.",
        "A retry-worker rescues it: it is sent again if retries are left.",
    ),
    (
        NotificationStatus::Retry,
        2,
        |it| it.next_attempt_at = Some(now() + TimeDelta::minutes(4)),
        "Retry 2 of 3 is at 2026-11-21 12:04:00 UTC (in 4 min): attempt 2 failed: the endpoint answered 503.",
        "The retry-worker sends it again.",
    ),
    (
        NotificationStatus::Retry,
        5,
        |it| (it.resent_after, it.next_attempt_at) = (4, Some(now())),
        "Retry 1 of 3 is due: attempt 5 failed: the endpoint answered 503.",
        "The retry-worker sends it again in the turn of its subscription.",
    ),
    (
        NotificationStatus::Retry,
        4,
        |it| (it.resent_after, it.resent_at, it.next_attempt_at) = (4, Some(now()), Some(now())),
        "It was asked to be sent again, and is due.",
        "The retry-worker puts it into the queue within seconds.",
    ),
    (
        NotificationStatus::Sent,
        1,
        |it| it.finished_at = Some(now() - TimeDelta::minutes(1)),
        "The endpoint accepted it at attempt 1.",
        "Nothing: it is done.",
    ),
    (
        NotificationStatus::Failed,
        1,
        |it| it.dead_letters = vec![dead_letter(None, Some(Uuid::from_u128(2)))],
        "Will not be sent again: attempt 1 failed: the endpoint answered 503.",
        "Nothing, until an operator replays or discards its dead letter, or its reseller asks for it.",
    ),
    (
        NotificationStatus::GivenUp,
        4,
        |it| it.reason = "delivery/http/503/json".parse().ok(),
        "Given up: the last of 4 attempts failed: the endpoint answered 503.",
        "Nothing, unless its reseller asks for it again.",
    ),
    (
        NotificationStatus::GivenUp,
        4,
        |it| (it.reason, it.outage) = ("delivery/http/503/json".parse().ok(), true),
        "Given up: the last of 4 attempts failed: the endpoint answered 503.",
        "Is sent again by itself within minutes after the endpoint has taken another one, three times at most.",
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
    ),
    (
        NotificationStatus::GivenUp,
        0,
        |it| it.reason = Some(NotificationReason::SubscriptionDeleted),
        "Given up: its subscription was deleted.",
        "Nothing, unless its reseller asks for it again.",
    ),
    (
        NotificationStatus::GivenUp,
        0,
        |it| it.reason = Some(NotificationReason::SubscriptionDeactivated),
        "Given up: its subscription was deactivated. A replay of the subscription sends it.",
        "Nothing, unless its reseller asks for it again.",
    ),
    (
        NotificationStatus::GivenUp,
        0,
        |it| it.reason = Some(NotificationReason::Expired),
        "Given up: it had waited for too long.",
        "Nothing, unless its reseller asks for it again.",
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
        "Was cancelled by ann (1), 2 min ago: wrong text.",
        "Nothing: what was cancelled is not sent any more.",
    ),
];

#[test]
fn every_state_of_a_notification_has_its_story() {
    for (status, attempts, shape, headline, next) in DELIVERIES {
        let mut history = notification(*status, *attempts);
        shape(&mut history);
        let story = super::notification(&history, &context());
        assert_eq!(
            (story.headline.as_str(), story.next.text.as_str()),
            (*headline, *next)
        );
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
            let story = super::notification(&notification(status, 0), &paused(scope, key));
            let said = format!("Is held back: the {scope} {key} is paused by ann (1)");
            assert!(story.headline.starts_with(&said), "{}", story.headline);
            assert_eq!(story.commands[0], format!("postrider resume {scope} {key}"));
        }
        let other = super::notification(
            &notification(NotificationStatus::Pending, 0),
            &paused(scope, "another"),
        );
        assert_eq!(other.headline, "Waits for room in the queue.");
    }
}

/// An event that became nothing.
fn unmatched() -> EventView {
    EventView {
        id: Uuid::from_u128(3),
        event_id: "order-17".to_owned(),
        reseller_id: "acme".to_owned(),
        event_type: "domain.created".to_owned(),
        occurred_at: now(),
        created_at: now() - TimeDelta::minutes(1),
        body_bytes: 120,
        test_of: None,
        notifications: Vec::new(),
        missed: None,
    }
}

#[test]
fn an_event_counts_its_notifications() {
    let one = |status, id| EventNotification {
        id: NotificationId::from(Uuid::from_u128(id)),
        subscription_id: Uuid::from_u128(5),
        url: "https://acme.example/hook?secret=1".to_owned(),
        held_back: HeldBack::default(),
        status,
        claimed: false,
        reason: None,
        attempts: 1,
        next_attempt_at: None,
        leased_until: None,
        updated_at: now(),
        finished_at: Some(now()),
        last: None,
        dead_letter: None,
        outage: false,
        resend_after_outage: None,
    };
    let mut event = unmatched();
    assert_eq!(super::event(&event, &context()).state, "UNMATCHED");
    event.notifications = vec![one(NotificationStatus::Sent, 1)];
    let story = super::event(&event, &context());
    assert_eq!(
        (story.state.as_str(), story.headline.as_str()),
        ("DELIVERED", "Its one notification was delivered.")
    );
    event.notifications.push(one(NotificationStatus::Failed, 2));
    event.notifications.push(one(NotificationStatus::Pending, 7));
    let story = super::event(&event, &context());
    assert_eq!(
        story.headline,
        "Of its 3 notifications 1 is delivered, 1 is still to be delivered, and 1 will not be."
    );
    assert_eq!(story.commands.len(), 2, "{story:?}");
}

#[test]
fn an_event_of_which_nothing_waits_says_what_may_still_become_of_it() {
    let mut event = unmatched();
    let mut failed = held(PausedBy::Lane);
    (failed.status, failed.dead_letter) = (NotificationStatus::Failed, Some(Uuid::from_u128(9)));
    event.notifications = vec![failed.clone()];
    let mut own = notification(NotificationStatus::Failed, 1);
    own.dead_letters = vec![dead_letter(None, Some(Uuid::from_u128(7)))];
    let own = super::notification(&own, &context());
    let story = super::event(&event, &context());
    assert_eq!(story.next, own.next);
    assert_eq!(story.commands[1..], own.commands);
    assert!(
        story.commands[0].starts_with("postrider explain "),
        "{:?}",
        story.commands
    );

    failed.outage = true;
    event.notifications.push(failed);
    let story = super::event(&event, &context());
    let said = &story.next.text;
    assert!(
        said.starts_with("Is sent again by itself within minutes") && said.ends_with("has its own story."),
        "{said}"
    );
    assert_eq!(story.commands.len(), 2, "the story of each has its own");

    for it in &mut event.notifications {
        (it.status, it.dead_letter, it.outage) = (NotificationStatus::Sent, None, false);
    }
    let story = super::event(&event, &context());
    assert_eq!(story.next.text, "Nothing: it is done.");
}

/// A notification of [`unmatched`] that a pause holds back.
fn held(by: PausedBy) -> EventNotification {
    EventNotification {
        id: NotificationId::from(Uuid::from_u128(7)),
        subscription_id: Uuid::from_u128(5),
        url: "https://acme.example/hook?secret=1".to_owned(),
        held_back: HeldBack {
            paused_by: Some(by),
            is_unverified: false,
        },
        status: NotificationStatus::Retry,
        claimed: false,
        reason: None,
        attempts: 1,
        next_attempt_at: Some(now() + TimeDelta::seconds(30)),
        leased_until: None,
        updated_at: now(),
        finished_at: None,
        last: None,
        dead_letter: None,
        outage: false,
        resend_after_outage: None,
    }
}

#[test]
fn a_pause_that_ends_by_itself_says_when_in_every_story() {
    let until = now() + TimeDelta::hours(2);
    let mut context = paused("lane", "push");
    context.pauses.extend(paused("lane", "reseller").pauses);
    for pause in &mut context.pauses {
        pause.until = Some(until);
    }
    let mut event = unmatched();
    event.notifications = vec![held(PausedBy::Lane)];
    for story in [
        super::push(&push(PushStatus::Pending, 0), &context),
        super::notification(&notification(NotificationStatus::Pending, 0), &context),
        super::event(&event, &context),
    ] {
        let said =
            "is paused by ann (1) since 2026-11-21 11:30:00 UTC until 2026-11-21 14:00:00 UTC: incident 17.";
        assert!(story.headline.contains(said), "{story:?}");
        assert_eq!(story.next.at, Some(until));
        let goes_on = "is resumed, or by itself at 2026-11-21 14:00:00 UTC.";
        assert!(story.next.text.ends_with(goes_on), "{story:?}");
    }
}

#[test]
fn an_event_whose_notifications_are_paused_says_whose_pause_it_is_and_what_ends_it() {
    let mut event = unmatched();
    for (by, scope, key) in [
        (PausedBy::Lane, "lane", "reseller"),
        (PausedBy::AllOfReseller, "reseller", "acme"),
        (
            PausedBy::Operator,
            "subscription",
            "00000000-0000-0000-0000-000000000005",
        ),
    ] {
        event.notifications = vec![held(by)];
        let story = super::event(&event, &paused(scope, key));
        let said =
            format!("the {scope} {key} is paused by ann (1) since 2026-11-21 11:30:00 UTC: incident 17.");
        assert_eq!(
            story.headline,
            format!("Its one notification is still to be delivered. It is held back: {said}")
        );
        assert!(
            story
                .story
                .iter()
                .any(|line| line.text.ends_with(&format!("Waits: {said}"))),
            "{story:?}"
        );
        assert_eq!(
            story.next,
            Next::some_time(format!("It goes on when the {scope} {key} is resumed."))
        );
        assert_eq!(story.commands[0], format!("postrider resume {scope} {key}"));
    }
    event.notifications = vec![held(PausedBy::Reseller)];
    let story = super::event(&event, &context());
    assert!(
        story
            .headline
            .ends_with("It is held back: its reseller has paused the subscription."),
        "{story:?}"
    );
    assert!(
        story
            .next
            .text
            .starts_with("It goes on when its reseller resumes"),
        "{story:?}"
    );

    let mut open = held(PausedBy::Reseller);
    (open.held_back.paused_by, open.subscription_id) = (None, Uuid::from_u128(6));
    event.notifications.push(open);
    let story = super::event(&event, &context());
    assert_eq!(story.next.at, Some(now() + TimeDelta::seconds(30)));
    assert!(
        story
            .next
            .text
            .contains("What is paused goes on when its reseller"),
        "{story:?}"
    );
    assert!(!story.headline.contains("held back"), "{story:?}");
}

#[test]
fn an_event_that_became_nothing_names_whom_it_missed_and_why() {
    let mut event = unmatched();
    event.missed = Some(vec![MissedSubscription {
        id: Uuid::from_u128(5),
        miss: Miss {
            state: SubscriptionState::Deactivated,
            filtered: true,
            paused: false,
        },
    }]);
    let story = super::event(&event, &context());
    assert_eq!(story.state, "UNMATCHED");
    let expected = format!(
        "The subscription {} got nothing of it: its filter did not let the type through, and it was deactivated.",
        Uuid::from_u128(5)
    );
    assert_eq!(story.story[1].text, expected);
    event.missed = Some(Vec::new());
    let story = super::event(&event, &context());
    assert!(
        story.headline.contains("its reseller had no subscription"),
        "{}",
        story.headline
    );
}

#[test]
fn a_dead_letter_tells_of_what_it_is_about() {
    let mut history = push(PushStatus::Failed, 1);
    history.dead_letters = vec![dead_letter(Some(Uuid::from_u128(1)), None)];
    let subject = super::push(&history, &context());
    let open = dead_letter(Some(Uuid::from_u128(1)), None);
    let story = super::dead_letter(&open, &[], Some(subject), &context());
    assert!(
        story.headline.starts_with("Waits for an operator since"),
        "{story:?}"
    );
    assert!(
        story.headline.contains("Will not be sent: attempt 1 failed"),
        "{story:?}"
    );
    assert_eq!(
        story
            .story
            .iter()
            .filter(|line| line.text.contains("dead letter"))
            .count(),
        1,
        "{story:?}"
    );
    assert!(story.commands.iter().any(|command| command.contains(" replay ")));

    let mut discarded = open;
    (discarded.state, discarded.resolved_by) = (DeadLetterState::Discarded, Some("ann (1)".to_owned()));
    (discarded.resolved_at, discarded.note) = (Some(now()), Some("test data".to_owned()));
    let story = super::dead_letter(&discarded, &[], None, &context());
    assert!(
        story.headline.ends_with("test data.") && story.headline.contains("discarded by ann (1)"),
        "{story:?}"
    );

    let mut malformed = dead_letter(None, None);
    malformed.reason = DeadLetterReason::Malformed;
    let story = super::dead_letter(&malformed, &[], None, &context());
    assert!(
        !story.commands.iter().any(|command| command.contains(" replay ")),
        "{story:?}"
    );
}
