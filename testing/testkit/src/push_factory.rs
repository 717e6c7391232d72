//! Rows of pushes in any state, made as the life cycle would have left them: the push, one attempt row for each
//! attempt, and the dead letter of one that ended badly by itself.
//!
//! It writes the tables itself and takes no part of `store`, so that a test of `store` compares two independent things.

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::push::{PushId, PushState};
use domain::reason::PushReason;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::fixture::makes_claim;

/// A push to be made.
#[derive(Debug, Clone)]
pub struct PushRow {
    state: PushState,
    attempts: u32,
    created_at: DateTime<Utc>,
    due_in: TimeDelta,
    lease: TimeDelta,
    traceparent: Option<String>,
}

/// A push that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadePush {
    /// Its identifier.
    pub id: PushId,
    /// The token of its claim; for a push that is not claimed, a token that no process holds.
    pub lease_token: Uuid,
}

impl PushRow {
    /// A push in `state`, accepted now, due since a minute if it waits for a time, leased for an hour if it is leased.
    /// It has had the fewest attempts that lead to `state`.
    pub fn in_state(state: PushState) -> Self {
        Self {
            state,
            attempts: fewest_attempts(state),
            created_at: SystemClock.now(),
            due_in: TimeDelta::minutes(-1),
            lease: TimeDelta::hours(1),
            traceparent: None,
        }
    }

    /// With this number of attempts, a running one included.
    ///
    /// # Panics
    ///
    /// When no push can be in the state with so few.
    pub fn attempts(mut self, attempts: u32) -> Self {
        assert!(
            attempts >= fewest_attempts(self.state),
            "a push that is {:?} has had more than {attempts} attempts",
            self.state
        );
        self.attempts = attempts;
        self
    }

    /// Accepted at this time, which also decides its identifier and its partition.
    pub fn created_at(mut self, at: DateTime<Utc>) -> Self {
        self.created_at = at;
        self
    }

    /// Due so long after the database's present time; negative for one that is overdue.
    pub fn due_in(mut self, due_in: TimeDelta) -> Self {
        self.due_in = due_in;
        self
    }

    /// Leased so long from the database's present time on; negative for a lease that has run out.
    pub fn leased_for(mut self, lease: TimeDelta) -> Self {
        self.lease = lease;
        self
    }

    /// With this trace context.
    pub fn traceparent(mut self, traceparent: &str) -> Self {
        self.traceparent = Some(traceparent.to_owned());
        self
    }

    /// Stores it.
    ///
    /// # Panics
    ///
    /// When the database does not take it.
    pub async fn make(&self, pool: &PgPool) -> MadePush {
        let made = MadePush {
            id: PushId::at(self.created_at),
            lease_token: Uuid::now_v7(),
        };
        makes_claim(made.lease_token);
        // In one transaction, because a service at work must not find a half of it.
        let stored = async {
            let mut transaction = pool.begin().await?;
            self.insert_push(&mut transaction, made).await?;
            self.insert_attempts(&mut transaction, made.id).await?;
            self.insert_dead_letter(&mut transaction, made.id).await?;
            transaction.commit().await
        };
        stored.await.expect("the database should take the row");
        made
    }

    async fn insert_push(&self, connection: &mut PgConnection, made: MadePush) -> Result<(), sqlx::Error> {
        let status = self.state.status();
        let claimed = self.state == PushState::Sending;
        sqlx::query(
            "INSERT INTO push_notifications
                 (id, status, platform, message_prototype_key, push_key, message, cron_expression, attempts,
                  next_attempt_at, leased_until, lease_token, traceparent, created_at, finished_at)
             VALUES ($1, $2, 'IOS', 'Hello', 'device-1', 'Hello client!', '* * * * * ?', $3,
                     CASE WHEN $2 IN ('SCHEDULED', 'RETRY') THEN now() + $4 END,
                     CASE WHEN $2 = 'IN_MEMORY' THEN now() + $5 END,
                     $6, $7, $8, CASE WHEN $2 IN ('SENT', 'FAILED', 'GIVEN_UP') THEN now() END)",
        )
        .bind(made.id.uuid())
        .bind(status.as_str())
        .bind(i32::try_from(self.attempts).expect("a test makes few attempts"))
        .bind(self.due_in)
        .bind(self.lease)
        .bind(claimed.then_some(made.lease_token))
        .bind(&self.traceparent)
        .bind(self.created_at)
        .execute(&mut *connection)
        .await?;
        if self.state == PushState::Cancelled {
            sqlx::query("UPDATE push_notifications SET reason = $2 WHERE id = $1")
                .bind(made.id.uuid())
                .bind(PushReason::Cancelled.as_str())
                .execute(connection)
                .await?;
        }
        Ok(())
    }

    async fn insert_attempts(&self, connection: &mut PgConnection, id: PushId) -> Result<(), sqlx::Error> {
        sqlx::query(
            "INSERT INTO send_attempts
                 (push_notification_id, number, status, millis, error_type, swrve_error_code, swrve_error_message)
             SELECT $1, number, status, CASE WHEN status <> 'IN_PROCESS' THEN 250 END,
                    CASE WHEN status = 'ERROR' THEN 'SWRVE' END, CASE WHEN status = 'ERROR' THEN 503 END,
                    CASE WHEN status = 'ERROR' THEN '503 Service Unavailable' END
             FROM (SELECT number, CASE WHEN number = $2 THEN $3 ELSE 'ERROR' END AS status
                   FROM generate_series(1, $2) AS number) AS attempt",
        )
        .bind(id.uuid())
        .bind(i32::try_from(self.attempts).expect("a test makes few attempts"))
        .bind(match self.state {
            PushState::Sending => "IN_PROCESS",
            PushState::Sent => "OK",
            _ => "ERROR",
        })
        .execute(connection)
        .await?;
        Ok(())
    }

    async fn insert_dead_letter(&self, connection: &mut PgConnection, id: PushId) -> Result<(), sqlx::Error> {
        if !matches!(self.state, PushState::Failed | PushState::GivenUp) {
            return Ok(());
        }
        sqlx::query(
            "INSERT INTO dead_letters (lane, reason, fingerprint, push_id, attempts, error_type, detail)
             VALUES ('push', $2, 'swrve/503', $1, $3, 'SWRVE', '503 Service Unavailable')",
        )
        .bind(id.uuid())
        .bind(self.state.status().as_str())
        .bind(i32::try_from(self.attempts).expect("a test makes few attempts"))
        .execute(connection)
        .await?;
        Ok(())
    }
}

fn fewest_attempts(state: PushState) -> u32 {
    match state {
        PushState::Scheduled | PushState::Pending | PushState::Queued | PushState::Cancelled => 0,
        PushState::Sending | PushState::Retry | PushState::Sent | PushState::Failed | PushState::GivenUp => 1,
    }
}
