//! What endpoints answered, over subscriptions, by status code: from the hours that are counted of each, which outlive the attempts. Of one
//! subscription also since a moment, from the attempts themselves.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::NotificationsOf;
use crate::read::{Count, Nullable};
use crate::{Error, Store};

/// One of the subscriptions whose endpoints gave an answer most often, with how often that answer came at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerSum {
    /// The status code; none of attempts without an answer.
    pub code: Option<u16>,
    /// How many such attempts there were, to all subscriptions.
    pub total: u64,
    /// To how many subscriptions.
    pub subscriptions: u64,
    /// The subscription.
    pub subscription: Uuid,
    /// Whose it is.
    pub reseller: String,
    /// Where to, as it has it now.
    pub url: String,
    /// How many of them were to it.
    pub count: u64,
}

/// Of how many notifications attempts are looked at one by one, and how many of each.
const LOOKED_AT_MAX: u32 = 1_000;
const ATTEMPTS_MAX: i64 = 100;

/// How many attempts there were since a time, of the newest notifications of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnsweredSince {
    /// How many attempts have ended.
    pub attempts: u64,
    /// How many of them were answered 401 or 403.
    pub refused: u64,
    /// Of how many notifications.
    pub notifications: u64,
}

impl AnsweredSince {
    /// Of how many notifications it tells, where there are more or may be.
    pub fn looked_at(&self) -> Option<u64> {
        (self.notifications >= u64::from(LOOKED_AT_MAX)).then_some(self.notifications)
    }
}

impl Store {
    /// How the attempts of a subscription were answered that were started at `since` or later: those of the newest 1,000 notifications, each
    /// looked at along its keys. Hours, which are counted of all, begin before such a time.
    pub async fn answered_since(
        &self,
        subscription: Uuid,
        since: DateTime<Utc>,
    ) -> Result<AnsweredSince, Error> {
        Ok(sqlx::query_as!(
            AnsweredSince,
            r#"
            WITH newest AS MATERIALIZED (
                SELECT n.id FROM notifications n
                WHERE n.subscription_id = $1 AND n.reseller_id <> '' ORDER BY n.id DESC LIMIT $3)
            SELECT count(*) AS "attempts!: Count",
                   count(*) FILTER (WHERE a.response_status IN (401, 403)) AS "refused!: Count",
                   (SELECT count(*) FROM newest) AS "notifications!: Count"
            FROM newest n
            -- One by one along the primary key: a join might read all of the attempts.
            CROSS JOIN LATERAL (
                SELECT t.response_status FROM delivery_attempts t
                WHERE t.notification_id = n.id AND t.started_at >= $2 AND t.status <> 'IN_PROCESS'
                ORDER BY t.number DESC LIMIT $4) AS a
            "#,
            subscription,
            since,
            i64::from(LOOKED_AT_MAX),
            ATTEMPTS_MAX,
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// What was answered in the hours that began at `since` or later, code by code, those without an answer last: of each the `most`
    /// subscriptions that have the greatest number, the greatest first.
    pub async fn answer_sums(
        &self,
        of: &NotificationsOf,
        since: DateTime<Utc>,
        most: u32,
    ) -> Result<Vec<AnswerSum>, Error> {
        let subscriptions = self.subscriptions_of(of).await?;
        Ok(sqlx::query_as!(
            AnswerSum,
            r#"
            WITH counted AS (
                SELECT d.subscription_id, a.code, sum(a.count)::bigint AS count
                FROM delivery_statistics d CROSS JOIN LATERAL (
                    SELECT s.key::integer AS code, s.value::bigint AS count FROM jsonb_each_text(d.statuses) AS s
                    UNION ALL
                    SELECT NULL, d.attempts - coalesce(sum(s.value::bigint), 0)::bigint FROM jsonb_each_text(d.statuses) AS s) AS a
                WHERE d.subscription_id = ANY ($1) AND d.hour >= $2 AND a.count > 0
                GROUP BY d.subscription_id, a.code),
            placed AS (
                SELECT c.*, sum(c.count) OVER of_code AS total, count(*) OVER of_code AS subscriptions,
                       row_number() OVER (PARTITION BY c.code ORDER BY c.count DESC, c.subscription_id) AS place
                FROM counted c WINDOW of_code AS (PARTITION BY c.code))
            SELECT p.code AS "code!: Nullable<Count>", p.total::bigint AS "total!: Count", p.subscriptions AS "subscriptions!: Count",
                   s.id AS subscription, s.reseller_id AS reseller, s.url, p.count AS "count!: Count"
            FROM placed p JOIN subscriptions s ON s.id = p.subscription_id
            WHERE p.place <= $3
            ORDER BY p.code, p.place
            "#,
            &subscriptions,
            since,
            i64::from(most),
        )
        .fetch_all(&self.pool)
        .await?)
    }
}
