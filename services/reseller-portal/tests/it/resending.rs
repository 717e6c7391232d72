//! Sending a notification again that has ended.

use chrono::{DateTime, Utc};
use domain::lifecycle::{Attempts, Event, transition};
use domain::notification::{NotificationState, RetryPolicy};
use domain::subscription::SubscriptionState;
use serde_json::{Value, json};
use sqlx::PgPool;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::portal::Portal;

const POLICY: RetryPolicy = RetryPolicy {
    max_retries: 3,
    initial_delay: std::time::Duration::from_secs(30),
    max_delay: std::time::Duration::from_secs(300),
    max_retry_after: std::time::Duration::from_secs(300),
};

/// As `domain::lifecycle::transition` says, in every state.
#[testkit::test]
async fn what_has_ended_is_sent_again_and_what_has_not_is_left_alone(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    for state in NotificationState::ALL {
        let made = NotificationRow::in_state(state, id).make(&portal.pool).await;
        let path = format!("/notifications/{}/resend", made.id);
        let before = row(&portal.pool, made.id.uuid()).await;
        match transition(state, Event::Resend, Attempts::default(), &POLICY.rules()) {
            Ok(next) => {
                let sent = portal.done("POST", &path, 202).await;
                assert_eq!(sent["status"], next.status().as_str());
                assert_eq!(
                    (&sent["reason"], &sent["finishedAt"]),
                    (&json!("RESENT"), &Value::Null)
                );
                let (resent_after, due): (i32, DateTime<Utc>) =
                    sqlx::query_as("SELECT resent_after, next_attempt_at FROM notifications WHERE id = $1")
                        .bind(made.id.uuid())
                        .fetch_one(&portal.pool)
                        .await
                        .unwrap();
                assert_eq!(resent_after, 1, "its retries count from here");
                assert_eq!(due.timestamp_micros(), portal.now().timestamp_micros());
                portal
                    .refused("POST", &path, None, (409, "notification-unfinished"))
                    .await;
            }
            Err(_) => {
                let why = match state {
                    NotificationState::Cancelled => "notification-cancelled",
                    _ => "notification-unfinished",
                };
                portal.refused("POST", &path, None, (409, why)).await;
                assert_eq!(row(&portal.pool, made.id.uuid()).await, before);
            }
        }
    }
}

#[testkit::test]
async fn of_what_waits_in_line_it_is_said_that_it_waits_and_not_that_it_is_due(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    for (state, said) in [
        (
            NotificationState::Scheduled,
            "waits in line, so that it is sent anyhow when its turn comes; its story says",
        ),
        (NotificationState::Pending, "is PENDING and due or being sent"),
    ] {
        let made = NotificationRow::in_state(state, id).make(&portal.pool).await;
        let path = format!("/notifications/{}/resend", made.id);
        let refused = portal
            .refused("POST", &path, None, (409, "notification-unfinished"))
            .await;
        assert!(
            refused["detail"].as_str().unwrap().contains(said),
            "{state:?}: {refused}"
        );
    }
}

async fn row(pool: &PgPool, id: uuid::Uuid) -> String {
    sqlx::query_scalar("SELECT n::text FROM notifications n WHERE n.id = $1")
        .bind(id)
        .fetch_one(pool)
        .await
        .unwrap()
}

#[testkit::test]
async fn nothing_is_sent_again_to_whom_nothing_is_sent(portal: Portal) {
    for state in [
        SubscriptionState::Deactivated,
        SubscriptionState::PendingVerification,
    ] {
        let id = SubscriptionRow::in_state(state).make(&portal.pool).await;
        let made = NotificationRow::in_state(NotificationState::GivenUp, id)
            .make(&portal.pool)
            .await;
        let path = format!("/notifications/{}/resend", made.id);
        portal
            .refused("POST", &path, None, (409, "subscription-state"))
            .await;
    }
    let deleted = SubscriptionRow::active().deleted().make(&portal.pool).await;
    let made = NotificationRow::in_state(NotificationState::Sent, deleted)
        .make(&portal.pool)
        .await;
    let path = format!("/notifications/{}/resend", made.id);
    portal.refused("POST", &path, None, (404, "not-found")).await;
}

#[testkit::test]
async fn a_retry_that_is_ahead_is_made_at_once(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let made = NotificationRow::in_state(NotificationState::Retry, id)
        .due_in(chrono::TimeDelta::hours(8))
        .make(&portal.pool)
        .await;
    let path = format!("/notifications/{}/resend", made.id);
    let sent = portal.done("POST", &path, 202).await;
    let kept = (&sent["status"], &sent["reason"], &sent["attempts"]);
    assert_eq!(
        kept,
        (&json!("RETRY"), &json!("delivery/http/503/json"), &json!(1))
    );
    let due: DateTime<Utc> = sent["nextAttemptAt"].as_str().unwrap().parse().unwrap();
    assert_eq!(due.timestamp_micros(), portal.now().timestamp_micros());
    let resent_after: i32 = sqlx::query_scalar("SELECT resent_after FROM notifications WHERE id = $1")
        .bind(made.id.uuid())
        .fetch_one(&portal.pool)
        .await
        .unwrap();
    assert_eq!(resent_after, 0, "no retry is added");
    portal
        .refused("POST", &path, None, (409, "notification-unfinished"))
        .await;
}

#[testkit::test]
async fn all_retries_of_a_subscription_are_made_at_once(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let other = SubscriptionRow::active().make(&portal.pool).await;
    let retry = async |subscription, state| {
        let row = NotificationRow::in_state(state, subscription).due_in(chrono::TimeDelta::hours(8));
        row.make(&portal.pool).await.id.uuid()
    };
    let first = retry(id, NotificationState::Retry).await;
    let second = retry(id, NotificationState::Retry).await;
    let in_line = retry(id, NotificationState::Scheduled).await;
    let of_other = retry(other, NotificationState::Retry).await;
    let path = format!("/subscriptions/{id}/retry-now");
    for retries in [2, 0] {
        let tried = portal.done("POST", &path, 200).await;
        assert_eq!(
            tried,
            json!({"retries": retries, "more": false, "pausedBy": null})
        );
    }
    let is_due = async |id: uuid::Uuid| -> bool {
        let due: DateTime<Utc> =
            sqlx::query_scalar("SELECT next_attempt_at FROM notifications WHERE id = $1")
                .bind(id)
                .fetch_one(&portal.pool)
                .await
                .unwrap();
        due <= portal.now()
    };
    for (id, due) in [(first, true), (second, true), (in_line, false), (of_other, false)] {
        assert_eq!(is_due(id).await, due, "{id}");
    }
    let activity = portal.see("/activity?action=subscription.retry-now").await;
    assert_eq!(activity["items"].as_array().unwrap().len(), 1, "{activity}");
    let entry = &activity["items"][0];
    assert_eq!(
        (&entry["by"], &entry["subscriptionId"], &entry["details"]),
        (&json!("YOU"), &json!(id), &json!({"retries": 2}))
    );

    portal
        .done("POST", &format!("/subscriptions/{other}/pause"), 200)
        .await;
    let path = format!("/subscriptions/{other}/retry-now");
    let tried = portal.done("POST", &path, 200).await;
    assert_eq!(
        tried,
        json!({"retries": 1, "more": false, "pausedBy": "RESELLER"})
    );
    portal
        .done("POST", &format!("/subscriptions/{other}/deactivate"), 200)
        .await;
    portal
        .refused("POST", &path, None, (409, "subscription-state"))
        .await;
}

#[testkit::test]
async fn what_waits_for_a_pause_says_so_when_it_is_to_be_sent_again(portal: Portal) {
    let id = SubscriptionRow::active().paused().make(&portal.pool).await;
    let made = NotificationRow::in_state(NotificationState::Pending, id)
        .make(&portal.pool)
        .await;
    let path = format!("/notifications/{}/resend", made.id);
    let refused = portal
        .refused("POST", &path, None, (409, "notification-unfinished"))
        .await;
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("you have paused its subscription"), "{detail}");
}

#[testkit::test]
async fn it_is_sent_again_once_however_many_ask(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let made = NotificationRow::in_state(NotificationState::Failed, id)
        .make(&portal.pool)
        .await;
    let path = format!("/notifications/{}/resend", made.id);
    let asking = (0..6).map(|_| portal.call("POST", &path).send());
    let answers = futures::future::join_all(asking).await;
    let done = answers
        .into_iter()
        .filter(|answer| answer.as_ref().unwrap().status() == 202);
    assert_eq!(done.count(), 1);
}

#[testkit::test]
async fn what_a_reseller_has_sent_is_in_the_audit_log_once(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let made = NotificationRow::in_state(NotificationState::Failed, id)
        .make(&portal.pool)
        .await;
    let resend = format!("/notifications/{}/resend", made.id);
    portal.done("POST", &resend, 202).await;
    portal
        .refused("POST", &resend, None, (409, "notification-unfinished"))
        .await;
    let test = portal
        .done("POST", &format!("/subscriptions/{id}/test"), 202)
        .await;
    let replays = format!("/subscriptions/{id}/replays");
    let since = portal.now() - chrono::TimeDelta::days(2);
    let replay = portal.sent("POST", &replays, &json!({"since": since}), 202).await;
    portal
        .refused(
            "POST",
            &replays,
            Some(&json!({"since": since})),
            (409, "replay-running"),
        )
        .await;
    let replay = replay["id"].as_str().unwrap();
    for _ in 0..2 {
        portal.done("DELETE", &format!("{replays}/{replay}"), 204).await;
    }
    let log: Vec<(String, String, Value)> =
        sqlx::query_as("SELECT action, subject, details FROM audit_log ORDER BY id")
            .fetch_all(&portal.pool)
            .await
            .unwrap();
    let subscription = format!("subscription/{id}");
    let entry = |action: &str, subject: &str, details| (action.to_owned(), subject.to_owned(), details);
    assert_eq!(
        log,
        [
            entry(
                "notification.resend",
                &format!("notification/{}", made.id),
                json!({"status": "FAILED"})
            ),
            entry(
                "subscription.test",
                &subscription,
                json!({"notification": test["notificationId"]})
            ),
            entry(
                "replay.create",
                &subscription,
                json!({"replay": replay, "since": since, "until": portal.now()})
            ),
            entry("replay.cancel", &subscription, json!({"replay": replay})),
        ]
    );
}
