//! A URL with several hosts: two servers, the primary and its standby.

use sqlx::PgConnection;
use testkit::eventually;
use uuid::Uuid;

use crate::own_servers::{connection_to, primary, standby_of, store_at, url};

async fn execute(connection: &mut PgConnection, statements: &[&'static str]) {
    for statement in statements {
        sqlx::raw_sql(*statement).execute(&mut *connection).await.unwrap();
    }
}

async fn connections_of_the_store(connection: &mut PgConnection) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'own_servers'")
        .fetch_one(connection)
        .await
        .unwrap()
}

#[tokio::test]
async fn the_host_that_can_be_written_to_is_used_also_after_a_fail_over() {
    let one = primary().await;
    let two = standby_of(&one).await;
    let (mut on_one, mut on_two) = (connection_to(&one).await, connection_to(&two).await);
    // A commit is answered when the standby has applied it, so that nothing is lost.
    execute(
        &mut on_one,
        &[
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
            "ALTER SYSTEM SET synchronous_commit = remote_apply",
            "SELECT pg_reload_conf()",
        ],
    )
    .await;
    let store = store_at(url(&[&two, &one]) + "?target_session_attrs=read-write");

    // The standby stands first, and refuses what writes.
    store.migrate().await.unwrap();
    let seen = store.view_lease("push").await.unwrap();
    let lease = store.take_lease("push", seen, Uuid::now_v7()).await.unwrap();
    let lease = lease.expect("a lease of no other");
    tokio::try_join!(store.ping(), store.ping(), store.ping()).unwrap();
    assert!(connections_of_the_store(&mut on_one).await >= 2);

    // One is demoted and goes on answering, as a primary does whose fail-over was ordered.
    execute(
        &mut on_one,
        &[
            "ALTER SYSTEM SET default_transaction_read_only = on",
            "SELECT pg_reload_conf()",
        ],
    )
    .await;
    execute(&mut on_two, &["SELECT pg_promote()"]).await;
    let renewed = eventually("a renewal on the new primary", async || {
        store.renew_lease(&lease).await.ok()
    });
    assert!(renewed.await, "the lease is not there");
    eventually("no connection to the old primary", async || {
        store.ping().await.ok();
        (connections_of_the_store(&mut on_one).await == 0).then_some(())
    })
    .await;
    assert!(connections_of_the_store(&mut on_two).await >= 2);

    // The other one is lost, and the first leads again.
    drop(two);
    execute(
        &mut on_one,
        &[
            "ALTER SYSTEM SET default_transaction_read_only = off",
            "ALTER SYSTEM SET synchronous_standby_names = ''",
            "SELECT pg_reload_conf()",
        ],
    )
    .await;
    let renewed = eventually("a renewal on the first primary", async || {
        store.renew_lease(&lease).await.ok()
    });
    assert!(renewed.await, "the lease is not there");
    store.close().await;
}

/// A program that runs once has one try, and the host that is named first does not answer any more.
#[tokio::test]
async fn a_host_that_is_silent_does_not_take_the_time_of_the_one_that_can_be_written_to() {
    let silent = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    let silent = silent.local_addr().unwrap();
    let one = primary().await;
    let at_one = url(&[&one]);
    let (before, after) = at_one.rsplit_once('@').unwrap();
    let store = store_at(format!("{before}@{silent},{after}"));
    store.find_host().await;
    store.ping().await.unwrap();
    store.close().await;
}
