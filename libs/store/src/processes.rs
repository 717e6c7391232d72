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
/// The name of a counter that there is not.
const NONE: &str = "";

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
    /// Notifications that went from the queue back into the database because their subscription had its share.
    pub put_back: u64,
    /// Most attempts to deliver a notification that were in flight at once, as far as reports tell; 0 of the push lane.
    pub in_flight: u64,
    /// For how many of them there was room; 0 where that is not known, and of the push lane.
    pub slots: u64,
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
            Lane::Push => [
                "pushesAccepted",
                "pushesSent",
                "pushesFailed",
                "pushesRetried",
                NONE,
            ],
            Lane::Reseller => [
                "eventsAccepted",
                "notificationsDelivered",
                "notificationsFailed",
                "notificationsRetried",
                "notificationsPutBack",
            ],
        };
        let mut found = self.minutes_of(names, minutes, now).await?;
        if lane == Lane::Push {
            // A process that sends pushes may deliver notifications as well.
            for minute in &mut found {
                (minute.in_flight, minute.slots) = (0, 0);
            }
        }
        Ok(found)
    }

    /// What was done of Web Push in each of the last `minutes` at `now`, as processes have reported it; the present minute is the
    /// last one.
    pub async fn webpush_minutes(
        &self,
        minutes: u32,
        now: DateTime<Utc>,
    ) -> Result<Vec<WebpushMinute>, Error> {
        let names = [
            "webpushDirect",
            "webpushStored",
            "webpushErrors",
            "webpushOpened",
            NONE,
        ];
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

    /// The differences of five counters by the minute, in the order of a lane's.
    async fn minutes_of(
        &self,
        names: [&str; 5],
        minutes: u32,
        now: DateTime<Utc>,
    ) -> Result<Vec<LaneMinute>, Error> {
        Ok(sqlx::query_file_as!(
            LaneMinute,
            "queries/lane_minutes.sql",
            i32::try_from(minutes).unwrap_or(i32::MAX),
            names[0],
            names[1],
            names[2],
            names[3],
            now,
            names[4],
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
