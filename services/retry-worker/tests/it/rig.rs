//! What the tests share: a retry worker that can be started and stopped, a reader of the queue, and looks at the rows.

use std::sync::Arc;
use std::time::Duration;

use broker::{Broker, Consumer, Delivery, Queue};
use chrono::TimeDelta;
use config::{Config, Job};
use domain::clock::{Clock, ManualClock, SystemClock};
use domain::push::PushId;
use lifecycle::Lifecycle;
use metrics_exporter_prometheus::PrometheusHandle;
use sqlx::PgPool;
use store::push::PushView;
use testkit::{Installation, PATIENCE, Service, eventually};

pub(crate) type Worker = Service<retry_worker::Error>;

/// Starts a retry worker.
pub(crate) fn start(config: &Config) -> Worker {
    start_at(config, Arc::new(SystemClock))
}

/// Starts a retry worker with a clock of its own.
pub(crate) fn start_at(config: &Config, clock: Arc<dyn Clock>) -> Worker {
    let config = Arc::new(config.clone());
    Service::start(config.shutdown.grace_period, |lifecycle: Lifecycle| {
        retry_worker::run_with_clock(config, lifecycle, clock)
    })
}

/// A clock that stands at the present.
pub(crate) fn stopped_clock() -> ManualClock {
    ManualClock::starting_at(SystemClock.now())
}

/// A clock that has days to go until the present: what must not be done too early is done by no time that the database has not
/// reached, however far a test moves its clock.
pub(crate) fn clock_of_last_week() -> ManualClock {
    ManualClock::starting_at(SystemClock.now() - TimeDelta::days(8))
}

/// Makes the jobs run often.
pub(crate) fn hurry(config: &mut Config) {
    let jobs = &mut config.push.job;
    for job in [&mut jobs.send_scheduled, &mut jobs.send_pending] {
        job.repeat_interval = Duration::from_millis(50);
    }
    config.push.rescue.repeat_interval = Duration::from_millis(50);
}

/// Puts a job off until after the test.
pub(crate) fn put_off(job: &mut Job) {
    job.start_delay = 60 * PATIENCE;
}

/// A reader of `push.ready` that takes as much as there is.
pub(crate) fn reader(broker: &Broker) -> Consumer {
    broker.consume(Queue::PushReady, 0)
}

/// Takes the next `count` messages, without settling them.
pub(crate) async fn take(reader: &mut Consumer, count: usize) -> Vec<Delivery> {
    let mut taken = Vec::new();
    while taken.len() < count {
        let batch = tokio::time::timeout(PATIENCE, reader.next_batch(count - taken.len())).await;
        taken.extend(batch.expect("a message comes").expect("the reader runs"));
    }
    taken
}

/// Takes and acknowledges the next `count` messages; returns which pushes they are about.
pub(crate) async fn read(reader: &mut Consumer, count: usize) -> Vec<PushId> {
    let mut ids = Vec::new();
    for delivery in take(reader, count).await {
        ids.push(delivery.envelope.id.into());
        let _ = delivery.receipt.ack().await;
    }
    ids
}

pub(crate) async fn view(it: &Installation, id: PushId) -> PushView {
    it.store.find_push(id).await.unwrap().expect("the push exists")
}

/// Waits until a queue holds so many messages that no consumer has.
pub(crate) async fn queue_holds(broker: &Broker, queue: Queue, messages: u32) {
    eventually(&format!("{messages} messages in {queue}"), async || {
        let depth = broker.depth(queue).await.ok()?;
        (depth.messages == messages).then_some(())
    })
    .await;
}

/// Waits until this line is among the metrics that were recorded on this thread.
pub(crate) async fn shows(metrics: &PrometheusHandle, sample: &str) {
    eventually(&format!("the sample {sample}"), async || {
        metrics.render().lines().any(|line| line == sample).then_some(())
    })
    .await;
}

/// Everything that is stored about these pushes.
pub(crate) async fn rows(pool: &PgPool, ids: &[PushId]) -> Vec<String> {
    let ids: Vec<_> = ids.iter().map(|id| id.uuid()).collect();
    sqlx::query_scalar("SELECT p::text FROM push_notifications p WHERE p.id = ANY($1) ORDER BY p.id")
        .bind(&ids)
        .fetch_all(pool)
        .await
        .unwrap()
}

/// How often the holder of a job's lease has shown a sign of life; `None` while no replica holds it. It does so every
/// second, so that a job with a short interval has been executed between two signs.
pub(crate) async fn signs_of_life(pool: &PgPool, job: &str) -> Option<i64> {
    sqlx::query_scalar("SELECT renewals FROM leases WHERE name = 'job/' || $1 AND holder IS NOT NULL")
        .bind(job)
        .fetch_optional(pool)
        .await
        .unwrap()
}

/// A dead letter.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct DeadLetter {
    pub(crate) reason: String,
    pub(crate) fingerprint: String,
    pub(crate) push_id: Option<uuid::Uuid>,
    pub(crate) attempts: Option<i32>,
    pub(crate) detail: String,
    pub(crate) message: Option<serde_json::Value>,
}

pub(crate) async fn dead_letters(pool: &PgPool) -> Vec<DeadLetter> {
    sqlx::query_as("SELECT reason, fingerprint, push_id, attempts, detail, message FROM dead_letters")
        .fetch_all(pool)
        .await
        .unwrap()
}

/// Waits for exactly one dead letter to be there.
pub(crate) async fn one_dead_letter(pool: &PgPool) -> DeadLetter {
    eventually("a dead letter", async || {
        let mut letters = dead_letters(pool).await;
        assert!(letters.len() <= 1, "{letters:?}");
        letters.pop()
    })
    .await
}
