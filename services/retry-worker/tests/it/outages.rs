//! Servers that are away for a while.

use config::Secret;
use domain::push::{PushState, PushStatus};
use testkit::push_factory::PushRow;
use testkit::{FaultProxy, Installation, eventually};

use crate::rig::{hurry, read, reader, rows, signs_of_life, start, view};

#[testkit::test]
async fn without_a_broker_nothing_is_promoted_and_with_one_everything_goes(mut it: Installation) {
    hurry(&mut it.config);
    let mut ids = Vec::new();
    for state in [PushState::Pending, PushState::Scheduled, PushState::Retry] {
        ids.push(PushRow::in_state(state).make(&it.pool).await.id);
    }
    ids.sort();
    let before = rows(&it.pool, &ids).await;
    let broker = it.broker();
    let mut reader = reader(&broker);
    let (proxy, url) = FaultProxy::for_url(it.config.amqp.url.expose()).await;
    it.config.amqp.url = Secret::new(url);
    proxy.cut();
    let worker = start(&it.config);
    for job in ["send-pending", "send-scheduled"] {
        eventually("the job to have been executed", async || {
            signs_of_life(&it.pool, job).await.filter(|signs| *signs > 2)
        })
        .await;
    }
    assert_eq!(rows(&it.pool, &ids).await, before);
    assert!(worker.why_not("broker").is_some());
    proxy.heal();
    let mut published = read(&mut reader, 3).await;
    published.sort();
    assert_eq!(published, ids);
    for id in ids {
        assert_eq!(view(&it, id).await.status, PushStatus::InMemory);
    }
    worker.stop().await;
}

#[testkit::test]
async fn it_goes_on_when_the_database_is_back(mut it: Installation) {
    hurry(&mut it.config);
    let broker = it.broker();
    let mut reader = reader(&broker);
    let (proxy, url) = FaultProxy::for_url(it.config.database.url.expose()).await;
    it.config.database.url = Secret::new(url);
    let worker = start(&it.config);
    let first = PushRow::in_state(PushState::Pending).make(&it.pool).await.id;
    assert_eq!(read(&mut reader, 1).await, [first]);
    proxy.cut();
    let second = PushRow::in_state(PushState::Pending).make(&it.pool).await.id;
    eventually("the database to be missed", async || worker.why_not("database")).await;
    assert_eq!(view(&it, second).await.status, PushStatus::Pending);
    proxy.heal();
    assert_eq!(read(&mut reader, 1).await, [second]);
    worker.stop().await;
}

#[testkit::test]
async fn it_stops_in_time_while_both_servers_are_away(mut it: Installation) {
    hurry(&mut it.config);
    let (database, database_url) = FaultProxy::for_url(it.config.database.url.expose()).await;
    let (amqp, amqp_url) = FaultProxy::for_url(it.config.amqp.url.expose()).await;
    it.config.database.url = Secret::new(database_url);
    it.config.amqp.url = Secret::new(amqp_url);
    let worker = start(&it.config);
    eventually("it to be ready", async || worker.is_ready().then_some(())).await;
    database.cut();
    amqp.cut();
    worker.stop().await;
}

/// As when a router on the way dies in the middle of a statement.
#[testkit::test]
async fn it_stops_in_time_while_a_job_waits_for_an_answer_that_never_comes(mut it: Installation) {
    hurry(&mut it.config);
    let (database, url) = FaultProxy::for_url(it.config.database.url.expose()).await;
    it.config.database.url = Secret::new(url);
    let mut holder = it.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE push_notifications")
        .execute(&mut *holder)
        .await
        .unwrap();
    let worker = start(&it.config);
    eventually("a job to wait for its statement", async || {
        let waits = "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                     WHERE d.datname = current_database() AND NOT l.granted)";
        let waits: bool = sqlx::query_scalar(waits).fetch_one(&mut *holder).await.unwrap();
        waits.then_some(())
    })
    .await;
    database.freeze();
    worker.stop().await;
}
