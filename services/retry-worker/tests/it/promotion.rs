//! The two promoting jobs: who goes to the queue, when, and in which order.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::push::{PushId, PushState, PushStatus, queue_lease};
use sqlx::PgPool;
use testkit::Installation;
use testkit::push_factory::PushRow;

use crate::rig::{hurry, put_off, read, reader, rows, start, start_at, stopped_clock, take, view};

/// PENDING pushes of so many minutes ago.
async fn pending(pool: &PgPool, minutes_ago: &[i64]) -> Vec<PushId> {
    let now = SystemClock.now();
    let mut ids = Vec::new();
    for minutes in minutes_ago {
        let row = PushRow::in_state(PushState::Pending).created_at(now - TimeDelta::minutes(*minutes));
        ids.push(row.make(pool).await.id);
    }
    ids
}

#[testkit::test]
async fn a_portion_of_the_oldest_pending_pushes_goes_to_the_queue(mut it: Installation) {
    // So long that what the first execution left is still there when it is looked at.
    let job = &mut it.config.push.job.send_pending;
    (job.portion_size, job.repeat_interval) = (3, Duration::from_secs(5));
    let ids = pending(&it.pool, &[1, 5, 3, 2, 4]).await;
    let broker = it.broker();
    let mut reader = reader(&broker);
    let _worker = start(&it.config);
    let oldest = [ids[1], ids[4], ids[2]];
    assert_eq!(read(&mut reader, 3).await, oldest);
    let lease = queue_lease(it.config.push.queue.capacity, it.config.swrve.delay);
    for id in oldest {
        let push = view(&it, id).await;
        assert_eq!(
            (push.status, push.claimed, push.attempts),
            (PushStatus::InMemory, false, 0)
        );
        let leased_for = push.leased_until.unwrap() - push.updated_at;
        assert_eq!(leased_for, TimeDelta::from_std(lease).unwrap());
    }
    // What it left waits for another execution, which may have been made by now.
    let promoted = view(&it, ids[2]).await.updated_at;
    for id in [ids[0], ids[3]] {
        let push = view(&it, id).await;
        assert!(
            push.status == PushStatus::Pending || push.updated_at > promoted,
            "{push:?}"
        );
    }
}

#[testkit::test]
async fn every_execution_takes_the_next_portion(mut it: Installation) {
    hurry(&mut it.config);
    it.config.push.job.send_pending.portion_size = 2;
    let ids = pending(&it.pool, &[5, 4, 3, 2, 1]).await;
    let broker = it.broker();
    let mut reader = reader(&broker);
    let _worker = start(&it.config);
    assert_eq!(read(&mut reader, 5).await, ids);
}

#[testkit::test]
async fn scheduled_pushes_and_retries_go_to_the_queue_when_they_are_due(mut it: Installation) {
    hurry(&mut it.config);
    let mut waiting = Vec::new();
    for (state, minutes) in [
        (PushState::Retry, -1),
        (PushState::Scheduled, -2),
        (PushState::Retry, 60),
        (PushState::Scheduled, 61),
    ] {
        let row = PushRow::in_state(state).due_in(TimeDelta::minutes(minutes));
        waiting.push(row.make(&it.pool).await.id);
    }
    let [retry, scheduled, later_retry, later_scheduled] = waiting[..] else {
        unreachable!()
    };
    let later = [later_retry, later_scheduled];
    let before = rows(&it.pool, &later).await;
    let clock = stopped_clock();
    let broker = it.broker();
    let mut reader = reader(&broker);
    let _worker = start_at(&it.config, Arc::new(clock.clone()));
    // The longest overdue first.
    assert_eq!(read(&mut reader, 2).await, [scheduled, retry]);
    for (id, attempts) in [(scheduled, 0), (retry, 1)] {
        let push = view(&it, id).await;
        assert_eq!((push.status, push.next_attempt_at), (PushStatus::InMemory, None));
        assert_eq!((push.claimed, push.attempts), (false, attempts));
    }
    assert_eq!(rows(&it.pool, &later).await, before);
    clock.advance(TimeDelta::hours(2));
    assert_eq!(read(&mut reader, 2).await, later);
}

/// As a campaign leaves them that did not fit into its window, or a pause that outlasted it.
#[testkit::test]
async fn pushes_whose_window_has_closed_are_moved_on_and_hold_up_no_retry(it: Installation) {
    let now = SystemClock.now();
    sqlx::query(
        "INSERT INTO push_notifications (id, status, platform, push_key, message, cron_expression, next_attempt_at,
                                         created_at)
         SELECT (left($1::uuid::text, 13) || '-7' || right(lpad(to_hex(g), 8, '0'), 3) || '-8000-'
                 || lpad(to_hex(g), 12, '0'))::uuid,
                'SCHEDULED', 'IOS', 'k', 'm', $3, $2::timestamptz - interval '1 hour', $2
         FROM generate_series(1, 5000) AS g",
    )
    .bind(PushId::at(now).uuid())
    .bind(now)
    .bind("0 0 3 1 1 ? 2090")
    .execute(&it.pool)
    .await
    .unwrap();
    let open = PushRow::in_state(PushState::Scheduled).due_in(TimeDelta::minutes(-2));
    let retry = PushRow::in_state(PushState::Retry).due_in(TimeDelta::minutes(-1));
    let (open, retry) = (open.make(&it.pool).await.id, retry.make(&it.pool).await.id);
    let broker = it.broker();
    let mut reader = reader(&broker);
    let worker = start(&it.config);
    // The first messages: nothing that stood before these was put into the queue.
    assert_eq!(read(&mut reader, 2).await, [open, retry]);
    worker.stop().await;
    let waiting: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM push_notifications
         WHERE status = 'SCHEDULED' AND attempts = 0 AND next_attempt_at = '2090-01-01T03:00:00Z'",
    )
    .fetch_one(&it.pool)
    .await
    .unwrap();
    assert_eq!(waiting, 5_000);
}

#[testkit::test]
async fn the_message_carries_the_trace_and_the_time_of_its_promotion(mut it: Installation) {
    hurry(&mut it.config);
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    PushRow::in_state(PushState::Pending)
        .traceparent(trace)
        .make(&it.pool)
        .await;
    let clock = stopped_clock();
    clock.advance(TimeDelta::days(1));
    let broker = it.broker();
    let mut reader = reader(&broker);
    let _worker = start_at(&it.config, Arc::new(clock.clone()));
    let message = take(&mut reader, 1).await.remove(0).envelope;
    assert_eq!(message.traceparent.as_deref(), Some(trace));
    assert!((message.enqueued_at - clock.now()).abs() < TimeDelta::seconds(1));
}

#[testkit::test]
async fn a_job_waits_for_its_start_delay(mut it: Installation) {
    hurry(&mut it.config);
    put_off(&mut it.config.push.job.send_pending);
    let pending = pending(&it.pool, &[1]).await;
    let due = PushRow::in_state(PushState::Retry).make(&it.pool).await.id;
    let before = rows(&it.pool, &pending).await;
    let broker = it.broker();
    let mut reader = reader(&broker);
    let _worker = start(&it.config);
    assert_eq!(read(&mut reader, 1).await, [due]);
    assert_eq!(rows(&it.pool, &pending).await, before);
}
