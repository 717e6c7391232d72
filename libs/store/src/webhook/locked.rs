//! A subscription that is locked for a change: every change of one, of its secrets and of what belongs to it begins here, so that no two
//! are made at once.

use chrono::{DateTime, Utc};
use domain::subscription::{Command, CommandRefused, SubscriptionState, is_still_verified};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Error;
use crate::read::Name;

/// A locked subscription, as far as commands look at it.
pub(super) struct Locked {
    pub(super) state: SubscriptionState,
    state_reason: String,
    verified_at: Option<DateTime<Utc>>,
    /// No command has its endpoint challenged before.
    pub(super) floor_at: Option<DateTime<Utc>>,
    pub(super) url: String,
    pub(super) email: String,
    /// Where the mails went before, while `email` is not confirmed.
    pub(super) previous_email: Option<String>,
    /// What else a change of it may name, as requests call it.
    pub(super) settings: Value,
}

impl Locked {
    /// Which state follows a command.
    pub(super) fn command(
        &self,
        command: Command,
        now: DateTime<Utc>,
    ) -> Result<SubscriptionState, CommandRefused> {
        // One that this version does not know proves nothing.
        let reason = self.state_reason.parse();
        let verified = reason.is_ok_and(|reason| is_still_verified(self.verified_at, reason, now));
        self.state.command(command, verified)
    }
}

/// Locks a subscription against every other change of it, until the transaction ends.
pub(super) async fn lock(
    connection: &mut PgConnection,
    reseller: &str,
    id: Uuid,
) -> Result<Option<Locked>, Error> {
    Ok(sqlx::query_as!(
        Locked,
        r#"
        SELECT state AS "state: Name<_>", state_reason, verified_at, challenge_floor_at AS floor_at, url, email,
               CASE WHEN NOT EXISTS (SELECT FROM email_addresses a
                                     WHERE a.reseller_id = $1 AND a.address = lower(email) AND a.confirmed_at IS NOT NULL)
                    THEN previous_email END AS previous_email,
               jsonb_build_object('eventTypes', event_types, 'description', description, 'timeoutMillis', timeout_millis,
                                  'resendAfterOutage', resend_after_outage, 'retryPlan', retry_plan,
                                  'retryClientErrors', retry_client_errors) AS "settings!"
        FROM subscriptions
        WHERE reseller_id = $1 AND id = $2 AND deleted_at IS NULL
        FOR NO KEY UPDATE
        "#,
        reseller,
        id,
    )
    .fetch_optional(connection)
    .await?)
}

/// How the audit log calls a subscription.
pub(super) fn subject(subscription: Uuid) -> String {
    format!("subscription/{subscription}")
}
