//! What came of replays: that of each stays what it was, though what failed again is replayed once more.

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::dead_letter_job::{JobAction, JobStatus};
use domain::notification::NotificationState;
use domain::push::PushState;
use sqlx::PgPool;
use store::{
    DeadLetterFilter, DeadLetterSelection, Fate, Fates, JobCare, JobCreated, JobOutcome, NewDeadLetterJob,
    Store,
};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::resolution::act;

/// Replays every open dead letter by a job; returns the job.
async fn replay_all(store: &Store) -> Uuid {
    let new = NewDeadLetterJob {
        id: None,
        action: JobAction::Replay,
        selection: DeadLetterSelection::Matching(DeadLetterFilter::default()),
        per_second: 1_000,
        care: JobCare::default(),
    };
    let created = store.create_dead_letter_job(&new, &act(None)).await.unwrap();
    let JobCreated::Done(job) = created else {
        panic!("there should be a job: {created:?}")
    };
    let mut now = SystemClock.now();
    loop {
        now += TimeDelta::seconds(1);
        store.advance_dead_letter_job(job.id, now).await.unwrap();
        let status = store.find_dead_letter_job(job.id).await.unwrap().unwrap().status;
        if status == JobStatus::Completed {
            return job.id;
        }
    }
}

/// As its lane would have left it.
async fn end(pool: &PgPool, table: &str, id: Uuid, status: &str) {
    let sql = format!(
        "UPDATE {table} SET status = $2, reason = NULL, finished_at = now(), next_attempt_at = NULL, leased_until = NULL,
                            lease_token = NULL
         WHERE id = $1"
    );
    sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(id)
        .bind(status)
        .execute(pool)
        .await
        .unwrap();
}

async fn outcome(store: &Store, job: Uuid) -> JobOutcome {
    let outcome = store.dead_letter_job_outcome(job).await.unwrap();
    outcome.expect("the index is there")
}

/// What is told of each dead letter that a job has resolved.
async fn of_each(pool: &PgPool, store: &Store, job: Uuid) -> Vec<(Uuid, Option<Fate>)> {
    let ids: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM dead_letters WHERE job_id = $1")
        .bind(job)
        .fetch_all(pool)
        .await
        .unwrap();
    let letters = store.find_dead_letters(&ids).await.unwrap();
    let told = letters.iter().map(|letter| {
        let subject = letter.push.or(letter.notification).unwrap();
        (subject, letter.outcome)
    });
    let mut told: Vec<_> = told.collect();
    told.sort_unstable_by_key(|(subject, _)| *subject);
    told
}

#[testkit::database_test]
async fn what_failed_again_stays_so_for_a_job_though_a_later_one_has_it_delivered(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let failing = PushRow::in_state(PushState::Failed).make(&pool).await.id.uuid();
    let delivered = PushRow::in_state(PushState::Failed).make(&pool).await.id.uuid();
    let notification = NotificationRow::in_state(NotificationState::Failed, subscription)
        .make(&pool)
        .await
        .id
        .uuid();
    let first = replay_all(&store).await;
    end(&pool, "push_notifications", delivered, "SENT").await;
    end(&pool, "push_notifications", failing, "FAILED").await;
    end(&pool, "notifications", notification, "FAILED").await;
    sqlx::query(
        "INSERT INTO dead_letters (lane, reason, fingerprint, push_id, notification_id, attempts, detail)
         VALUES ('push', 'FAILED', 'swrve/401', $1, NULL, 2, 'no'),
                ('reseller', 'FAILED', 'delivery/http/500/html', NULL, $2, 2, 'no')",
    )
    .bind(failing)
    .bind(notification)
    .execute(&pool)
    .await
    .unwrap();
    let failed_again = Fates {
        delivered: 1,
        failed: 2,
        ..Fates::default()
    };
    let so_far = outcome(&store, first).await;
    assert_eq!(so_far.total(), failed_again);

    let second = replay_all(&store).await;
    assert_eq!(
        outcome(&store, first).await,
        so_far,
        "they wait for the second one"
    );
    end(&pool, "push_notifications", failing, "SENT").await;
    assert_eq!(outcome(&store, first).await, so_far);
    let failures = so_far.kinds.iter().flat_map(|kind| kind.failures.clone());
    let mut failures: Vec<(String, u64)> = failures.collect();
    failures.sort_unstable();
    assert_eq!(
        failures,
        [
            ("delivery/http/500/html".to_owned(), 1),
            ("swrve/401".to_owned(), 1)
        ]
    );
    let told = Fates {
        delivered: 1,
        waiting: 1,
        ..Fates::default()
    };
    assert_eq!(outcome(&store, second).await.total(), told);

    let mut expected = vec![
        (failing, Some(Fate::FailedAgain)),
        (delivered, Some(Fate::Delivered)),
        (notification, Some(Fate::FailedAgain)),
    ];
    expected.sort_unstable_by_key(|(subject, _)| *subject);
    assert_eq!(of_each(&pool, &store, first).await, expected);
    let mut expected = vec![
        (failing, Some(Fate::Delivered)),
        (notification, Some(Fate::Waiting)),
    ];
    expected.sort_unstable_by_key(|(subject, _)| *subject);
    assert_eq!(of_each(&pool, &store, second).await, expected);
}

#[testkit::database_test]
async fn what_was_cancelled_after_its_replay_is_told_as_cancelled(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Failed).make(&pool).await;
    let job = replay_all(&store).await;
    let cancelled = store.cancel_push(push.id, act(None)).await.unwrap();
    assert!(matches!(cancelled, store::Cancellation::Done(_)), "{cancelled:?}");
    let told = Fates {
        cancelled: 1,
        ..Fates::default()
    };
    assert_eq!(outcome(&store, job).await.total(), told);
    assert_eq!(
        of_each(&pool, &store, job).await,
        [(push.id.uuid(), Some(Fate::Cancelled))]
    );
}
