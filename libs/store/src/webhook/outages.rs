//! Classes of failures that engines hold because most endpoints fail in one way at once, and the subscriptions that are sent nothing
//! but probes meanwhile.
//!
//! The rows gate no attempt: each engine decides for itself, and what it claims is guarded as always. They are what operators see, what
//! other engines follow, and what keeps promoters from moving what would only come back. All of them end by themselves, by the clock
//! of the database, when no engine renews them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::text::storable;
use crate::{Error, Store, interval};

/// How long it is believed that an engine holds a class after it said so.
pub const HOLD_LEASE: Duration = Duration::from_secs(10);
/// How long nothing of a subscription is promoted after an engine said so. One that lies further ahead was not written by this
/// program and holds nothing up.
pub const WITHHELD_FOR: Duration = Duration::from_secs(30);

/// What an engine knows of a class that it holds.
#[derive(Debug, Clone, Copy)]
pub struct OutageNote<'a> {
    /// Of `domain::notification::OutageClass`.
    pub class: &'a str,
    /// Probes since it said so last.
    pub probes: u32,
    /// The last failure, or what a probe answered, in words.
    pub answer: &'a str,
}

impl Store {
    /// Notes that an engine holds a class, for [`HOLD_LEASE`]. Any number of engines may hold it, as one outage.
    pub async fn note_outage(&self, note: OutageNote<'_>) -> Result<(), Error> {
        // Until the present and not the beginning of the statement: an engine that began later may have been done before.
        sqlx::query!(
            r#"
            INSERT INTO holds AS h (class, last_answer, probes, probed_at, leased_until)
            VALUES ($1, left($2, 500), $3, CASE WHEN $3::bigint > 0 THEN now() END, now() + $4::interval)
            ON CONFLICT (class) DO UPDATE
            SET since = CASE WHEN h.leased_until BETWEEN now() AND clock_timestamp() + $4::interval THEN h.since ELSE now() END,
                probes = excluded.probes
                    + CASE WHEN h.leased_until BETWEEN now() AND clock_timestamp() + $4::interval THEN h.probes ELSE 0 END,
                probed_at = coalesce(excluded.probed_at, CASE
                    WHEN h.leased_until BETWEEN now() AND clock_timestamp() + $4::interval THEN h.probed_at END),
                last_answer = excluded.last_answer, leased_until = excluded.leased_until
            "#,
            note.class,
            &*storable(note.answer),
            i64::from(note.probes),
            interval(HOLD_LEASE),
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// The classes that any engine holds.
    pub async fn outages(&self) -> Result<Vec<String>, Error> {
        Ok(sqlx::query_scalar!(
            "SELECT class FROM holds WHERE leased_until BETWEEN now() AND now() + $1::interval",
            interval(HOLD_LEASE),
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Keeps promoters from what waits for these subscriptions in a lane (`first` or `retry`), for [`WITHHELD_FOR`]. Each is named once,
    /// with its class.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then promoters go on.
    pub async fn withhold_subscriptions(&self, lane: &str, withheld: &[(Uuid, &str)]) -> Result<(), Error> {
        let (subscriptions, classes): (Vec<Uuid>, Vec<&str>) = withheld.iter().copied().unzip();
        sqlx::query!(
            r#"
            INSERT INTO subscription_sidelines AS l (subscription_id, lane, until, outage_class, outage_until)
            SELECT s.id, $1, now(), i.class, now() + $4::interval
            FROM UNNEST($2::uuid[], $3::text[]) AS i(id, class) JOIN subscriptions s ON s.id = i.id
            ORDER BY s.id
            ON CONFLICT (subscription_id, lane) DO UPDATE
            SET outage_class = excluded.outage_class, outage_until = excluded.outage_until
            -- What another engine of the lane has said some seconds ago needs not be said again.
            WHERE l.outage_class IS DISTINCT FROM excluded.outage_class
               OR l.outage_until NOT BETWEEN now() + interval '20 seconds' AND excluded.outage_until
            "#,
            lane,
            &subscriptions,
            &classes as &[&str],
            interval(WITHHELD_FOR),
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Lets promoters have what waits for these subscriptions in a lane.
    ///
    /// # Errors
    ///
    /// [`Error`] when the database fails; then it is theirs after [`WITHHELD_FOR`].
    pub async fn release_subscriptions(&self, lane: &str, released: &[Uuid]) -> Result<(), Error> {
        sqlx::query!(
            r#"
            WITH released AS (
                SELECT subscription_id FROM subscription_sidelines
                WHERE subscription_id = ANY ($2) AND lane = $1 AND outage_until IS NOT NULL
                ORDER BY subscription_id FOR UPDATE)
            UPDATE subscription_sidelines l SET outage_class = NULL, outage_until = NULL
            -- An array of one is looked up, as in the claims.
            FROM released r WHERE l.subscription_id = ANY (ARRAY[r.subscription_id]) AND l.lane = $1
            "#,
            lane,
            released,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Takes back that these subscriptions fail, of those that were well before `since`: it has turned out that the fault was not
    /// theirs.
    pub async fn forgive_failures(&self, subscriptions: &[Uuid], since: DateTime<Utc>) -> Result<(), Error> {
        sqlx::query!(
            r#"
            WITH accused AS (
                SELECT id FROM subscriptions
                WHERE id = ANY ($1) AND state = 'ACTIVE' AND failing_since >= $2
                ORDER BY id FOR NO KEY UPDATE)
            UPDATE subscriptions s SET failing_since = NULL FROM accused a WHERE s.id = a.id
            "#,
            subscriptions,
            since,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}
