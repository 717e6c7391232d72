//! Requests for a higher quota, a day and a second: made by a reseller, decided by an administrator.

use chrono::{DateTime, Utc};
use domain::subscription::QuotaRequestStatus;
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::PgConnection;
use utoipa::ToSchema;
use uuid::Uuid;

use super::locked::subject;
use super::quota::{Limits, change_limits, locked_limits};
use crate::read::{Count, Name, Nullable};
use crate::text::storable;
use crate::{Act, Error, Store, stored};

/// A quota request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuotaRequest)]
pub struct QuotaRequestView {
    /// Its identifier.
    pub id: Uuid,
    /// Whose it is.
    #[serde(rename = "resellerId")]
    #[schema(example = "acme")]
    pub reseller: String,
    /// For which subscription.
    #[serde(rename = "subscriptionId")]
    pub subscription: Uuid,
    /// The daily quota that is asked for; the one that the subscription had when only attempts a second are asked for.
    #[serde(rename = "dailyQuota")]
    pub requested: u32,
    /// Whether a daily quota was asked for or granted.
    #[serde(skip)]
    pub asks_daily: bool,
    /// The attempts a second that are asked for; null when they are to stay as they are.
    pub requests_per_second: Option<u32>,
    /// Why, in the reseller's words.
    pub reason: String,
    /// Where it stands: REQUESTED, APPROVED or DENIED.
    #[schema(value_type = String, example = "REQUESTED")]
    pub status: QuotaRequestStatus,
    /// The daily quota that was given; null when it stays as it is.
    pub granted: Option<u32>,
    /// The attempts a second that were given; null when they stay as they are.
    pub granted_per_second: Option<u32>,
    /// What was said about it.
    pub note: Option<String>,
    /// Who decided.
    pub decided_by: Option<String>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was decided.
    pub decided_at: Option<DateTime<Utc>>,
}

/// A quota request to be stored.
#[derive(Debug, Clone)]
pub struct NewQuotaRequest {
    /// Its identifier.
    pub id: Uuid,
    /// For which subscription.
    pub subscription: Uuid,
    /// The daily quota that is asked for, or the present one.
    pub requested: u32,
    /// Whether it is asked for: an approval leaves it as it is otherwise.
    pub asks_daily: bool,
    /// The attempts a second that are asked for; `None` when they are to stay as they are.
    pub requests_per_second: Option<u32>,
    /// Why.
    pub reason: String,
    /// When.
    pub created_at: DateTime<Utc>,
}

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaRequested {
    /// It waits for a decision.
    Done,
    /// An earlier one still does.
    Open,
    /// The reseller has no such subscription.
    Unknown,
}

/// What came of taking a request back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawn {
    /// It is gone.
    Done,
    /// It was decided before.
    Decided,
    /// The reseller's subscription has no such request.
    Unknown,
}

/// What an administrator makes of a request.
#[derive(Debug, Clone)]
pub struct Decision {
    /// Whether the quota is raised.
    pub approve: bool,
    /// To how much, when not to what was asked for.
    pub granted: Option<u32>,
    /// To how many attempts a second, when not to what was asked for.
    pub granted_per_second: Option<u32>,
    /// A word about it, for the reseller.
    pub note: Option<String>,
    /// Who decides.
    pub by: String,
    /// When.
    pub at: DateTime<Utc>,
}

/// What came of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided {
    /// It is carried out.
    Done(Box<QuotaRequestView>),
    /// It was decided before: by an operator, or when its subscription was deleted.
    Before(QuotaRequestStatus),
    /// There is no such request.
    Unknown,
}

/// Reads the requests that `$which` says, which is about `$1` and `$2`: as a condition of its own, so that a plan that does not know the
/// parameters finds those of a subscription, and the open ones, by their indexes, and does not go through all that were ever made.
macro_rules! requests {
    (($store:expr, $subscription:expr, $status:expr, $before:expr, $limit:expr), $which:literal) => {
        sqlx::query_as!(
            QuotaRequestView,
            r#"
            SELECT id, subscription_id AS subscription, reseller_id AS reseller, requested AS "requested: Count", asks_daily,
                   requested_per_second AS "requests_per_second!: Nullable<Count>", reason, status AS "status: Name<_>",
                   CASE WHEN asks_daily THEN granted END AS "granted!: Nullable<Count>",
                   granted_per_second AS "granted_per_second!: Nullable<Count>", note, decided_by, created_at, decided_at
            FROM quota_requests
            WHERE "# + $which + " AND ($3::uuid IS NULL OR id < $3) ORDER BY id DESC LIMIT $4",
            $subscription,
            $status.map(QuotaRequestStatus::as_str),
            $before,
            i64::from($limit),
        )
        .fetch_all(&$store.pool)
        .await?
    };
}

impl Store {
    /// Stores a request for a reseller's subscription, unless one is waiting.
    pub async fn insert_quota_request(
        &self,
        reseller: &str,
        new: &NewQuotaRequest,
        act: Act<'_>,
    ) -> Result<QuotaRequested, Error> {
        let mut transaction = self.pool.begin().await?;
        let row = sqlx::query!(
            r#"
            WITH owned AS (
                SELECT id FROM subscriptions WHERE reseller_id = $1 AND id = $2 AND deleted_at IS NULL
                FOR NO KEY UPDATE),
            inserted AS (
                INSERT INTO quota_requests (id, subscription_id, reseller_id, requested, reason, created_at,
                                            requested_per_second, asks_daily)
                SELECT $3, o.id, $1, $4, $5, $6, $7, $8 FROM owned o
                ON CONFLICT (subscription_id) WHERE status = 'REQUESTED' DO NOTHING
                RETURNING id)
            SELECT EXISTS (SELECT FROM owned) AS "owned!", EXISTS (SELECT FROM inserted) AS "inserted!"
            "#,
            reseller,
            new.subscription,
            new.id,
            number(new.requested),
            &*storable(&new.reason),
            new.created_at,
            new.requests_per_second.map(number),
            new.asks_daily,
        )
        .fetch_one(&mut *transaction)
        .await?;
        if row.inserted {
            let details = asked(new.requested, new.requests_per_second);
            let entry = act.entry("quota-request.create", subject(new.subscription), details);
            entry.record(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(match (row.owned, row.inserted) {
            (false, _) => QuotaRequested::Unknown,
            (true, false) => QuotaRequested::Open,
            (true, true) => QuotaRequested::Done,
        })
    }

    /// Takes back a request that waits for a decision. Nothing is left of it but entries of the audit log.
    pub async fn withdraw_quota_request(
        &self,
        reseller: &str,
        (subscription, id): (Uuid, Uuid),
        act: Act<'_>,
    ) -> Result<Withdrawn, Error> {
        let mut transaction = self.pool.begin().await?;
        let withdrawn = sqlx::query!(
            r#"
            DELETE FROM quota_requests
            WHERE id = $3 AND subscription_id = $2 AND reseller_id = $1 AND status = 'REQUESTED'
            RETURNING requested AS "requested: Count", requested_per_second AS "per_second!: Nullable<Count>"
            "#,
            reseller,
            subscription,
            id,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(withdrawn) = withdrawn else {
            let decided = sqlx::query_scalar!(
                r#"SELECT EXISTS (SELECT FROM quota_requests WHERE id = $3 AND subscription_id = $2 AND reseller_id = $1) AS "decided!""#,
                reseller,
                subscription,
                id,
            )
            .fetch_one(&mut *transaction)
            .await?;
            return Ok(if decided {
                Withdrawn::Decided
            } else {
                Withdrawn::Unknown
            });
        };
        let mut details = asked(withdrawn.requested.into(), withdrawn.per_second.into());
        details["request"] = json!(id);
        let entry = act.entry("quota-request.withdraw", subject(subscription), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(Withdrawn::Done)
    }

    /// Requests, the newest first, from the one before `before` on: of one subscription or of all, of one status or of
    /// any. Whose they are is for the caller to decide.
    pub async fn list_quota_requests(
        &self,
        subscription: Option<Uuid>,
        status: Option<QuotaRequestStatus>,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<QuotaRequestView>, Error> {
        Ok(match (subscription, status) {
            (Some(_), _) => requests!(
                (self, subscription, status, before, limit),
                "subscription_id = $1 AND ($2::text IS NULL OR status = $2)"
            ),
            (None, Some(QuotaRequestStatus::Requested)) => requests!(
                (self, subscription, status, before, limit),
                "$1::uuid IS NULL AND status = 'REQUESTED' AND status = $2"
            ),
            (None, _) => requests!(
                (self, subscription, status, before, limit),
                "$1::uuid IS NULL AND ($2::text IS NULL OR status = $2)"
            ),
        })
    }

    /// Decides a request; an approval takes effect in the same transaction, and the mail that tells of the decision is
    /// stored in it.
    pub async fn decide_quota_request(&self, id: Uuid, decision: &Decision) -> Result<Decided, Error> {
        let status = if decision.approve { "APPROVED" } else { "DENIED" };
        let note = decision.note.as_deref().map(storable);
        let mut transaction = self.pool.begin().await?;
        lock_subscription(&mut transaction, id).await?;
        let decided = sqlx::query_as!(
            QuotaRequestView,
            r#"
            UPDATE quota_requests
            SET status = $2, asks_daily = asks_daily OR $3::integer IS NOT NULL, granted = CASE WHEN $2 = 'APPROVED' THEN coalesce($3, requested) END, note = $4,
                decided_by = $5, decided_at = $6,
                granted_per_second = CASE WHEN $2 = 'APPROVED' THEN coalesce($7, requested_per_second) END
            WHERE id = $1 AND status = 'REQUESTED'
            RETURNING id, subscription_id AS subscription, reseller_id AS reseller, requested AS "requested: Count", asks_daily,
                      requested_per_second AS "requests_per_second!: Nullable<Count>", reason, status AS "status: Name<_>",
                      CASE WHEN asks_daily THEN granted END AS "granted!: Nullable<Count>", granted_per_second AS "granted_per_second!: Nullable<Count>", note, decided_by, created_at, decided_at
            "#,
            id,
            status,
            decision.granted.map(number),
            note.as_deref(),
            &*storable(&decision.by),
            decision.at,
            decision.granted_per_second.map(number),
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(view) = decided else {
            return why_undecided(&mut transaction, id).await;
        };
        let mut details = asked(view.requested, view.requests_per_second);
        details["request"] = json!(view.id);
        details["granted"] = json!(view.granted);
        if decision.approve
            && let Some(before) = locked_limits(&mut transaction, view.subscription).await?
        {
            let limits = Limits {
                daily_quota: view.granted.or(before.daily_quota),
                requests_per_second: view.granted_per_second.or(before.requests_per_second),
            };
            change_limits(&mut transaction, view.subscription, limits, decision.at).await?;
            let mut changes = limits.changes(before);
            if view.granted.is_some() {
                details["dailyQuota"] = changes["dailyQuota"].take();
            }
            if view.granted_per_second.is_some() {
                details["requestsPerSecond"] = changes["requestsPerSecond"].take();
            }
        }
        record_decision(&mut transaction, decision, (&view, details)).await?;
        tell(&mut transaction, &view, decision.at).await?;
        transaction.commit().await?;
        Ok(Decided::Done(Box::new(view)))
    }
}

fn number(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// What an audit entry says of what a request asks for.
fn asked(requested: u32, requests_per_second: Option<u32>) -> Value {
    let mut details = json!({ "requested": requested });
    if let Some(requests_per_second) = requests_per_second {
        details["requestedPerSecond"] = json!(requests_per_second);
    }
    details
}

async fn record_decision(
    connection: &mut PgConnection,
    decision: &Decision,
    (view, details): (&QuotaRequestView, Value),
) -> Result<(), Error> {
    let act = Act {
        by: &decision.by,
        note: decision.note.as_deref(),
        at: decision.at,
    };
    let action = if decision.approve {
        "quota-request.approve"
    } else {
        "quota-request.deny"
    };
    let entry = act.entry(action, subject(view.subscription), details);
    entry.record(connection).await
}

/// Stores the mail about a decision, unless its subscription is gone.
async fn tell(
    connection: &mut PgConnection,
    decided: &QuotaRequestView,
    at: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query!(
        r#"
        INSERT INTO emails (id, kind, subscription_id, recipient, data, next_attempt_at, created_at)
        SELECT gen_random_uuid(), 'QUOTA_DECIDED', s.id, s.email,
               jsonb_build_object('url', s.url, 'description', s.description, 'resellerId', s.reseller_id,
                                  'requested', $2::integer, 'granted', $3::integer, 'note', $4::text,
                                  'requestedPerSecond', $6::integer, 'grantedPerSecond', $7::integer, 'asksDaily', $8::boolean),
               $5, $5
        FROM subscriptions s WHERE s.id = $1 AND s.deleted_at IS NULL
        "#,
        decided.subscription,
        number(decided.requested),
        decided.granted.map(number),
        decided.note,
        at,
        decided.requests_per_second.map(number),
        decided.granted_per_second.map(number),
        decided.asks_daily,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Locks the subscription that a request is for: before the request, as the deletion of a subscription does.
async fn lock_subscription(connection: &mut PgConnection, request: Uuid) -> Result<(), Error> {
    sqlx::query!(
        r#"
        SELECT s.id FROM quota_requests q JOIN subscriptions s ON s.id = q.subscription_id WHERE q.id = $1
        FOR NO KEY UPDATE OF s
        "#,
        request,
    )
    .fetch_optional(connection)
    .await?;
    Ok(())
}

/// Why a request could not be decided, asked on the connection that is held already: there may be no other.
async fn why_undecided(connection: &mut PgConnection, id: Uuid) -> Result<Decided, Error> {
    let status = sqlx::query_scalar!("SELECT status FROM quota_requests WHERE id = $1", id)
        .fetch_optional(connection)
        .await?;
    Ok(match status {
        Some(status) => Decided::Before(stored("quota request status", &status)?),
        None => Decided::Unknown,
    })
}
