//! Services that report themselves.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::PgPool;
use store::{Beat, Store};
use uuid::Uuid;

async fn beat(store: &Store, process: Uuid, service: &str, state: &Value) {
    let beat = Beat {
        process,
        service,
        host: "one",
        pid: 17,
        version: "0.1.0",
        uptime: Duration::from_secs(60),
        state,
    };
    store.beat(beat).await.unwrap();
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_report_keeps_the_counters_of_the_one_before(pool: PgPool) {
    let store = Store::from_pool(pool);
    let process = Uuid::now_v7();
    beat(
        &store,
        process,
        "dispatcher",
        &json!({"counters": {"pushesSent": 1}}),
    )
    .await;
    let first = store.list_processes().await.unwrap().remove(0);
    assert!(first.state["previous"].is_null(), "{first:?}");
    assert!(first.started_at < first.beat_at, "{first:?}");

    beat(
        &store,
        process,
        "dispatcher",
        &json!({"counters": {"pushesSent": 5}}),
    )
    .await;
    beat(&store, process, "retry-worker", &json!({})).await;
    let known = store.list_processes().await.unwrap();
    let services: Vec<&str> = known.iter().map(|process| process.service.as_str()).collect();
    assert_eq!(services, ["dispatcher", "retry-worker"]);
    assert_eq!(known[0].state["counters"]["pushesSent"], 5);
    assert_eq!(known[0].state["previous"]["counters"]["pushesSent"], 1);
    assert_eq!(known[0].started_at, first.started_at, "it was started once");
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_process_that_says_goodbye_is_forgotten_at_once_and_a_silent_one_in_time(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let (ended, silent, living) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
    for process in [ended, silent, living] {
        beat(&store, process, "dispatcher", &json!({})).await;
    }
    store.forget_process(ended, "dispatcher").await.unwrap();
    sqlx::query("UPDATE processes SET beat_at = beat_at - interval '2 days' WHERE id = $1")
        .bind(silent)
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(
        store
            .forget_silent_processes(Duration::from_secs(86_400))
            .await
            .unwrap(),
        1
    );
    let known = store.list_processes().await.unwrap();
    assert_eq!(
        known.iter().map(|process| process.process).collect::<Vec<_>>(),
        [living]
    );
}
