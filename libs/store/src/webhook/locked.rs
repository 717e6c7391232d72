//! A subscription that is locked for a change: every change of one, of its secrets and of what belongs to it begins here, so that no two
//! are made at once.

use chrono::{DateTime, Utc};
use domain::reason::StateReason;
use domain::subscription::{Command, CommandRefused, SubscriptionState, is_still_verified};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{Error, stored};

/// A locked subscription, as far as commands look at it.
pub(super) struct Locked {
    pub(super) state: SubscriptionState,
    /// `None` when it is none that this version knows.
    state_reason: Option<StateReason>,
    verified_at: Option<DateTime<Utc>>,
    /// No command has its endpoint challenged before.
    pub(super) floor_at: Option<DateTime<Utc>>,
    pub(super) url: String,
    pub(super) email: String,
    /// Where the mails went before, while `email` is not confirmed.
    pub(super) previous_email: Option<String>,
}

impl Locked {
    /// Which state follows a command.
    pub(super) fn command(
        &self,
        command: Command,
        now: DateTime<Utc>,
    ) -> Result<SubscriptionState, CommandRefused> {
        let verified = self
            .state_reason
            .is_some_and(|reason| is_still_verified(self.verified_at, reason, now));
        self.state.command(command, verified)
    }
}

/// Locks a subscription against every other change of it, until the transaction ends.
pub(super) async fn lock(
    connection: &mut PgConnection,
    reseller: &str,
    id: Uuid,
) -> Result<Option<Locked>, Error> {
    let row = sqlx::query!(
        r#"
        SELECT state, state_reason, verified_at, challenge_floor_at, url, email,
               CASE WHEN NOT EXISTS (SELECT FROM email_addresses a
                                     WHERE a.reseller_id = $1 AND a.address = lower(email) AND a.confirmed_at IS NOT NULL)
                    THEN previous_email END AS previous_email
        FROM subscriptions
        WHERE reseller_id = $1 AND id = $2 AND deleted_at IS NULL
        FOR NO KEY UPDATE
        "#,
        reseller,
        id,
    )
    .fetch_optional(connection)
    .await?;
    row.map(|row| {
        Ok(Locked {
            state: stored("subscription state", &row.state)?,
            state_reason: row.state_reason.parse().ok(),
            verified_at: row.verified_at,
            floor_at: row.challenge_floor_at,
            url: row.url,
            email: row.email,
            previous_email: row.previous_email,
        })
    })
    .transpose()
}
