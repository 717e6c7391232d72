//! Bulk work on dead letters: each that was there is resolved exactly once, however often a step is repeated,
//! dropped in the middle, or made twice at once.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::dead_letter_job::{JobAction, JobCommand, JobStatus};
use domain::notification::NotificationState;
use domain::push::{PushId, PushState};
use domain::subscription::SubscriptionState;
use sqlx::PgPool;
use store::{
    AuditFilter, DeadLetterFilter, DeadLetterJob, DeadLetterLane, DeadLetterReason, DeadLetterSelection,
    JobCare, JobCommanded, JobCreated, Kept, NewDeadLetterJob, Store,
};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::resolution::{ANNA, act, dead_letter, dead_letter_of};

fn replay(selection: DeadLetterSelection, per_second: u32) -> NewDeadLetterJob {
    NewDeadLetterJob {
        id: None,
        action: JobAction::Replay,
        selection,
        per_second,
        care: JobCare::default(),
    }
}

fn all() -> DeadLetterSelection {
    DeadLetterSelection::Matching(DeadLetterFilter::default())
}

async fn create(store: &Store, new: &NewDeadLetterJob) -> DeadLetterJob {
    match store
        .create_dead_letter_job(new, &act(Some("because")))
        .await
        .unwrap()
    {
        JobCreated::Done(job) => *job,
        other => panic!("there should be a job: {other:?}"),
    }
}

async fn find(store: &Store, id: Uuid) -> DeadLetterJob {
    store.find_dead_letter_job(id).await.unwrap().unwrap()
}

/// Takes a job to its end, a second at a time.
async fn finish(store: &Store, id: Uuid) -> DeadLetterJob {
    let mut now = SystemClock.now();
    loop {
        now += TimeDelta::seconds(1);
        store.advance_dead_letter_job(id, now).await.unwrap();
        let job = find(store, id).await;
        if job.status != JobStatus::Running {
            return job;
        }
    }
}

/// Failed pushes with a dead letter each, spread over hours.
async fn failed_pushes(pool: &PgPool, count: i64) {
    let now = SystemClock.now();
    let ids: Vec<Uuid> = (0..count).map(|_| PushId::at(now).uuid()).collect();
    sqlx::query(
        "WITH made AS (
             INSERT INTO push_notifications (id, status, platform, push_key, message, attempts, created_at, finished_at)
             SELECT id, 'FAILED', 'IOS', 'device', 'hello', 1, now(), now() FROM UNNEST($1::uuid[]) AS i(id)
             RETURNING id)
         INSERT INTO dead_letters (lane, reason, fingerprint, push_id, attempts, detail, created_at)
         SELECT 'push', 'FAILED', 'swrve/' || 400 + n % 7, id, 1, 'no', now() - n % 100 * interval '1 minute'
         FROM (SELECT id, row_number() OVER () AS n FROM made) AS made",
    )
    .bind(&ids)
    .execute(pool)
    .await
    .unwrap();
}

/// Notes every time that a push becomes due.
async fn watch_replays(pool: &PgPool) {
    for statement in [
        "CREATE TABLE seen (push uuid)",
        "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN INSERT INTO seen VALUES (NEW.id); RETURN NULL; END $$",
        "CREATE TRIGGER see AFTER UPDATE ON push_notifications FOR EACH ROW
         WHEN (OLD.status <> 'PENDING' AND NEW.status = 'PENDING') EXECUTE FUNCTION see()",
    ] {
        sqlx::query(statement).execute(pool).await.unwrap();
    }
}

#[testkit::database_test]
async fn thousands_of_dead_letters_are_each_resolved_once_though_steps_are_dropped_in_the_middle(
    pool: PgPool,
) {
    const DEAD_LETTERS: i64 = 3_000;
    let store = Store::from_pool(pool.clone());
    failed_pushes(&pool, DEAD_LETTERS).await;
    watch_replays(&pool).await;
    let job = create(&store, &replay(all(), 1_000)).await;
    assert_eq!(job.matching, 3_000);
    // Two workers; each gives its step up after a time that grows from nothing to enough.
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..2 {
        let (store, id) = (store.clone(), job.id);
        workers.spawn(async move {
            let mut now = SystemClock.now();
            for round in worker.. {
                now += TimeDelta::milliseconds(250);
                let limit = Duration::from_micros(u64::from(2_u32.saturating_pow(round % 24)));
                let step = store.advance_dead_letter_job(id, now);
                let _given_up = tokio::time::timeout(limit, step).await;
                if find(&store, id).await.status == JobStatus::Completed {
                    return;
                }
            }
        });
    }
    workers.join_all().await;

    let job = find(&store, job.id).await;
    assert_eq!((job.examined, job.done), (3_000, 3_000));
    assert_eq!(job.skipped, BTreeMap::new());
    let (seen, distinct): (i64, i64) = sqlx::query_as("SELECT count(*), count(DISTINCT push) FROM seen")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!((seen, distinct), (DEAD_LETTERS, DEAD_LETTERS));
    let resolved: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM dead_letters WHERE state = 'REPLAYED' AND job_id = $1 AND resolved_by = $2",
    )
    .bind(job.id)
    .bind(ANNA)
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(resolved, DEAD_LETTERS);
    let log = store.list_audit(&AuditFilter::default(), 100).await.unwrap();
    let actions: Vec<&str> = log.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["dead-letter-job.complete", "dead-letter-job.create"]);
    assert!(
        log.iter()
            .all(|entry| entry.actor == ANNA && entry.note.as_deref() == Some("because"))
    );
    assert_eq!(log[0].details["done"], 3_000);
}

#[testkit::database_test]
async fn a_job_never_goes_faster_than_its_rate(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    failed_pushes(&pool, 100).await;
    let job = create(&store, &replay(all(), 10)).await;
    let start = job.created_at;
    let at = async |millis: i64| {
        let now = start + TimeDelta::milliseconds(millis);
        store.advance_dead_letter_job(job.id, now).await.unwrap().replayed
    };
    assert_eq!(at(0).await, 0);
    let mut done = 0;
    for millis in (500..=2_000).step_by(100) {
        // Twice at the same time is as good as once.
        done += at(millis).await + at(millis).await;
        assert!(
            done <= u64::try_from(millis / 100).unwrap(),
            "{done} after {millis} ms"
        );
    }
    assert_eq!(done, 20);
    // What was missed in a long time is not made up for.
    assert_eq!(at(600_000).await, 10);
    // A clock that is turned back stops it for a moment, not for ten minutes.
    assert_eq!((at(5_000).await, at(5_500).await), (0, 5));
}

#[testkit::database_test]
async fn dead_letters_that_come_after_the_start_are_left(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    failed_pushes(&pool, 5).await;
    let job = create(&store, &replay(all(), 1_000)).await;
    let late = PushRow::in_state(PushState::Failed).make(&pool).await;
    let job = finish(&store, job.id).await;
    assert_eq!((job.status, job.done), (JobStatus::Completed, 5));
    assert_eq!(
        dead_letter(&pool, dead_letter_of(&pool, late.id.uuid()).await).await["state"],
        "OPEN"
    );
}

#[testkit::database_test]
async fn a_paused_job_stands_still_a_resumed_one_goes_on_and_a_cancelled_one_has_ended(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    failed_pushes(&pool, 100).await;
    let job = create(&store, &replay(all(), 10)).await;
    let mut now = job.created_at;
    let mut step = async || {
        now += TimeDelta::seconds(1);
        store.advance_dead_letter_job(job.id, now).await.unwrap().replayed
    };
    let command = async |command| {
        let commanded = store
            .command_dead_letter_job(job.id, command, &act(Some("a moment")))
            .await;
        match commanded.unwrap() {
            JobCommanded::Done(job) => Ok(job.status),
            JobCommanded::Ended(status) => Err(status),
            JobCommanded::Unknown => panic!("the job should be there"),
        }
    };
    assert_eq!(step().await, 10);
    for _ in 0..2 {
        assert_eq!(command(JobCommand::Pause).await, Ok(JobStatus::Paused));
    }
    assert_eq!(
        (step().await, store.running_dead_letter_jobs().await.unwrap()),
        (0, vec![])
    );
    assert_eq!(command(JobCommand::Resume).await, Ok(JobStatus::Running));
    assert_eq!(store.running_dead_letter_jobs().await.unwrap(), [job.id]);
    assert_eq!(step().await, 10);
    assert_eq!(command(JobCommand::Cancel).await, Ok(JobStatus::Cancelled));
    assert_eq!(step().await, 0);
    for late in [JobCommand::Resume, JobCommand::Cancel] {
        assert_eq!(command(late).await, Err(JobStatus::Cancelled));
    }
    let ended = find(&store, job.id).await;
    assert_eq!((ended.done, ended.finished_at.is_some()), (20, true));
    let unknown = store
        .command_dead_letter_job(Uuid::now_v7(), JobCommand::Pause, &act(None))
        .await;
    assert_eq!(unknown.unwrap(), JobCommanded::Unknown);
    let of_job = AuditFilter {
        actions: Some(domain::audit::meant("dead-letter-job")),
        ..AuditFilter::default()
    };
    let log = store.list_audit(&of_job, 100).await.unwrap();
    let mut actions: Vec<&str> = log.iter().map(|entry| entry.action.as_str()).collect();
    actions.sort_unstable();
    assert_eq!(
        actions,
        [
            "dead-letter-job.cancel",
            "dead-letter-job.create",
            "dead-letter-job.pause",
            "dead-letter-job.resume"
        ]
    );
}

#[testkit::database_test]
async fn what_cannot_be_replayed_is_counted_by_reason_and_stays_open(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let active = SubscriptionRow::active().make(&pool).await;
    let inactive = SubscriptionRow::in_state(SubscriptionState::Deactivated)
        .make(&pool)
        .await;
    for subscription in [active, inactive, inactive] {
        NotificationRow::in_state(NotificationState::Failed, subscription)
            .make(&pool)
            .await;
    }
    let pending = PushRow::in_state(PushState::Pending).make(&pool).await;
    let failed = PushRow::in_state(PushState::Failed).make(&pool).await;
    for push in [pending.id.uuid(), failed.id.uuid(), Uuid::now_v7()] {
        sqlx::query(
            "INSERT INTO dead_letters (lane, reason, fingerprint, push_id, detail)
             VALUES ('push', 'REJECTED', 'broker/rejected', $1, 'rejected')",
        )
        .bind(push)
        .execute(&pool)
        .await
        .unwrap();
    }
    let malformed = "INSERT INTO dead_letters (lane, reason, fingerprint, detail)
                     VALUES ('reseller', 'MALFORMED', 'broker/malformed', 'what')";
    sqlx::query(malformed).execute(&pool).await.unwrap();

    let preview = store.preview_replay(&all(), false).await.unwrap();
    assert_eq!((preview.matching, preview.sampled), (8, 8));
    // Those of pushes, and what could not be read, are of no event type.
    assert_eq!(preview.by_event_type, [("domain.created".to_owned(), 3)].into());
    let job = create(&store, &replay(all(), 1_000)).await;
    let job = finish(&store, job.id).await;
    let skipped = [
        ("GONE", 1),
        ("MALFORMED", 1),
        ("SUBSCRIPTION_INACTIVE", 2),
        ("UNFINISHED", 1),
    ];
    assert_eq!(
        job.skipped,
        skipped.map(|(reason, count)| (reason.to_owned(), count)).into()
    );
    assert_eq!(preview.skipped, job.skipped);
    // Two dead letters are about one push: it is replayed once, and both are resolved.
    assert_eq!((job.matching, job.examined, job.done), (8, 8, 3));
    let open: i64 = sqlx::query_scalar("SELECT count(*) FROM dead_letters WHERE state = 'OPEN'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(open, 5);
}

#[testkit::database_test]
async fn a_job_is_about_what_its_filter_or_its_list_says_and_nothing_else(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    failed_pushes(&pool, 70).await;
    let chosen: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM dead_letters WHERE fingerprint = 'swrve/403'")
        .fetch_all(&pool)
        .await
        .unwrap();
    let filter = |fingerprint: &str, lane| {
        DeadLetterSelection::Matching(DeadLetterFilter {
            lane: Some(lane),
            reason: Some(DeadLetterReason::Failed),
            fingerprint: Some(fingerprint.to_owned()),
            ..DeadLetterFilter::default()
        })
    };
    let unmatched = filter("swrve/400", DeadLetterLane::Reseller);
    let nothing = store
        .create_dead_letter_job(&replay(unmatched, 10), &act(None))
        .await
        .unwrap();
    assert_eq!(nothing, JobCreated::NothingMatches);
    let stranger = Uuid::now_v7();
    let unknown = DeadLetterSelection::DeadLetters(vec![chosen[0], stranger]);
    let unknown = store
        .create_dead_letter_job(&replay(unknown, 10), &act(None))
        .await
        .unwrap();
    assert_eq!(unknown, JobCreated::Unknown(stranger));
    assert_eq!(store.list_dead_letter_jobs(None, None, 10).await.unwrap(), []);

    let preview = store
        .preview_dead_letters(&filter("swrve/40*", DeadLetterLane::Push))
        .await
        .unwrap();
    assert_eq!((preview.matching, preview.kinds.len()), (70, 7));
    assert!(preview.oldest < preview.newest);
    assert_eq!((preview.sampled, preview.skipped.len()), (0, 0));
    sqlx::query("UPDATE push_notifications SET status = 'SENT' WHERE id IN (SELECT push_id FROM dead_letters LIMIT 4)")
        .execute(&pool)
        .await
        .unwrap();
    let replay_of_all = filter("swrve/40*", DeadLetterLane::Push);
    let preview = store.preview_replay(&replay_of_all, true).await.unwrap();
    assert_eq!((preview.matching, preview.sampled), (70, 70));
    assert_eq!(preview.skipped, [("DELIVERED".to_owned(), 4)].into());
    sqlx::query("UPDATE push_notifications SET status = 'FAILED' WHERE status = 'SENT'")
        .execute(&pool)
        .await
        .unwrap();
    let counted = store.count_dead_letters_up_to(&replay_of_all, 50).await.unwrap();
    assert_eq!(counted, 50);

    let by_list = create(
        &store,
        &replay(DeadLetterSelection::DeadLetters(chosen.clone()), 1_000),
    )
    .await;
    let by_filter = create(&store, &replay(filter("swrve/400", DeadLetterLane::Push), 1_000)).await;
    for id in [by_list.id, by_filter.id] {
        let job = finish(&store, id).await;
        assert_eq!((job.matching, job.examined, job.done), (10, 10, 10));
    }
    let counted: Vec<(String, i64)> = sqlx::query_as(
        "SELECT fingerprint, count(*) FROM dead_letters WHERE state = 'REPLAYED' GROUP BY 1 ORDER BY 1",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    assert_eq!(
        counted,
        [("swrve/400".to_owned(), 10), ("swrve/403".to_owned(), 10)]
    );
    let listed = store
        .list_dead_letter_jobs(Some(JobStatus::Completed), None, 1)
        .await
        .unwrap();
    assert_eq!(listed.len(), 1);
    let older = store
        .list_dead_letter_jobs(None, Some(listed[0].id), 10)
        .await
        .unwrap();
    assert_eq!(older.len(), 1);
    // Their clock was driven ahead.
    sqlx::query("UPDATE dead_letter_jobs SET finished_at = now() - interval '1 second'")
        .execute(&pool)
        .await
        .unwrap();
    let cutoff = store.cutoff(SystemClock.now(), Duration::ZERO).await.unwrap();
    assert_eq!(store.forget(Kept::DeadLetterJobs, cutoff, 100).await.unwrap(), 2);
}

#[testkit::database_test]
async fn a_discarding_job_needs_a_note_and_makes_nothing_due(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    failed_pushes(&pool, 20).await;
    watch_replays(&pool).await;
    let discard = NewDeadLetterJob {
        id: None,
        action: JobAction::Discard,
        selection: all(),
        per_second: 1_000,
        care: JobCare::default(),
    };
    assert!(store.create_dead_letter_job(&discard, &act(None)).await.is_err());
    let job = create(&store, &discard).await;
    let job = finish(&store, job.id).await;
    assert_eq!((job.done, job.note.as_deref()), (20, Some("because")));
    let (open, seen): (i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM dead_letters WHERE state <> 'DISCARDED' OR note <> 'because'),
                (SELECT count(*) FROM seen)",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!((open, seen), (0, 0));
}
