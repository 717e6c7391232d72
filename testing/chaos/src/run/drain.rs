//! Waits until everything has come to its end. It has all the time that it needs, as long as something gets on.

use std::time::Duration;

use anyhow::Context;
use sqlx::PgPool;
use tokio::time::Instant;

use super::stage::Stage;
use crate::cluster::{ClusterFault, Service};
use crate::traffic::Traffic;

/// How long nothing may get on.
const PATIENCE: Duration = Duration::from_secs(600);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);
/// How long nothing gets on before clocks are set forward to when something is due that a wrong clock has put off.
const WAIT_FOR_CLOCKS: Duration = Duration::from_secs(5);
/// Between two times at which a short run takes what is queued for lost.
const HASTEN: Duration = Duration::from_secs(8);

/// What has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, sqlx::FromRow)]
struct Left {
    pushes: i64,
    notifications: i64,
    jobs: i64,
    attempts: i64,
    /// Messages of Web Push that user agents have not acknowledged.
    messages: i64,
    /// Until the last of those is due that are due later, in milliseconds.
    due_millis: i64,
}

const LEFT: &str = "
    WITH p AS (SELECT count(*) AS count, max(next_attempt_at) AS due FROM push_notifications WHERE finished_at IS NULL),
    n AS (SELECT count(*) AS count, max(next_attempt_at) AS due FROM notifications
          WHERE finished_at IS NULL AND NOT (status = 'SCHEDULED' AND reason = 'QUOTA')),
    j AS (SELECT count(*) AS count, max(paced_to) AS due FROM dead_letter_jobs WHERE finished_at IS NULL),
    a AS (SELECT (SELECT count(*) FROM send_attempts WHERE status <> 'IN_PROCESS')
                 + (SELECT count(*) FROM delivery_attempts WHERE status <> 'IN_PROCESS') AS count)
    SELECT p.count AS pushes, n.count AS notifications, j.count AS jobs, a.count AS attempts,
           (SELECT count(*) FROM webpush_messages) AS messages,
           coalesce(extract(epoch FROM greatest(p.due, n.due, j.due) - now()) * 1000, 0)::bigint AS due_millis
    FROM p, n, j, a";

impl Left {
    async fn of(pool: &PgPool) -> anyhow::Result<Self> {
        sqlx::query_as(LEFT)
            .fetch_one(pool)
            .await
            .context("what is left cannot be counted")
    }

    fn is_nothing(&self) -> bool {
        (self.pushes, self.notifications, self.jobs, self.messages) == (0, 0, 0, 0)
    }
}

/// Everything that is looked at; as long as it changes, something gets on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct State {
    left: Left,
    callers: u64,
    in_flight: u64,
    queued: Vec<(String, u64)>,
}

impl State {
    async fn of(stage: &Stage, traffic: &Traffic) -> anyhow::Result<Self> {
        let left = Left::of(&stage.pool).await?;
        let mut state = Self {
            // How long something is due is no sign of life.
            left: Left {
                due_millis: 0,
                ..left
            },
            callers: traffic.underway(),
            in_flight: stage.receivers.in_flight(),
            queued: Vec::new(),
        };
        if left.is_nothing() {
            let mut queued = stage
                .cluster
                .queue_depths()
                .await
                .context("the queues cannot be looked at")?;
            queued.retain(|(_, messages)| *messages > 0);
            state.queued = queued;
        }
        Ok(state)
    }

    fn is_over(&self) -> bool {
        self.left.is_nothing() && self.callers == 0 && self.in_flight == 0 && self.queued.is_empty()
    }
}

/// What was left at last.
#[derive(Debug, Default)]
pub(super) struct Drained {
    /// Messages by queue; none when everything came to its end.
    pub(super) queued: Vec<(String, u64)>,
    /// Why not everything came to its end, when it did not.
    pub(super) stuck: Option<String>,
}

/// Waits for it. In `haste` what is queued is taken for lost before its time, which
/// is safe at any time, since a message is a hint.
pub(super) async fn until_nothing_moves(
    stage: &Stage,
    traffic: &Traffic,
    haste: bool,
) -> anyhow::Result<Drained> {
    let mut last = State::default();
    let (mut moved, mut hastened) = (Instant::now(), Instant::now());
    let mut clocks = Duration::ZERO;
    loop {
        let state = State::of(stage, traffic).await?;
        if state.is_over() {
            return Ok(Drained::default());
        }
        if state != last {
            (last, moved) = (state, Instant::now());
        }
        if moved.elapsed() > PATIENCE {
            let stuck = Some(format!(
                "nothing has got on for {} s: {last:?}",
                PATIENCE.as_secs()
            ));
            return Ok(Drained {
                queued: last.queued,
                stuck,
            });
        }
        if haste && hastened.elapsed() > HASTEN {
            queue_leases_run_out(&stage.pool).await?;
            hastened = Instant::now();
        }
        if moved.elapsed() > WAIT_FOR_CLOCKS {
            set_clocks_forward(stage, &mut clocks).await?;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What a wrong clock has put off by hours would be done in hours; that time passes now, for everybody.
async fn set_clocks_forward(stage: &Stage, clocks: &mut Duration) -> anyhow::Result<()> {
    let due = Left::of(&stage.pool).await?.due_millis;
    let due = Duration::from_millis(u64::try_from(due).unwrap_or(0));
    if due <= *clocks + WAIT_FOR_CLOCKS {
        return Ok(());
    }
    *clocks = due + Duration::from_secs(1);
    for service in [Service::IngestApi, Service::Dispatcher, Service::RetryWorker] {
        for index in 0..stage.replicas.of(service) {
            let step = ClusterFault::ClockStep {
                replica: service.replica(index),
                by_millis: i64::try_from(clocks.as_millis())?,
            };
            stage
                .cluster
                .inject(&step)
                .await
                .context("a clock cannot be set")?;
        }
    }
    Ok(())
}

async fn queue_leases_run_out(pool: &PgPool) -> anyhow::Result<()> {
    for table in ["push_notifications", "notifications"] {
        let query = format!(
            "UPDATE {table} SET leased_until = now() - interval '1 second' WHERE status = 'IN_MEMORY' AND lease_token IS NULL"
        );
        sqlx::query(sqlx::AssertSqlSafe(query))
            .execute(pool)
            .await
            .context("leases cannot be changed")?;
    }
    Ok(())
}
