//! Every state of both lanes, and the story that is told of it.

mod delays;
mod events;
mod notifications;
mod pushes;
mod subscriptions;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, TimeZone as _, Utc};
use chrono_tz::Tz;
use domain::notification::{NotificationId, NotificationStatus, RetryPlan, RetryPolicy};
use domain::push::{AttemptStatus, ErrorType, Platform, PushId, PushStatus};
use domain::reason::StateReason;
use domain::subscription::{HeldBack, PausedBy, SubscriptionState};
use store::push::{AttemptView, PushView};
use store::timeline::{NotificationTimeline, PushTimeline, Recipient};
use store::webhook::{DeliveryAttemptView, EventNotification, EventView};
use store::{AuditView, DeadLetterLane, DeadLetterReason, DeadLetterState, DeadLetterView, PauseView};
use uuid::Uuid;

use super::*;

/// The subscription of the things that are told of.
const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000005";

/// The codes of a headline and of what is next.
type Codes = (&'static str, &'static str);

pub(crate) fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap()
}

pub(crate) fn context() -> Context {
    Context {
        now: now(),
        pauses: Vec::new(),
        holds: Vec::new(),
        rules: Rules {
            push_retry: domain::push::RetryPolicy {
                delay: Duration::from_mins(5),
                max_attempts: 5,
            },
            push_pace: Duration::from_millis(4),
            push_zone: Tz::UTC,
            window_grace: Duration::from_secs(60),
            delivery_retry: RetryPolicy {
                max_retries: 3,
                initial_delay: Duration::from_mins(1),
                max_delay: Duration::from_mins(15),
                max_retry_after: Duration::from_hours(1),
            },
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
        pauses: Vec::new(),
        holds: Vec::new(),
    }
}

fn failed_send(number: u32) -> AttemptView {
    AttemptView {
        number,
        status: AttemptStatus::Error,
        started_at: now() - TimeDelta::minutes(9) + TimeDelta::minutes(number.into()),
        millis: Some(31),
        error_type: Some(ErrorType::Swrve),
        response_status: None,
        swrve_error_code: Some(503),
        swrve_error_message: None,
        other_error: None,
    }
}

pub(crate) fn dead_letter(push: Option<Uuid>, notification: Option<Uuid>) -> DeadLetterView {
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

pub(crate) fn act(action: &str) -> AuditView {
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
        accepted_at: Some(now() - TimeDelta::minutes(10)),
        created_at: now() - TimeDelta::minutes(10),
        updated_at: now() - TimeDelta::minutes(1),
        finished_at: None,
        payload_bytes: 100,
        outage: false,
        history: (1..=attempts).map(failed_delivery).collect(),
        dead_letters: Vec::new(),
        acts: Vec::new(),
        pauses: Vec::new(),
        limit_changes: Vec::new(),
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
fn the_waits_before_retries_are_told_in_words() {
    let mut rules = context().rules;
    assert_eq!(rules.retry_waits(RetryPlan::Short), "1 min, 4 min and 15 min");
    assert_eq!(
        rules.retry_waits(RetryPlan::Day),
        "30 s, 2 min, 8 min, 32 min, 2 h 8 min and 3 times 7 h"
    );
    rules.delivery_retry.max_retries = 1;
    assert_eq!(rules.retry_waits(RetryPlan::Short), "1 min");
    rules.delivery_retry.max_retries = 0;
    assert_eq!(rules.retry_waits(RetryPlan::Short), "");
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

/// A lane that is paused for a while, and its reseller and a subscription of it without an end.
fn paused_thrice() -> Context {
    let mut context = paused("lane", "reseller");
    context.pauses[0].until = Some(now() + TimeDelta::minutes(10));
    context.pauses.extend(paused("subscription", SUBSCRIPTION).pauses);
    context.pauses.extend(paused("reseller", "acme").pauses);
    context
}

#[test]
fn all_pauses_that_hold_a_thing_are_named_and_no_end_that_another_outlasts() {
    let mut context = paused_thrice();
    let mut event = unmatched();
    event.notifications = vec![held(PausedBy::Lane)];
    let stories = |context: &Context| {
        [
            super::notification(&notification(NotificationStatus::Pending, 0), context),
            super::event(&event, context),
            subscription(&subscriptions::facts(), context),
        ]
    };
    for story in stories(&context) {
        let said = format!(
            "the lane reseller is paused by ann (1) since 2026-11-21 11:30:00 UTC until 2026-11-21 12:10:00 UTC: incident 17; the \
             reseller acme is paused by ann (1) since 2026-11-21 11:30:00 UTC: incident 17; the subscription {SUBSCRIPTION} is paused"
        );
        assert!(story.headline.contains(&said), "{story:?}");
        assert_eq!(
            story.next.text,
            format!(
                "It goes on when all these pauses have ended: that of the lane reseller by itself at 2026-11-21 12:10:00 UTC, that of \
                 the reseller acme when it is resumed, that of the subscription {SUBSCRIPTION} when it is resumed."
            )
        );
        assert_eq!((story.next.code, story.next.at), ("resumed", None));
        let resume = |what: &str| format!("postrider resume {what}");
        let subscription = format!("subscription {SUBSCRIPTION}");
        assert_eq!(
            story.commands[..3],
            [
                resume("lane reseller"),
                resume("reseller acme"),
                resume(&subscription)
            ]
        );
    }
    let latest = now() + TimeDelta::hours(3);
    for pause in &mut context.pauses[1..] {
        pause.until = Some(latest);
    }
    for story in stories(&context) {
        assert_eq!(story.next.at, Some(latest), "{story:?}");
    }
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
    assert_eq!((story.headline_code, story.next.code), ("open", "resolve"));
    assert_eq!(story.headline_params["stands"], "failed");
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
    assert_eq!((story.headline_code, story.next.code), ("discarded", "done"));

    let mut malformed = dead_letter(None, None);
    malformed.reason = DeadLetterReason::Malformed;
    let story = super::dead_letter(&malformed, &[], None, &context());
    assert_eq!((story.headline_code, story.next.code), ("open", "discard"));
    assert!(
        !story.commands.iter().any(|command| command.contains(" replay ")),
        "{story:?}"
    );
}

#[test]
fn a_dead_letter_tells_once_that_it_was_resolved() {
    for (state, action, said) in [
        (DeadLetterState::Replayed, "dead-letter.replay", "replayed"),
        (DeadLetterState::Discarded, "dead-letter.discard", "discarded"),
    ] {
        let acted = act(action);
        let mut letter = dead_letter(Some(Uuid::from_u128(1)), None);
        letter.created_at = now() - TimeDelta::minutes(3);
        (letter.state, letter.resolved_at) = (state, Some(acted.at));
        (letter.resolved_by, letter.note) = (Some(acted.actor.clone()), acted.note.clone());
        let mut history = push(PushStatus::Failed, 1);
        history.dead_letters = vec![letter.clone()];
        let subject = super::push(&history, &context());
        let story = super::dead_letter(&letter, &[acted], Some(subject), &context());
        let lines = story.story.iter().map(|line| line.text.as_str());
        let told: Vec<_> = lines.filter(|text| text.contains("ann (1)")).collect();
        assert_eq!(told, [format!("ann (1) {said} the dead letter: wrong text.")]);
    }
}
