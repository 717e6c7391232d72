//! Two retry workers: each job is done by one of them at a time, and no job dies with its worker.

use std::collections::BTreeMap;

use broker::Queue;
use domain::push::PushState;
use lifecycle::{Lifecycle, Readiness, Shutdown};
use sqlx::PgPool;
use testkit::push_factory::PushRow;
use testkit::{Installation, eventually};
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::rig::{hurry, queue_holds, read, reader, start};

const JOBS: usize = 25;

/// Who does which job: holder and epoch.
async fn holders(pool: &PgPool) -> BTreeMap<String, (Uuid, i64)> {
    let rows: Vec<(String, Uuid, i64)> = sqlx::query_as(
        "SELECT name, holder, epoch FROM leases WHERE name LIKE 'job/%' AND holder IS NOT NULL",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    rows.into_iter()
        .map(|(name, holder, epoch)| (name, (holder, epoch)))
        .collect()
}

/// Waits until every job is held, by none of those who `had` it.
async fn all_held(pool: &PgPool, had: &BTreeMap<String, (Uuid, i64)>) -> BTreeMap<String, (Uuid, i64)> {
    eventually("every job to be held", async || {
        let held = holders(pool).await;
        let is_new = |(job, (holder, _)): (&String, &(Uuid, i64))| {
            had.get(job).is_none_or(|(before, _)| before != holder)
        };
        (held.len() == JOBS && held.iter().all(is_new)).then_some(held)
    })
    .await
}

/// Waits for a time in which every holder shows signs of life and none changes. A holder that gets no processor time for
/// as long as a lease holds may lose it.
async fn no_other_takes_over(pool: &PgPool) {
    eventually("the jobs to stay where they are", async || {
        let (held, seen) = (holders(pool).await, fewest_renewals(pool).await);
        eventually("every holder to show signs of life", async || {
            (fewest_renewals(pool).await > seen + 1).then_some(())
        })
        .await;
        (holders(pool).await == held).then_some(())
    })
    .await;
}

async fn fewest_renewals(pool: &PgPool) -> i64 {
    sqlx::query_scalar("SELECT min(renewals) FROM leases WHERE name LIKE 'job/%'")
        .fetch_one(pool)
        .await
        .unwrap()
}

#[testkit::test]
async fn each_job_has_one_worker_and_another_goes_on_when_that_one_vanishes(mut it: Installation) {
    hurry(&mut it.config);
    let broker = it.broker();
    let mut reader = reader(&broker);
    // A runtime of its own, whose tasks can be made to vanish without a farewell.
    let doomed = Runtime::new().unwrap();
    let lifecycle = Lifecycle {
        shutdown: Shutdown::new(),
        readiness: Readiness::default(),
    };
    doomed.spawn(retry_worker::run(it.shared_config(), lifecycle));
    let held = all_held(&it.pool, &BTreeMap::new()).await;
    let second = start(&it.config);
    eventually("the second to be ready", async || second.is_ready().then_some(())).await;
    for _ in 0..50 {
        PushRow::in_state(PushState::Pending).make(&it.pool).await;
    }
    let mut published = read(&mut reader, 50).await;
    published.sort();
    published.dedup();
    assert_eq!(published.len(), 50);
    no_other_takes_over(&it.pool).await;
    doomed.shutdown_background();
    let id = PushRow::in_state(PushState::Pending).make(&it.pool).await.id;
    assert_eq!(read(&mut reader, 1).await, [id]);
    // A replica is the same holder in each of its terms.
    all_held(&it.pool, &held).await;
    queue_holds(&broker, Queue::PushReady, 0).await;
    second.stop().await;
    assert!(holders(&it.pool).await.is_empty(), "a replica that stops resigns");
}
