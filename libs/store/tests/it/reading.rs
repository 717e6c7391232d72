//! Looking: one push, one notification, and how far behind the lane is.

use chrono::{SubsecRound, TimeDelta};
use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationState;
use domain::push::{PushId, PushState};
use domain::reason::PushReason;
use sqlx::PgPool;
use store::{Backlog, Store};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;

#[testkit::database_test]
async fn a_push_that_was_never_stored_is_not_found(pool: PgPool) {
    let store = Store::from_pool(pool);
    assert!(
        store
            .find_push(PushId::at(SystemClock.now()))
            .await
            .unwrap()
            .is_none()
    );
}

#[testkit::database_test]
async fn a_push_in_any_state_is_shown_with_its_attempts_in_order(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for state in PushState::ALL {
        let made = PushRow::in_state(state).attempts(3).make(&pool).await;
        let push = store.find_push(made.id).await.unwrap().unwrap();
        assert_eq!(
            PushState::of(
                push.status,
                push.claimed,
                push.reason == Some(PushReason::Cancelled)
            ),
            state
        );
        let numbers: Vec<u32> = push.history.iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers, [1, 2, 3], "{state:?}");
        let waits = matches!(state, PushState::Scheduled | PushState::Retry);
        assert_eq!(push.next_attempt_at.is_some(), waits, "{state:?}");
        assert_eq!(
            push.leased_until.is_some(),
            matches!(state, PushState::Queued | PushState::Sending),
            "{state:?}"
        );
        assert_eq!(
            push.finished_at.is_some(),
            state.status().is_terminal(),
            "{state:?}"
        );
    }
}

#[testkit::database_test]
async fn the_backlog_names_what_has_waited_longest(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    assert_eq!(store.backlog().await.unwrap(), Backlog::default());

    let now = SystemClock.now().trunc_subsecs(6);
    let oldest = now - TimeDelta::minutes(1);
    for at in [now, oldest] {
        PushRow::in_state(PushState::Pending)
            .created_at(at)
            .make(&pool)
            .await;
    }
    // Of one with a sending window the time when it was accepted tells nothing.
    sqlx::query("UPDATE push_notifications SET cron_expression = NULL")
        .execute(&pool)
        .await
        .unwrap();
    let overdue = PushRow::in_state(PushState::Retry)
        .due_in(TimeDelta::hours(-1))
        .make(&pool)
        .await;
    PushRow::in_state(PushState::Scheduled)
        .due_in(TimeDelta::hours(1))
        .make(&pool)
        .await;
    PushRow::in_state(PushState::Queued)
        .leased_for(TimeDelta::hours(2))
        .make(&pool)
        .await;
    let lost = PushRow::in_state(PushState::Sending)
        .leased_for(TimeDelta::seconds(-5))
        .make(&pool)
        .await;

    let backlog = store.backlog().await.unwrap();
    assert_eq!(backlog.oldest_pending, Some(oldest));
    let (overdue, lost) = (
        store.find_push(overdue.id).await.unwrap().unwrap(),
        store.find_push(lost.id).await.unwrap().unwrap(),
    );
    assert_eq!(backlog.oldest_due, overdue.next_attempt_at);
    assert_eq!(backlog.first_lease_end, lost.leased_until);
}

#[testkit::database_test]
async fn a_notification_is_the_same_with_its_history_as_by_itself(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    for state in NotificationState::ALL {
        let id = NotificationRow::in_state(state, subscription)
            .make(&pool)
            .await
            .id;
        let history = store.notification_timeline(id.uuid()).await.unwrap().unwrap();
        let mut found = store.notification_with_history(&history).await.unwrap().unwrap();
        let mut by_itself = store.find_notification("acme", id).await.unwrap().unwrap();
        // When its turn comes is worked out for each look.
        assert_eq!(
            found.row.next_attempt_at.is_some(),
            by_itself.row.next_attempt_at.is_some()
        );
        (found.row.next_attempt_at, by_itself.row.next_attempt_at) = (None, None);
        assert_eq!(found, by_itself, "{state:?}");
    }
}
