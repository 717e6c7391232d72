//! A made-up past for the reseller of a demonstration, so that pages have something to show before anything has happened.
//!
//! It goes only into a database that knows no other reseller. What is made up is a function of the caller; here it is written, as if each
//! attempt had been claimed and completed.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use domain::notification::{Classification, NotificationId, NotificationStatus};
use domain::reason::StateReason;
use domain::subscription::SubscriptionState;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::audit::id_at;
use crate::webhook::{AttemptEnd, NewEvent, StatisticsDelta, TypeStatistics};
use crate::{Error, Store, column};

/// What the identifiers of made-up events begin with, by which a later past replaces an earlier one.
pub const EVENT_PREFIX: &str = "past-";

/// An event, and what became of it for one subscription.
#[derive(Debug, Clone)]
pub struct PastNotification {
    /// The event; its `event_id` begins with [`EVENT_PREFIX`].
    pub event: NewEvent,
    /// Who was notified.
    pub subscription: Uuid,
    /// How it ended, or what it waits for.
    pub status: NotificationStatus,
    /// Why it waits; of one that was tried, what failures of the kind of its last attempt share.
    pub reason: Option<String>,
    /// When it is due, for those that wait.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// The day that it was charged to, once it was tried.
    pub charged_on: Option<NaiveDate>,
    /// How it was tried, the first attempt first.
    pub attempts: Vec<PastAttempt>,
}

impl PastNotification {
    fn id(&self) -> Uuid {
        NotificationId::of(self.event.id, self.subscription).uuid()
    }

    fn changed_at(&self) -> DateTime<Utc> {
        self.attempts
            .last()
            .map_or(self.event.created_at, PastAttempt::ended_at)
    }
}

/// An attempt that is over.
#[derive(Debug, Clone)]
pub struct PastAttempt {
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// How long it took.
    pub took: Duration,
    /// Where it went.
    pub url: String,
    /// What came of it.
    pub classification: Classification,
}

impl PastAttempt {
    fn ended_at(&self) -> DateTime<Utc> {
        self.started_at + self.took
    }
}

/// A state that a subscription came to have.
#[derive(Debug, Clone, Copy)]
pub struct PastState {
    /// Since when.
    pub at: DateTime<Utc>,
    /// The state.
    pub state: SubscriptionState,
    /// Why.
    pub reason: StateReason,
}

/// What was charged to a day of a subscription.
#[derive(Debug, Clone, Copy)]
pub struct PastDay {
    /// The day.
    pub day: NaiveDate,
    /// How many notifications.
    pub used: u32,
    /// The quota of that day.
    pub quota: u32,
}

/// The past of a subscription, which exists.
#[derive(Debug, Clone)]
pub struct PastSubscription {
    /// Which one.
    pub id: Uuid,
    /// Its states, the first of them its beginning, the last one its present state.
    pub states: Vec<PastState>,
    /// Since when its endpoint fails.
    pub failing_since: Option<DateTime<Utc>>,
    /// Its own quota.
    pub daily_quota: Option<u32>,
    /// What was charged day by day, the present day last.
    pub days: Vec<PastDay>,
}

/// A past.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// Of these subscriptions, whose own past is replaced.
    pub subscriptions: Vec<PastSubscription>,
    /// What they were notified of.
    pub notifications: Vec<PastNotification>,
}

/// Whether a past was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PastWritten {
    /// It is there.
    Done,
    /// The database knows these other resellers: it is not one of a demonstration.
    OthersToo(Vec<String>),
    /// The reseller has no such subscription.
    UnknownSubscription(Uuid),
}

impl Store {
    /// The first few resellers other than this one that a database knows, by their keys and subscriptions, revoked and deleted ones among them.
    pub async fn other_resellers(&self, reseller: &str) -> Result<Vec<String>, Error> {
        other_resellers(&mut *self.pool.acquire().await?, reseller).await
    }

    /// Replaces the past of these subscriptions, all of them the reseller's.
    pub async fn write_past(&self, reseller: &str, past: &Past) -> Result<PastWritten, Error> {
        let ids = column(&past.subscriptions, |one| one.id);
        let mut transaction = self.pool.begin().await?;
        let others = other_resellers(&mut transaction, reseller).await?;
        if !others.is_empty() {
            return Ok(PastWritten::OthersToo(others));
        }
        let known = sqlx::query_scalar!(
            "SELECT id FROM subscriptions WHERE id = ANY ($1) AND reseller_id = $2 AND deleted_at IS NULL ORDER BY id FOR UPDATE",
            &ids,
            reseller,
        )
        .fetch_all(&mut *transaction)
        .await?;
        if let Some(unknown) = ids.iter().find(|id| !known.contains(id)) {
            return Ok(PastWritten::UnknownSubscription(*unknown));
        }
        forget(&mut transaction, reseller, &ids).await?;
        insert_events(&mut transaction, &past.notifications).await?;
        insert_notifications(&mut transaction, &past.notifications).await?;
        insert_attempts(&mut transaction, &past.notifications).await?;
        insert_dead_letters(&mut transaction, &past.notifications).await?;
        for subscription in &past.subscriptions {
            change_subscription(&mut transaction, subscription).await?;
        }
        transaction.commit().await?;
        let (hours, types) = statistics(&past.notifications);
        self.add_delivery_statistics(&hours).await?;
        self.add_type_statistics(&types).await?;
        Ok(PastWritten::Done)
    }
}

async fn other_resellers(connection: &mut PgConnection, reseller: &str) -> Result<Vec<String>, Error> {
    Ok(sqlx::query_scalar!(
        r#"
        SELECT DISTINCT r.reseller_id AS "reseller_id!"
        FROM (SELECT reseller_id FROM api_keys WHERE reseller_id IS NOT NULL
              UNION ALL SELECT reseller_id FROM subscriptions) AS r
        WHERE r.reseller_id <> $1 ORDER BY 1 LIMIT 5
        "#,
        reseller,
    )
    .fetch_all(connection)
    .await?)
}

/// Events that were not made up stay, with nothing of what became of them.
async fn forget(connection: &mut PgConnection, reseller: &str, subscriptions: &[Uuid]) -> Result<(), Error> {
    sqlx::query!(
        r#"
        WITH gone AS (
            DELETE FROM notifications WHERE subscription_id = ANY ($1) AND reseller_id = $2 AND reseller_id <> ''
            RETURNING id, event),
        attempts AS (DELETE FROM delivery_attempts a USING gone g WHERE a.notification_id = g.id),
        letters AS (DELETE FROM dead_letters d USING gone g WHERE d.notification_id = g.id),
        hours AS (DELETE FROM delivery_statistics WHERE subscription_id = ANY ($1)),
        days AS (DELETE FROM quota_days WHERE subscription_id = ANY ($1))
        DELETE FROM events e USING gone g WHERE e.id = g.event AND starts_with(e.event_id, $3)
        "#,
        subscriptions,
        reseller,
        EVENT_PREFIX,
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn insert_events(connection: &mut PgConnection, past: &[PastNotification]) -> Result<(), Error> {
    let text = |of: fn(&NewEvent) -> &str| column(past, move |one| of(&one.event));
    sqlx::query!(
        r#"
        INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at)
        SELECT * FROM UNNEST($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[])
        "#,
        &column(past, |one| one.event.id),
        &text(|event| &event.event_id) as &[&str],
        &text(|event| &event.reseller_id) as &[&str],
        &text(|event| &event.event_type) as &[&str],
        &text(|event| &event.body) as &[&str],
        &column(past, |one| one.event.occurred_at),
        &column(past, |one| one.event.created_at),
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn insert_notifications(connection: &mut PgConnection, past: &[PastNotification]) -> Result<(), Error> {
    sqlx::query!(
        r#"
        INSERT INTO notifications (id, event, subscription_id, reseller_id, event_type, status, reason, attempts, next_attempt_at,
                                   charged_on, payload_bytes, created_at, updated_at, finished_at)
        SELECT i.id, i.event, i.subscription, i.reseller, i.type, i.status, i.reason, i.attempts, i.next_attempt_at, i.charged_on,
               i.bytes, i.created_at, i.changed_at, CASE WHEN i.status IN ('SENT', 'FAILED', 'GIVEN_UP') THEN i.changed_at END
        FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::integer[],
                    $9::timestamptz[], $10::date[], $11::integer[], $12::timestamptz[], $13::timestamptz[])
            AS i(id, event, subscription, reseller, type, status, reason, attempts, next_attempt_at, charged_on, bytes, created_at,
                 changed_at)
        "#,
        &column(past, PastNotification::id),
        &column(past, |one| one.event.id),
        &column(past, |one| one.subscription),
        &column(past, |one| one.event.reseller_id.as_str()) as &[&str],
        &column(past, |one| one.event.event_type.as_str()) as &[&str],
        &column(past, |one| one.status.as_str()) as &[&str],
        &column(past, |one| one.reason.as_deref()) as &[Option<&str>],
        &column(past, |one| integer(one.attempts.len())),
        &column(past, |one| one.next_attempt_at) as &[Option<DateTime<Utc>>],
        &column(past, |one| one.charged_on) as &[Option<NaiveDate>],
        &column(past, |one| integer(one.event.body.len())),
        &column(past, |one| one.event.created_at),
        &column(past, PastNotification::changed_at),
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn insert_attempts(connection: &mut PgConnection, past: &[PastNotification]) -> Result<(), Error> {
    let attempts: Vec<(Uuid, i32, &PastAttempt)> = past
        .iter()
        .flat_map(|one| {
            (1..)
                .zip(&one.attempts)
                .map(|(number, tried)| (one.id(), number, tried))
        })
        .collect();
    let text =
        |of: fn(&Classification) -> Option<&str>| column(&attempts, move |(_, _, a)| of(&a.classification));
    sqlx::query!(
        r#"
        INSERT INTO delivery_attempts (notification_id, number, status, started_at, millis, url, response_status, response_body,
                                       error_type, error, fingerprint)
        SELECT i.id, i.number, CASE WHEN i.error_type IS NULL THEN 'OK' ELSE 'ERROR' END, i.started_at, i.millis, i.url,
               i.response_status, i.response_body, i.error_type, i.error, i.fingerprint
        FROM UNNEST($1::uuid[], $2::integer[], $3::timestamptz[], $4::bigint[], $5::text[], $6::integer[], $7::text[], $8::text[],
                    $9::text[], $10::text[])
            AS i(id, number, started_at, millis, url, response_status, response_body, error_type, error, fingerprint)
        "#,
        &column(&attempts, |(id, _, _)| *id),
        &column(&attempts, |(_, number, _)| *number),
        &column(&attempts, |(_, _, a)| a.started_at),
        &column(&attempts, |(_, _, a)| i64::try_from(a.took.as_millis()).unwrap_or(i64::MAX)),
        &column(&attempts, |(_, _, a)| a.url.as_str()) as &[&str],
        &column(&attempts, |(_, _, a)| a.classification.response_status.map(i32::from)) as &[Option<i32>],
        &text(|c| c.response_body.as_deref()) as &[Option<&str>],
        &text(|c| c.error_type) as &[Option<&str>],
        &text(|c| c.error.as_deref()) as &[Option<&str>],
        &text(|c| c.fingerprint.as_deref()) as &[Option<&str>],
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// As completing an attempt writes them, with the times of the past.
async fn insert_dead_letters(connection: &mut PgConnection, past: &[PastNotification]) -> Result<(), Error> {
    let badly = |one: &&PastNotification| {
        matches!(
            one.status,
            NotificationStatus::Failed | NotificationStatus::GivenUp
        )
    };
    let ended: Vec<Uuid> = past.iter().filter(badly).map(PastNotification::id).collect();
    sqlx::query!(
        r#"
        INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, subscription_id, reseller_id, event_type, target,
                                  attempts, error_type, detail, created_at)
        SELECT 'reseller', n.status, coalesce(a.fingerprint, 'unknown'), n.id, n.subscription_id, n.reseller_id, n.event_type,
               endpoint_of(a.url), n.attempts, a.error_type, coalesce(a.error, 'no detail'), n.finished_at
        FROM UNNEST($1::uuid[]) AS i(id)
        JOIN notifications n ON n.id = i.id
        JOIN delivery_attempts a ON a.notification_id = n.id AND a.number = n.attempts
        "#,
        &ended,
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn change_subscription(connection: &mut PgConnection, past: &PastSubscription) -> Result<(), Error> {
    let (Some(first), Some(last)) = (past.states.first(), past.states.last()) else {
        return Ok(());
    };
    sqlx::query!(
        r#"
        UPDATE subscriptions
        SET created_at = $2, state = $3, state_reason = $4, state_changed_at = $5, updated_at = $5, failing_since = $6,
            last_failure_at = $6, daily_quota = $7, verification_due_at = NULL, verified_at = coalesce(verified_at, $2)
        WHERE id = $1
        "#,
        past.id,
        first.at,
        last.state.as_str(),
        last.reason.as_str(),
        last.at,
        past.failing_since,
        past.daily_quota.map(|quota| i32::try_from(quota).unwrap_or(i32::MAX)),
    )
    .execute(&mut *connection)
    .await?;
    // The secret that it began with signed all that was sent.
    sqlx::query!(
        r#"
        UPDATE signing_secrets SET created_at = $2
        WHERE id = (SELECT id FROM signing_secrets WHERE subscription_id = $1 ORDER BY created_at, id LIMIT 1)
        "#,
        past.id,
        first.at,
    )
    .execute(&mut *connection)
    .await?;
    // What the change above noted of itself goes, too.
    sqlx::query!(
        "DELETE FROM subscription_states WHERE subscription_id = $1",
        past.id
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        r#"
        INSERT INTO subscription_states (id, subscription_id, at, state, state_reason, paused, held)
        SELECT i.id, s.id, i.at, i.state, i.reason, false, false
        FROM UNNEST($2::uuid[], $3::timestamptz[], $4::text[], $5::text[]) AS i(id, at, state, reason), subscriptions s
        WHERE s.id = $1
        "#,
        past.id,
        &column(&past.states, |one| id_at(one.at)),
        &column(&past.states, |one| one.at),
        &column(&past.states, |one| one.state.as_str()) as &[&str],
        &column(&past.states, |one| one.reason.as_str()) as &[&str],
    )
    .execute(&mut *connection)
    .await?;
    let Some((today, before)) = past.days.split_last() else {
        return Ok(());
    };
    sqlx::query!(
        r#"
        INSERT INTO quota_days (subscription_id, day, used, quota)
        SELECT $1, i.* FROM UNNEST($2::date[], $3::bigint[], $4::integer[]) AS i(day, used, quota)
        "#,
        past.id,
        &column(before, |one| one.day),
        &column(before, |one| i64::from(one.used)),
        &column(before, |one| i32::try_from(one.quota).unwrap_or(i32::MAX)),
    )
    .execute(&mut *connection)
    .await?;
    // That something may wait in line, and is looked at.
    sqlx::query!(
        r#"
        INSERT INTO subscription_budgets (subscription_id, day, used, quota, release_at) VALUES ($1, $2, $3, $4, now())
        ON CONFLICT (subscription_id) DO UPDATE
        SET day = excluded.day, used = excluded.used, quota = excluded.quota, release_at = excluded.release_at
        "#,
        past.id,
        today.day,
        i64::from(today.used),
        i32::try_from(today.quota).unwrap_or(i32::MAX),
    )
    .execute(connection)
    .await?;
    Ok(())
}

fn statistics(past: &[PastNotification]) -> (Vec<StatisticsDelta>, Vec<TypeStatistics>) {
    let (mut deltas, mut types) = (Vec::new(), Vec::new());
    for one in past {
        for (place, attempt) in one.attempts.iter().enumerate() {
            let is_last = place + 1 == one.attempts.len();
            let end = match one.status {
                NotificationStatus::Sent if is_last => AttemptEnd::Delivered,
                NotificationStatus::Failed | NotificationStatus::GivenUp if is_last => AttemptEnd::Failed,
                _ => AttemptEnd::Retried,
            };
            let mut delta = StatisticsDelta::new(one.subscription, attempt.started_at);
            let status = attempt.classification.response_status;
            delta.record(end, attempt.took, status, one.event.body.len());
            deltas.push(delta);
            let mut of_type =
                TypeStatistics::new(one.subscription, &one.event.event_type, attempt.started_at);
            let delay = (attempt.ended_at() - one.event.created_at).to_std();
            of_type.record(end, delay.ok());
            types.push(of_type);
        }
    }
    (deltas, types)
}

fn integer(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
