//! Bulk work on dead letters, while workers come and go.

use domain::clock::{Clock, SystemClock};
use domain::dead_letter_job::JobAction;
use domain::notification::{NotificationState, NotificationStatus};
use domain::push::PushState;
use metrics_exporter_prometheus::PrometheusBuilder;
use store::{Act, DeadLetterFilter, DeadLetterSelection, JobCare, JobCreated, NewDeadLetterJob};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::{Installation, eventually};
use uuid::Uuid;

use crate::lane::{becomes, receiver_of_a_subscription};
use crate::rig::{shows, start};

/// How many dead letters a job is about.
const DEAD_LETTERS: i64 = 60;

async fn create(it: &Installation, action: JobAction, per_second: u32) -> Uuid {
    let new = NewDeadLetterJob {
        id: None,
        action,
        selection: DeadLetterSelection::Matching(DeadLetterFilter::default()),
        per_second,
        care: JobCare::default(),
    };
    let act = Act {
        by: "Anna (1)",
        note: Some("it is over"),
        at: SystemClock.now(),
    };
    match it.store.create_dead_letter_job(&new, &act).await.unwrap() {
        JobCreated::Done(job) => job.id,
        other => panic!("there should be a job: {other:?}"),
    }
}

async fn done(it: &Installation, job: Uuid, status: &str) -> Option<i64> {
    sqlx::query_scalar("SELECT done FROM dead_letter_jobs WHERE id = $1 AND status = $2")
        .bind(job)
        .bind(status)
        .fetch_optional(&it.pool)
        .await
        .unwrap()
}

async fn completed(it: &Installation, job: Uuid) -> i64 {
    eventually("the job to be through", async || done(it, job, "COMPLETED").await).await
}

/// The first worker is stopped in the middle, and two go on.
#[testkit::test]
async fn a_job_goes_on_where_it_stood_and_resolves_everything_once(it: Installation) {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let metrics = recorder.handle();
    for _ in 0..DEAD_LETTERS {
        PushRow::in_state(PushState::Failed).make(&it.pool).await;
    }
    let job = create(&it, JobAction::Replay, 30).await;
    let first = start(&it.config);
    eventually("the job to begin", async || {
        let begun: i64 = sqlx::query_scalar("SELECT done FROM dead_letter_jobs")
            .fetch_one(&it.pool)
            .await
            .ok()?;
        (begun > 0).then_some(())
    })
    .await;
    first.stop().await;
    let others = [start(&it.config), start(&it.config)];
    assert_eq!(completed(&it, job).await, DEAD_LETTERS);
    shows(
        &metrics,
        &format!("postrider_dead_letters_replayed_total {DEAD_LETTERS}"),
    )
    .await;
    for worker in others {
        worker.stop().await;
    }
    // No dispatcher sends here: what was replayed waits, or is in the queue, each with one attempt behind it.
    let replayed: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM push_notifications
         WHERE status IN ('PENDING', 'IN_MEMORY') AND replayed_after = 1 AND attempts = 1",
    )
    .fetch_one(&it.pool)
    .await
    .unwrap();
    assert_eq!(replayed, DEAD_LETTERS);
}

#[testkit::test]
async fn a_slow_job_does_not_hold_up_another_and_a_discard_sends_nothing(it: Installation) {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let metrics = recorder.handle();
    for _ in 0..DEAD_LETTERS {
        PushRow::in_state(PushState::GivenUp).make(&it.pool).await;
    }
    let slow = create(&it, JobAction::Discard, 1).await;
    let fast = create(&it, JobAction::Discard, 1_000).await;
    let worker = start(&it.config);
    let by_fast = completed(&it, fast).await;
    let by_slow = completed(&it, slow).await;
    worker.stop().await;
    assert_eq!(by_fast + by_slow, DEAD_LETTERS);
    shows(
        &metrics,
        &format!("postrider_dead_letters_discarded_total {DEAD_LETTERS}"),
    )
    .await;
    let ended: i64 = sqlx::query_scalar("SELECT count(*) FROM push_notifications WHERE status = 'GIVEN_UP'")
        .fetch_one(&it.pool)
        .await
        .unwrap();
    assert_eq!(ended, DEAD_LETTERS);
}

#[testkit::test]
async fn replayed_notifications_arrive_once(it: Installation) {
    let (receiver, subscription) = receiver_of_a_subscription(&it).await;
    let mut made = Vec::new();
    for state in [NotificationState::Failed, NotificationState::GivenUp] {
        made.push(
            NotificationRow::in_state(state, subscription)
                .attempts(4)
                .make(&it.pool)
                .await,
        );
    }
    // Two jobs about the same dead letters: whichever comes first does it.
    let jobs = [
        create(&it, JobAction::Replay, 1_000).await,
        create(&it, JobAction::Replay, 1_000).await,
    ];
    let worker = start(&it.config);
    for notification in &made {
        becomes(&it.pool, notification.id, NotificationStatus::Sent).await;
    }
    assert_eq!(completed(&it, jobs[0]).await + completed(&it, jobs[1]).await, 2);
    worker.stop().await;
    let report = receiver.report();
    assert_eq!((report.received, report.accepted, report.distinct_ids), (2, 2, 2));
}
