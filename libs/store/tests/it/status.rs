//! How the system is, as the tables say.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::month::Month;
use domain::notification::NotificationState;
use domain::push::PushState;
use domain::subscription::SubscriptionState;
use sqlx::{AssertSqlSafe, PgPool};
use store::Store;
use store::status::{Depths, LastLook};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::scene::{lead, pushes};

#[testkit::database_test]
async fn what_one_look_after_the_other_finds_is_so_since_the_first(pool: PgPool) {
    let store = Store::from_pool(pool);
    let at = |seconds| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
    assert_eq!(store.last_look().await.unwrap(), None);
    for (healthy, looked_at, since) in [
        (true, 0, 0),
        (true, 30, 0),
        (false, 60, 60),
        (false, 150, 60),
        (true, 180, 180),
        // What was in between is not known.
        (true, 300, 300),
    ] {
        store.note_look(healthy, at(looked_at)).await.unwrap();
        let (since, looked_at) = (at(since), at(looked_at));
        let known = LastLook {
            healthy,
            since,
            looked_at,
        };
        assert_eq!(store.last_look().await.unwrap(), Some(known));
    }
    // A look that another process made before that.
    store.note_look(false, at(290)).await.unwrap();
    assert!(store.last_look().await.unwrap().unwrap().healthy);
    // So far ahead was only a clock that was wrong: what is looked at now is not passed over until then.
    store.note_look(true, at(200)).await.unwrap();
    let look = store.last_look().await.unwrap().unwrap();
    assert_eq!((look.since, look.looked_at), (at(200), at(200)));
}

#[testkit::database_test]
async fn an_empty_installation_has_nothing_to_say(pool: PgPool) {
    let store = Store::from_pool(pool);
    let now = SystemClock.now();
    assert_eq!(store.push_depths().await.unwrap(), Depths::default());
    assert_eq!(store.notification_depths().await.unwrap(), Depths::default());
    assert_eq!(store.push_overdue().await.unwrap(), Default::default());
    assert_eq!(store.notifications_waiting().await.unwrap(), Default::default());
    assert_eq!(store.deaths("push", now).await.unwrap(), Default::default());
    assert_eq!(store.leadership("push").await.unwrap(), None);
    assert_eq!(store.subscription_states().await.unwrap(), []);
    assert_eq!(store.subscriptions_in_trouble(now).await.unwrap(), []);
    let long_ago = now - TimeDelta::days(30);
    assert_eq!(
        store.subscriptions_deactivated(now, long_ago).await.unwrap(),
        None
    );
    assert_eq!(store.mails_in_trouble(now).await.unwrap(), Default::default());
    assert_eq!(store.jobs_in_progress(now).await.unwrap(), []);
    assert_eq!(store.swrve_failures().await.unwrap(), []);
    assert_eq!(store.waiting_for_pauses(&[], 10).await.unwrap(), []);
    assert_eq!(store.waiting_for_quotas(now).await.unwrap(), None);
    let month = Month::containing(now);
    assert!(store.has_partitions(month).await.unwrap());
    assert!(!store.has_partitions(month.plus(40)).await.unwrap());
}

#[testkit::database_test]
async fn pushes_are_counted_by_what_they_wait_for(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for (state, count) in [
        (PushState::Scheduled, 1),
        (PushState::Pending, 2),
        (PushState::Queued, 3),
        (PushState::Sending, 4),
        (PushState::Retry, 5),
        (PushState::Sent, 6),
        (PushState::Failed, 7),
    ] {
        pushes(&pool, state, count).await;
    }
    let lost = PushRow::in_state(PushState::Queued).leased_for(TimeDelta::minutes(-10));
    lost.make(&pool).await;
    let depths = store.push_depths().await.unwrap();
    let lost_for = depths.lost_for.unwrap();
    assert!(lost_for >= Duration::from_secs(600), "{lost_for:?}");
    let expected = Depths {
        scheduled: 1,
        pending: 2,
        queued: 4,
        queued_for: depths.queued_for,
        sending: 4,
        retry: 5,
        lost: 1,
        lost_for: Some(lost_for),
    };
    assert_eq!(depths, expected);
    assert!(depths.queued_for.is_some(), "{depths:?}");
    let overdue = store.push_overdue().await.unwrap();
    assert!(overdue.pending_for.is_some(), "{overdue:?}");
    assert!(overdue.due_at.unwrap() < SystemClock.now(), "{overdue:?}");
    let deaths = store
        .deaths("push", SystemClock.now() - TimeDelta::hours(1))
        .await
        .unwrap();
    assert_eq!((deaths.open, deaths.recent), (7, 7), "{deaths:?}");
    assert!(
        deaths.newest.is_some() && deaths.fingerprint.is_some(),
        "{deaths:?}"
    );
    assert!(
        deaths.oldest.is_some() && deaths.oldest <= deaths.newest,
        "{deaths:?}"
    );
    assert_eq!(
        store.deaths("reseller", SystemClock.now()).await.unwrap(),
        Default::default()
    );
}

#[testkit::database_test]
async fn a_push_that_was_put_back_has_waited_since_it_was_accepted(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    PushRow::in_state(PushState::Pending).make(&pool).await;
    for (change, since_accepted) in [
        // It may have come due only now: its sending window says when.
        ("created_at = now() - interval '96 s'", false),
        ("cron_expression = NULL", true),
        ("reason = 'REPLAYED'", false),
    ] {
        let update = format!("UPDATE push_notifications SET {change}");
        sqlx::raw_sql(AssertSqlSafe(update)).execute(&pool).await.unwrap();
        let waited = store.push_overdue().await.unwrap().pending_for.unwrap();
        assert_eq!(
            waited >= Duration::from_secs(96),
            since_accepted,
            "{change}: {waited:?}"
        );
        // The metric that the alert goes by tells the same age.
        let row: (DateTime<Utc>, DateTime<Utc>) =
            sqlx::query_as("SELECT created_at, updated_at FROM push_notifications")
                .fetch_one(&pool)
                .await
                .unwrap();
        let expected = if since_accepted { row.0 } else { row.1 };
        let backlog = store.backlog().await.unwrap();
        assert_eq!(backlog.oldest_pending, Some(expected), "{change}");
    }
}

#[testkit::database_test]
async fn a_notification_that_was_put_back_has_waited_since_it_was_made(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let [often, once] = [
        SubscriptionRow::active().make(&pool).await,
        SubscriptionRow::active().make(&pool).await,
    ];
    for subscription in [often, once] {
        NotificationRow::in_state(NotificationState::Pending, subscription)
            .make(&pool)
            .await;
    }
    for (subscription, made, put_back) in [(often, 960, 5), (once, 96, 96)] {
        sqlx::query(
            "UPDATE notifications SET reason = 'BUSY', created_at = now() - $2 * interval '1 s',
                                      updated_at = now() - $3 * interval '1 s'
             WHERE subscription_id = $1",
        )
        .bind(subscription)
        .bind(made)
        .bind(put_back)
        .execute(&pool)
        .await
        .unwrap();
    }
    let waiting = store.notifications_waiting().await.unwrap();
    let waited = waiting.overdue.pending_for.unwrap();
    assert!(waited >= Duration::from_secs(960), "{waited:?}");
    assert_eq!((waiting.subscriptions, waiting.worst), (2, Some(often)));
    // The metric that the alert goes by tells the same age.
    let made: DateTime<Utc> = sqlx::query_scalar("SELECT min(created_at) FROM notifications")
        .fetch_one(&pool)
        .await
        .unwrap();
    let backlog = store.notification_backlog().await.unwrap();
    assert_eq!(backlog.oldest_pending, Some(made));
}

#[testkit::database_test]
async fn only_what_could_be_sent_is_overdue(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let held = [
        SubscriptionRow::active().paused(),
        SubscriptionRow::in_state(SubscriptionState::PendingVerification),
        SubscriptionRow::in_state(SubscriptionState::Deactivated),
    ];
    for row in held {
        let subscription = row.make(&pool).await;
        for state in [
            NotificationState::Pending,
            NotificationState::Retry,
            NotificationState::Scheduled,
        ] {
            NotificationRow::in_state(state, subscription).make(&pool).await;
        }
    }
    let waiting = store.notifications_waiting().await.unwrap();
    assert_eq!(waiting, Default::default(), "nothing of these can be sent");
    assert_eq!(
        store.notification_depths().await.unwrap().pending,
        3,
        "and all of it is there"
    );

    let subscription = SubscriptionRow::active().make(&pool).await;
    let due =
        NotificationRow::in_state(NotificationState::Retry, subscription).due_in(TimeDelta::minutes(-5));
    due.make(&pool).await;
    NotificationRow::in_state(NotificationState::Pending, subscription)
        .make(&pool)
        .await;
    let waiting = store.notifications_waiting().await.unwrap();
    assert_eq!((waiting.subscriptions, waiting.worst), (1, Some(subscription)));
    assert!(waiting.overdue.due_at.unwrap() < SystemClock.now(), "{waiting:?}");
    assert!(waiting.overdue.pending_for.is_some(), "{waiting:?}");
}

#[testkit::database_test]
async fn a_leader_is_named_with_its_time_and_trouble_comes_worst_first(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let lease = lead(&store).await;
    let leader = store.leadership(&lease.name).await.unwrap().unwrap();
    assert_eq!((leader.holder, leader.epoch), (Some(lease.holder), lease.epoch));
    assert!(leader.taken_at.is_some(), "{leader:?}");

    let healthy = SubscriptionRow::active().make(&pool).await;
    let failing = SubscriptionRow::active().make(&pool).await;
    let degraded = SubscriptionRow::in_state(SubscriptionState::Degraded)
        .make(&pool)
        .await;
    sqlx::query("UPDATE subscriptions SET failing_since = now() WHERE id = $1")
        .bind(failing)
        .execute(&pool)
        .await
        .unwrap();
    let trouble = store.subscriptions_in_trouble(SystemClock.now()).await.unwrap();
    let ids: Vec<_> = trouble.iter().map(|it| it.id).collect();
    assert_eq!(ids, [degraded, failing]);
    assert!(!ids.contains(&healthy));
    for paused in [failing, degraded] {
        sqlx::query("UPDATE subscriptions SET paused_at = now() WHERE id = $1")
            .bind(paused)
            .execute(&pool)
            .await
            .unwrap();
    }
    let trouble = store.subscriptions_in_trouble(SystemClock.now()).await.unwrap();
    assert_eq!(trouble, [], "what is paused is not tried");
    let states = store.subscription_states().await.unwrap();
    let counts: Vec<_> = states
        .iter()
        .map(|it| (it.state.as_str(), it.count, it.paused))
        .collect();
    assert_eq!(counts, [("ACTIVE", 2, 1), ("DEGRADED", 1, 1)]);
}

#[testkit::database_test]
async fn what_was_deactivated_before_those_in_trouble_is_counted_with_the_first(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let now = SystemClock.now();
    let mut off = Vec::new();
    for (reason, days) in [
        ("FAILING", 3),
        ("GONE", 5),
        // In trouble still, too long ago, and by the reseller itself.
        ("FAILING", 0),
        ("FAILING", 40),
        ("BY_RESELLER", 4),
    ] {
        let id = SubscriptionRow::in_state(SubscriptionState::Deactivated)
            .make(&pool)
            .await;
        sqlx::query("UPDATE subscriptions SET state_reason = $2, state_changed_at = $3 WHERE id = $1")
            .bind(id)
            .bind(reason)
            .bind(now - TimeDelta::days(days) - TimeDelta::minutes(1))
            .execute(&pool)
            .await
            .unwrap();
        off.push(id);
    }
    let found = store
        .subscriptions_deactivated(now, now - TimeDelta::days(30))
        .await;
    let found = found.unwrap().unwrap();
    assert_eq!((found.count, found.oldest.id), (2, off[1]), "{found:?}");
    assert_eq!(found.oldest.state, SubscriptionState::Deactivated);
}

#[testkit::database_test]
async fn what_swrve_said_is_counted_by_the_last_attempts_of_pushes_that_wait(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for (state, count) in [
        (PushState::Retry, 3),
        (PushState::Pending, 2),
        (PushState::Scheduled, 1),
        (PushState::GivenUp, 2),
        (PushState::Sent, 2),
    ] {
        pushes(&pool, state, count).await;
    }
    let silent = pushes(&pool, PushState::Retry, 1).await;
    // It waits in the queue again.
    let queued = pushes(&pool, PushState::Retry, 1).await;
    let replayed = pushes(&pool, PushState::Retry, 1).await;
    for (statement, push) in [
        (
            "UPDATE send_attempts SET swrve_error_code = NULL, swrve_error_message = 'no answer within 6000 ms' \
             WHERE push_notification_id = $1",
            &silent,
        ),
        (
            "UPDATE push_notifications SET status = 'IN_MEMORY', next_attempt_at = NULL, leased_until = now() WHERE id = $1",
            &queued,
        ),
        (
            "UPDATE push_notifications SET replayed_after = attempts WHERE id = $1",
            &replayed,
        ),
    ] {
        let done = sqlx::query(statement)
            .bind(push[0].id.uuid())
            .execute(&pool)
            .await
            .unwrap();
        assert!(done.rows_affected() > 0, "{statement}");
    }
    let failures = store.swrve_failures().await.unwrap();
    let told: Vec<_> = failures
        .iter()
        .map(|it| (it.code, it.message.as_deref().unwrap(), it.pushes))
        .collect();
    assert_eq!(
        told,
        [
            (Some(503), "503 Service Unavailable", 4),
            (None, "no answer within 6000 ms", 1)
        ]
    );
}
