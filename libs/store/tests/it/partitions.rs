//! Monthly partitions: made once, bounded as `Month` says, dropped only when nothing in them is due.

use chrono::{DateTime, TimeZone, Utc};
use domain::month::Month;
use domain::push::{PushId, PushState, SendOutcome};
use sqlx::{AssertSqlSafe, PgPool};
use store::{Error, Store};
use testkit::push_factory::PushRow;

use crate::scene::{completion, until_blocked};

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

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn bounds_are_those_of_the_month(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let first = Month::containing(noon(2031, 11));
    assert_eq!(store.create_partitions(first, 4).await.unwrap(), 8);
    for parent in ["push_notifications", "send_attempts"] {
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
}

#[sqlx::test(migrator = "store::MIGRATOR")]
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
    assert_eq!(made, 6, "three months of two tables, once");
    let store = Store::from_pool(pool);
    assert_eq!(store.create_partitions(first, 3).await.unwrap(), 0);
    assert_eq!(
        store.create_partitions(first, 4).await.unwrap(),
        2,
        "only what is missing"
    );
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_new_schema_has_three_months_ahead(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let now: DateTime<Utc> = sqlx::query_scalar("SELECT now()").fetch_one(&pool).await.unwrap();
    let current = Month::containing(now);
    assert_eq!(store.partitions_ahead(current).await.unwrap(), 3);
    assert_eq!(store.create_partitions(current, 6).await.unwrap(), 4);
    assert_eq!(store.partitions_ahead(current).await.unwrap(), 5);
    assert_eq!(store.partitions_ahead(current.plus(5)).await.unwrap(), 0);
}

#[sqlx::test(migrator = "store::MIGRATOR")]
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

    assert_eq!(store.drop_partitions(march).await.unwrap(), ["y2020m01"]);
    for parent in ["push_notifications", "send_attempts"] {
        assert_eq!(partitions(&pool, parent).await.len(), before + 2, "{parent}");
    }
    assert_eq!(
        store.drop_partitions(march).await.unwrap(),
        [""; 0],
        "one unfinished push holds the month"
    );

    store
        .complete_pushes(&[completion(sending, 1, SendOutcome::Delivered)])
        .await
        .unwrap();
    assert_eq!(store.drop_partitions(march).await.unwrap(), ["y2020m02"]);
    assert_eq!(store.drop_partitions(march.plus(1)).await.unwrap(), ["y2020m03"]);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_class WHERE relname LIKE '%y2020m%'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(left, 0, "the attempts went with their pushes");
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn every_unfinished_state_holds_its_month(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let january = Month::containing(noon(2020, 1));
    for state in PushState::ALL {
        store.create_partitions(january, 1).await.unwrap();
        let push = PushRow::in_state(state)
            .created_at(noon(2020, 1))
            .make(&pool)
            .await;
        let dropped = store.drop_partitions(january.plus(1)).await.unwrap();
        assert_eq!(dropped.len() == 1, state.status().is_terminal(), "{state:?}");
        let left = store.find_push(push.id).await.unwrap();
        assert_eq!(left.is_none(), state.status().is_terminal(), "{state:?}");
        sqlx::raw_sql("DELETE FROM send_attempts; DELETE FROM push_notifications")
            .execute(&pool)
            .await
            .unwrap();
    }
}

/// A statement that has locked the table and is about to lock the month must not meet a drop that did it the other way
/// round.
#[sqlx::test(migrator = "store::MIGRATOR")]
async fn dropping_cannot_deadlock_with_a_statement_under_way(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let january = Month::containing(noon(2020, 1));
    store.create_partitions(january, 1).await.unwrap();
    let mut statement = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE ONLY push_notifications IN ROW EXCLUSIVE MODE")
        .execute(&mut *statement)
        .await
        .unwrap();

    let continues = async {
        until_blocked(&pool, 1).await;
        let month = AssertSqlSafe("LOCK TABLE push_notifications_y2020m01 IN ROW EXCLUSIVE MODE NOWAIT");
        sqlx::query(month)
            .execute(&mut *statement)
            .await
            .expect("the drop should not have locked the month yet");
        statement.commit().await.unwrap();
    };
    let (dropped, ()) = tokio::join!(store.drop_partitions(january.plus(1)), continues);

    match dropped {
        Ok(months) => assert_eq!(months, ["y2020m01"]),
        // A slow machine: the drop gave way after its lock timeout, as it should.
        Err(error) => assert!(matches!(error, Error::Unavailable(_)), "{error:?}"),
    }
}

#[sqlx::test(migrator = "store::MIGRATOR")]
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
