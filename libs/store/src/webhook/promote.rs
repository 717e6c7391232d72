//! Promotion: taking notifications that wait in the database and marking them as handed to the broker, before they are.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::outages::WITHHELD_FOR;
use super::spill::LEFT_TO_OTHERS;
use crate::{Error, Store, column, interval};

/// A notification and whose it is: one whose message is to be published now, or one that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromotedNotification {
    /// The notification.
    pub id: Uuid,
    /// To whom it goes.
    pub subscription_id: Uuid,
}

/// What was promoted at once.
#[derive(Debug, Default)]
pub struct Promoted {
    /// Those that have waited longest first.
    pub notifications: Vec<PromotedNotification>,
    /// Subscriptions of these of which more waits, and for which the engine that gets them therefore comes back. Those with requests per
    /// second of their own are not among them: where these are used up, it does not.
    pub partly: HashSet<Uuid>,
    /// After which subscription the next statement goes on; none when this one has come to the last that has something waiting.
    pub next: Option<Uuid>,
}

/// Subscriptions that a statement looks at: so that ten thousand with something waiting take no longer than these.
const SUBSCRIPTIONS: i32 = 500;

/// Runs one of the two statements that promote.
macro_rules! promote {
    (
        $store:ident, $statement:literal, $at:ident, $after:ident, $left:ident, $share:ident, $limit:ident,
        $queue_lease:ident
    ) => {{
        let rows = sqlx::query_file!(
            $statement,
            $at,
            i64::from($share),
            i64::from($limit),
            interval($queue_lease),
            interval(LEFT_TO_OTHERS),
            interval(WITHHELD_FOR),
            $after.unwrap_or_default(),
            SUBSCRIPTIONS,
            $left,
        );
        let mut promoted = Promoted::default();
        for row in rows.fetch_all(&$store.pool).await? {
            match (row.id, row.subscription_id) {
                (Some(id), Some(subscription_id)) => {
                    if row.partly == Some(true) {
                        promoted.partly.insert(subscription_id);
                    }
                    promoted
                        .notifications
                        .push(PromotedNotification { id, subscription_id });
                }
                (_, next) => promoted.next = next,
            }
        }
        Ok(promoted)
    }};
}

impl Store {
    /// Promotes the oldest waiting first attempts of each subscription that may be sent to, at most `share` of each.
    /// However much one subscription has waiting, the others get as much as it does. A subscription that had been
    /// sidelined a moment ago, or gets nothing but probes, is passed over, and so are those in `left`: engines come back for what they have.
    /// Looks at some hundred subscriptions, by their ids from the one after `after`; [`Promoted::next`] says where to go on.
    pub async fn promote_first_attempts(
        &self,
        at: DateTime<Utc>,
        after: Option<Uuid>,
        left: &[Uuid],
        share: u32,
        limit: u32,
        queue_lease: Duration,
    ) -> Result<Promoted, Error> {
        promote!(
            self,
            "queries/webhook/promote_first_attempts.sql",
            at,
            after,
            left,
            share,
            limit,
            queue_lease
        )
    }

    /// Promotes the longest overdue retries of each subscription that may be sent to, at most `share` of each, as
    /// [`Store::promote_first_attempts`] does.
    pub async fn promote_retries(
        &self,
        at: DateTime<Utc>,
        after: Option<Uuid>,
        left: &[Uuid],
        share: u32,
        limit: u32,
        queue_lease: Duration,
    ) -> Result<Promoted, Error> {
        promote!(
            self,
            "queries/webhook/promote_retries.sql",
            at,
            after,
            left,
            share,
            limit,
            queue_lease
        )
    }

    /// The longest overdue retries that wait at the time `at`: of each subscription at most so many, in their order.
    pub async fn waiting_retries(
        &self,
        of_each: &[(Uuid, u32)],
        at: DateTime<Utc>,
    ) -> Result<Vec<PromotedNotification>, Error> {
        Ok(sqlx::query_as!(
            PromotedNotification,
            r#"
            SELECT n.id AS "id!", i.subscription_id AS "subscription_id!"
            FROM UNNEST($1::uuid[], $2::bigint[]) AS i(subscription_id, most)
            CROSS JOIN LATERAL (
                SELECT o.id, o.next_attempt_at FROM notifications o
                WHERE o.subscription_id = i.subscription_id AND o.status = 'RETRY' AND o.next_attempt_at <= $3
                ORDER BY o.next_attempt_at, o.id LIMIT i.most) AS n
            ORDER BY i.subscription_id, n.next_attempt_at, n.id
            "#,
            &column(of_each, |(subscription, _)| *subscription),
            &column(of_each, |(_, most)| i64::from(*most)),
            at,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// The oldest first attempts that wait: of each subscription at most so many, in their order.
    pub async fn waiting_first_attempts(
        &self,
        of_each: &[(Uuid, u32)],
    ) -> Result<Vec<PromotedNotification>, Error> {
        Ok(sqlx::query_as!(
            PromotedNotification,
            r#"
            SELECT n.id AS "id!", i.subscription_id AS "subscription_id!"
            FROM UNNEST($1::uuid[], $2::bigint[]) AS i(subscription_id, most)
            CROSS JOIN LATERAL (
                SELECT o.id FROM notifications o
                WHERE o.subscription_id = i.subscription_id AND o.status = 'PENDING'
                ORDER BY o.id LIMIT i.most) AS n
            ORDER BY i.subscription_id, n.id
            "#,
            &column(of_each, |(subscription, _)| *subscription),
            &column(of_each, |(_, most)| i64::from(*most)),
        )
        .fetch_all(&self.pool)
        .await?)
    }
}
