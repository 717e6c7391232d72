//! What a real server's failures are taken for.

use std::error::Error as _;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use sqlx::{ConnectOptions, PgPool, Postgres, Transaction};
use store::{Error, LeaseView, Settings, Store, within};
use testkit::{FaultProxy, eventually};
use tokio::task::JoinHandle;

use crate::scene::until_blocked;

fn settings(url: String) -> Settings {
    Settings {
        url,
        max_connections: 1,
        lease_connections: 1,
        acquire_timeout: Duration::from_secs(10),
        application_name: "failures".to_owned(),
        line_terms: store::webhook::LineTerms::default(),
    }
}

fn url(pool: &PgPool) -> String {
    pool.connect_options().to_url_lossy().to_string()
}

#[tokio::test]
async fn a_closed_port_may_open_again() {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let closed = settings(format!("postgres://nobody@127.0.0.1:{port}/none"));
    let store = Store::open(&Settings {
        lease_connections: 1,
        acquire_timeout: Duration::from_millis(200),
        ..closed
    })
    .unwrap();
    let error = store.ping().await.unwrap_err();
    assert!(error.is_transient() && error.source().is_some(), "{error:?}");
    assert!(store.is_migrated().await.unwrap_err().is_transient());
}

#[tokio::test]
async fn a_url_that_is_none_is_refused_before_connecting() {
    assert!(matches!(
        Store::open(&settings("127.0.0.1:5432".to_owned())),
        Err(Error::Url(_))
    ));
}

#[testkit::database_test]
async fn a_database_that_does_not_exist_will_not_appear(pool: PgPool) {
    let missing = pool
        .connect_options()
        .as_ref()
        .clone()
        .database("there_is_no_such_database");
    let store = Store::open(&settings(missing.to_url_lossy().to_string())).unwrap();
    let error = store.ping().await.unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
}

/// A statement of `store` that waits until `blocker` lets go.
fn blocked_statement(store: &Store) -> JoinHandle<Result<LeaseView, Error>> {
    let store = store.clone();
    tokio::spawn(async move { store.view_lease("push").await })
}

async fn blocker(pool: &PgPool) -> Transaction<'static, Postgres> {
    let mut blocker = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE leases IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *blocker)
        .await
        .unwrap();
    blocker
}

#[testkit::database_test]
async fn a_connection_that_the_server_terminates_is_replaced(pool: PgPool) {
    let store = Store::open(&settings(url(&pool))).unwrap();
    let blocker = blocker(&pool).await;
    let statement = blocked_statement(&store);
    until_blocked(&pool, 1).await;
    sqlx::query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'failures' AND datname = current_database()",
    )
    .execute(&pool)
    .await
    .unwrap();
    let error = statement.await.unwrap().unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    blocker.rollback().await.unwrap();
    store.view_lease("push").await.unwrap();
    store.close().await;
}

#[testkit::database_test]
async fn a_closed_store_is_unavailable(pool: PgPool) {
    let store = Store::open(&settings(url(&pool))).unwrap();
    store.ping().await.unwrap();
    store.close().await;
    assert!(store.ping().await.unwrap_err().is_transient());
}

#[testkit::database_test]
async fn all_connections_in_use_is_transient(pool: PgPool) {
    let settings = Settings {
        lease_connections: 1,
        acquire_timeout: Duration::from_secs(3),
        ..settings(url(&pool))
    };
    let store = Store::open(&settings).unwrap();
    store.ping().await.unwrap();
    let blocker = blocker(&pool).await;
    let held = blocked_statement(&store);
    until_blocked(&pool, 1).await;
    let error = store.view_lease("push").await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    blocker.rollback().await.unwrap();
    held.await.unwrap().unwrap();
    store.close().await;
}

#[sqlx::test(migrations = false)]
async fn a_schema_that_is_missing_is_not_transient(pool: PgPool) {
    let error = Store::from_pool(pool).backlog().await.unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
}

#[testkit::database_test]
async fn connections_that_fall_silent_are_replaced(pool: PgPool) {
    let (proxy, through) = FaultProxy::for_url(&url(&pool)).await;
    let store = Store::open(&settings(through)).unwrap();
    store.ping().await.unwrap();
    proxy.freeze();
    let silent = within(Duration::from_millis(300), store.ping()).await;
    assert!(
        matches!(silent, Err(Error::Silent { .. } | Error::Unavailable(_))),
        "{silent:?}"
    );
    eventually("the pool to have a living connection", async || {
        store.ping().await.ok()
    })
    .await;
}
