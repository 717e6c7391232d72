//! What was done by and for a reseller: the entries of the audit log that concern it, the states of its subscriptions, and the mails that
//! were sent about them.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::email::{EmailKind, EmailStatus};
use domain::reason::StateReason;
use domain::subscription::SubscriptionState;
use uuid::Uuid;

use super::{DueCursor, first_id_at};
use crate::read::{Count, Name};
use crate::{AuditView, Error, Store};

/// Most people whose acts are looked for: those whose visits began last.
const VISITORS_MAX: i64 = 1_000;

/// Whose acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActsOf {
    /// The reseller's own.
    Reseller,
    /// Those of the operators.
    Operators,
    /// Those signed with this name, which the caller knows for one of the reseller's own.
    Name(String),
}

/// How the names of those end who have visited the dashboard of a reseller. [`Store::names_of_acts`] has no visits that are long over.
pub fn ending_of_visitors(reseller: &str) -> String {
    format!("@{reseller}>")
}

/// Which entries. What is missing restricts nothing.
#[derive(Debug, Clone, Default)]
pub struct ActivityFilter {
    /// Of these alone.
    pub acts_of: Option<ActsOf>,
    /// Of one of these actions.
    pub actions: Option<Vec<String>>,
    /// From here on.
    pub since: Option<DateTime<Utc>>,
    /// Before this.
    pub until: Option<DateTime<Utc>>,
    /// Only those before this one.
    pub before: Option<Uuid>,
}

/// A state that a subscription came to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateEntry {
    /// Its identifier.
    pub id: Uuid,
    /// Since when.
    pub at: DateTime<Utc>,
    /// The state.
    pub state: SubscriptionState,
    /// Why.
    pub reason: StateReason,
    /// Whether its reseller had it paused.
    pub paused: bool,
    /// Whether an operator had it paused.
    pub held: bool,
}

/// A mail about a subscription of a reseller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResellerMail {
    /// Its identifier.
    pub id: Uuid,
    /// The occasion.
    pub kind: EmailKind,
    /// Where it stands.
    pub status: EmailStatus,
    /// The subscription that it is about.
    pub subscription: Uuid,
    /// The address.
    pub recipient: String,
    /// How many occasions it stands for.
    pub occurrences: u64,
    /// When what it tells happened last.
    pub created_at: DateTime<Utc>,
    /// While it waits, when it is sent at the earliest; one to an address that is not confirmed may wait longer, for that.
    pub due_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
}

impl Store {
    /// By which names the acts of a reseller are signed in the audit log: those of its keys, revoked ones among them, and of the visits to its
    /// dashboard, ended ones among them for as long as they are kept.
    pub async fn names_of_acts(&self, reseller: &str) -> Result<Vec<String>, Error> {
        Ok(sqlx::query_scalar!(
            r#"
            SELECT k.name || ' (' || k.id || ')' AS "name!" FROM api_keys k WHERE k.reseller_id = $1
            UNION
            (SELECT v.person_name || ' <' || v.person_id || '@' || v.reseller_id || '>' FROM portal_visits v
             WHERE v.reseller_id = $1 AND v.made_by_operator IS NULL
             GROUP BY 1 ORDER BY max(v.began_at) DESC LIMIT $2)
            "#,
            reseller,
            VISITORS_MAX,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Entries of the audit log that concern a reseller, the newest first: what was done under its own `names`, what was done to its
    /// subscriptions, deleted ones among them, and what was cancelled of several resellers at once, this one among them.
    pub async fn list_activity(
        &self,
        (reseller, names): (&str, &[String]),
        filter: &ActivityFilter,
        limit: u32,
    ) -> Result<Vec<AuditView>, Error> {
        let ending = ending_of_visitors(reseller);
        let (names, is_own, ending) = match &filter.acts_of {
            None => (names, None, None),
            Some(ActsOf::Reseller) => (names, Some(true), Some(ending)),
            Some(ActsOf::Operators) => (names, Some(false), Some(ending)),
            Some(ActsOf::Name(name)) => (std::slice::from_ref(name), Some(true), None),
        };
        Ok(sqlx::query_file_as!(
            AuditView,
            "queries/webhook/activity.sql",
            reseller,
            names,
            filter.before,
            filter.actions.as_deref(),
            filter.since,
            filter.until,
            i64::from(limit),
            is_own,
            ending,
            first_id_at(filter.since.unwrap_or(DateTime::UNIX_EPOCH)),
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// The states that a subscription has had, the newest first. Whose it is, is for the caller to know.
    pub async fn list_states(
        &self,
        subscription: Uuid,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<StateEntry>, Error> {
        Ok(sqlx::query_as!(
            StateEntry,
            r#"
            SELECT id, at, state AS "state: Name<_>", state_reason AS "reason: Name<_>", paused, held
            FROM subscription_states WHERE subscription_id = $1 AND ($2::uuid IS NULL OR id < $2)
            ORDER BY id DESC LIMIT $3
            "#,
            subscription,
            before,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// The state that each of these subscriptions had at a time; those are left out of which it is not known. Whose they are, is for the caller
    /// to know.
    pub async fn states_at(
        &self,
        subscriptions: &[Uuid],
        at: DateTime<Utc>,
    ) -> Result<HashMap<Uuid, StateEntry>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT s.id AS "subscription!", x.id AS "id!", x.at AS "at!", x.state AS "state!: Name<SubscriptionState>",
                   x.state_reason AS "reason!: Name<StateReason>", x.paused AS "paused!", x.held AS "held!"
            FROM UNNEST($1::uuid[]) AS s(id) CROSS JOIN LATERAL (
                SELECT id, at, state, state_reason, paused, held FROM subscription_states
                WHERE subscription_id = s.id AND at <= $2 ORDER BY id DESC LIMIT 1) AS x
            "#,
            subscriptions,
            at,
        )
        .fetch_all(&self.pool)
        .await?;
        let entries = rows.into_iter().map(|row| {
            let entry = StateEntry {
                id: row.id,
                at: row.at,
                state: row.state.into(),
                reason: row.reason.into(),
                paused: row.paused,
                held: row.held,
            };
            (row.subscription, entry)
        });
        Ok(entries.collect())
    }

    /// Mails about the subscriptions of a reseller, the newest first.
    pub async fn list_reseller_mails(
        &self,
        reseller: &str,
        after: Option<DueCursor>,
        limit: u32,
    ) -> Result<Vec<ResellerMail>, Error> {
        let (at, id) = after.unzip();
        Ok(sqlx::query_as!(
            ResellerMail,
            r#"
            SELECT e.id, e.kind AS "kind: Name<_>", e.status AS "status: Name<_>", e.subscription_id AS subscription,
                   e.recipient, e.occurrences AS "occurrences: Count", e.created_at, e.next_attempt_at AS due_at,
                   e.finished_at
            FROM emails e
            WHERE e.subscription_id = ANY (ARRAY(SELECT s.id FROM subscriptions s WHERE s.reseller_id = $1)) AND ($2::timestamptz IS NULL OR (e.created_at, e.id) < ($2, $3))
            ORDER BY e.created_at DESC, e.id DESC LIMIT $4
            "#,
            reseller,
            at,
            id,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?)
    }
}
