//! Connections that rest between two batches: which statements share one, and when it goes back to the pool.

use domain::push::PushStatus;
use sqlx::{Connection as _, PgConnection, PgPool};
use store::Store;
use store::push::NewPush;
use testkit::eventually;

use crate::scene::{LONG, count, new_push};

fn batch() -> [NewPush; 1] {
    [new_push(PushStatus::Pending, None)]
}

/// Has two connections of the pool open, and none in use.
pub(crate) async fn two_idle(pool: &PgPool) {
    eventually("two idle connections", async || {
        if pool.size() < 2 {
            drop(tokio::try_join!(pool.acquire(), pool.acquire()).unwrap());
        }
        (pool.num_idle() == 2).then_some(())
    })
    .await;
}

/// Which server process has stored a batch last.
async fn last_writer(observer: &mut PgConnection) -> i32 {
    sqlx::query_scalar(
        "SELECT pid FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%INSERT INTO push_notifications%'
         ORDER BY query_start DESC LIMIT 1",
    )
    .fetch_one(observer)
    .await
    .unwrap()
}

/// Stores one batch after the other until two have gone through one connection. Those that go back to the pool take turns.
async fn until_shared(store: &Store, observer: &mut PgConnection) {
    eventually("two batches to share a connection", async || {
        store.insert_pushes(&batch(), LONG).await.unwrap();
        let first = last_writer(observer).await;
        store.insert_pushes(&batch(), LONG).await.unwrap();
        (last_writer(observer).await == first).then_some(())
    })
    .await;
}

#[testkit::database_test]
async fn batches_that_follow_one_another_share_a_connection_and_then_it_goes_back(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut observer = PgConnection::connect_with(&pool.connect_options()).await.unwrap();
    two_idle(&pool).await;
    until_shared(&store, &mut observer).await;
    eventually("every connection to be in the pool", async || {
        (pool.num_idle() == pool.size() as usize).then_some(())
    })
    .await;
    observer.close().await.unwrap();
}

#[testkit::database_test]
async fn a_connection_that_rests_counts_as_idle(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    two_idle(&pool).await;
    store.insert_pushes(&batch(), LONG).await.unwrap();
    // Nothing else has run since then.
    let connections = store.connections();
    assert_eq!((connections.idle, connections.busy, pool.num_idle()), (2, 0, 1));
}

#[testkit::database_test]
async fn the_last_connection_goes_to_the_one_who_waits_for_it(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut others = Vec::new();
    for _ in 1..pool.options().get_max_connections() {
        others.push(pool.acquire().await.unwrap());
    }
    store.insert_pushes(&batch(), LONG).await.unwrap();
    let next = batch();
    tokio::select! {
        biased;
        connection = pool.acquire() => drop(connection.unwrap()),
        stored = store.insert_pushes(&next, LONG) => panic!("the next batch came first: {stored:?}"),
    }
}

#[testkit::database_test]
async fn a_connection_that_dies_while_it_rests_costs_one_batch_at_most(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut observer = PgConnection::connect_with(&pool.connect_options()).await.unwrap();
    two_idle(&pool).await;
    store.insert_pushes(&batch(), LONG).await.unwrap();
    let ended: bool = sqlx::query_scalar("SELECT pg_terminate_backend($1, 10000)")
        .bind(last_writer(&mut observer).await)
        .fetch_one(&mut observer)
        .await
        .unwrap();
    assert!(ended);
    let mut stored = 1;
    match store.insert_pushes(&batch(), LONG).await {
        // It had gone back to the pool, which looked at it.
        Ok(_) => stored += 1,
        Err(error) => assert!(error.is_transient(), "{error:?}"),
    }
    store.insert_pushes(&batch(), LONG).await.unwrap();
    assert_eq!(count(&pool, "push_notifications").await, stored + 1);
    observer.close().await.unwrap();
}

#[testkit::database_test]
async fn a_store_can_be_dropped_where_there_is_no_runtime(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    two_idle(&pool).await;
    store.insert_pushes(&batch(), LONG).await.unwrap();
    std::thread::spawn(move || drop(store)).join().unwrap();
    let kept = pool.size() as usize - pool.num_idle();
    assert_eq!(kept, 0, "what rested keeps no place in the pool");
}

#[testkit::database_test]
async fn closing_a_store_closes_what_rests(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    two_idle(&pool).await;
    store.insert_pushes(&batch(), LONG).await.unwrap();
    store.close().await;
    assert_eq!(pool.size(), 0);
    let error = store.insert_pushes(&batch(), LONG).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
}
