//! Which services run, as they report it themselves.
//!
//! It deliberately gives what they say of themselves no meaning; and nothing that is delivered depends on it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use crate::read::{Age, Count};
use crate::{Error, Lane, Store, interval};

/// Most processes that are listed. More of them than this report only when something restarts all the time.
const LISTED_MAX: i64 = 1_000;

/// What a service reports of itself. Several services of one process share its identifier.
#[derive(Debug, Clone, Copy)]
pub struct Beat<'a> {
    /// Of the process.
    pub process: Uuid,
    /// Which service.
    pub service: &'a str,
    /// The name of its host.
    pub host: &'a str,
    /// The identifier that the operating system gave the process.
    pub pid: u32,
    /// Of the program.
    pub version: &'a str,
    /// For how long it has been running.
    pub uptime: Duration,
    /// The rest; an object. Of what it says under `counters`, the value before is kept under `previous`.
    pub state: &'a Value,
}

/// A service that has reported itself.
#[derive(Debug, Clone)]
pub struct ProcessView {
    /// Of the process.
    pub process: Uuid,
    /// Which service.
    pub service: String,
    /// The name of its host.
    pub host: String,
    /// The identifier that the operating system gave the process.
    pub pid: u32,
    /// Of the program.
    pub version: String,
    /// When it was started, by the clock of the database.
    pub started_at: DateTime<Utc>,
    /// When it reported itself last, by the same clock.
    pub beat_at: DateTime<Utc>,
    /// How long ago that is.
    pub age: Duration,
    /// What it said.
    pub state: Value,
}

/// What a lane did in a minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneMinute {
    /// Its beginning.
    pub minute: DateTime<Utc>,
    /// Processes that have reported themselves in it.
    pub processes: u64,
    /// Pushes or events that were accepted.
    pub accepted: u64,
    /// Pushes or notifications that were delivered.
    pub delivered: u64,
    /// Those that failed for good.
    pub failed: u64,
    /// Attempts that are followed by another.
    pub retried: u64,
    /// The epochs in which the push lane was led.
    pub epochs: Vec<i64>,
}

/// What was done of Web Push in a minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebpushMinute {
    /// Its beginning.
    pub minute: DateTime<Utc>,
    /// Processes that have reported themselves in it, whatever they do.
    pub processes: u64,
    /// Messages that user agents acknowledged at once.
    pub direct: u64,
    /// Messages that were stored.
    pub stored: u64,
    /// Messages that could not be stored.
    pub failed: u64,
    /// Connections that began.
    pub opened: u64,
}

impl Store {
    /// Records that a service lives; returns the present time of the database.
    pub async fn beat(&self, beat: Beat<'_>) -> Result<DateTime<Utc>, Error> {
        Ok(sqlx::query_scalar!(
            r#"
            INSERT INTO processes AS p (id, service, host, pid, version, started_at, beat_at, state)
            SELECT $1, $2, $3, $4, $5, t.now - $6::interval, t.now, $7 FROM (SELECT clock_timestamp() AS now) AS t
            ON CONFLICT (id, service) DO UPDATE
            SET beat_at = excluded.beat_at,
                state = excluded.state
                    || jsonb_build_object('previous', jsonb_build_object('at', p.beat_at, 'counters', p.state -> 'counters'))
            RETURNING beat_at
            "#,
            beat.process,
            beat.service,
            beat.host,
            i32::try_from(beat.pid).unwrap_or(i32::MAX),
            beat.version,
            interval(beat.uptime),
            beat.state,
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// Whether every service that reads the queues of notifications has said that it reads messages about several of them; `false` when
    /// none has reported itself lately.
    pub async fn shared_messages_are_read(&self) -> Result<bool, Error> {
        Ok(sqlx::query_scalar!(
            r#"
            SELECT coalesce(bool_and(coalesce((state ->> 'readsSharedMessages')::boolean, false)), false) AS "all!"
            FROM processes
            WHERE service IN ('dispatcher', 'retry-worker') AND beat_at > clock_timestamp() - interval '1 minute'
            "#,
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// Records that a service has ended as it should.
    pub async fn forget_process(&self, process: Uuid, service: &str) -> Result<(), Error> {
        sqlx::query!(
            "DELETE FROM processes WHERE id = $1 AND service = $2",
            process,
            service
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Forgets the services that have not reported themselves for `silence`; returns how many.
    pub async fn forget_silent_processes(&self, silence: Duration) -> Result<u64, Error> {
        let forgotten = sqlx::query!(
            r#"
            DELETE FROM processes WHERE (id, service) IN (
                SELECT id, service FROM processes WHERE beat_at < clock_timestamp() - $1::interval
                ORDER BY id, service FOR UPDATE SKIP LOCKED)
            "#,
            interval(silence),
        )
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }

    /// What a lane did in each of the last `minutes` at `now`, as processes have reported it; the present minute is the last one.
    pub async fn lane_minutes(
        &self,
        lane: Lane,
        minutes: u32,
        now: DateTime<Utc>,
    ) -> Result<Vec<LaneMinute>, Error> {
        let names = match lane {
            Lane::Push => ["pushesAccepted", "pushesSent", "pushesFailed", "pushesRetried"],
            Lane::Reseller => [
                "eventsAccepted",
                "notificationsDelivered",
                "notificationsFailed",
                "notificationsRetried",
            ],
        };
        self.minutes_of(names, minutes, now).await
    }

    /// What was done of Web Push in each of the last `minutes` at `now`, as processes have reported it; the present minute is the
    /// last one.
    pub async fn webpush_minutes(
        &self,
        minutes: u32,
        now: DateTime<Utc>,
    ) -> Result<Vec<WebpushMinute>, Error> {
        let names = ["webpushDirect", "webpushStored", "webpushErrors", "webpushOpened"];
        let found = self.minutes_of(names, minutes, now).await?;
        let named = found.into_iter().map(|it| WebpushMinute {
            minute: it.minute,
            processes: it.processes,
            direct: it.accepted,
            stored: it.delivered,
            failed: it.failed,
            opened: it.retried,
        });
        Ok(named.collect())
    }

    /// The differences of four counters by the minute, in the order of a lane's.
    async fn minutes_of(
        &self,
        names: [&str; 4],
        minutes: u32,
        now: DateTime<Utc>,
    ) -> Result<Vec<LaneMinute>, Error> {
        Ok(sqlx::query_as!(
            LaneMinute,
            // What a process had counted in the minute before its first one here is known of one that was started in it: nothing.
            r#"
            WITH span AS (
                SELECT date_trunc('minute', $6::timestamptz) - ($1::int - 1) * interval '1 minute' AS since,
                       date_trunc('minute', $6::timestamptz) AS until),
            reported AS (
                SELECT m.minute, m.counters, m.epoch,
                       coalesce(lag(m.counters) OVER (PARTITION BY m.process ORDER BY m.minute),
                                CASE WHEN m.started_at >= m.minute THEN '{}'::jsonb END) AS before
                FROM span s JOIN process_minutes m ON m.minute >= s.since - interval '1 minute')
            SELECT t.minute AS "minute!", count(r.counters) AS "processes!: Count",
                   coalesce(sum(done.accepted), 0)::bigint AS "accepted!: Count",
                   coalesce(sum(done.delivered), 0)::bigint AS "delivered!: Count",
                   coalesce(sum(done.failed), 0)::bigint AS "failed!: Count",
                   coalesce(sum(done.retried), 0)::bigint AS "retried!: Count",
                   coalesce(array_agg(DISTINCT (r.epoch #>> '{}')::bigint)
                            FILTER (WHERE jsonb_typeof(r.epoch) = 'number'), '{}') AS "epochs!"
            FROM span s
            CROSS JOIN LATERAL generate_series(s.since, s.until, interval '1 minute') AS t(minute)
            LEFT JOIN reported r ON r.minute = t.minute
            LEFT JOIN LATERAL (
                SELECT greatest(0, coalesce((r.counters ->> $2::text)::bigint, 0) - coalesce((r.before ->> $2::text)::bigint, 0)) AS accepted,
                       greatest(0, coalesce((r.counters ->> $3::text)::bigint, 0) - coalesce((r.before ->> $3::text)::bigint, 0)) AS delivered,
                       greatest(0, coalesce((r.counters ->> $4::text)::bigint, 0) - coalesce((r.before ->> $4::text)::bigint, 0)) AS failed,
                       greatest(0, coalesce((r.counters ->> $5::text)::bigint, 0) - coalesce((r.before ->> $5::text)::bigint, 0)) AS retried
                WHERE r.before IS NOT NULL) AS done ON true
            GROUP BY t.minute ORDER BY t.minute
            "#,
            i32::try_from(minutes).unwrap_or(i32::MAX),
            names[0],
            names[1],
            names[2],
            names[3],
            now,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Forgets what processes reported more than an hour ago; returns how many of their minutes.
    pub async fn forget_process_minutes(&self) -> Result<u64, Error> {
        let forgotten = sqlx::query!(
            "DELETE FROM process_minutes WHERE minute < date_trunc('minute', now()) - interval '61 minutes'"
        )
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }

    /// The services that have reported themselves and not said goodbye, by name and start.
    pub async fn list_processes(&self) -> Result<Vec<ProcessView>, Error> {
        Ok(sqlx::query_as!(
            ProcessView,
            r#"
            SELECT id AS process, service, host, pid AS "pid: Count", version, started_at, beat_at, state,
                   extract(epoch FROM clock_timestamp() - beat_at)::float8 AS "age!: Age"
            FROM processes ORDER BY service, started_at, id LIMIT $1
            "#,
            LISTED_MAX,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// What the service calls itself to the server, without the name of the product before it.
    pub fn service_name(&self) -> String {
        let options = self.pool.connect_options();
        let name = options.get_application_name().unwrap_or("unnamed");
        name.strip_prefix("postrider-").unwrap_or(name).to_owned()
    }
}
