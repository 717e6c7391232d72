//! Services that report themselves.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use sqlx::PgPool;
use store::{Beat, Lane, Store};
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

#[testkit::database_test]
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

#[testkit::database_test]
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

#[testkit::database_test]
async fn messages_are_shared_once_all_that_read_them_have_said_that_they_can(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let shared = async || store.shared_messages_are_read().await.unwrap();
    assert!(!shared().await, "no reader is known");
    let reads = json!({"readsSharedMessages": true});
    let (new, old) = (Uuid::now_v7(), Uuid::now_v7());
    beat(&store, new, "ingest-api", &json!({})).await;
    beat(&store, new, "dispatcher", &reads).await;
    assert!(shared().await);
    beat(&store, old, "retry-worker", &json!({})).await;
    assert!(!shared().await, "one is of a version that cannot");
    sqlx::query("UPDATE processes SET beat_at = beat_at - interval '2 minutes' WHERE id = $1")
        .bind(old)
        .execute(&pool)
        .await
        .unwrap();
    assert!(shared().await, "it has not been heard of for long");
}

#[testkit::database_test]
async fn what_a_lane_did_is_told_by_the_minute(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
    let noon: DateTime<Utc> = "2026-11-21T12:00:30Z".parse().unwrap();
    let report = async |process: Uuid, minutes_ago: i64, uptime: i64, sent: u64, accepted: u64| {
        let at = noon - TimeDelta::minutes(minutes_ago);
        sqlx::query("INSERT INTO process_minutes VALUES ($1, date_trunc('minute', $2), $3, $4, '7')")
            .bind(process)
            .bind(at)
            .bind(at - TimeDelta::seconds(uptime))
            .bind(json!({"pushesSent": sent, "pushesAccepted": accepted}))
            .execute(&pool)
            .await
            .unwrap();
    };
    // What it did before the first minute that is known is not counted.
    report(one, 2, 3_600, 1_000, 5).await;
    report(one, 1, 3_660, 1_020, 6).await;
    report(one, 0, 3_720, 1_025, 8).await;
    // One that was started in the minute has done all of it there.
    report(other, 0, 5, 0, 3).await;
    let minutes = store.lane_minutes(Lane::Push, 4, noon).await.unwrap();
    let told = minutes
        .iter()
        .map(|it| (it.processes, it.delivered, it.accepted))
        .collect::<Vec<_>>();
    assert_eq!(told, [(0, 0, 0), (1, 0, 0), (1, 20, 1), (2, 5, 5)]);
    assert!(minutes.is_sorted_by_key(|it| it.minute));
    assert_eq!((&minutes[0].epochs, &minutes[3].epochs), (&vec![], &vec![7]));
    // The minute before the first one that is asked for is looked at for its counters.
    let last = store.lane_minutes(Lane::Push, 1, noon).await.unwrap();
    assert_eq!((last.len(), last[0].delivered), (1, 5));
    let other_lane = store.lane_minutes(Lane::Reseller, 2, noon).await.unwrap();
    assert!(other_lane.iter().all(|it| it.accepted == 0 && it.processes > 0));
}

#[testkit::database_test]
async fn slots_of_the_reseller_lane_are_told_as_full_as_they_were(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
    for (process, in_flight, put_back) in [(one, 380, 0), (one, 12, 0), (other, 5, 7)] {
        let state = json!({
            "counters": {"notificationsPutBack": put_back}, "deliveriesInFlight": in_flight, "deliverySlots": 400,
        });
        beat(&store, process, "dispatcher", &state).await;
    }
    // One that delivers nothing has no slots, whatever it says.
    let state = json!({"counters": {}, "deliveriesInFlight": 3, "deliverySlots": 0});
    beat(&store, Uuid::now_v7(), "ingest-api", &state).await;
    // All in one minute, whichever it was.
    sqlx::query("UPDATE process_minutes SET started_at = minute")
        .execute(&pool)
        .await
        .unwrap();
    let now: DateTime<Utc> = sqlx::query_scalar("SELECT now()").fetch_one(&pool).await.unwrap();
    let told = async |lane: Lane| {
        let minutes = store.lane_minutes(lane, 2, now).await.unwrap();
        let most = minutes.iter().map(|it| (it.in_flight, it.slots)).max().unwrap();
        (most, minutes.iter().map(|it| it.put_back).sum::<u64>())
    };
    assert_eq!(told(Lane::Push).await, ((0, 0), 0));
    let ((in_flight, slots), put_back) = told(Lane::Reseller).await;
    assert_eq!(put_back, 7);
    // A minute may have ended between the reports.
    assert!(in_flight >= 380 && slots >= 400, "{in_flight} of {slots}");
}

#[testkit::database_test]
async fn the_last_report_of_a_minute_is_kept_for_an_hour(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let process = Uuid::now_v7();
    beat(
        &store,
        process,
        "dispatcher",
        &json!({"counters": {"pushesSent": 1}, "leading": 7}),
    )
    .await;
    beat(
        &store,
        process,
        "retry-worker",
        &json!({"counters": {"pushesSent": 2}, "leading": null}),
    )
    .await;
    beat(&store, Uuid::now_v7(), "ingest-api", &json!({})).await;
    let kept: Vec<(Uuid, Value, Value)> =
        sqlx::query_as("SELECT process, counters, epoch FROM process_minutes ORDER BY minute DESC LIMIT 1")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!((kept[0].0, &kept[0].1), (process, &json!({"pushesSent": 2})));
    assert_eq!(store.forget_process_minutes().await.unwrap(), 0);
    sqlx::query("UPDATE process_minutes SET minute = minute - interval '62 minutes'")
        .execute(&pool)
        .await
        .unwrap();
    assert!(store.forget_process_minutes().await.unwrap() > 0);
}
