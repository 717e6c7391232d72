//! The health of endpoints over days, and what their resellers are told of it.

use std::sync::Arc;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::clock::{Clock, ManualClock, SystemClock};
use domain::notification::{ClientErrors, DeliveryOutcome, NotificationState, NotificationStatus};
use domain::subscription::SubscriptionState;
use metrics_exporter_prometheus::PrometheusBuilder;
use store::webhook::{DeliveryCompletion, Resent};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};
use uuid::Uuid;

use crate::post::Post;
use crate::rig::{clock_of_last_week, shows, signs_of_life, start_at, stopped_clock};

/// Makes the subscriptions so old that what is attempted by that clock says something about them.
async fn make_old(it: &Installation) {
    sqlx::query(
        "UPDATE subscriptions SET created_at = created_at - interval '9 days', updated_at = updated_at - interval '9 days',
                                  state_changed_at = state_changed_at - interval '9 days'",
    )
    .execute(&it.pool)
    .await
    .unwrap();
}

/// An attempt to deliver to a subscription, answered with `status`.
async fn attempt(it: &Installation, clock: &ManualClock, subscription: Uuid, status: u16) {
    let row = NotificationRow::in_state(NotificationState::Sending, subscription);
    let made = row.make(&it.pool).await;
    let outcome = DeliveryOutcome::Answered {
        status,
        retry_after: None,
        body: String::new(),
    };
    let completion = DeliveryCompletion {
        id: made.id,
        lease_token: made.lease_token,
        status: if status == 200 {
            NotificationStatus::Sent
        } else {
            NotificationStatus::Failed
        },
        next_attempt_at: None,
        started_at: clock.now(),
        millis: 5,
        classification: outcome.classification(ClientErrors::Usual),
    };
    let completed = it.store.complete_deliveries(&[completion], clock.now()).await;
    assert_eq!(completed.unwrap().len(), 1);
}

async fn state(it: &Installation, id: Uuid) -> (String, DateTime<Utc>) {
    sqlx::query_as("SELECT state, state_changed_at FROM subscriptions WHERE id = $1")
        .bind(id)
        .fetch_one(&it.pool)
        .await
        .unwrap()
}

async fn becomes(it: &Installation, id: Uuid, wanted: SubscriptionState) -> DateTime<Utc> {
    eventually(&format!("the subscription to become {wanted}"), async || {
        let (state, at) = state(it, id).await;
        (state == wanted.as_str()).then_some(at)
    })
    .await
}

/// Waits until the health job has been executed at the present time.
async fn evaluated(it: &Installation) {
    let seen = signs_of_life(&it.pool, "health").await.unwrap_or(0);
    eventually("the health job to be executed", async || {
        signs_of_life(&it.pool, "health")
            .await
            .filter(|signs| *signs > seen + 2)
    })
    .await;
}

async fn subjects(post: &Post, count: usize) -> Vec<String> {
    eventually(&format!("{count} mails to arrive"), async || {
        let subjects = post.subjects();
        (subjects.len() >= count).then_some(subjects)
    })
    .await
}

#[testkit::test]
async fn an_endpoint_that_fails_for_six_days_is_degraded_and_deactivated_to_the_second(mut it: Installation) {
    let post = Post::open().await;
    post.serve(&mut it.config);
    let clock = clock_of_last_week();
    let workers = [
        start_at(&it.config, Arc::new(clock.clone())),
        start_at(&it.config, Arc::new(clock.clone())),
    ];
    let id = SubscriptionRow::active().make(&it.pool).await;
    let well = SubscriptionRow::active().make(&it.pool).await;
    make_old(&it).await;
    let start = (clock.now() + TimeDelta::minutes(1)).trunc_subsecs(0);
    let go_to = |hours: i64, seconds: i64| {
        let at = start + TimeDelta::hours(hours) + TimeDelta::seconds(seconds);
        clock.advance(at - clock.now());
    };
    for hours in (0..48).step_by(6) {
        go_to(hours, 0);
        attempt(&it, &clock, id, 503).await;
        attempt(&it, &clock, well, 200).await;
    }
    go_to(48, -1);
    evaluated(&it).await;
    assert_eq!(state(&it, id).await.0, "ACTIVE");
    go_to(48, 0);
    let changed_at = becomes(&it, id, SubscriptionState::Degraded).await;
    assert_eq!((changed_at - start).num_seconds(), 48 * 3_600);
    subjects(&post, 1).await;
    for hours in (54..120).step_by(6) {
        go_to(hours, 0);
        attempt(&it, &clock, id, 503).await;
    }
    go_to(120, -1);
    evaluated(&it).await;
    assert_eq!(state(&it, id).await.0, "DEGRADED");
    go_to(120, 0);
    let changed_at = becomes(&it, id, SubscriptionState::Deactivated).await;
    assert_eq!((changed_at - start).num_seconds(), 120 * 3_600);
    go_to(144, 0);
    evaluated(&it).await;
    let subjects = subjects(&post, 2).await;
    assert_eq!(
        subjects,
        [
            "[Postrider] acme.example: subscription degraded, deliveries keep failing",
            "[Postrider] acme.example: subscription deactivated after failing for days",
        ]
    );
    assert_eq!(state(&it, well).await.0, "ACTIVE");
    for worker in workers {
        worker.stop().await;
    }
}

#[testkit::test]
async fn a_success_heals_and_the_days_are_counted_again(mut it: Installation) {
    let post = Post::open().await;
    post.serve(&mut it.config);
    let clock = clock_of_last_week();
    let _worker = start_at(&it.config, Arc::new(clock.clone()));
    let id = SubscriptionRow::active().make(&it.pool).await;
    make_old(&it).await;
    clock.advance(TimeDelta::minutes(1));
    for _ in 0..5 {
        attempt(&it, &clock, id, 503).await;
        clock.advance(TimeDelta::hours(12));
    }
    becomes(&it, id, SubscriptionState::Degraded).await;
    subjects(&post, 1).await;
    attempt(&it, &clock, id, 200).await;
    becomes(&it, id, SubscriptionState::Active).await;
    assert_eq!(
        subjects(&post, 2).await[1],
        "[Postrider] acme.example: subscription active again"
    );
    for _ in 0..3 {
        attempt(&it, &clock, id, 503).await;
        clock.advance(TimeDelta::hours(15));
    }
    evaluated(&it).await;
    assert_eq!(
        state(&it, id).await.0,
        "ACTIVE",
        "45 hours since the success are not two days"
    );
    clock.advance(TimeDelta::hours(3));
    becomes(&it, id, SubscriptionState::Degraded).await;
    subjects(&post, 3).await;
}

#[testkit::test]
async fn what_waits_for_a_deactivated_subscription_ends_and_is_counted(it: Installation) {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let metrics = recorder.handle();
    let id = SubscriptionRow::active().make(&it.pool).await;
    for state in [NotificationState::Scheduled, NotificationState::Retry] {
        let row = NotificationRow::in_state(state, id).due_in(TimeDelta::days(1));
        row.make(&it.pool).await;
    }
    // What had been delivered and waits to be sent again stays delivered, and does not count.
    let row = NotificationRow::in_state(NotificationState::Sent, id);
    let delivered = row.make(&it.pool).await;
    let act = testkit::act_of_a_reseller(SystemClock.now());
    let resent = it.store.resend_notification("acme", delivered.id, act).await;
    assert_eq!(resent.unwrap(), Resent::Done);
    sqlx::query("UPDATE subscriptions SET state = 'DEACTIVATED' WHERE id = $1")
        .bind(id)
        .execute(&it.pool)
        .await
        .unwrap();
    let _worker = start_at(&it.config, Arc::new(stopped_clock()));
    eventually("the notifications to end", async || {
        let ended: (i64, i64) = sqlx::query_as(
            "SELECT count(*) FILTER (WHERE status = 'GIVEN_UP' AND reason = 'SUBSCRIPTION_DEACTIVATED'),
                    count(*) FILTER (WHERE status = 'SENT')
             FROM notifications",
        )
        .fetch_one(&it.pool)
        .await
        .unwrap();
        (ended == (2, 1)).then_some(())
    })
    .await;
    shows(&metrics, "postrider_notifications_given_up_total 2").await;
    shows(&metrics, "postrider_subscriptions{state=\"DEACTIVATED\"} 1").await;
}
