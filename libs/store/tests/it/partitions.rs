//! Monthly partitions: made once, bounded as `Month` says, dropped only when nothing in them is due.

use std::time::Duration;

use chrono::{DateTime, TimeZone, Utc};
use domain::clock::{Clock, SystemClock};
use domain::month::Month;
use domain::notification::NotificationState;
use domain::push::{PushId, PushState, SendOutcome};
use sqlx::{AssertSqlSafe, PgPool};
use store::Store;
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use uuid::Uuid;

use crate::scene::{completion, until_blocked};

/// Every table that is divided by month, in the order in which months are made.
const PARENTS: [&str; 5] = [
    "push_notifications",
    "send_attempts",
    "events",
    "notifications",
    "delivery_attempts",
];

fn noon(year: i32, month: u32) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(year, month, 15, 12, 0, 0).unwrap()
}

async fn partitions(pool: &PgPool, parent: &str) -> Vec<(String, String)> {
    sqlx::query_as(
        "SELECT c.relname::text, pg_get_expr(c.relpartbound, c.oid)
         FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = $1::regclass ORDER BY 1",
    )
    .bind(parent)
    .fetch_all(pool)
    .await
    .unwrap()
}

/// Drops the finished months before `before`, as the job does that keeps trying; returns their names.
async fn drop_months(store: &Store, before: Month) -> Vec<String> {
    let now = SystemClock.now();
    let present = store.cutoff(now, Duration::ZERO).await.unwrap();
    let kept = (0..)
        .find(|kept| Month::containing(now).minus(*kept) == before)
        .unwrap();
    let mut dropped = Vec::new();
    for month in store.old_months(present, kept).await.unwrap() {
        let gone = loop {
            match store.drop_month(&month).await {
                // A lock was not to be had in the moment that it is waited for.
                Err(error) if error.is_transient() => {}
                gone => break gone.unwrap(),
            }
        };
        dropped.extend(gone.then(|| month.name().to_owned()));
    }
    dropped
}

async fn rows(pool: &PgPool, table: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {table}")))
        .fetch_one(pool)
        .await
        .unwrap()
}

#[testkit::database_test]
async fn bounds_are_those_of_the_month(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let first = Month::containing(noon(2031, 11));
    assert_eq!(store.create_partitions(first, 4).await.unwrap(), 20);
    for parent in PARENTS {
        let stored = partitions(&pool, parent).await;
        for month in (0..4).map(|n| first.plus(n)) {
            let (from, to) = (month.first_id(), month.plus(1).first_id());
            let expected = (
                format!("{parent}_{}", month.suffix()),
                format!("FOR VALUES FROM ('{from}') TO ('{to}')"),
            );
            assert!(stored.contains(&expected), "{expected:?} is not among {stored:?}");
        }
    }
    let made = PushRow::in_state(PushState::Sent)
        .created_at(noon(2032, 2))
        .make(&pool)
        .await;
    assert!(store.find_push(made.id).await.unwrap().is_some());
    NotificationRow::in_state(NotificationState::Sent, Uuid::now_v7())
        .created_at(noon(2032, 2))
        .make(&pool)
        .await;
    for parent in PARENTS {
        assert_eq!(
            rows(&pool, &format!("{parent}_y2032m02")).await,
            1,
            "{parent}: a row and what belongs to it lie in the same month"
        );
    }
}

#[testkit::database_test]
async fn creation_is_idempotent_and_may_be_concurrent(pool: PgPool) {
    let first = Month::containing(noon(2031, 1));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let store = Store::from_pool(pool.clone());
            tokio::spawn(async move { store.create_partitions(first, 3).await })
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        made += task.await.unwrap().unwrap();
    }
    assert_eq!(made, 15, "three months of five tables, once");
    let store = Store::from_pool(pool);
    assert_eq!(store.create_partitions(first, 3).await.unwrap(), 0);
    assert_eq!(
        store.create_partitions(first, 4).await.unwrap(),
        5,
        "only what is missing"
    );
}

#[testkit::database_test]
async fn a_new_schema_has_three_months_ahead(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let now: DateTime<Utc> = sqlx::query_scalar("SELECT now()").fetch_one(&pool).await.unwrap();
    let current = Month::containing(now);
    assert_eq!(store.partitions_ahead(current).await.unwrap(), 3);
    assert_eq!(store.create_partitions(current, 6).await.unwrap(), 10);
    assert_eq!(store.partitions_ahead(current).await.unwrap(), 5);
    assert_eq!(store.partitions_ahead(current.plus(5)).await.unwrap(), 0);
}

#[testkit::database_test]
async fn only_old_months_in_which_everything_ended_are_dropped(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let before = partitions(&pool, "push_notifications").await.len();
    store
        .create_partitions(Month::containing(noon(2020, 1)), 3)
        .await
        .unwrap();
    for month in 1..=3 {
        for ended in [PushState::Sent, PushState::Failed, PushState::GivenUp] {
            PushRow::in_state(ended)
                .created_at(noon(2020, month))
                .make(&pool)
                .await;
        }
    }
    let sending = PushRow::in_state(PushState::Sending)
        .created_at(noon(2020, 2))
        .make(&pool)
        .await;
    let march = Month::containing(noon(2020, 3));

    assert_eq!(
        drop_months(&store, march).await,
        [
            "push_notifications_y2020m01",
            "notifications_y2020m01",
            "notifications_y2020m02"
        ],
        "the lanes do not wait for each other"
    );
    for parent in ["push_notifications", "send_attempts"] {
        assert_eq!(partitions(&pool, parent).await.len(), before + 2, "{parent}");
    }
    assert_eq!(
        drop_months(&store, march).await,
        [""; 0],
        "one unfinished push holds the month"
    );

    store
        .complete_pushes(&[completion(sending, 1, SendOutcome::Delivered)])
        .await
        .unwrap();
    assert_eq!(drop_months(&store, march).await, ["push_notifications_y2020m02"]);
    assert_eq!(
        drop_months(&store, march.plus(1)).await,
        ["push_notifications_y2020m03", "notifications_y2020m03"]
    );
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_class WHERE relname LIKE '%y2020m%'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(left, 0, "the attempts went with their pushes");
}

#[testkit::database_test]
async fn every_unfinished_state_holds_its_month(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let january = Month::containing(noon(2020, 1));
    for state in PushState::ALL {
        store.create_partitions(january, 1).await.unwrap();
        let push = PushRow::in_state(state)
            .created_at(noon(2020, 1))
            .make(&pool)
            .await;
        let dropped = drop_months(&store, january.plus(1)).await;
        let gone = dropped.iter().any(|table| table == "push_notifications_y2020m01");
        assert_eq!(gone, state.status().is_terminal(), "{state:?}");
        let left = store.find_push(push.id).await.unwrap();
        assert_eq!(left.is_none(), state.status().is_terminal(), "{state:?}");
        sqlx::raw_sql("DELETE FROM send_attempts; DELETE FROM push_notifications")
            .execute(&pool)
            .await
            .unwrap();
    }
}

#[testkit::database_test]
async fn every_unfinished_notification_holds_its_month_events_and_all(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let january = Month::containing(noon(2020, 1));
    for state in NotificationState::ALL {
        store.create_partitions(january, 1).await.unwrap();
        NotificationRow::in_state(state, Uuid::now_v7())
            .created_at(noon(2020, 1))
            .make(&pool)
            .await;
        let dropped = drop_months(&store, january.plus(1)).await;
        let gone = dropped.iter().any(|table| table == "notifications_y2020m01");
        assert_eq!(gone, state.status().is_terminal(), "{state:?}");
        for parent in ["events", "notifications", "delivery_attempts"] {
            let month = format!("{parent}_y2020m01");
            let left = partitions(&pool, parent).await;
            assert_eq!(
                left.iter().all(|(name, _)| *name != month),
                gone,
                "{state:?}: {parent}"
            );
        }
        sqlx::raw_sql("DELETE FROM delivery_attempts; DELETE FROM notifications; DELETE FROM events")
            .execute(&pool)
            .await
            .unwrap();
    }
}

/// An upgrade may have found the tables of one lane alone.
#[testkit::database_test]
async fn the_lane_with_the_fewest_months_ahead_counts(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let now: DateTime<Utc> = sqlx::query_scalar("SELECT now()").fetch_one(&pool).await.unwrap();
    let current = Month::containing(now);
    let last = AssertSqlSafe(format!("DROP TABLE notifications_{}", current.plus(3).suffix()));
    sqlx::query(last).execute(&pool).await.unwrap();
    assert_eq!(store.partitions_ahead(current).await.unwrap(), 2);
}

/// A statement that has locked the table and is about to lock the month must not meet a drop that did it the other way
/// round.
#[testkit::database_test]
async fn dropping_cannot_deadlock_with_a_statement_under_way(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for (n, parent) in (0..).zip(PARENTS) {
        let month = Month::containing(noon(2020, 1)).plus(n);
        store.create_partitions(month, 1).await.unwrap();
        let mut statement = pool.begin().await.unwrap();
        let table = AssertSqlSafe(format!("LOCK TABLE ONLY {parent} IN ROW EXCLUSIVE MODE"));
        sqlx::query(table).execute(&mut *statement).await.unwrap();

        let continues = async {
            until_blocked(&pool, 1).await;
            let partition = format!("{parent}_{}", month.suffix());
            let lock = AssertSqlSafe(format!("LOCK TABLE {partition} IN ROW EXCLUSIVE MODE NOWAIT"));
            sqlx::query(lock)
                .execute(&mut *statement)
                .await
                .unwrap_or_else(|error| panic!("the drop should not have locked {partition} yet: {error}"));
            statement.commit().await.unwrap();
        };
        let (dropped, ()) = tokio::join!(drop_months(&store, month.plus(1)), continues);
        assert_eq!(
            dropped.len(),
            2,
            "{parent}: both lanes, and each once: {dropped:?}"
        );
    }
}

/// A backup holds its locks for as long as it reads.
#[testkit::database_test]
async fn dropping_gives_way_to_a_reader_and_lets_the_lane_pass(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let january = Month::containing(noon(2020, 1));
    store.create_partitions(january, 1).await.unwrap();
    let present = store.cutoff(SystemClock.now(), Duration::ZERO).await.unwrap();
    let months = store.old_months(present, 6).await.unwrap();
    assert_eq!(months.len(), 2);
    let mut backup = pool.begin().await.unwrap();
    for parent in PARENTS {
        let table = AssertSqlSafe(format!("LOCK TABLE {parent} IN ACCESS SHARE MODE"));
        sqlx::query(table).execute(&mut *backup).await.unwrap();
    }
    for month in &months {
        let refused = store.drop_month(month).await.unwrap_err();
        assert!(refused.is_transient(), "{month:?}: {refused:?}");
    }
    PushRow::in_state(PushState::Pending).make(&pool).await;
    backup.commit().await.unwrap();
    for month in &months {
        assert!(store.drop_month(month).await.unwrap(), "{month:?}");
        assert!(!store.drop_month(month).await.unwrap(), "{month:?} again");
    }
    let limits: Vec<String> =
        sqlx::query_scalar("SELECT unnest(proconfig) FROM pg_proc WHERE proname = 'drop_month_partition'")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(
        limits,
        ["lock_timeout=100ms"],
        "what waits behind a lock waits as long"
    );
}

#[testkit::database_test]
async fn a_push_without_a_partition_is_not_found_and_not_an_error(pool: PgPool) {
    let store = Store::from_pool(pool);
    assert!(
        store
            .find_push(PushId::at(noon(1999, 1)))
            .await
            .unwrap()
            .is_none()
    );
}
