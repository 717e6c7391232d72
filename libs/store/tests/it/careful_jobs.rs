//! Jobs on dead letters that are careful, and what makes them stop and go on.

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::dead_letter_job::{JobAction, JobCommand, JobPause, JobStatus};
use domain::push::{PushId, PushState};
use serde_json::json;
use sqlx::PgPool;
use store::{
    AuditFilter, CANARY_WAIT, Cancellation, DeadLetterFilter, DeadLetterJob, DeadLetterSelection, JobCare,
    JobCommanded, JobCreated, NewDeadLetterJob, Store,
};
use testkit::push_factory::PushRow;
use uuid::Uuid;

use crate::resolution::act;

/// A job of which a test takes one step a second.
struct Scene {
    pool: PgPool,
    store: Store,
    job: Uuid,
    now: DateTime<Utc>,
}

impl Scene {
    /// `count` failed pushes, the later ones with the newer dead letters, and a job about all of them.
    async fn with(pool: &PgPool, count: u32, care: JobCare) -> Self {
        let store = Store::from_pool(pool.clone());
        for n in 0..count {
            let push = PushRow::in_state(PushState::Failed).make(pool).await;
            sqlx::query(
                "UPDATE dead_letters SET created_at = now() - $2 * interval '1 minute' WHERE push_id = $1",
            )
            .bind(push.id.uuid())
            .bind(i32::try_from(count - n).unwrap())
            .execute(pool)
            .await
            .unwrap();
        }
        let new = NewDeadLetterJob {
            id: None,
            action: JobAction::Replay,
            selection: DeadLetterSelection::Matching(DeadLetterFilter::default()),
            per_second: 10,
            care,
        };
        let created = store.create_dead_letter_job(&new, &act(None)).await.unwrap();
        let JobCreated::Done(job) = created else {
            panic!("there should be a job: {created:?}")
        };
        Self {
            pool: pool.clone(),
            store,
            job: job.id,
            now: SystemClock.now(),
        }
    }

    /// Takes a step; returns how many dead letters it has resolved.
    async fn step(&mut self) -> u64 {
        self.now += TimeDelta::seconds(1);
        let step = self
            .store
            .advance_dead_letter_job(self.job, self.now)
            .await
            .unwrap();
        step.replayed
    }

    async fn job(&self) -> DeadLetterJob {
        self.store.find_dead_letter_job(self.job).await.unwrap().unwrap()
    }

    async fn state(&self) -> (JobStatus, Option<JobPause>) {
        let job = self.job().await;
        (job.status, job.paused_because)
    }

    async fn tell(&self, command: JobCommand) {
        let told = self
            .store
            .command_dead_letter_job(self.job, command, &act(None))
            .await;
        assert!(matches!(told.unwrap(), JobCommanded::Done(_)));
    }

    /// The pushes that the job has made due and that have not ended since, those with the oldest dead letters first.
    async fn due(&self) -> Vec<Uuid> {
        sqlx::query_scalar(
            "SELECT p.id FROM push_notifications p JOIN dead_letters d ON d.push_id = p.id
             WHERE d.job_id = $1 AND p.status = 'PENDING' ORDER BY d.created_at",
        )
        .bind(self.job)
        .fetch_all(&self.pool)
        .await
        .unwrap()
    }

    async fn deliver(&self, pushes: &[Uuid]) {
        sqlx::query("UPDATE push_notifications SET status = 'SENT', reason = NULL, finished_at = now() WHERE id = ANY ($1)")
            .bind(pushes)
            .execute(&self.pool)
            .await
            .unwrap();
    }

    /// Lets pushes fail again.
    async fn fail(&self, pushes: &[Uuid]) {
        sqlx::query(
            "WITH failed AS (
                 UPDATE push_notifications SET status = 'FAILED', reason = NULL, finished_at = now() WHERE id = ANY ($1)
                 RETURNING id)
             INSERT INTO dead_letters (lane, reason, fingerprint, push_id, attempts, detail)
             SELECT 'push', 'FAILED', 'swrve/503', id, 1, 'no' FROM failed",
        )
        .bind(pushes)
        .execute(&self.pool)
        .await
        .unwrap();
    }

    /// Has pushes fail in a way that is tried again later.
    async fn fail_for_now(&self, pushes: &[Uuid]) {
        sqlx::query(
            "UPDATE push_notifications SET status = 'RETRY', attempts = attempts + 1, next_attempt_at = now() + interval '1 hour'
             WHERE id = ANY ($1)",
        )
        .bind(pushes)
        .execute(&self.pool)
        .await
        .unwrap();
    }

    /// Cancels pushes, as an operator does.
    async fn cancel(&self, pushes: &[Uuid]) {
        for id in pushes {
            let cancelled = self.store.cancel_push(PushId::from(*id), act(None)).await;
            assert!(matches!(cancelled.unwrap(), Cancellation::Done(_)));
        }
    }

    /// Lets the seconds pass after which a dead letter is counted: everything was earlier.
    async fn pass(&self) {
        for statement in [
            "UPDATE dead_letters SET created_at = created_at - interval '11 seconds'",
            "UPDATE dead_letter_jobs SET until = until - interval '11 seconds', judged_to = judged_to - interval '11 seconds'",
        ] {
            sqlx::query(statement).execute(&self.pool).await.unwrap();
        }
    }

    /// Who did what to the job, the oldest first.
    async fn log(&self) -> Vec<String> {
        let log = self.store.list_audit(&AuditFilter::default(), 100).await.unwrap();
        let entries = log.iter().rev();
        entries
            .map(|entry| {
                let because = entry.details["because"].as_str().unwrap_or_default();
                let actor = entry.actor.split(' ').next().unwrap();
                format!("{actor} {} {because}", entry.action).trim().to_owned()
            })
            .collect()
    }
}

fn canary(count: u32) -> JobCare {
    JobCare {
        canary: Some(count),
        ..JobCare::default()
    }
}

#[testkit::database_test]
async fn a_limited_job_takes_the_newest_and_no_more_than_it_may(pool: PgPool) {
    let care = JobCare {
        letters_max: Some(13),
        newest_first: true,
        ..JobCare::default()
    };
    let mut scene = Scene::with(&pool, 20, care).await;
    assert_eq!(scene.job().await.matching, 13);
    assert_eq!((scene.step().await, scene.step().await), (10, 3));
    let job = scene.job().await;
    assert_eq!(
        (job.status, job.examined, job.done),
        (JobStatus::Completed, 13, 13)
    );
    let newest: Vec<Uuid> = sqlx::query_scalar(
        "SELECT push_id FROM dead_letters WHERE created_at >= now() - interval '13 minutes 30 seconds' ORDER BY created_at",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    assert_eq!(scene.due().await, newest);
}

#[testkit::database_test]
async fn the_others_follow_by_themselves_when_all_of_the_first_are_delivered(pool: PgPool) {
    let mut scene = Scene::with(&pool, 12, canary(3)).await;
    assert_eq!((scene.step().await, scene.step().await), (3, 0));
    let waiting = (JobStatus::Paused, Some(JobPause::Canary));
    assert_eq!(scene.state().await, waiting);
    assert_eq!(scene.store.running_dead_letter_jobs().await.unwrap(), [scene.job]);
    let first = scene.due().await;
    scene.deliver(&first[1..]).await;
    assert_eq!((scene.step().await, scene.state().await), (0, waiting));
    scene.deliver(&first).await;
    assert_eq!(
        (scene.step().await, scene.state().await),
        (0, (JobStatus::Running, None))
    );
    assert_eq!(scene.step().await, 9);
    assert_eq!(scene.state().await, (JobStatus::Completed, None));
    assert_eq!(
        scene.log().await,
        [
            "Anna dead-letter-job.create",
            "postrider dead-letter-job.pause CANARY",
            "postrider dead-letter-job.resume",
            "Anna dead-letter-job.complete"
        ]
    );
}

#[testkit::database_test]
async fn the_first_are_waited_for_a_day_and_then_an_operator_decides(pool: PgPool) {
    let mut scene = Scene::with(&pool, 12, canary(3)).await;
    assert_eq!((scene.step().await, scene.step().await), (3, 0));
    let first = scene.due().await;
    scene.deliver(&first[1..]).await;
    scene.now += CANARY_WAIT - TimeDelta::seconds(2);
    let waiting = (JobStatus::Paused, Some(JobPause::Canary));
    assert_eq!((scene.step().await, scene.state().await), (0, waiting));
    scene.now += TimeDelta::seconds(2);
    let failed = (JobStatus::Paused, Some(JobPause::CanaryFailed));
    assert_eq!((scene.step().await, scene.state().await), (0, failed));
    scene.tell(JobCommand::Resume).await;
    assert_eq!(scene.step().await, 9);
}

#[testkit::database_test]
async fn an_identifier_makes_one_job(pool: PgPool) {
    let scene = Scene::with(&pool, 5, canary(3)).await;
    let id = Uuid::now_v7();
    let new = NewDeadLetterJob {
        id: Some(id),
        action: JobAction::Replay,
        selection: DeadLetterSelection::Matching(DeadLetterFilter::default()),
        per_second: 10,
        care: canary(3),
    };
    let made =
        async |new: &NewDeadLetterJob| scene.store.create_dead_letter_job(new, &act(None)).await.unwrap();
    let first = made(&new).await;
    assert!(
        matches!(&first, JobCreated::Done(job) if job.id == id),
        "{first:?}"
    );
    assert_eq!(made(&new).await, first);
    let other = NewDeadLetterJob {
        per_second: 11,
        ..new
    };
    assert_eq!(made(&other).await, JobCreated::Taken);
    let jobs = scene.store.list_dead_letter_jobs(None, None, 10).await.unwrap();
    assert_eq!(jobs.len(), 2, "the scene's and this one");
}

#[testkit::database_test]
async fn one_of_the_first_that_fails_again_stops_the_job_until_an_operator_resumes_it(pool: PgPool) {
    let mut scene = Scene::with(&pool, 12, canary(3)).await;
    assert_eq!((scene.step().await, scene.step().await), (3, 0));
    let first = scene.due().await;
    // The others need not have ended for that.
    scene.fail(&first[..1]).await;
    let failed = (JobStatus::Paused, Some(JobPause::CanaryFailed));
    assert_eq!((scene.step().await, scene.state().await), (0, failed));
    scene.deliver(&first).await;
    assert_eq!((scene.step().await, scene.state().await), (0, failed));
    assert!(scene.store.running_dead_letter_jobs().await.unwrap().is_empty());
    // It stays paused as it is, for the reason that it has.
    scene.tell(JobCommand::Pause).await;
    assert_eq!(scene.state().await, failed);
    scene.tell(JobCommand::Resume).await;
    assert_eq!(scene.step().await, 9);
    let log = scene
        .store
        .list_audit(&AuditFilter::default(), 100)
        .await
        .unwrap();
    let resumed = log.iter().find(|entry| entry.action == "dead-letter-job.resume");
    assert_eq!(resumed.unwrap().details, json!({"waived": "CANARY_FAILED"}));
}

#[testkit::database_test]
async fn first_ones_of_which_none_is_delivered_stop_the_job(pool: PgPool) {
    let mut scene = Scene::with(&pool, 12, canary(3)).await;
    assert_eq!((scene.step().await, scene.step().await), (3, 0));
    let first = scene.due().await;
    scene.cancel(&first[..2]).await;
    let waiting = (JobStatus::Paused, Some(JobPause::Canary));
    assert_eq!((scene.step().await, scene.state().await), (0, waiting));
    sqlx::query("DELETE FROM push_notifications WHERE id = $1")
        .bind(first[2])
        .execute(&pool)
        .await
        .unwrap();
    let failed = (JobStatus::Paused, Some(JobPause::CanaryFailed));
    assert_eq!((scene.step().await, scene.state().await), (0, failed));
}

#[testkit::database_test]
async fn a_job_that_waits_for_its_first_ones_stays_paused_when_an_operator_pauses_it(pool: PgPool) {
    let mut scene = Scene::with(&pool, 12, canary(3)).await;
    assert_eq!((scene.step().await, scene.step().await), (3, 0));
    scene.tell(JobCommand::Pause).await;
    let first = scene.due().await;
    scene.deliver(&first).await;
    assert_eq!(
        (scene.step().await, scene.state().await),
        (0, (JobStatus::Paused, None))
    );
    scene.tell(JobCommand::Resume).await;
    assert_eq!((scene.step().await, scene.step().await), (0, 9));
}

#[testkit::database_test]
async fn too_great_a_share_that_fails_again_pauses_the_job_and_is_counted_from_its_resuming_on(pool: PgPool) {
    let care = JobCare {
        pause_above: Some(10),
        ..JobCare::default()
    };
    let mut scene = Scene::with(&pool, 45, care).await;
    assert_eq!((scene.step().await, scene.step().await), (10, 10));
    let due = scene.due().await;
    // What another push does is no concern of the job.
    PushRow::in_state(PushState::Failed).make(&pool).await;
    scene.fail(&due[..2]).await;
    scene.pass().await;
    assert_eq!(scene.step().await, 10, "2 of 20 are no more than 10 %");
    scene.fail(&due[2..4]).await;
    scene.pass().await;
    let stopped = (JobStatus::Paused, Some(JobPause::FailedAgain));
    assert_eq!(
        (scene.step().await, scene.state().await),
        (0, stopped),
        "4 of 30 are more"
    );
    assert!(scene.store.running_dead_letter_jobs().await.unwrap().is_empty());
    scene.tell(JobCommand::Resume).await;
    assert_eq!((scene.step().await, scene.step().await), (10, 5));
    assert_eq!(scene.job().await.status, JobStatus::Completed);
    assert_eq!(
        scene.log().await,
        [
            "Anna dead-letter-job.create",
            "postrider dead-letter-job.pause FAILED_AGAIN",
            "Anna dead-letter-job.resume",
            "Anna dead-letter-job.complete"
        ]
    );
}

#[testkit::database_test]
async fn what_failed_and_is_tried_again_pauses_the_job_as_well(pool: PgPool) {
    let care = JobCare {
        pause_above: Some(10),
        ..JobCare::default()
    };
    let mut scene = Scene::with(&pool, 60, care).await;
    assert_eq!((scene.step().await, scene.step().await), (10, 10));
    let due = scene.due().await;
    scene.fail(&due[..1]).await;
    scene.fail_for_now(&due[1..2]).await;
    scene.pass().await;
    assert_eq!(scene.step().await, 10, "2 of 20 are no more than 10 %");
    scene.fail_for_now(&due[2..4]).await;
    let stopped = (JobStatus::Paused, Some(JobPause::FailedAgain));
    assert_eq!(
        (scene.step().await, scene.state().await),
        (0, stopped),
        "1 of 30 failed and 3 are tried again"
    );
    // An operator has seen these: what counts from now on is what is replayed from now on.
    scene.tell(JobCommand::Resume).await;
    assert_eq!((scene.step().await, scene.step().await), (10, 10));
}

#[testkit::database_test]
async fn what_was_replayed_before_the_resuming_does_not_pause_the_job_when_it_fails(pool: PgPool) {
    let care = JobCare {
        pause_above: Some(10),
        ..JobCare::default()
    };
    let mut scene = Scene::with(&pool, 60, care).await;
    assert_eq!((scene.step().await, scene.step().await), (10, 10));
    let before = scene.due().await;
    scene.fail(&before[..3]).await;
    scene.pass().await;
    let stopped = (JobStatus::Paused, Some(JobPause::FailedAgain));
    assert_eq!((scene.step().await, scene.state().await), (0, stopped));
    // Nor does an operator's pause take the reason away.
    scene.tell(JobCommand::Pause).await;
    assert_eq!(scene.state().await, stopped);
    scene.tell(JobCommand::Resume).await;
    assert_eq!(scene.step().await, 10);
    scene.fail(&before[3..]).await;
    scene.pass().await;
    assert_eq!(scene.step().await, 10, "17 failed of what was replayed before");
    let since = scene.due().await;
    scene.fail(&since[..3]).await;
    scene.pass().await;
    assert_eq!((scene.step().await, scene.state().await), (0, stopped));
}

#[testkit::database_test]
async fn what_failed_again_counts_whatever_became_of_it_since_but_a_cancellation_does_not(pool: PgPool) {
    let care = JobCare {
        pause_above: Some(10),
        ..JobCare::default()
    };
    let mut scene = Scene::with(&pool, 45, care).await;
    assert_eq!((scene.step().await, scene.step().await), (10, 10));
    let due = scene.due().await;
    scene.cancel(&due[..5]).await;
    scene.pass().await;
    assert_eq!(scene.step().await, 10, "5 were cancelled, none failed");
    scene.fail(&due[5..9]).await;
    for (state, pushes) in [("DISCARDED", &due[5..7]), ("REPLAYED", &due[7..9])] {
        sqlx::query(
            "UPDATE dead_letters SET state = $1, resolved_at = now(), resolved_by = 'Bob', note = 'known'
             WHERE state = 'OPEN' AND push_id = ANY ($2)",
        )
        .bind(state)
        .bind(pushes)
        .execute(&pool)
        .await
        .unwrap();
    }
    scene.pass().await;
    let stopped = (JobStatus::Paused, Some(JobPause::FailedAgain));
    assert_eq!((scene.step().await, scene.state().await), (0, stopped));
}

#[testkit::database_test]
async fn a_command_of_the_version_before_leaves_no_reason_behind(pool: PgPool) {
    let mut scene = Scene::with(&pool, 12, canary(3)).await;
    assert_eq!((scene.step().await, scene.step().await), (3, 0));
    assert_eq!(scene.state().await, (JobStatus::Paused, Some(JobPause::Canary)));
    sqlx::query("UPDATE dead_letter_jobs SET status = 'RUNNING' WHERE id = $1")
        .bind(scene.job)
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(scene.state().await, (JobStatus::Running, None));
}

#[testkit::database_test]
async fn a_step_of_the_version_before_leaves_a_careful_job_alone(pool: PgPool) {
    let scene = Scene::with(&pool, 5, canary(3)).await;
    let step =
        sqlx::query("UPDATE dead_letter_jobs SET cursor_at = now(), examined = examined + 5 WHERE id = $1")
            .bind(scene.job)
            .execute(&pool)
            .await;
    assert!(step.unwrap_err().to_string().contains("does not know"));
    assert_eq!(scene.job().await.examined, 0);
}

#[testkit::database_test]
async fn a_changed_rate_holds_from_the_next_step_on(pool: PgPool) {
    let mut scene = Scene::with(&pool, 40, JobCare::default()).await;
    assert_eq!(scene.step().await, 10);
    let paced = scene
        .store
        .pace_dead_letter_job(scene.job, 20, &act(Some("faster")))
        .await;
    assert!(matches!(paced.unwrap(), JobCommanded::Done(job) if job.per_second == 20));
    assert_eq!((scene.step().await, scene.step().await), (20, 10));
    let ended = scene
        .store
        .pace_dead_letter_job(scene.job, 5, &act(None))
        .await
        .unwrap();
    assert_eq!(ended, JobCommanded::Ended(JobStatus::Completed));
    let unknown = scene
        .store
        .pace_dead_letter_job(Uuid::now_v7(), 5, &act(None))
        .await
        .unwrap();
    assert_eq!(unknown, JobCommanded::Unknown);
}
