//! Rows of notifications in any state, made as the life cycle would have left them: the event, the notification, one
//! attempt row for each attempt, and the dead letter of one that ended badly.
//!
//! It writes the tables itself and takes no part of `store`, so that a test of `store` compares two independent things.

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::notification::{NotificationId, NotificationState};
use domain::push::PushId;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::fixture::makes_claim;

/// The type of every event made here.
pub const EVENT_TYPE: &str = "domain.created";

/// A notification to be made.
#[derive(Debug, Clone)]
pub struct NotificationRow {
    subscription: Uuid,
    reseller_id: String,
    state: NotificationState,
    attempts: u32,
    created_at: DateTime<Utc>,
    due_in: TimeDelta,
    lease: TimeDelta,
}

/// A notification that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeNotification {
    /// Its identifier.
    pub id: NotificationId,
    /// Its event.
    pub event: Uuid,
    /// Whom it is for.
    pub subscription: Uuid,
    /// The token of its claim; for a notification that is not claimed, a token that no process holds.
    pub lease_token: Uuid,
}

impl NotificationRow {
    /// A notification of an event of its own for a subscription of the reseller `acme`, in `state`, accepted now, due
    /// since a minute if it waits for a time, leased for an hour if it is leased. It has had the fewest attempts that lead
    /// to `state`.
    pub fn in_state(state: NotificationState, subscription: Uuid) -> Self {
        Self {
            subscription,
            reseller_id: "acme".to_owned(),
            state,
            attempts: fewest_attempts(state),
            created_at: SystemClock.now(),
            due_in: TimeDelta::minutes(-1),
            lease: TimeDelta::hours(1),
        }
    }

    /// Of this reseller.
    pub fn reseller(mut self, id: &str) -> Self {
        id.clone_into(&mut self.reseller_id);
        self
    }

    /// With this number of attempts, a running one included.
    ///
    /// # Panics
    ///
    /// When no notification can be in the state with so few or so many.
    pub fn attempts(mut self, attempts: u32) -> Self {
        let untried = matches!(self.state, NotificationState::Pending);
        assert!(
            attempts >= fewest_attempts(self.state) && !(untried && attempts > 0),
            "a notification that is {:?} cannot have had {attempts} attempts",
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

    /// Stores it.
    ///
    /// # Panics
    ///
    /// When the database does not take it.
    pub async fn make(&self, pool: &PgPool) -> MadeNotification {
        let event = PushId::at(self.created_at).uuid();
        let made = MadeNotification {
            id: NotificationId::of(event, self.subscription),
            event,
            subscription: self.subscription,
            lease_token: Uuid::now_v7(),
        };
        makes_claim(made.lease_token);
        // In one transaction, because a service at work must not find a half of it.
        let stored = async {
            let mut transaction = pool.begin().await?;
            let body = self.insert_event(&mut transaction, event).await?;
            self.insert_notification(&mut transaction, made, body).await?;
            self.insert_attempts(&mut transaction, made).await?;
            self.insert_dead_letter(&mut transaction, made).await?;
            transaction.commit().await
        };
        stored.await.expect("the database should take the row");
        made
    }

    /// Returns the length of the body.
    async fn insert_event(&self, connection: &mut PgConnection, event: Uuid) -> Result<i32, sqlx::Error> {
        let at = self
            .created_at
            .to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let body = format!(
            r#"{{"id":"{event}","type":"{EVENT_TYPE}","timestamp":"{at}","data":{{"domain":"example.lv"}}}}"#
        );
        sqlx::query(
            "INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at)
             VALUES ($1, $1::text, $2, $3, $4, $5, $5)",
        )
        .bind(event)
        .bind(&self.reseller_id)
        .bind(EVENT_TYPE)
        .bind(&body)
        .bind(self.created_at)
        .execute(connection)
        .await?;
        Ok(i32::try_from(body.len()).expect("the body of a test is short"))
    }

    async fn insert_notification(
        &self,
        connection: &mut PgConnection,
        made: MadeNotification,
        payload_bytes: i32,
    ) -> Result<(), sqlx::Error> {
        let claimed = self.state == NotificationState::Sending;
        sqlx::query(
            "INSERT INTO notifications
                 (id, event, subscription_id, reseller_id, event_type, status, reason, attempts, next_attempt_at,
                  leased_until, lease_token, payload_bytes, created_at, updated_at, finished_at)
             VALUES ($1, $2, $3, $4, $5, $6,
                     CASE WHEN $6 = 'SCHEDULED' THEN 'QUOTA' WHEN $13 THEN 'CANCELLED'
                          WHEN $6 IN ('RETRY', 'FAILED', 'GIVEN_UP') THEN 'delivery/http/503/json' END, $7,
                     CASE WHEN $6 IN ('SCHEDULED', 'RETRY') THEN now() + $8 END,
                     CASE WHEN $6 = 'IN_MEMORY' THEN now() + $9 END,
                     $10, $11, $12, $12, CASE WHEN $6 IN ('SENT', 'FAILED', 'GIVEN_UP') THEN now() END)",
        )
        .bind(made.id.uuid())
        .bind(made.event)
        .bind(made.subscription)
        .bind(&self.reseller_id)
        .bind(EVENT_TYPE)
        .bind(self.state.status().as_str())
        .bind(i32::try_from(self.attempts).expect("a test makes few attempts"))
        .bind(self.due_in)
        .bind(self.lease)
        .bind(claimed.then_some(made.lease_token))
        .bind(payload_bytes)
        .bind(self.created_at)
        .bind(self.state == NotificationState::Cancelled)
        .execute(connection)
        .await?;
        Ok(())
    }

    async fn insert_attempts(
        &self,
        connection: &mut PgConnection,
        made: MadeNotification,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(
            "INSERT INTO delivery_attempts
                 (notification_id, number, status, started_at, millis, url, response_status, error_type, error,
                  fingerprint)
             SELECT $1, number, status, $4, CASE WHEN status <> 'IN_PROCESS' THEN 250 END, 'https://acme.example/hook',
                    CASE status WHEN 'OK' THEN 200 WHEN 'ERROR' THEN 503 END,
                    CASE WHEN status = 'ERROR' THEN 'HTTP' END,
                    CASE WHEN status = 'ERROR' THEN '503 Service Unavailable' END,
                    CASE WHEN status = 'ERROR' THEN 'delivery/http/503/json' END
             FROM (SELECT number, CASE WHEN number = $2 THEN $3 ELSE 'ERROR' END AS status
                   FROM generate_series(1, $2) AS number) AS attempt",
        )
        .bind(made.id.uuid())
        .bind(i32::try_from(self.attempts).expect("a test makes few attempts"))
        .bind(match self.state {
            NotificationState::Sending => "IN_PROCESS",
            NotificationState::Sent => "OK",
            _ => "ERROR",
        })
        .bind(self.created_at)
        .execute(connection)
        .await?;
        Ok(())
    }

    async fn insert_dead_letter(
        &self,
        connection: &mut PgConnection,
        made: MadeNotification,
    ) -> Result<(), sqlx::Error> {
        if !matches!(self.state, NotificationState::Failed | NotificationState::GivenUp) {
            return Ok(());
        }
        sqlx::query(
            "INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, subscription_id, event_type, attempts,
                                       error_type, detail)
             VALUES ('reseller', $2, 'http/503', $1, $3, $4, $5, 'HTTP', '503 Service Unavailable')",
        )
        .bind(made.id.uuid())
        .bind(self.state.status().as_str())
        .bind(made.subscription)
        .bind(EVENT_TYPE)
        .bind(i32::try_from(self.attempts).expect("a test makes few attempts"))
        .execute(connection)
        .await?;
        Ok(())
    }
}

fn fewest_attempts(state: NotificationState) -> u32 {
    match state {
        NotificationState::Scheduled
        | NotificationState::Pending
        | NotificationState::Queued
        | NotificationState::Cancelled => 0,
        NotificationState::Sending
        | NotificationState::Retry
        | NotificationState::Sent
        | NotificationState::Failed
        | NotificationState::GivenUp => 1,
    }
}
