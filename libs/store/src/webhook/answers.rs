//! What endpoints answered, over subscriptions, by status code: from the hours that are counted of each, which outlive the attempts.

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

impl Store {
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
