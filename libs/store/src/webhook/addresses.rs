//! The addresses that mails go to. Before an address has sent back the code that it got, nothing else goes there: the holder
//! of a key could have anybody mailed otherwise. One confirmation holds for all subscriptions of a reseller.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::locked::{lock, subject};
use super::subscription_view::{SubscriptionView, select};
use crate::cutoff::not_after_now;
use crate::{Act, Error, Store};

/// Mails with a code to one address in a day, whichever resellers asked for them.
const ASKED_PER_ADDRESS: i64 = 3;
/// Mails with a code for one reseller in a day.
const ASKED_PER_RESELLER: i64 = 20;
/// Wrong codes after which another one is needed: too few to guess one of 40 bits.
const WRONG_CODES: i32 = 10;
/// Until when what waits for a confirmation is not looked at again.
const HELD_FOR: &str = "1 hour";

/// What is thought of an address that a reseller names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    /// It gets a code, and nothing else until the code is back.
    Confirmed,
    /// It gets its mails.
    Trusted,
}

impl Addresses {
    /// What the setting `mail.confirmAddresses` means for them.
    pub fn confirmed_if(confirm: bool) -> Self {
        if confirm { Self::Confirmed } else { Self::Trusted }
    }
}

/// What came of asking for a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmationAsked {
    /// A mail with the code waits to be sent.
    Done,
    /// There is no need to: it is confirmed, or was asked before.
    NotNeeded,
    /// Too many such mails were asked for; another one may be then.
    NotBefore(DateTime<Utc>),
    /// The reseller has no such subscription.
    Unknown,
}

/// What came of a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeChecked {
    /// The address is confirmed. The subscription as it stands now.
    Right(Box<SubscriptionView>),
    /// It is not the one that was sent.
    Wrong,
    /// The code that was sent cannot be used any more: too many were wrong, or too much time has passed.
    Void,
    /// The reseller has no such subscription.
    Unknown,
}

/// The address of a subscription.
#[derive(Debug, Clone, Copy)]
pub(super) struct Address<'a> {
    pub(super) reseller: &'a str,
    pub(super) subscription: Uuid,
    pub(super) email: &'a str,
}

impl Store {
    /// Sends the code once more to the address of a subscription.
    pub async fn ask_for_confirmation(
        &self,
        reseller: &str,
        subscription: Uuid,
        act: Act<'_>,
    ) -> Result<ConfirmationAsked, Error> {
        let mut transaction = self.pool.begin().await?;
        let Some(locked) = lock(&mut transaction, reseller, subscription).await? else {
            return Ok(ConfirmationAsked::Unknown);
        };
        let address = Address {
            reseller,
            subscription,
            email: &locked.email,
        };
        let asked = ask(&mut transaction, address, true, act.at).await?;
        if asked == ConfirmationAsked::Done {
            let entry = act.entry("subscription.ask-address", subject(subscription), json!({}));
            entry.record(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(asked)
    }

    /// Confirms the address of a subscription with the code that was sent there. What waited for that goes out now.
    pub async fn confirm_address(
        &self,
        reseller: &str,
        subscription: Uuid,
        code: &str,
        act: Act<'_>,
    ) -> Result<CodeChecked, Error> {
        let mut transaction = self.pool.begin().await?;
        let Some(locked) = lock(&mut transaction, reseller, subscription).await? else {
            return Ok(CodeChecked::Unknown);
        };
        let checked = check_code(&mut transaction, reseller, &locked.email, code, act.at).await?;
        if let Some(otherwise) = checked {
            transaction.commit().await?;
            return Ok(otherwise);
        }
        release(&mut transaction, reseller, &locked.email, act.at).await?;
        let details = json!({ "email": locked.email });
        let entry = act.entry("subscription.confirm-address", subject(subscription), details);
        entry.record(&mut transaction).await?;
        let view = select(&mut transaction, reseller, Some(subscription), None, 1)
            .await?
            .pop();
        transaction.commit().await?;
        Ok(view.map_or(CodeChecked::Unknown, |view| CodeChecked::Right(Box::new(view))))
    }

    /// Puts off at most `limit` mails that were due at the time `at` and whose address is not confirmed; those that are older than
    /// `max_age`, by the clock of the database too, end. An address that was never asked is asked now. Returns how many ended.
    pub async fn hold_unconfirmed_emails(
        &self,
        at: DateTime<Utc>,
        limit: u32,
        max_age: Duration,
    ) -> Result<u64, Error> {
        let mut transaction = self.pool.begin().await?;
        let present = not_after_now(&mut transaction, at).await?;
        let oldest = TimeDelta::from_std(max_age).ok();
        let oldest = oldest.and_then(|age| present.checked_sub_signed(age));
        let held = sqlx::query!(
            r#"
            WITH unconfirmed AS (
                SELECT e.id, s.reseller_id, e.subscription_id, e.recipient
                FROM emails e JOIN subscriptions s ON s.id = e.subscription_id
                WHERE e.status = 'PENDING' AND e.next_attempt_at <= $1 AND e.kind <> 'ADDRESS_CONFIRMATION'
                  AND NOT EXISTS (SELECT FROM email_addresses a
                                  WHERE a.reseller_id = s.reseller_id AND a.address = lower(e.recipient)
                                    AND a.confirmed_at IS NOT NULL)
                ORDER BY e.next_attempt_at, e.id LIMIT $2
                FOR UPDATE OF e SKIP LOCKED),
            held AS (
                UPDATE emails e
                SET status = CASE WHEN e.created_at > $3 THEN 'PENDING' ELSE 'FAILED' END,
                    next_attempt_at = CASE WHEN e.created_at > $3 THEN $1::timestamptz + ($4::text)::interval END,
                    finished_at = CASE WHEN e.created_at > $3 THEN NULL ELSE $1::timestamptz END,
                    last_error = 'the address has not been confirmed'
                FROM unconfirmed u WHERE e.id = u.id
                RETURNING e.id, e.status)
            SELECT u.reseller_id AS "reseller!", u.subscription_id AS "subscription!", u.recipient AS "recipient!",
                   h.status AS "status!"
            FROM held h JOIN unconfirmed u ON u.id = h.id
            ORDER BY u.reseller_id, u.recipient
            "#,
            at,
            i64::from(limit),
            oldest.unwrap_or(DateTime::UNIX_EPOCH),
            HELD_FOR,
        )
        .fetch_all(&mut *transaction)
        .await?;
        for mail in &held {
            let address = Address {
                reseller: &mail.reseller,
                subscription: mail.subscription,
                email: &mail.recipient,
            };
            if mail.status == "PENDING" {
                ask(&mut transaction, address, false, at).await?;
            }
        }
        transaction.commit().await?;
        let ended = held.iter().filter(|mail| mail.status != "PENDING").count();
        Ok(u64::try_from(ended).unwrap_or(u64::MAX))
    }
}

/// Deals with an address that a reseller has just named.
pub(super) async fn name(
    connection: &mut PgConnection,
    address: Address<'_>,
    addresses: Addresses,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    match addresses {
        Addresses::Confirmed => ask(connection, address, false, now).await.map(drop),
        Addresses::Trusted => trust(connection, address, now).await,
    }
}

async fn trust(connection: &mut PgConnection, address: Address<'_>, now: DateTime<Utc>) -> Result<(), Error> {
    sqlx::query!(
        r#"
        INSERT INTO email_addresses AS a (reseller_id, address, confirmed_at, created_at)
        VALUES ($1, lower($2), $3, $3)
        ON CONFLICT (reseller_id, address) DO UPDATE SET confirmed_at = excluded.confirmed_at, code = NULL
        WHERE a.confirmed_at IS NULL
        "#,
        address.reseller,
        address.email,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes the mail with the code, unless the address is confirmed, or was asked before and need not be asked `again`, or
/// there were too many such mails lately.
async fn ask(
    connection: &mut PgConnection,
    address: Address<'_>,
    again: bool,
    now: DateTime<Utc>,
) -> Result<ConfirmationAsked, Error> {
    lock_counts(connection, address).await?;
    // A clock that is ahead would find the day's mails to be old, and leave its own for as long as it is ahead.
    let now = not_after_now(connection, now).await?;
    let day_ago = now - TimeDelta::days(1);
    let known = sqlx::query!(
        r#"
        SELECT
            EXISTS (SELECT FROM email_addresses a WHERE a.reseller_id = $1 AND a.address = lower($2)
                      AND (a.confirmed_at IS NOT NULL OR NOT $3)) AS "settled!",
            (SELECT min(t) FROM (
                SELECT t, count(*) OVER () AS times FROM email_addresses a, unnest(a.asked_at) t
                WHERE a.address = lower($2) AND t > $4) i
             -- Each reseller has one of its own, so that none can keep the others from confirming.
             WHERE times >= $5 AND (times >= 10 OR EXISTS (
                 SELECT FROM email_addresses o, unnest(o.asked_at) x
                 WHERE o.reseller_id = $1 AND o.address = lower($2) AND x > $4))) AS address_full,
            (SELECT min(t) FROM (
                SELECT t, count(*) OVER () AS times FROM email_addresses a, unnest(a.asked_at) t
                WHERE a.reseller_id = $1 AND t > $4) i WHERE times >= $6) AS reseller_full
        "#,
        address.reseller,
        address.email,
        again,
        day_ago,
        ASKED_PER_ADDRESS,
        ASKED_PER_RESELLER,
    )
    .fetch_one(&mut *connection)
    .await?;
    if known.settled {
        return Ok(ConfirmationAsked::NotNeeded);
    }
    if let Some(first) = known.address_full.max(known.reseller_full) {
        return Ok(ConfirmationAsked::NotBefore(first + TimeDelta::days(1)));
    }
    write_question(connection, address, now).await?;
    Ok(ConfirmationAsked::Done)
}

/// Counting and writing is one thing at a time: for the reseller, and for the address, which others may name as well.
async fn lock_counts(connection: &mut PgConnection, address: Address<'_>) -> Result<(), Error> {
    let names = [
        format!("postrider.addresses/{}", address.reseller),
        format!("postrider.address/{}", address.email.to_lowercase()),
    ];
    for name in names {
        sqlx::query!("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", name)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// A code that is known stays the same, so that an earlier mail that comes late does no harm.
async fn write_question(
    connection: &mut PgConnection,
    address: Address<'_>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query!(
        r#"
        WITH forgotten AS (
            DELETE FROM email_addresses
            WHERE reseller_id = $1 AND address <> lower($2) AND confirmed_at IS NULL
              AND asked_at[cardinality(asked_at)] < $4::timestamptz - interval '7 days'),
        asked AS (
            INSERT INTO email_addresses AS a (reseller_id, address, code, asked_at, created_at)
            VALUES ($1, lower($2), upper(left(replace(gen_random_uuid()::text, '-', ''), 10)), ARRAY[$4::timestamptz], $4)
            ON CONFLICT (reseller_id, address) DO UPDATE
            SET code = CASE WHEN a.wrong_codes >= $5 OR a.code IS NULL
                              OR a.asked_at[cardinality(a.asked_at)] < $4::timestamptz - interval '7 days'
                            THEN excluded.code ELSE a.code END,
                wrong_codes = CASE WHEN a.wrong_codes >= $5 THEN 0 ELSE a.wrong_codes END,
                asked_at = ARRAY(SELECT t FROM unnest(a.asked_at) t WHERE t > $4::timestamptz - interval '1 day' ORDER BY t)
                           || excluded.asked_at
            RETURNING a.code)
        INSERT INTO emails (id, kind, subscription_id, recipient, data, next_attempt_at, created_at)
        SELECT gen_random_uuid(), 'ADDRESS_CONFIRMATION', $3, $2,
               jsonb_build_object('resellerId', $1::text, 'code', a.code), $4, $4
        FROM asked a
        "#,
        address.reseller,
        address.email,
        address.subscription,
        now,
        WRONG_CODES,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Compares a code with the one that was sent; `None` when it is right, or the address needed none.
async fn check_code(
    connection: &mut PgConnection,
    reseller: &str,
    email: &str,
    code: &str,
    now: DateTime<Utc>,
) -> Result<Option<CodeChecked>, Error> {
    let known = sqlx::query!(
        r#"
        UPDATE email_addresses
        SET wrong_codes = wrong_codes + CASE WHEN code = upper(btrim($3)) OR confirmed_at IS NOT NULL THEN 0 ELSE 1 END
        WHERE reseller_id = $1 AND address = lower($2)
        RETURNING confirmed_at IS NOT NULL AS "confirmed!", coalesce(code = upper(btrim($3)), false) AS "right!", wrong_codes,
                  coalesce(asked_at[cardinality(asked_at)] > least($4::timestamptz, clock_timestamp()) - interval '7 days', false)
                      AS "recent!"
        "#,
        reseller,
        email,
        code,
        now,
    )
    .fetch_optional(&mut *connection)
    .await?;
    Ok(match known {
        Some(known) if known.confirmed => None,
        None => Some(CodeChecked::Void),
        Some(known) if !known.recent || known.wrong_codes >= WRONG_CODES => Some(CodeChecked::Void),
        Some(known) if !known.right => Some(CodeChecked::Wrong),
        Some(_) => None,
    })
}

/// Lets the mails go that wait for an address.
async fn release(
    connection: &mut PgConnection,
    reseller: &str,
    email: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query!(
        r#"
        WITH confirmed AS (
            UPDATE email_addresses SET confirmed_at = $3, code = NULL, wrong_codes = 0
            WHERE reseller_id = $1 AND address = lower($2) AND confirmed_at IS NULL
            RETURNING 1)
        UPDATE emails e SET next_attempt_at = least(e.next_attempt_at, $3)
        FROM subscriptions s
        WHERE s.reseller_id = $1 AND e.subscription_id = s.id AND lower(e.recipient) = lower($2) AND e.status = 'PENDING'
          AND EXISTS (SELECT FROM confirmed)
        "#,
        reseller,
        email,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}
