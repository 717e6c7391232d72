//! Resellers and subscriptions as those on call see them: of all resellers, and with how they are.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::subscription::SubscriptionState;
use uuid::Uuid;

use super::{NotificationsOf, SubscriptionView};
use crate::read::{Count, Name, Nullable};
use crate::{Error, Store, column};

/// A reseller that has subscriptions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResellerView {
    /// Who it is.
    pub id: String,
    /// How many subscriptions it has.
    pub subscriptions: u64,
    /// How many of them are sent notifications.
    pub active: u64,
    /// How many of them are paused, by the reseller or by an operator.
    pub paused: u64,
    /// How many of them have failed since their last success.
    pub failing: u64,
    /// Since when the first of those has.
    pub failing_since: Option<DateTime<Utc>>,
}

/// Which subscriptions. What is missing restricts nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// Of this reseller.
    pub reseller: Option<String>,
    /// In this state.
    pub state: Option<SubscriptionState>,
    /// Whether they have failed since their last success.
    pub failing: Option<bool>,
    /// Whether they are paused.
    pub paused: Option<bool>,
    /// With this in their URL.
    pub url: Option<String>,
}

/// Reads the subscriptions for which `$condition` holds, which is given in pieces.
macro_rules! views {
    ($store:expr, [$($condition:literal),*] $(, $value:expr)*) => {
        sqlx::query_as!(
            SubscriptionView,
            "SELECT id, reseller_id AS reseller, description, url, event_types, email,
                    (SELECT a.confirmed_at FROM email_addresses a
                     WHERE a.reseller_id = s.reseller_id AND a.address = lower(s.email)) AS email_confirmed_at,
                    state AS \"state: Name<_>\", state_reason AS \"state_reason: Name<_>\", state_changed_at, paused_at, held_at,
                    timeout_millis AS \"timeout_millis!: Nullable<Count>\", daily_quota AS \"daily_quota!: Nullable<Count>\",
                    requests_per_second AS \"requests_per_second!: Nullable<Count>\", resend_after_outage,
                    retry_plan AS \"retry_plan: Name<_>\", retry_client_errors, failing_since, verification_due_at,
                    verification_attempts AS \"verification_attempts: Count\", verification_error,
                    verified_at, created_at, updated_at
             FROM subscriptions s WHERE deleted_at IS NULL AND " $(+ $condition)*
            $(, $value)*
        )
        .fetch_all(&$store.pool)
    };
}

/// Those that match a filter besides `$lead`, whose parameter is `$7`.
macro_rules! matching {
    ($store:expr, $filter:expr, $after:expr, $limit:expr, $lead:literal $(, $value:expr)*) => {
        views!(
            $store,
            [
                $lead,
                " AND ($1::text IS NULL OR state = $1) AND ($2::boolean IS NULL OR (failing_since IS NOT NULL) = $2)
                  AND ($3::boolean IS NULL OR suspended = $3) AND ($4::text IS NULL OR strpos(url, $4) > 0)
                  AND ($5::uuid IS NULL OR id > $5) ORDER BY id LIMIT $6"
            ],
            $filter.state.map(SubscriptionState::as_str),
            $filter.failing,
            $filter.paused,
            $filter.url,
            $after,
            i64::from($limit)
            $(, $value)*
        )
    };
}

/// Resellers after `$after` with how those of their subscriptions are that are in `$of`, which has a condition.
macro_rules! resellers {
    ($store:expr, $after:expr, $limit:expr, $of:literal $(, $value:expr)*) => {
        sqlx::query_as!(
            ResellerView,
            "SELECT reseller_id AS \"id!\", count(*) AS \"subscriptions!: Count\",
                    count(*) FILTER (WHERE state IN ('ACTIVE', 'DEGRADED')) AS \"active!: Count\",
                    count(*) FILTER (WHERE suspended) AS \"paused!: Count\",
                    count(failing_since) AS \"failing!: Count\", min(failing_since) AS failing_since
             FROM " + $of + " AND reseller_id > $1
             GROUP BY reseller_id ORDER BY reseller_id LIMIT $2",
            $after.unwrap_or_default(),
            i64::from($limit)
            $(, $value)*
        )
        .fetch_all(&$store.pool)
    };
}

impl Store {
    /// Resellers after `after`, in the order of their names: all, or those whose name begins with `name`, A to Z in either case.
    pub async fn list_resellers(
        &self,
        name: Option<&str>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ResellerView>, Error> {
        let Some(name) = name else {
            return Ok(resellers!(self, after, limit, "subscriptions WHERE deleted_at IS NULL").await?);
        };
        // The first name is the least that begins so, and behind all of them is what goes on with the last of characters.
        let first = name.to_ascii_lowercase();
        let end = format!("{first}{}", char::MAX);
        // OFFSET 0, or a plan could walk through all resellers in their order.
        let found = resellers!(
            self,
            after,
            limit,
            "(SELECT reseller_id, state, suspended, failing_since FROM subscriptions
              WHERE deleted_at IS NULL AND lower(reseller_id COLLATE \"C\") >= $3 AND lower(reseller_id COLLATE \"C\") < $4
              OFFSET 0) AS named WHERE true",
            first,
            end
        )
        .await?;
        Ok(found)
    }

    /// Subscriptions that match a filter, after the one with the identifier `after`, the oldest first.
    pub async fn search_subscriptions(
        &self,
        filter: &SubscriptionFilter,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<SubscriptionView>, Error> {
        // A plan that does not know whether a reseller is asked for would walk through those of all.
        let found = match &filter.reseller {
            Some(reseller) => matching!(self, filter, after, limit, "reseller_id = $7", reseller).await?,
            None => matching!(self, filter, after, limit, "true").await?,
        };
        Ok(found)
    }

    /// The subscriptions that a search names, those that were deleted too: what they got is still there.
    pub(crate) async fn subscriptions_of(&self, of: &NotificationsOf) -> Result<Vec<Uuid>, Error> {
        let reseller = match of {
            NotificationsOf::Subscription(id) => return Ok(vec![*id]),
            NotificationsOf::Subscriptions(ids) => return Ok(ids.clone()),
            NotificationsOf::Reseller(reseller) => reseller,
            NotificationsOf::All => {
                let all = sqlx::query_scalar!("SELECT id FROM subscriptions ORDER BY id");
                return Ok(all.fetch_all(&self.pool).await?);
            }
        };
        // Those that were deleted are in another index than the others.
        Ok(sqlx::query_scalar!(
            r#"
            SELECT id AS "id!" FROM subscriptions WHERE reseller_id = $1 AND deleted_at IS NULL
            UNION ALL SELECT id FROM subscriptions WHERE deleted_at IS NOT NULL AND reseller_id = $1
            ORDER BY 1
            "#,
            reseller,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Subscriptions with `part` in their URL, of a reseller or of all, the newest first, those that were deleted too; at most `limit`.
    pub async fn subscriptions_with_url(
        &self,
        part: &str,
        reseller: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Uuid>, Error> {
        let limit = i64::from(limit);
        // A plan that does not know whether a reseller is asked for would walk through those of all.
        let Some(reseller) = reseller else {
            let all = sqlx::query_scalar!(
                "SELECT id FROM subscriptions WHERE strpos(url, $1) > 0 ORDER BY id DESC LIMIT $2",
                part,
                limit,
            );
            return Ok(all.fetch_all(&self.pool).await?);
        };
        // Nor would one that looks for the newest by their identifiers. Those that were deleted are in another index than the others.
        Ok(sqlx::query_scalar!(
            r#"
            WITH of_reseller AS MATERIALIZED (
                SELECT id, url FROM subscriptions WHERE reseller_id = $2 AND deleted_at IS NULL
                UNION ALL SELECT id, url FROM subscriptions WHERE deleted_at IS NOT NULL AND reseller_id = $2
            )
            SELECT id AS "id!" FROM of_reseller WHERE strpos(url, $1) > 0 ORDER BY id DESC LIMIT $3
            "#,
            part,
            reseller,
            limit,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Subscriptions at an endpoint, by its scheme, host and port as dead letters have them, whosesoever they are; at most `limit`.
    pub async fn subscriptions_at(&self, endpoint: &str, limit: u32) -> Result<Vec<Uuid>, Error> {
        Ok(sqlx::query_scalar!(
            "SELECT id FROM subscriptions WHERE endpoint_of(url) = $1 AND deleted_at IS NULL LIMIT $2",
            endpoint,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// The subscriptions that are the only one of a reseller at an endpoint, which is scheme, host and port as dead letters have it, and that no
    /// operator has paused: of these pairs, by reseller and endpoint.
    pub async fn only_subscriptions_at(
        &self,
        pairs: &[(String, String)],
    ) -> Result<HashMap<(String, String), Uuid>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT w.reseller AS "reseller!", w.endpoint AS "endpoint!", f.id AS "id!"
            FROM UNNEST($1::text[], $2::text[]) AS w(reseller, endpoint)
            CROSS JOIN LATERAL (
                SELECT (array_agg(s.id))[1] AS id FROM subscriptions s
                WHERE s.reseller_id = w.reseller AND s.deleted_at IS NULL AND endpoint_of(s.url) = w.endpoint
                HAVING count(*) = 1 AND bool_and(s.held_at IS NULL)) AS f
            "#,
            &column(pairs, |(reseller, _)| reseller.clone()),
            &column(pairs, |(_, endpoint)| endpoint.clone()),
        )
        .fetch_all(&self.pool)
        .await?;
        let found = rows.into_iter().map(|row| ((row.reseller, row.endpoint), row.id));
        Ok(found.collect())
    }

    /// The subscription with this identifier, whosesoever it is.
    pub async fn find_any_subscription(&self, id: Uuid) -> Result<Option<SubscriptionView>, Error> {
        Ok(views!(self, ["id = $1"], id).await?.pop())
    }
}
