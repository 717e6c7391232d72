//! A retry worker whose clock is wrong loses nothing: what is dropped, expired or forgotten is old by the database's clock too, and
//! while the two are apart nothing is.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::month::Month;
use domain::notification::NotificationState;
use domain::push::PushState;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use sqlx::PgPool;
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually, run};

use crate::rig::{signs_of_life, start_at, stopped_clock};

/// The jobs that drop, expire or forget something because of its age.
const JOBS: [&str; 4] = ["partitions", "expired", "idempotency-keys", "retention"];

/// What such jobs live on, younger than any retention but old to a clock that is weeks ahead.
async fn make_rows(it: &Installation, now: DateTime<Utc>) {
    let months = Month::containing(now).minus(5);
    it.store.create_partitions(months, 5).await.unwrap();
    let push = PushRow::in_state(PushState::Sent).created_at(now - TimeDelta::days(120));
    push.make(&it.pool).await;
    let paused = SubscriptionRow::active().paused().make(&it.pool).await;
    for state in [
        NotificationState::Pending,
        NotificationState::Scheduled,
        NotificationState::Retry,
    ] {
        let row = NotificationRow::in_state(state, paused).due_in(TimeDelta::days(3_650));
        row.created_at(now - TimeDelta::days(1)).make(&it.pool).await;
    }
    let failing = SubscriptionRow::active().make(&it.pool).await;
    sqlx::query(
        "UPDATE subscriptions SET failing_since = now() - interval '40 hours', last_failure_at = now() WHERE id = $1",
    )
    .bind(failing)
    .execute(&it.pool)
    .await
    .unwrap();
    sqlx::raw_sql(
        "INSERT INTO idempotency_keys (owner, key, push_id, request, created_at)
         VALUES (gen_random_uuid(), 'k', gen_random_uuid(), '', now() - interval '1 hour');
         INSERT INTO event_keys (scope, key, event, request, created_at)
         VALUES ('reseller/acme', 'k', gen_random_uuid(), '', now() - interval '5 days');
         INSERT INTO emails (id, kind, subscription_id, recipient, data, status, created_at, finished_at)
         SELECT gen_random_uuid(), 'STATE_CHANGED', id, 'ops@acme.example', '{}', 'SENT', now(), now() FROM subscriptions
         WHERE failing_since IS NULL;
         INSERT INTO dead_letters (lane, reason, fingerprint, detail, state, created_at, resolved_at, resolved_by, note)
         SELECT 'push', 'REJECTED', 'f', 'd', 'DISCARDED', at, at, 'ann (1)', 'over'
         FROM (SELECT now() - interval '60 days' AS at) AS t;",
    )
    .execute(&it.pool)
    .await
    .unwrap();
}

/// How many rows there are of each kind; of notifications, those that wait.
async fn rows(pool: &PgPool) -> Vec<i64> {
    sqlx::query_scalar(
        "SELECT count(*) FROM push_notifications
         UNION ALL SELECT count(*) FROM notifications WHERE status IN ('PENDING', 'SCHEDULED', 'RETRY')
         UNION ALL SELECT count(*) FROM idempotency_keys UNION ALL SELECT count(*) FROM event_keys
         UNION ALL SELECT count(*) FROM emails UNION ALL SELECT count(*) FROM dead_letters
         UNION ALL SELECT count(*) FROM subscriptions WHERE state = 'ACTIVE'",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

async fn has_failed(metrics: &PrometheusHandle, job: &str) {
    let sample = format!("postrider_job_failures_total{{name=\"{job}\"}} ");
    eventually(&format!("the job {job} to refuse"), async || {
        let text = metrics.render();
        text.lines().any(|line| line.starts_with(&sample)).then_some(())
    })
    .await;
}

async fn loses_nothing(pool: PgPool, ahead: TimeDelta) {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let metrics = recorder.handle();
    run(pool, async |it: Installation| {
        make_rows(&it, SystemClock.now()).await;
        let before = rows(&it.pool).await;
        assert_eq!(before, [1, 3, 1, 1, 1, 1, 2]);
        let clock = stopped_clock();
        clock.advance(ahead);
        let worker = start_at(&it.config, Arc::new(clock));
        for job in JOBS {
            has_failed(&metrics, job).await;
        }
        eventually("endpoints to be judged", async || {
            signs_of_life(&it.pool, "health").await.filter(|signs| *signs > 2)
        })
        .await;
        worker.stop().await;
        assert_eq!(rows(&it.pool).await, before);
    })
    .await;
}

#[testkit::database_test]
async fn a_clock_that_is_seven_months_ahead_loses_nothing(pool: PgPool) {
    loses_nothing(pool, TimeDelta::days(214)).await;
}

#[testkit::database_test]
async fn a_clock_that_is_31_days_ahead_loses_nothing(pool: PgPool) {
    loses_nothing(pool, TimeDelta::days(31)).await;
}

/// Nothing would be lost then, but it may be the database's clock that is wrong.
#[testkit::database_test]
async fn a_clock_that_is_behind_forgets_nothing_either(pool: PgPool) {
    loses_nothing(pool, -TimeDelta::minutes(10)).await;
}
