//! What a recovery after a restore stops that would send again by itself, and that it tells of it, after an interrupted run too.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::dead_letter_job::{JobAction, JobStatus};
use domain::notification::NotificationState;
use domain::push::PushState;
use sqlx::PgPool;
use store::{
    Act, DeadLetterFilter, DeadLetterSelection, JobCare, JobCreated, Lane, NewDeadLetterJob, Pausable,
    RecoveryTerms, Store,
};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::after_restore::{act, break_off, gap, go_on, now, recover};
use crate::portal_visits::{link, rig, visited};

const TERMS: RecoveryTerms = RecoveryTerms {
    enabled: true,
    per_second: 100,
    max_age: Duration::from_hours(720),
};

/// A job that replays, a replay of a reseller, and an outage; returns the job.
async fn make_what_sends_again(store: &Store, pool: &PgPool, subscription: Uuid) -> Uuid {
    PushRow::in_state(PushState::Failed).make(pool).await;
    let job = NewDeadLetterJob {
        id: None,
        action: JobAction::Replay,
        selection: DeadLetterSelection::Matching(DeadLetterFilter::default()),
        per_second: 10,
        care: JobCare::default(),
    };
    let JobCreated::Done(job) = store.create_dead_letter_job(&job, &act()).await.unwrap() else {
        panic!("there should be a job")
    };
    sqlx::query(
        "INSERT INTO replays (id, subscription_id, reseller_id, since, until, per_second, created_at, updated_at)
         VALUES (gen_random_uuid(), $1, 'acme', now() - interval '1 hour', now(), 10, now(), now())",
    )
    .bind(subscription)
    .execute(pool)
    .await
    .unwrap();
    begin_outage(pool, subscription).await;
    job.id
}

async fn begin_outage(pool: &PgPool, subscription: Uuid) {
    sqlx::query("UPDATE subscriptions SET outage_since = now() - interval '1 hour' WHERE id = $1")
        .bind(subscription)
        .execute(pool)
        .await
        .unwrap();
}

/// A recovery that is in `status` and whose consequences have not been drawn.
async fn make_recovery(pool: &PgPool, subscription: Uuid, status: &str) -> Uuid {
    begin_outage(pool, subscription).await;
    sqlx::query_scalar(
        "INSERT INTO dead_letter_jobs (id, action, status, filter, per_second, until, matching, created_by, created_at, paced_to,
                                       updated_at, finished_at, recovers)
         VALUES (gen_random_uuid(), 'REPLAY', $2, '{}', 10, now(), 1, 'postrider', now(), now(),
                 now(), CASE WHEN $2 = 'COMPLETED' THEN now() END, $1)
         RETURNING id",
    )
    .bind(subscription)
    .bind(status)
    .fetch_one(pool)
    .await
    .unwrap()
}

async fn recorded(pool: &PgPool, action: &str) -> Vec<(String, String)> {
    sqlx::query_as("SELECT subject, actor FROM audit_log WHERE action = $1")
        .bind(action)
        .fetch_all(pool)
        .await
        .unwrap()
}

#[testkit::database_test]
async fn what_was_sending_again_does_not_go_on_by_itself(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let job = make_what_sends_again(&store, &pool, subscription).await;
    let recovered = recover(&store, gap()).await;
    assert_eq!(recovered.stopped.jobs_paused, [job]);
    assert_eq!(recovered.stopped.replays_cancelled.len(), 1);
    assert_eq!(recovered.stopped.outages_forgotten, 1);
    let paused = store.find_dead_letter_job(job).await.unwrap().unwrap();
    assert_eq!(paused.status, JobStatus::Paused);
    assert!(store.running_dead_letter_jobs().await.unwrap().is_empty());
    assert!(store.running_replays().await.unwrap().is_empty());
    assert_eq!(store.begin_recoveries(&TERMS, now()).await.unwrap(), 0);
    let by: String = sqlx::query_scalar("SELECT cancelled_by FROM replays")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(by, "OPERATOR", "resellers are not told who of them");
    let anna = |subject: String| [(subject, "Anna (1)".to_owned())];
    assert_eq!(
        recorded(&pool, "dead-letter-job.pause").await,
        anna(format!("dead-letter-job/{job}"))
    );
    assert_eq!(
        recorded(&pool, "replay.cancel").await,
        anna(format!("subscription/{subscription}"))
    );
}

#[testkit::database_test]
async fn what_an_interrupted_run_has_stopped_is_told_by_those_after_it(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let job = make_what_sends_again(&store, &pool, subscription).await;
    NotificationRow::in_state(NotificationState::Pending, subscription)
        .make(&pool)
        .await;
    break_off(&pool).await;
    let gap = gap();
    store.recover_after_restore(gap, act(), |_| ()).await.unwrap_err();
    go_on(&pool).await;
    let recovered = recover(&store, gap).await;
    assert_eq!(recovered.stopped.jobs_paused, [job]);
    assert_eq!(recovered.stopped.replays_cancelled.len(), 1);
    assert_eq!(recovered.stopped.outages_forgotten, 1);
    let again = recover(&store, gap).await;
    assert!(again.done_before.is_some());
    assert_eq!(again.stopped, recovered.stopped);
}

#[testkit::database_test]
async fn no_recovery_notes_its_outage_again(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut recoveries = Vec::new();
    for status in ["RUNNING", "PAUSED", "COMPLETED"] {
        let subscription = SubscriptionRow::active().make(&pool).await;
        recoveries.push((make_recovery(&pool, subscription, status).await, status));
    }
    let recovered = recover(&store, gap()).await;
    assert!(recovered.stopped.jobs_paused.is_empty());
    assert_eq!(recovered.stopped.outages_forgotten, 3);
    assert_eq!(store.settle_recoveries(now()).await.unwrap(), []);
    let noted: Vec<DateTime<Utc>> =
        sqlx::query_scalar("SELECT outage_since FROM subscriptions WHERE outage_since IS NOT NULL")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert!(noted.is_empty(), "{noted:?}");
    assert_eq!(store.begin_recoveries(&TERMS, now()).await.unwrap(), 0);
    for (id, status) in recoveries {
        let now: String = sqlx::query_scalar("SELECT status FROM dead_letter_jobs WHERE id = $1 AND settled")
            .bind(id)
            .fetch_one(&pool)
            .await
            .unwrap();
        let expected = if status == "COMPLETED" {
            status
        } else {
            "CANCELLED"
        };
        assert_eq!(now, expected, "{status}");
    }
    assert_eq!(recorded(&pool, "dead-letter-job.cancel").await.len(), 2);
}

#[testkit::database_test]
async fn a_pause_that_was_to_end_by_itself_does_not_end_in_the_middle(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    NotificationRow::in_state(NotificationState::Pending, subscription)
        .make(&pool)
        .await;
    let lane = Pausable::Lane(Lane::Reseller);
    let over = now() - TimeDelta::minutes(1);
    let for_a_while = Act {
        note: Some("for a while"),
        ..act()
    };
    store.pause_until(&lane, Some(over), for_a_while).await.unwrap();
    break_off(&pool).await;
    let gap = gap();
    store.recover_after_restore(gap, act(), |_| ()).await.unwrap_err();
    assert_eq!(store.end_pauses(now()).await.unwrap(), 0);
    assert!(store.lane_is_paused(Lane::Reseller).await.unwrap());
    go_on(&pool).await;
    let recovered = recover(&store, gap).await;
    assert_eq!(recovered.lanes_paused, ["reseller"]);
    assert!(store.lane_is_paused(Lane::Reseller).await.unwrap());
    assert!(!store.lane_is_paused(Lane::Push).await.unwrap());
}

#[testkit::database_test]
async fn visits_that_may_have_been_ended_are(pool: PgPool) {
    let (store, key, at) = rig(&pool).await;
    let visit = visited(&store, &link(key, "anna", at), "first", at).await;
    recover(&store, gap()).await;
    let found = store.find_portal_visit(&visit, now(), true).await;
    assert_eq!(found.unwrap(), None);
}
