//! The change feed: what commits late is not passed over, only those who listen cost anything, and what is lost is said.

use std::time::Duration;

use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationState;
use sqlx::PgPool;
use store::webhook::{ChangeCursor, Changes};
use store::{Kept, Store};
use testkit::eventually;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

const LIMIT: u32 = 2;

async fn listen(store: &Store, reseller: &str) -> ChangeCursor {
    eventually("changes to be whole", async || {
        let first = store.changes(reseller, None, LIMIT).await.unwrap();
        assert!(
            first.items.is_empty() && !first.missed && !first.more,
            "{first:?}"
        );
        first.whole.then_some(first.next)
    })
    .await
}

/// What comes after the cursor, once there is something: transactions of other databases of the server hold it back too.
async fn next(store: &Store, reseller: &str, after: ChangeCursor) -> Changes {
    eventually("a change", async || {
        let changes = store.changes(reseller, Some(after), LIMIT).await.unwrap();
        (!changes.items.is_empty() || changes.missed).then_some(changes)
    })
    .await
}

async fn noted(pool: &PgPool) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM notification_changes")
        .fetch_one(pool)
        .await
        .unwrap()
}

async fn run(pool: &PgPool, statement: &'static str) {
    sqlx::raw_sql(statement).execute(pool).await.unwrap();
}

/// A notification of a subscription of its own.
async fn notification(pool: &PgPool, reseller: &str) -> Uuid {
    let subscription = SubscriptionRow::active().reseller(reseller).make(pool).await;
    let row = NotificationRow::in_state(NotificationState::Pending, subscription).reseller(reseller);
    row.make(pool).await.id.uuid()
}

#[testkit::database_test]
async fn what_is_committed_late_is_not_passed_over(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let (slow, quick) = (
        notification(&pool, "acme").await,
        notification(&pool, "acme").await,
    );
    assert_eq!(noted(&pool).await, 0, "no reseller listens");
    let mut cursor = listen(&store, "acme").await;
    let touch = "UPDATE notifications SET updated_at = now() WHERE id = $1";
    let mut late = pool.begin().await.unwrap();
    sqlx::query(touch).bind(slow).execute(&mut *late).await.unwrap();
    sqlx::query(touch).bind(quick).execute(&pool).await.unwrap();
    notification(&pool, "globex").await;
    for _ in 0..3 {
        let held_back = store.changes("acme", Some(cursor), LIMIT).await.unwrap();
        assert_eq!(held_back.items, [], "the late one comes first");
        cursor = held_back.next;
    }
    late.commit().await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let changes = next(&store, "acme", cursor).await;
        assert!(!changes.missed);
        seen.extend(changes.items.iter().map(|change| change.notification));
        cursor = changes.next;
    }
    assert_eq!(
        seen,
        [slow, quick],
        "each once, in the order of their transactions"
    );
    let rest = store.changes("acme", Some(cursor), LIMIT).await.unwrap();
    assert_eq!(rest.items, []);
}

/// What was written before changes were noted is in no change, and in no list until it is committed.
#[testkit::database_test]
async fn changes_are_whole_when_what_was_written_before_is_committed(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let early = notification(&pool, "acme").await;
    let mut late = pool.begin().await.unwrap();
    let touch = "UPDATE notifications SET updated_at = now() WHERE id = $1";
    sqlx::query(touch).bind(early).execute(&mut *late).await.unwrap();
    let first = store.changes("acme", None, LIMIT).await.unwrap();
    assert!(!first.whole, "{first:?}");
    let second = store.changes("acme", Some(first.next), LIMIT).await.unwrap();
    assert!(second.missed && !second.whole, "{second:?}");
    late.commit().await.unwrap();
    let cursor = listen(&store, "acme").await;
    assert!(!store.changes("acme", Some(cursor), LIMIT).await.unwrap().missed);
}

#[testkit::database_test]
async fn a_transaction_of_many_changes_is_read_part_by_part(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let cursor = listen(&store, "acme").await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(notification(&pool, "acme").await);
    }
    run(&pool, "UPDATE notifications SET updated_at = now()").await;
    // What is on its way to a dispatcher is no change to a reseller.
    run(
        &pool,
        "UPDATE notifications SET status = 'IN_MEMORY', leased_until = now()",
    )
    .await;
    let (mut cursor, mut seen) = (cursor, Vec::new());
    while seen.len() < 10 {
        let changes = next(&store, "acme", cursor).await;
        assert!(changes.items.len() <= 2);
        seen.extend(changes.items.iter().map(|change| change.notification));
        cursor = changes.next;
    }
    assert_eq!(seen[..5], made);
    seen.sort_unstable();
    made.extend(made.clone());
    made.sort_unstable();
    assert_eq!(seen, made);
    assert_eq!(noted(&pool).await, 10);
}

#[testkit::database_test]
async fn who_was_away_for_too_long_is_told_that_changes_are_lost(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let first = listen(&store, "acme").await;
    notification(&pool, "acme").await;
    let second = next(&store, "acme", first).await.next;

    // It still listens, and what is older than ten minutes goes.
    run(
        &pool,
        "UPDATE notification_changes SET at = at - interval '11 minutes';
         UPDATE change_listeners SET until = now() + interval '3 minutes'",
    )
    .await;
    let current = store.changes("acme", Some(second), LIMIT).await.unwrap();
    assert!(!current.missed, "it had read all of that");
    let until: bool = sqlx::query_scalar("SELECT until > now() + interval '4 minutes' FROM change_listeners")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert!(until, "the question said that it goes on");
    assert_eq!(store.forget_read_changes(100).await.unwrap(), 1);
    assert_eq!(store.forget_read_changes(100).await.unwrap(), 0);
    assert_eq!(noted(&pool).await, 0);
    assert!(
        !store
            .changes("acme", Some(current.next), LIMIT)
            .await
            .unwrap()
            .missed
    );
    assert!(next(&store, "acme", first).await.missed);

    // It has not asked for five minutes: nothing was noted meanwhile.
    run(&pool, "UPDATE change_listeners SET until = now()").await;
    notification(&pool, "acme").await;
    assert_eq!(noted(&pool).await, 0);
    let again = store.changes("acme", Some(current.next), LIMIT).await.unwrap();
    assert!(again.missed && again.since > current.since, "{again:?}");
    let again = listen(&store, "acme").await;
    notification(&pool, "acme").await;
    assert!(!next(&store, "acme", again).await.missed);

    // A cursor of a database that has gone further, as after a restore.
    let future = ChangeCursor {
        transaction: i64::MAX - 1,
        change: 0,
    };
    assert!(store.changes("acme", Some(future), LIMIT).await.unwrap().missed);

    // Nothing of a reseller that has stopped to follow stays.
    run(
        &pool,
        "UPDATE change_listeners SET until = now() - interval '1 hour'",
    )
    .await;
    let cutoff = store
        .cutoff(SystemClock.now(), Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(store.forget(Kept::Changes, cutoff, 100).await.unwrap(), 1);
    assert_eq!(noted(&pool).await, 0);
}
