//! Partitions, idempotency keys and mails, by the calendar.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::month::Month;
use domain::push::PushState;
use sqlx::{AssertSqlSafe, PgPool};
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};

use crate::rig::{start, start_at, stopped_clock, view};

/// Whether both tables have a partition for a month; it would be odd if only one had.
async fn has_partitions(pool: &PgPool, suffix: &str) -> bool {
    let (pushes, attempts): (bool, bool) = sqlx::query_as(
        "SELECT to_regclass('push_notifications_' || $1) IS NOT NULL,
                to_regclass('send_attempts_' || $1) IS NOT NULL",
    )
    .bind(suffix)
    .fetch_one(pool)
    .await
    .unwrap();
    assert_eq!(pushes, attempts, "{suffix}");
    pushes
}

#[testkit::test]
async fn partitions_are_made_ahead_of_the_calendar(it: Installation) {
    let clock = stopped_clock();
    clock.advance(TimeDelta::days(400));
    let current = Month::containing(clock.now());
    let ahead = it.config.push.partitions.months_ahead;
    assert!(!has_partitions(&it.pool, &current.suffix()).await);
    let _worker = start_at(&it.config, Arc::new(clock.clone()));
    let last = current.plus(ahead).suffix();
    eventually("the last of the partitions", async || {
        has_partitions(&it.pool, &last).await.then_some(())
    })
    .await;
    for months in 0..ahead {
        assert!(has_partitions(&it.pool, &current.plus(months).suffix()).await);
    }
    assert!(has_partitions(&it.pool, &current.minus(1).suffix()).await);
    assert!(!has_partitions(&it.pool, &current.plus(ahead + 1).suffix()).await);
    PushRow::in_state(PushState::Sent)
        .created_at(clock.now())
        .make(&it.pool)
        .await;
}

#[testkit::test]
async fn a_month_past_its_retention_is_dropped_when_it_is_finished_and_only_then(it: Installation) {
    let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
    let current = Month::containing(SystemClock.now());
    let kept = current.minus(it.config.push.partitions.retention_months);
    sqlx::query("SELECT create_month_partitions('2025-01-01', 2), create_month_partitions($1, 1)")
        .bind(kept.first_day())
        .execute(&it.pool)
        .await
        .unwrap();
    let finished = PushRow::in_state(PushState::Sent).created_at(at("2025-01-15T12:00:00Z"));
    finished.make(&it.pool).await;
    let unfinished = PushRow::in_state(PushState::Retry)
        .created_at(at("2025-02-15T12:00:00Z"))
        .due_in(TimeDelta::days(3_650))
        .make(&it.pool)
        .await;
    let worker = start(&it.config);
    eventually("the finished month to be dropped", async || {
        (!has_partitions(&it.pool, "y2025m01").await).then_some(())
    })
    .await;
    worker.stop().await;
    assert!(has_partitions(&it.pool, "y2025m02").await);
    assert_eq!(view(&it, unfinished.id).await.history.len(), 1);
    assert!(
        has_partitions(&it.pool, &kept.suffix()).await,
        "the retention is not over"
    );
}

#[testkit::test]
async fn months_of_web_push_are_made_ahead_and_dropped_when_two_newer_ones_have_passed(it: Installation) {
    let current = Month::containing(SystemClock.now());
    let (old, kept, ahead) = (current.minus(3), current.minus(2), current.plus(3));
    it.store.create_webpush_partitions(old, 2).await.unwrap();
    let missing = format!("DROP TABLE webpush_messages_{}", ahead.suffix());
    sqlx::query(AssertSqlSafe(missing))
        .execute(&it.pool)
        .await
        .unwrap();
    let exist = async |month: Month| -> Vec<String> {
        sqlx::query_scalar(
            "SELECT relname::text FROM pg_class WHERE relname LIKE 'webpush_%s_' || $1 ORDER BY 1",
        )
        .bind(month.suffix())
        .fetch_all(&it.pool)
        .await
        .unwrap()
    };
    let tables =
        |month: Month| ["clients", "messages"].map(|name| format!("webpush_{name}_{}", month.suffix()));
    let _worker = start(&it.config);
    eventually("the old month to be dropped", async || {
        exist(old).await.is_empty().then_some(())
    })
    .await;
    assert_eq!(exist(ahead).await, tables(ahead), "what is missing is made first");
    assert_eq!(exist(kept).await, tables(kept));
}

#[testkit::test]
async fn keys_of_pushes_and_events_are_forgotten_after_their_retention(it: Installation) {
    let clock = stopped_clock();
    let retention = |of| TimeDelta::from_std(of).unwrap();
    let pushes = retention(it.config.push.idempotency.retention);
    let events = retention(it.config.reseller.event.key_retention);
    for (key, sooner) in [
        ("too old", -TimeDelta::minutes(1)),
        ("old", TimeDelta::minutes(1)),
    ] {
        sqlx::query(
            "WITH push AS (
                 INSERT INTO idempotency_keys (owner, key, push_id, request, created_at)
                 VALUES (gen_random_uuid(), $1, gen_random_uuid(), '', $2))
             INSERT INTO event_keys (scope, key, event, request, created_at)
             VALUES ('reseller/acme', $1, gen_random_uuid(), '', $3)",
        )
        .bind(key)
        .bind(clock.now() - pushes + sooner)
        .bind(clock.now() - events + sooner)
        .execute(&it.pool)
        .await
        .unwrap();
    }
    let _worker = start_at(&it.config, Arc::new(clock));
    for table in ["idempotency_keys", "event_keys"] {
        let left = eventually("a key to be forgotten", async || {
            let keys = AssertSqlSafe(format!("SELECT key FROM {table}"));
            let left: Vec<String> = sqlx::query_scalar(keys).fetch_all(&it.pool).await.unwrap();
            (left.len() < 2).then_some(left)
        })
        .await;
        assert_eq!(left, ["old"], "{table}");
    }
}

/// Without a mail server nothing else would ever end one that waits.
#[testkit::test]
async fn mails_that_ended_long_ago_are_forgotten_and_those_that_wait_in_vain_end(it: Installation) {
    let clock = stopped_clock();
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    for (status, days) in [("SENT", 31), ("FAILED", 31), ("SENT", 29), ("PENDING", 400)] {
        sqlx::query(
            "INSERT INTO emails (id, kind, subscription_id, recipient, data, status, next_attempt_at, created_at,
                                 finished_at)
             VALUES (gen_random_uuid(), 'STATE_CHANGED', $1, 'ops@acme.example', '{}', $2,
                     CASE WHEN $2 = 'PENDING' THEN $3::timestamptz END, $3,
                     CASE WHEN $2 <> 'PENDING' THEN $3::timestamptz END)",
        )
        .bind(subscription)
        .bind(status)
        .bind(clock.now() - TimeDelta::days(days))
        .execute(&it.pool)
        .await
        .unwrap();
    }
    let _worker = start_at(&it.config, Arc::new(clock));
    eventually(
        "the old mails to be forgotten, and what waits in vain to end",
        async || {
            let left: Vec<String> = sqlx::query_scalar("SELECT status FROM emails ORDER BY status")
                .fetch_all(&it.pool)
                .await
                .unwrap();
            (left == ["FAILED", "SENT"]).then_some(())
        },
    )
    .await;
}
