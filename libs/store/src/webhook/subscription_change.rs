//! Changing a subscription: its fields, and what its reseller makes of its state. `domain` decides which state follows;
//! here it is carried out on a locked row, in one transaction with the e-mail that tells of it.

use chrono::{DateTime, Utc};
use domain::notification::RetryPlan;
use domain::origin::origin;
use domain::reason::StateReason;
use domain::subscription::{Command, CommandRefused, SubscriptionChange, SubscriptionState};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::addresses::{self, Address, Addresses};
use super::locked::{Locked, lock, subject};
use super::security::{self, SecurityChange};
use super::subscription_view::{SubscriptionView, select};
use super::subscriptions::{millis, names};
use crate::{Act, Error, Store};

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandOutcome {
    /// The subscription as it stands now.
    Done(Box<SubscriptionView>),
    /// The command makes no sense now.
    Refused(CommandRefused),
    /// Its endpoint was challenged a moment ago; it may be again then.
    NotBefore(DateTime<Utc>),
    /// The reseller has no such subscription.
    Unknown,
}

/// What came of a change that was made of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// The subscription as it stands now.
    Done(Box<SubscriptionView>),
    /// It was changed meanwhile, and is left as it is.
    Stale(Box<SubscriptionView>),
    /// The reseller has no such subscription.
    Unknown,
}

impl Store {
    /// Changes a subscription. Another URL has to be verified before anything is delivered to it, another address confirmed
    /// before anything is sent there; of both the address of before is told.
    pub async fn change_subscription(
        &self,
        reseller: &str,
        id: Uuid,
        change: &SubscriptionChange,
        addresses: Addresses,
        act: Act<'_>,
    ) -> Result<Option<SubscriptionView>, Error> {
        let any = |_: &SubscriptionView| true;
        let changed = self.change_subscription_if(any, (reseller, id), change, addresses, act);
        Ok(match changed.await? {
            Changed::Done(view) | Changed::Stale(view) => Some(*view),
            Changed::Unknown => None,
        })
    }

    /// The same, if `is_expected` says so of the subscription as it is while no other change of it is made.
    pub async fn change_subscription_if(
        &self,
        is_expected: impl Fn(&SubscriptionView) -> bool + Send,
        (reseller, id): (&str, Uuid),
        change: &SubscriptionChange,
        addresses: Addresses,
        act: Act<'_>,
    ) -> Result<Changed, Error> {
        let now = act.at;
        let mut transaction = self.pool.begin().await?;
        let Some(locked) = lock(&mut transaction, reseller, id).await? else {
            return Ok(Changed::Unknown);
        };
        let before = select(&mut transaction, reseller, Some(id), None, 1).await?.pop();
        if let Some(before) = before.filter(|before| !is_expected(before)) {
            return Ok(Changed::Stale(Box::new(before)));
        }
        update_fields(&mut transaction, id, change, now).await?;
        let (url, email) = (
            moved(&change.url, &locked.url),
            moved(&change.email, &locked.email),
        );
        if url.is_some() {
            // Refused by no state: where it may not lead anywhere else, it leads to the same.
            if let Ok(next) = locked.command(Command::MoveEndpoint, now) {
                move_to(
                    &mut transaction,
                    id,
                    Command::MoveEndpoint,
                    (locked.state, next),
                    now,
                )
                .await?;
            }
        }
        if let Some(email) = email {
            remember_address(&mut transaction, id, &locked).await?;
            let address = Address {
                reseller,
                subscription: id,
                email,
            };
            addresses::name(&mut transaction, address, addresses, now).await?;
        }
        let told = url.map(|to| SecurityChange::Endpoint { to }).into_iter();
        let told: Vec<_> = told
            .chain(email.map(|to| SecurityChange::Address { to }))
            .collect();
        security::tell(&mut transaction, id, &locked, &told, now).await?;
        let entry = act.entry("subscription.change", subject(id), details(change, &locked));
        entry.record(&mut transaction).await?;
        let changed = select(&mut transaction, reseller, Some(id), None, 1).await?.pop();
        transaction.commit().await?;
        Ok(changed.map_or(Changed::Unknown, |view| Changed::Done(Box::new(view))))
    }

    /// Does what the reseller asks for, if that makes sense in the present state; a change of state is also told by
    /// e-mail.
    pub async fn command_subscription(
        &self,
        reseller: &str,
        id: Uuid,
        command: Command,
        act: Act<'_>,
    ) -> Result<CommandOutcome, Error> {
        let now = act.at;
        let mut transaction = self.pool.begin().await?;
        let Some(locked) = lock(&mut transaction, reseller, id).await? else {
            return Ok(CommandOutcome::Unknown);
        };
        let next = match locked.command(command, now) {
            Ok(next) => next,
            Err(refused) => return Ok(CommandOutcome::Refused(refused)),
        };
        if let (Command::Verify, Some(floor)) = (command, locked.floor_at.filter(|floor| *floor > now)) {
            return Ok(CommandOutcome::NotBefore(floor));
        }
        move_to(&mut transaction, id, command, (locked.state, next), now).await?;
        let details = json!({ "from": locked.state.as_str(), "to": next.as_str() });
        let entry = act.entry(action(command), subject(id), details);
        entry.record(&mut transaction).await?;
        let done = select(&mut transaction, reseller, Some(id), None, 1).await?.pop();
        transaction.commit().await?;
        Ok(done.map_or(CommandOutcome::Unknown, |view| {
            CommandOutcome::Done(Box::new(view))
        }))
    }

    /// Pauses a subscription or lets it go on; what is so already stays as it is. An endpoint that failed when it was
    /// paused is evaluated from the moment at which it goes on: what was not tried meanwhile is no failure.
    pub async fn pause_subscription(
        &self,
        reseller: &str,
        id: Uuid,
        paused: bool,
        act: Act<'_>,
    ) -> Result<Option<SubscriptionView>, Error> {
        let mut transaction = self.pool.begin().await?;
        let changed = sqlx::query!(
            r#"
            UPDATE subscriptions
            SET paused_at = CASE WHEN $3 THEN $4::timestamptz END, updated_at = $4,
                judged_from = CASE WHEN $3 OR failing_since IS NULL THEN judged_from ELSE $4 END
            WHERE reseller_id = $1 AND id = $2 AND deleted_at IS NULL AND (paused_at IS NOT NULL) <> $3
            "#,
            reseller,
            id,
            paused,
            act.at,
        )
        .execute(&mut *transaction)
        .await?;
        if changed.rows_affected() > 0 {
            let action = if paused {
                "subscription.pause"
            } else {
                "subscription.resume"
            };
            let entry = act.entry(action, subject(id), json!({}));
            entry.record(&mut transaction).await?;
        }
        let view = select(&mut transaction, reseller, Some(id), None, 1).await?.pop();
        transaction.commit().await?;
        Ok(view)
    }
}

/// What a field is now, if it is not what it was.
fn moved<'a>(new: &'a Option<String>, old: &str) -> Option<&'a str> {
    new.as_deref().filter(|new| *new != old)
}

/// What an audit entry says of a change: which fields it named, and what those that are others now were. Of an endpoint that is its origin.
fn details(change: &SubscriptionChange, before: &Locked) -> Value {
    let named = [
        ("url", change.url.is_some()),
        ("eventTypes", change.event_types.is_some()),
        ("email", change.email.is_some()),
        ("description", change.description.is_some()),
        ("timeoutMillis", change.timeout_millis.is_some()),
        ("resendAfterOutage", change.resend_after_outage.is_some()),
        ("retryPlan", change.retry_plan.is_some()),
        ("retryClientErrors", change.retry_client_errors.is_some()),
    ];
    let named = named.into_iter().filter(|(_, is_named)| *is_named);
    let mut details = json!({ "fields": named.map(|(name, _)| name).collect::<Vec<_>>() });
    if let Some(to) = moved(&change.url, &before.url) {
        details["endpoint"] = json!({ "from": origin(&before.url), "to": origin(to) });
    }
    if let Some(to) = moved(&change.email, &before.email) {
        details["email"] = json!({ "from": before.email, "to": to });
    }
    let settings = [
        (
            "eventTypes",
            change.event_types.as_deref().map(|types| json!(names(types))),
        ),
        ("description", change.description.as_ref().map(|text| json!(text))),
        ("timeoutMillis", change.timeout_millis.map(|millis| json!(millis))),
        (
            "resendAfterOutage",
            change.resend_after_outage.map(|is_on| json!(is_on)),
        ),
        ("retryPlan", change.retry_plan.map(|plan| json!(plan))),
        (
            "retryClientErrors",
            change.retry_client_errors.map(|is_on| json!(is_on)),
        ),
    ];
    for (name, to) in settings {
        let from = &before.settings[name];
        if let Some(to) = to.filter(|to| to != from) {
            details[name] = json!({ "from": from, "to": to });
        }
    }
    details
}

fn action(command: Command) -> &'static str {
    match command {
        Command::Activate => "subscription.activate",
        Command::Deactivate => "subscription.deactivate",
        Command::Verify => "subscription.verify",
        Command::MoveEndpoint => "subscription.change",
    }
}

async fn update_fields(
    connection: &mut PgConnection,
    id: Uuid,
    change: &SubscriptionChange,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let event_types = change.event_types.as_deref().map(names);
    sqlx::query!(
        r#"
        UPDATE subscriptions
        SET url = coalesce($2, url), event_types = coalesce($3, event_types), email = coalesce($4, email),
            description = coalesce($5, description),
            timeout_millis = CASE WHEN $6 THEN $7 ELSE timeout_millis END,
            resend_after_outage = CASE WHEN $9 THEN $10 ELSE resend_after_outage END,
            retry_plan = coalesce($11, retry_plan), retry_client_errors = coalesce($12, retry_client_errors),
            verified_at = CASE WHEN url = coalesce($2, url) THEN verified_at END,
            updated_at = $8
        WHERE id = $1
        "#,
        id,
        change.url.as_deref(),
        event_types.as_deref() as Option<&[&str]>,
        change.email.as_deref(),
        change.description.as_deref(),
        change.timeout_millis.is_some(),
        millis(change.timeout_millis.flatten()),
        now,
        change.resend_after_outage.is_some(),
        change.resend_after_outage.flatten(),
        change.retry_plan.map(RetryPlan::as_str),
        change.retry_client_errors,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Notes where the mails of a locked subscription went until now. An address that was never confirmed does not take the place of the
/// one before it.
async fn remember_address(connection: &mut PgConnection, id: Uuid, before: &Locked) -> Result<(), Error> {
    sqlx::query!(
        "UPDATE subscriptions SET previous_email = $2 WHERE id = $1",
        id,
        before.previous_email.as_ref().unwrap_or(&before.email),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Carries out a command on a locked subscription: what was known of its endpoint starts over, and a change of state is
/// told once.
async fn move_to(
    connection: &mut PgConnection,
    id: Uuid,
    command: Command,
    (from, to): (SubscriptionState, SubscriptionState),
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query_scalar!(
        r#"
        UPDATE subscriptions s
        SET state = $2, state_reason = coalesce($3, s.state_reason),
            failing_since = NULL, last_failure_at = NULL, updated_at = $4,
            state_changed_at = CASE WHEN s.state = $2 THEN s.state_changed_at ELSE $4 END,
            verification_due_at = CASE WHEN $2 = 'PENDING_VERIFICATION'
                                       THEN greatest($4::timestamptz, s.challenge_floor_at) END,
            verification_attempts = 0, verification_error = NULL,
            -- What is asked again is not known until it has answered, whichever commands come in between.
            verified_at = CASE WHEN $2 <> 'PENDING_VERIFICATION' THEN s.verified_at END
        FROM (SELECT state FROM subscriptions WHERE id = $1) AS before
        WHERE s.id = $1
        RETURNING CASE WHEN s.state <> before.state THEN mail_state_change(s.id, before.state, $4) END
        "#,
        id,
        to.as_str(),
        command.reason(from, to).map(StateReason::as_str),
        now,
    )
    .fetch_one(connection)
    .await?;
    Ok(())
}
