//! What a reseller can have sent on request: a notification once more, and a test event.

use chrono::{DateTime, NaiveDate, Utc};
use domain::notification::{NotificationId, NotificationStatus};
use domain::subscription::SubscriptionState;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::daily::{DAY, full_until};
use super::first_id_at;
use super::locked::{lock, subject};
use crate::resolution::resolve;
use crate::{Act, Error, Store, stored};

/// What came of asking for a notification to be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resent {
    /// It is due now.
    Done,
    /// It has not ended yet and is due or under way, so that it will be sent anyhow.
    Unfinished(NotificationStatus),
    /// An operator has cancelled it, which is final.
    Cancelled,
    /// Its subscription gets nothing.
    NotActive(SubscriptionState),
    /// The reseller has no such notification.
    Unknown,
}

/// A notification that was to be sent again, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedAgain {
    /// Which.
    pub id: NotificationId,
    /// To whom it goes.
    pub subscription: Uuid,
    /// What receivers know its event by.
    pub event_id: Option<String>,
    /// The event's type.
    pub event_type: String,
    /// Whether an engine has claimed it.
    pub claimed: bool,
    /// What came of it.
    pub resent: Resent,
}

/// Most test events that a subscription is sent within a day: they use no quota, and each is kept as long as another event.
const TESTED_A_DAY_MAX: i64 = 1000;
/// What the audit log calls sending one, which is where they are counted.
const TEST: &str = "subscription.test";

/// A test event to be stored.
#[derive(Debug, Clone)]
pub struct NewTestEvent {
    /// Its identifier: a version 7 UUID.
    pub id: Uuid,
    /// The one subscription that gets it.
    pub subscription: Uuid,
    /// Its type.
    pub event_type: String,
    /// The bytes to send.
    pub body: String,
    /// The day whose quota it is taken for charged on, so that no place of it is used.
    pub today: NaiveDate,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// W3C trace context of the request.
    pub traceparent: Option<String>,
}

/// What came of asking for a test event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tested {
    /// It waits to be sent.
    Done(NotificationId),
    /// The subscription gets nothing.
    NotActive(SubscriptionState),
    /// The subscription was sent as many within a day as it may be; the next one not before this time.
    NotBefore(DateTime<Utc>),
    /// The reseller has no such subscription.
    Unknown,
}

/// What is noted of dead letters whose notifications their reseller has had sent again.
pub(super) const SENT_AGAIN: &str = "sent again by its reseller";

/// Resolves the dead letters that are open about these notifications, which are sent again through the reseller API.
pub(super) async fn resolve_sent_again(
    connection: &mut PgConnection,
    reseller: &str,
    notifications: &[Uuid],
    (note, at): (&str, DateTime<Utc>),
) -> Result<(), Error> {
    let act = Act {
        by: &format!("reseller {reseller}"),
        note: Some(note),
        at,
    };
    resolve(connection, notifications, &act, None).await?;
    Ok(())
}

impl Store {
    /// Makes a notification that has ended due again, as [`Store::resend_each`] does of several.
    pub async fn resend_notification(
        &self,
        reseller: &str,
        id: NotificationId,
        act: Act<'_>,
    ) -> Result<Resent, Error> {
        let asked = self.resend_each(reseller, &[id.uuid()], act).await?;
        Ok(asked.first().map_or(Resent::Unknown, |asked| asked.resent))
    }

    /// Makes notifications that have ended due again, with all of their retries ahead of them, unless they were cancelled. They
    /// keep their places in the quota, if they ever had one. The dead letters that are open about them are resolved. Those that wait for a retry
    /// are due at once, which is no transition: the attempt is the next of those that they have left, and a claim of one goes first or comes after.
    ///
    /// Each is told that the reseller has, of any subscription, in the order of their identifiers; the others are left out.
    pub async fn resend_each(
        &self,
        reseller: &str,
        ids: &[Uuid],
        act: Act<'_>,
    ) -> Result<Vec<AskedAgain>, Error> {
        let mut transaction = self.pool.begin().await?;
        let rows = sqlx::query_file!("queries/webhook/resend_each.sql", ids, reseller, act.at,)
            .fetch_all(&mut *transaction)
            .await?;
        let mut asked = Vec::with_capacity(rows.len());
        let (mut resent, mut entries) = (Vec::new(), Vec::new());
        for row in rows {
            let status: NotificationStatus = stored("notification status", &row.status)?;
            let outcome = if row.resent {
                resent.push(row.id);
                entries.push((
                    format!("notification/{}", row.id),
                    json!({ "status": status.as_str() }),
                ));
                Resent::Done
            } else if row.cancelled {
                Resent::Cancelled
            } else if status.is_terminal() {
                Resent::NotActive(stored("subscription state", &row.state)?)
            } else {
                Resent::Unfinished(status)
            };
            asked.push(AskedAgain {
                id: row.id.into(),
                subscription: row.subscription,
                event_id: row.event_id,
                event_type: row.event_type,
                claimed: row.claimed,
                resent: outcome,
            });
        }
        if resent.is_empty() {
            transaction.rollback().await?;
            return Ok(asked);
        }
        resolve_sent_again(&mut transaction, reseller, &resent, (SENT_AGAIN, act.at)).await?;
        act.record_each("notification.resend", &entries, &mut transaction)
            .await?;
        transaction.commit().await?;
        Ok(asked)
    }

    /// Stores a test event with its one notification, if the subscription gets anything and was sent fewer than 1,000 within a day.
    pub async fn insert_test_event(
        &self,
        reseller: &str,
        test: &NewTestEvent,
        act: Act<'_>,
    ) -> Result<Tested, Error> {
        let mut transaction = self.pool.begin().await?;
        let Some(locked) = lock(&mut transaction, reseller, test.subscription).await? else {
            return Ok(Tested::Unknown);
        };
        if !locked.state.receives() {
            return Ok(Tested::NotActive(locked.state));
        }
        let since = act.at - DAY;
        // Identifiers run ahead of the times where the clock was put back: they bound what is read, and the times decide.
        let made = sqlx::query!(
            r#"
            SELECT count(*) AS "count!", min(at) AS first FROM audit_log
            WHERE subject = $1 AND id >= $2 AND action = $3 AND at > $4
            "#,
            subject(test.subscription),
            first_id_at(since),
            TEST,
            since,
        )
        .fetch_one(&mut *transaction)
        .await?;
        if let Some(then) = full_until(made.count, made.first, TESTED_A_DAY_MAX) {
            return Ok(Tested::NotBefore(then));
        }
        let notification = sqlx::query_scalar!(
            r#"
            WITH event AS (
                INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at, traceparent,
                                    test_of)
                VALUES ($3::uuid, ($3::uuid)::text, $1::text, $4::text, $5::text, $7::timestamptz, $7, $8, $2::uuid))
            INSERT INTO notifications (id, event, subscription_id, reseller_id, event_type, status, charged_on,
                                       payload_bytes, created_at, updated_at)
            VALUES (notification_id($3, $2), $3, $2, $1, $4, 'PENDING', $6, octet_length($5), $7, $7)
            RETURNING id
            "#,
            reseller,
            test.subscription,
            test.id,
            test.event_type,
            test.body,
            test.today,
            test.created_at,
            test.traceparent,
        )
        .fetch_one(&mut *transaction)
        .await?;
        let details = json!({ "notification": notification });
        let entry = act.entry(TEST, subject(test.subscription), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(Tested::Done(notification.into()))
    }
}
