//! What the outage of an endpoint gave up is sent again by itself: exactly that, the oldest first, once, and only as long as
//! the endpoint takes it.

mod scene;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::dead_letter_job::{JobCommand, JobStatus};
use domain::notification::{DeliveryOutcome, FailureKind, NotificationState};
use domain::subscription::{Command, RecoveryEnd};
use sqlx::PgPool;
use store::{AuditFilter, RecoveryTerms};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;

use self::scene::Scene;
use crate::reseller::scene::{answered, emails, row, set, subscription, timed_out};
use crate::resolution::act;
use crate::scene::{act as by_reseller, count};

const TERMS: RecoveryTerms = RecoveryTerms {
    enabled: true,
    per_second: 100,
    max_age: Duration::from_hours(720),
};

#[testkit::database_test]
async fn what_an_outage_gave_up_is_sent_again_oldest_first_once_the_endpoint_answers(pool: PgPool) {
    let mut scene = Scene::new(&pool).await;
    let given_up = scene.outage(60).await;
    assert_eq!(scene.begin(&TERMS).await, 0, "it fails still");
    scene.event_knows_the_dead_letter_of(given_up[0]).await;
    scene.recover().await;
    assert_eq!((scene.begin(&TERMS).await, scene.begin(&TERMS).await), (1, 0));
    let job = scene.job().await;
    assert_eq!((job.matching, job.per_second), (60, 25));
    assert_eq!(
        (job.created_by.as_str(), job.recovers),
        ("postrider", Some(scene.id))
    );
    assert_eq!(scene.finish().await, given_up);
    assert_eq!(scene.statuses(&given_up).await, vec!["SENT"; 60]);
    let job = scene.job().await;
    assert_eq!((job.status, job.done), (JobStatus::Completed, 60));
    // Nothing is left that a later look could find.
    scene.settle().await;
    assert_eq!((scene.begin(&TERMS).await, scene.outage_since().await), (0, None));
    let log = scene.store.list_audit(&AuditFilter::default(), 10).await.unwrap();
    let told: Vec<_> = log
        .iter()
        .map(|e| (e.actor.as_str(), e.action.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("postrider", "dead-letter-job.complete"),
            ("postrider", "dead-letter-job.create")
        ]
    );
}

#[testkit::database_test]
async fn nothing_is_sent_again_but_what_the_outage_gave_up(pool: PgPool) {
    let mut scene = Scene::new(&pool).await;
    let other = Scene::new(&pool).await;
    let before = scene.outage(1).await;
    sqlx::query("UPDATE dead_letters SET created_at = created_at - interval '1 hour'")
        .execute(&pool)
        .await
        .unwrap();
    let ours = DeliveryOutcome::Failed {
        kind: FailureKind::Other,
        message: "no secret".to_owned(),
    };
    let mut left = vec![before[0], other.outage(1).await[0]];
    for outcome in [answered(400), answered(404), ours] {
        left.push(scene.attempt(outcome).await.id);
    }
    let discarded = scene.outage(1).await[0];
    set(
        &pool,
        "UPDATE dead_letters SET state = 'DISCARDED', resolved_at = now(), resolved_by = 'Anna', note = 'no'
         WHERE notification_id = $1",
        discarded.uuid(),
    )
    .await;
    let expired = scene.outage(1).await[0];
    set(
        &pool,
        "UPDATE dead_letters SET error_type = NULL, fingerprint = 'delivery/expired' WHERE notification_id = $1",
        expired.uuid(),
    )
    .await;
    left.extend([discarded, expired]);
    let mut wanted = scene.outage(1).await;
    wanted.push(scene.attempt(answered(503)).await.id);
    scene.recover().await;
    assert_eq!(scene.begin(&TERMS).await, 1);
    assert_eq!(scene.finish().await, wanted);
    let ended = scene.statuses(&left).await;
    assert!(ended.iter().all(|status| status != "SENT"), "{ended:?}");
    assert_eq!(scene.job().await.done, 2);
}

#[testkit::database_test]
async fn one_goes_first_and_new_failures_end_it_with_the_rest_left_open(pool: PgPool) {
    let mut scene = Scene::new(&pool).await;
    let given_up = scene.outage(80).await;
    scene.recover().await;
    scene.begin(&TERMS).await;
    assert_eq!(scene.step().await, 1);
    assert_eq!(scene.step().await, 0, "the first one is under way");
    assert_eq!(scene.deliver(&answered(200)).await, given_up[..1]);
    assert_eq!(scene.step().await, 25);
    assert_eq!(scene.step().await, 0, "the endpoint has not taken those");
    scene.deliver(&answered(503)).await;
    assert_eq!(scene.step().await, 0);
    let job = scene.job().await;
    assert_eq!(
        (job.status, job.ended_because, job.done),
        (JobStatus::Cancelled, Some(RecoveryEnd::Failing), 26)
    );
    // What it has made due uses its attempts up, and gets dead letters of its own.
    for _ in 0..3 {
        scene.deliver(&answered(503)).await;
    }
    let settled = scene.store.settle_recoveries(scene.now).await.unwrap();
    assert_eq!((settled[0].sent_again, settled[0].remaining), (26, 79));
    assert_eq!(scene.store.settle_recoveries(scene.now).await.unwrap(), []);
    scene.attempt(answered(200)).await;
    assert_eq!(scene.begin(&TERMS).await, 0, "not at once");
    let wait: f64 =
        sqlx::query_scalar("SELECT extract(epoch FROM recover_at - now())::float8 FROM subscriptions")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert!((60.0..=120.0).contains(&wait), "{wait}");
    scene.settle().await;
    assert_eq!(scene.begin(&TERMS).await, 1);
    assert_eq!(scene.job().await.matching, 79);
    // First what was never sent again, then what was given up once more.
    let mut sent = scene.finish().await;
    assert_eq!(sent[..50], given_up[26..76]);
    sent.sort_unstable();
    assert_eq!(sent, given_up[1..]);
    assert_eq!(scene.statuses(&given_up).await, vec!["SENT"; 80]);
}

#[testkit::database_test]
async fn what_fails_each_time_is_sent_again_three_times_and_no_more(pool: PgPool) {
    let mut scene = Scene::new(&pool).await;
    let given_up = scene.outage(1).await[0];
    for recovery in 1..=4 {
        scene.recover().await;
        assert_eq!(scene.begin(&TERMS).await, 1, "{recovery}");
        let replayed = scene.step().await;
        assert_eq!(replayed, u64::from(recovery <= 3));
        for _ in 0..4 {
            scene.deliver(&timed_out()).await;
        }
        scene.step().await;
        scene.store.settle_recoveries(scene.now).await.unwrap();
    }
    let job = scene.job().await;
    assert_eq!(
        (job.status, job.skipped.get("OFTEN_RECOVERED"), job.done),
        (JobStatus::Completed, Some(&1), 0)
    );
    // Its newest dead letter is left to people, and no later look finds it.
    scene.settle().await;
    sqlx::query("UPDATE dead_letters SET created_at = created_at - interval '11 seconds'")
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!((scene.begin(&TERMS).await, scene.outage_since().await), (0, None));
    assert_eq!(scene.statuses(&[given_up]).await, ["GIVEN_UP"]);
    assert_eq!(row(&pool, given_up).await.attempts, 16);
}

#[testkit::database_test]
async fn the_switch_of_a_subscription_counts_before_the_default(pool: PgPool) {
    let off = RecoveryTerms {
        enabled: false,
        ..TERMS
    };
    for (switch, terms, begun) in [
        ("true", off, 1),
        ("NULL", off, 0),
        ("false", TERMS, 0),
        ("NULL", TERMS, 1),
    ] {
        let scene = Scene::new(&pool).await;
        sqlx::query("UPDATE subscriptions SET resend_after_outage = $2::boolean WHERE id = $1")
            .bind(scene.id)
            .bind((switch != "NULL").then_some(switch == "true"))
            .execute(&pool)
            .await
            .unwrap();
        let given_up = scene.outage(2).await;
        scene.recover().await;
        assert_eq!(scene.begin(&terms).await, begun, "{switch} {}", terms.enabled);
        assert_eq!(scene.statuses(&given_up).await, ["GIVEN_UP"; 2]);
        // What was given up while it was off is not sent when it is on again.
        assert_eq!(scene.outage_since().await.is_some(), begun == 1);
    }
}

#[testkit::database_test]
async fn it_ends_when_it_is_switched_off_and_waits_while_the_subscription_is_paused(pool: PgPool) {
    let mut scene = Scene::new(&pool).await;
    scene.outage(40).await;
    scene.recover().await;
    scene.begin(&TERMS).await;
    scene.step().await;
    scene.deliver(&answered(200)).await;
    let pause = |paused| {
        scene
            .store
            .pause_subscription("acme", scene.id, paused, by_reseller(scene.now))
    };
    pause(true).await.unwrap();
    assert_eq!(scene.step().await, 0);
    let pause = |paused| {
        scene
            .store
            .pause_subscription("acme", scene.id, paused, by_reseller(scene.now))
    };
    pause(false).await.unwrap();
    assert_eq!(scene.step().await, 25);
    set(
        &pool,
        "UPDATE subscriptions SET resend_after_outage = false WHERE id = $1",
        scene.id,
    )
    .await;
    assert_eq!(scene.step().await, 0);
    assert_eq!(scene.job().await.ended_because, Some(RecoveryEnd::SwitchedOff));
    scene.store.settle_recoveries(scene.now).await.unwrap();
    scene.settle().await;
    assert_eq!((scene.begin(&TERMS).await, scene.outage_since().await), (0, None));
}

#[testkit::database_test]
async fn what_an_operator_has_cancelled_does_not_begin_again(pool: PgPool) {
    let mut scene = Scene::new(&pool).await;
    scene.outage(5).await;
    scene.recover().await;
    scene.begin(&TERMS).await;
    scene.step().await;
    let job = scene.job().await.id;
    let anna = act(Some("they ask us to stop"));
    let cancel = scene
        .store
        .command_dead_letter_job(job, JobCommand::Cancel, &anna);
    cancel.await.unwrap();
    let settled = scene.store.settle_recoveries(scene.now).await.unwrap();
    assert_eq!((settled[0].sent_again, settled[0].remaining), (1, 4));
    scene.settle().await;
    // Dead letters of the last seconds before it are looked at once more; the test's are older.
    sqlx::query("UPDATE dead_letters SET created_at = created_at - interval '1 minute'")
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!((scene.begin(&TERMS).await, scene.outage_since().await), (0, None));
    let open: i64 = sqlx::query_scalar("SELECT count(*) FROM dead_letters WHERE state = 'OPEN'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(open, 4);
}

#[testkit::database_test]
async fn an_outage_that_ended_with_a_new_activation_is_recovered_from_too(pool: PgPool) {
    let mut scene = Scene::new(&pool).await;
    let given_up = scene.outage(3).await;
    let command = |command| {
        scene
            .store
            .command_subscription("acme", scene.id, command, by_reseller(scene.now))
    };
    command(Command::Deactivate).await.unwrap();
    scene.settle().await;
    assert_eq!(scene.begin(&TERMS).await, 0, "nothing is sent to it");
    assert_eq!(subscription(&pool, scene.id).await.failing_since, None);
    let command = |command| {
        scene
            .store
            .command_subscription("acme", scene.id, command, by_reseller(scene.now))
    };
    command(Command::Activate).await.unwrap();
    assert_eq!(scene.begin(&TERMS).await, 1);
    // Deactivated in the middle: the rest waits for the next activation.
    scene.step().await;
    scene.deliver(&answered(200)).await;
    set(
        &pool,
        "UPDATE subscriptions SET state = 'DEACTIVATED' WHERE id = $1",
        scene.id,
    )
    .await;
    scene.step().await;
    assert_eq!(scene.job().await.ended_because, Some(RecoveryEnd::Inactive));
    scene.store.settle_recoveries(scene.now).await.unwrap();
    scene.settle().await;
    set(
        &pool,
        "UPDATE subscriptions SET state = 'ACTIVE' WHERE id = $1",
        scene.id,
    )
    .await;
    assert_eq!(scene.begin(&TERMS).await, 1);
    assert_eq!(scene.finish().await, given_up[1..]);
}

#[testkit::database_test]
async fn its_rate_is_a_quarter_of_what_the_subscription_may_get_also_when_that_is_lowered(pool: PgPool) {
    let mut scene = Scene::of(&pool, SubscriptionRow::active().requests_per_second(40)).await;
    scene.outage(40).await;
    scene.recover().await;
    scene.begin(&TERMS).await;
    assert_eq!(scene.job().await.per_second, 10);
    scene.step().await;
    set(
        &pool,
        "UPDATE notifications SET status = 'SENT', next_attempt_at = NULL, finished_at = now()
         WHERE status = 'RETRY' AND subscription_id = $1",
        scene.id,
    )
    .await;
    assert_eq!(scene.step().await, 10);
    sqlx::query(
        "UPDATE notifications SET status = 'SENT', next_attempt_at = NULL, finished_at = now() WHERE status = 'RETRY'",
    )
    .execute(&pool)
    .await
    .unwrap();
    set(
        &pool,
        "UPDATE subscriptions SET requests_per_second = 1 WHERE id = $1",
        scene.id,
    )
    .await;
    let mut sent = 0;
    for _ in 0..8 {
        sent += scene.step().await;
    }
    assert_eq!(sent, 2);
}

/// Two workers look, work and settle; each gives up what it does after a time that grows from nothing to enough.
#[testkit::database_test]
async fn each_is_sent_again_once_though_workers_come_twice_and_are_dropped_in_the_middle(pool: PgPool) {
    const GIVEN_UP: i64 = 400;
    let scene = Scene::of(&pool, SubscriptionRow::active().requests_per_second(4_000)).await;
    scene.outage(1).await;
    for _ in 1..GIVEN_UP {
        NotificationRow::in_state(NotificationState::GivenUp, scene.id)
            .attempts(4)
            .make(&pool)
            .await;
    }
    scene.recover().await;
    for statement in [
        "DELETE FROM emails",
        "CREATE TABLE seen (id uuid)",
        // Whatever is made due is delivered at once.
        "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO seen VALUES (NEW.id);
             NEW.status := 'SENT'; NEW.next_attempt_at := NULL; NEW.finished_at := now();
             RETURN NEW; END $$",
        "CREATE TRIGGER see BEFORE UPDATE ON notifications FOR EACH ROW
         WHEN (OLD.status = 'GIVEN_UP' AND NEW.status = 'RETRY') EXECUTE FUNCTION see()",
    ] {
        sqlx::query(statement).execute(&pool).await.unwrap();
    }
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..2 {
        let (store, pool) = (scene.store.clone(), pool.clone());
        workers.spawn(async move {
            let mut now = SystemClock.now();
            for round in worker.. {
                now += TimeDelta::milliseconds(100);
                let limit = Duration::from_micros(u64::from(2_u32.saturating_pow(round % 24)));
                let work = async {
                    store.begin_recoveries(&TERMS, now).await?;
                    for job in store.running_dead_letter_jobs().await? {
                        store.advance_dead_letter_job(job, now).await?;
                    }
                    store.settle_recoveries(now).await.map(drop)
                };
                let _given_up = tokio::time::timeout(limit, work).await;
                if count(&pool, "emails").await > 0 {
                    return;
                }
            }
        });
    }
    workers.join_all().await;
    let (seen, distinct): (i64, i64) = sqlx::query_as("SELECT count(*), count(DISTINCT id) FROM seen")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!((seen, distinct), (GIVEN_UP, GIVEN_UP));
    assert_eq!(count(&pool, "dead_letter_jobs").await, 1);
    let mails = emails(&pool).await;
    assert_eq!((mails.len(), mails[0].occurrences), (1, GIVEN_UP));
}

#[testkit::database_test]
async fn one_mail_says_how_many_were_sent_again_and_how_many_are_left(pool: PgPool) {
    let mut scene = Scene::new(&pool).await;
    scene.outage(30).await;
    scene.recover().await;
    sqlx::query("DELETE FROM emails").execute(&pool).await.unwrap();
    scene.begin(&TERMS).await;
    scene.step().await;
    scene.deliver(&answered(200)).await;
    scene.step().await;
    scene.deliver(&answered(503)).await;
    scene.step().await;
    scene.store.settle_recoveries(scene.now).await.unwrap();
    let mails = emails(&pool).await;
    assert_eq!(mails.len(), 1, "{mails:?}");
    let mail = &mails[0];
    assert_eq!(
        (mail.kind.as_str(), mail.occurrences),
        ("DELIVERIES_RECOVERED", 26)
    );
    assert_eq!(
        (&mail.data["remaining"], &mail.data["completed"]),
        (&4.into(), &false.into())
    );
    assert_eq!(mail.data["url"], "https://acme.example/hook");
    // The rest is told of in the same mail, as long as that waits.
    scene.deliver(&answered(200)).await;
    scene.settle().await;
    assert_eq!(scene.begin(&TERMS).await, 1);
    assert_eq!(scene.finish().await.len(), 4);
    let mails = emails(&pool).await;
    assert_eq!((mails.len(), mails[0].occurrences), (1, 30));
    assert_eq!(
        (&mails[0].data["remaining"], &mails[0].data["completed"]),
        (&0.into(), &true.into())
    );
    // The next one is due an hour after this one was sent.
    sqlx::query("UPDATE emails SET status = 'SENT', next_attempt_at = NULL, finished_at = $1")
        .bind(scene.now)
        .execute(&pool)
        .await
        .unwrap();
    scene.outage(1).await;
    scene.recover().await;
    scene.begin(&TERMS).await;
    scene.finish().await;
    let due: DateTime<Utc> = sqlx::query_scalar(
        "SELECT next_attempt_at FROM emails WHERE kind = 'DELIVERIES_RECOVERED' AND status = 'PENDING'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert!(due >= scene.now + TimeDelta::minutes(59), "{due}");
}

#[testkit::database_test]
async fn a_recovery_of_nothing_writes_no_mail_and_an_old_outage_is_left_alone(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    scene.outage(2).await;
    scene.recover().await;
    sqlx::query("UPDATE dead_letters SET created_at = created_at - interval '31 days'")
        .execute(&pool)
        .await
        .unwrap();
    sqlx::query("UPDATE subscriptions SET outage_since = outage_since - interval '31 days'")
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!((scene.begin(&TERMS).await, scene.outage_since().await), (0, None));
    assert!(scene.store.settle_recoveries(scene.now).await.unwrap().is_empty());
    let told = emails(&pool).await;
    assert!(
        told.iter().all(|mail| mail.kind != "DELIVERIES_RECOVERED"),
        "{told:?}"
    );
}
