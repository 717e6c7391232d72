//! What is told of an event: of what became of its notifications, and of whom it missed.

use chrono::TimeDelta;
use domain::notification::{NotificationId, NotificationStatus};
use domain::subscription::{HeldBack, Miss, PausedBy, SubscriptionState};
use store::webhook::{EventNotification, MissedSubscription};
use uuid::Uuid;

use super::{context, dead_letter, held, notification, now, paused, unmatched};
use crate::Next;

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
        finished_at: Some(now() - TimeDelta::seconds(58)),
        last: None,
        dead_letter: None,
        outage: false,
        resend_after_outage: None,
    };
    let mut event = unmatched();
    assert_eq!(crate::event(&event, &context()).state, "UNMATCHED");
    event.notifications = vec![one(NotificationStatus::Sent, 1)];
    let story = crate::event(&event, &context());
    assert_eq!(
        (story.state.as_str(), story.headline.as_str()),
        ("DELIVERED", "Its one notification was delivered.")
    );
    assert_eq!((story.headline_code, story.next.code), ("delivered", "done"));
    event.notifications.push(one(NotificationStatus::Failed, 2));
    event.notifications.push(one(NotificationStatus::Pending, 7));
    let story = crate::event(&event, &context());
    assert_eq!(
        story.headline,
        "Of its 3 notifications 1 is delivered, 1 is still to be delivered, and 1 will not be."
    );
    assert_eq!(
        (story.headline_code, story.next.code),
        ("several", "sent-in-turn")
    );
    assert_eq!(story.headline_params["waiting"], 1);
    assert_eq!(story.commands.len(), 2, "{story:?}");
}

#[test]
fn what_was_delivered_late_says_so_and_leads_to_its_own_story() {
    let mut event = unmatched();
    let mut sent = held(PausedBy::Lane);
    (sent.status, sent.attempts) = (NotificationStatus::Sent, 2);
    sent.finished_at = Some(event.created_at + TimeDelta::seconds(9));
    event.notifications = vec![sent];
    let prompt = crate::event(&event, &context());
    assert!(
        prompt.story[1]
            .text
            .ends_with("The endpoint accepted it at attempt 2."),
        "{prompt:?}"
    );
    assert!(prompt.commands.is_empty(), "{prompt:?}");
    event.created_at -= TimeDelta::minutes(5);
    let late = crate::event(&event, &context());
    assert!(
        late.story[1].text.ends_with(
            "The endpoint accepted it at attempt 2, 5 min 9 s after the event was accepted; its own story says what took the time."
        ),
        "{late:?}"
    );
    let explain = format!("postrider explain {}", event.notifications[0].id.uuid());
    assert_eq!(late.commands, [explain]);
}

#[test]
fn what_different_pauses_hold_back_goes_on_one_by_one() {
    let mut event = unmatched();
    let mut other = held(PausedBy::Operator);
    other.subscription_id = Uuid::from_u128(6);
    event.notifications = vec![held(PausedBy::Operator), other];
    let ids = [5, 6].map(|id| Uuid::from_u128(id).to_string());
    let mut context = paused("subscription", &ids[0]);
    context.pauses[0].until = Some(now() + TimeDelta::hours(1));
    context.pauses.extend(paused("subscription", &ids[1]).pauses);
    let story = crate::event(&event, &context);
    assert_eq!(story.next.at, None);
    let said = "It goes on one by one, when what holds each back has ended";
    assert!(story.next.text.starts_with(said), "{story:?}");
    let resumes = ids.map(|id| format!("postrider resume subscription {id}"));
    assert_eq!(story.commands[..2], resumes);
}

#[test]
fn an_event_of_which_nothing_waits_says_what_may_still_become_of_it() {
    let mut event = unmatched();
    let mut failed = held(PausedBy::Lane);
    (failed.status, failed.dead_letter) = (NotificationStatus::Failed, Some(Uuid::from_u128(9)));
    event.notifications = vec![failed.clone()];
    let mut own = notification(NotificationStatus::Failed, 1);
    own.dead_letters = vec![dead_letter(None, Some(Uuid::from_u128(7)))];
    let own = crate::notification(&own, &context());
    let story = crate::event(&event, &context());
    assert_eq!(story.next, own.next);
    assert_eq!(story.commands[1..], own.commands);
    assert!(
        story.commands[0].starts_with("postrider explain "),
        "{:?}",
        story.commands
    );

    failed.outage = true;
    event.notifications.push(failed);
    let story = crate::event(&event, &context());
    let said = &story.next.text;
    assert!(
        said.starts_with("Is sent again by itself within minutes") && said.ends_with("has its own story."),
        "{said}"
    );
    assert_eq!(story.commands.len(), 2, "the story of each has its own");

    for it in &mut event.notifications {
        (it.status, it.dead_letter, it.outage) = (NotificationStatus::Sent, None, false);
    }
    let story = crate::event(&event, &context());
    assert_eq!(story.next.text, "Nothing: it is done.");
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
        let story = crate::event(&event, &paused(scope, key));
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
        let goes_on = format!("It goes on when the {scope} {key} is resumed.");
        let goes_on = Next::some_time("resumed", goes_on).with("scope", scope);
        assert_eq!(story.next, goes_on.with("key", key));
        assert_eq!(story.commands[0], format!("postrider resume {scope} {key}"));
    }
    event.notifications = vec![held(PausedBy::Reseller)];
    let story = crate::event(&event, &context());
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
    let story = crate::event(&event, &context());
    assert_eq!(story.next.at, Some(now() + TimeDelta::seconds(30)));
    assert_eq!(story.next.code, "next-attempt");
    assert_eq!(story.next.params["pausedOnes"], "resumed-by-reseller");
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
    let story = crate::event(&event, &context());
    assert_eq!(story.state, "UNMATCHED");
    let expected = format!(
        "The subscription {} got nothing of it: its filter did not let the type through, and it was deactivated.",
        Uuid::from_u128(5)
    );
    assert_eq!(story.story[1].text, expected);
    event.missed = Some(Vec::new());
    let story = crate::event(&event, &context());
    assert!(
        story.headline.contains("its reseller had no subscription"),
        "{}",
        story.headline
    );
}
