//! Reading one event with the notifications that it became.
//!
//! It deliberately leaves the payload out: who may look is not who may read.

use chrono::{DateTime, Utc};
use domain::notification::{NotificationId, NotificationStatus};
use domain::reason::NotificationReason;
use domain::subscription::{HeldBack, Miss, PausedBy};
use serde_json::Value;
use uuid::Uuid;

use crate::{Error, Store, stored, stored_if};

/// An event as it stands.
#[derive(Debug, Clone)]
pub struct EventView {
    /// Its identifier.
    pub id: Uuid,
    /// What receivers know it by.
    pub event_id: String,
    /// Whose event it is.
    pub reseller_id: String,
    /// Its type.
    pub event_type: String,
    /// When it happened.
    pub occurred_at: DateTime<Utc>,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// The length of what receivers are sent, in bytes.
    pub body_bytes: u32,
    /// The one subscription that a test event is for.
    pub test_of: Option<Uuid>,
    /// What it became, in the order of the subscriptions' identifiers.
    pub notifications: Vec<EventNotification>,
    /// Of an event that became nothing when it was accepted: its reseller's subscriptions at that time, a hundred at most.
    /// `None` of any other, and of one that an earlier version took in.
    pub missed: Option<Vec<MissedSubscription>>,
}

/// A subscription that an event missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissedSubscription {
    /// Its identifier.
    pub id: Uuid,
    /// What it was like when the event was accepted.
    pub miss: Miss,
}

/// Reads what `fan_out` has stored.
fn missed(found: &Value) -> Result<Vec<MissedSubscription>, Error> {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let entries = found.as_array().into_iter().flatten();
    entries
        .map(|entry| {
            Ok(MissedSubscription {
                id: stored("subscription", &text(entry, "subscription"))?,
                miss: Miss {
                    state: stored("subscription state", &text(entry, "state"))?,
                    filtered: entry["filtered"].as_bool().unwrap_or_default(),
                    paused: entry["paused"].as_bool().unwrap_or_default(),
                },
            })
        })
        .collect()
}

/// A notification that an event became.
#[derive(Debug, Clone)]
pub struct EventNotification {
    /// Its identifier.
    pub id: NotificationId,
    /// Who is notified.
    pub subscription_id: Uuid,
    /// Where to, as the subscription has it now.
    pub url: String,
    /// What keeps its subscription from being sent anything.
    pub held_back: HeldBack,
    /// Where it stands.
    pub status: NotificationStatus,
    /// Whether an engine has claimed it.
    pub claimed: bool,
    /// Why it waits or has ended.
    pub reason: Option<NotificationReason>,
    /// Attempts so far.
    pub attempts: u32,
    /// When it is due, for `RETRY`, or when its turn in line comes, for `SCHEDULED`.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// When it is taken for lost, for `IN_MEMORY`.
    pub leased_until: Option<DateTime<Utc>>,
    /// When its status last changed.
    pub updated_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// The last attempt that has ended.
    pub last: Option<LastAttempt>,
    /// A dead letter of it that is open.
    pub dead_letter: Option<Uuid>,
    /// Whether an outage of its endpoint that is not recovered from has given it up.
    pub outage: bool,
    /// Whether what an outage gives up is sent again by itself; the default when `None`.
    pub resend_after_outage: Option<bool>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastAttempt {
    /// Counts from 1.
    pub number: u32,
    /// The status code of the answer.
    pub response_status: Option<i32>,
    /// The kind of a failure.
    pub error_type: Option<String>,
    /// The failure in words.
    pub error: Option<String>,
}

impl EventNotification {
    /// Whose pause it waits for, if it waits for its turn to be sent and has one.
    pub fn waits_for(&self) -> Option<PausedBy> {
        self.held_back
            .paused_by
            .filter(|_| !self.status.is_terminal() && !self.claimed)
    }
}

impl Store {
    /// The event with this identifier.
    pub async fn find_event(&self, id: Uuid) -> Result<Option<EventView>, Error> {
        let row = sqlx::query!(
            r#"
            SELECT event_id, reseller_id, type AS event_type, occurred_at, created_at, test_of, missed,
                   octet_length(body) AS "body_bytes!"
            FROM events WHERE id = $1
            "#,
            id,
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(EventView {
            id,
            event_id: row.event_id,
            reseller_id: row.reseller_id,
            event_type: row.event_type,
            occurred_at: row.occurred_at,
            created_at: row.created_at,
            body_bytes: row.body_bytes.unsigned_abs(),
            test_of: row.test_of,
            notifications: self.notifications_of(id).await?,
            missed: row.missed.as_ref().map(missed).transpose()?,
        }))
    }

    async fn notifications_of(&self, event: Uuid) -> Result<Vec<EventNotification>, Error> {
        let (first, last) = bounds(event);
        let rows = sqlx::query!(
            r#"
            SELECT n.id, n.subscription_id, n.status, n.lease_token IS NOT NULL AS "claimed!", n.reason, n.attempts,
                   n.next_attempt_at, n.leased_until, n.updated_at, n.finished_at, s.url, s.resend_after_outage,
                   a.number AS "number?", a.response_status,
                   a.error_type, a.error, d.id AS "dead_letter?", coalesce(d.outage, false) AS "outage!"
            FROM notifications n
            JOIN subscriptions s ON s.id = n.subscription_id
            LEFT JOIN LATERAL (
                SELECT number, response_status, error_type, error FROM delivery_attempts
                WHERE notification_id = n.id AND status <> 'IN_PROCESS' ORDER BY number DESC LIMIT 1) a ON true
            CROSS JOIN LATERAL (
                -- Any of them, where the broker gave up a message as well; there is no max of uuid.
                SELECT max(id::text)::uuid AS id,
                       bool_or(reason = 'GIVEN_UP' AND error_type <> 'OTHER' AND created_at >= s.outage_since) AS outage
                FROM dead_letters WHERE notification_id = n.id AND state = 'OPEN') d
            WHERE n.id BETWEEN $2 AND $3 AND n.event = $1
            ORDER BY n.subscription_id
            "#,
            event,
            first,
            last,
        )
        .fetch_all(&self.pool)
        .await?;
        let subscriptions: Vec<Uuid> = rows.iter().map(|row| row.subscription_id).collect();
        let held_back = self.held_back(&subscriptions).await?;
        let mut notifications = Vec::with_capacity(rows.len());
        for row in rows {
            let status = stored("notification status", &row.status)?;
            notifications.push(EventNotification {
                id: row.id.into(),
                subscription_id: row.subscription_id,
                url: row.url,
                held_back: held_back.get(&row.subscription_id).copied().unwrap_or_default(),
                status,
                claimed: row.claimed,
                reason: stored_if("reason of a notification", row.reason.as_deref())?,
                attempts: row.attempts.unsigned_abs(),
                next_attempt_at: self
                    .turn_of(row.subscription_id, row.id, status, row.next_attempt_at)
                    .await?,
                leased_until: row.leased_until,
                updated_at: row.updated_at,
                finished_at: row.finished_at,
                last: row.number.map(|number| LastAttempt {
                    number: number.unsigned_abs(),
                    response_status: row.response_status,
                    error_type: row.error_type,
                    error: row.error,
                }),
                dead_letter: row.dead_letter,
                outage: row.outage,
                resend_after_outage: row.resend_after_outage,
            });
        }
        Ok(notifications)
    }
}

/// Between which identifiers the notifications of an event lie: all begin with its millisecond. No index by event is
/// needed for that, which every notification would have to pay for.
pub(super) fn bounds(event: Uuid) -> (Uuid, Uuid) {
    let (mut first, mut last) = ([0; 16], [0xff; 16]);
    first[..6].copy_from_slice(&event.as_bytes()[..6]);
    last[..6].copy_from_slice(&event.as_bytes()[..6]);
    (Uuid::from_bytes(first), Uuid::from_bytes(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notification_of_an_event_lies_between_its_bounds() {
        let event = Uuid::now_v7();
        let (first, last) = bounds(event);
        for _ in 0..100 {
            let id = NotificationId::of(event, Uuid::now_v7()).uuid();
            assert!(first < id && id < last);
        }
    }
}
