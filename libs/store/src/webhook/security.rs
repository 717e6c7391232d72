//! Mails about changes that a thief of a reseller's key would make, and about looks at secrets: they go to the address that was registered before, in the
//! transaction of the change. The first one goes out at once; those that follow within ten minutes are gathered, so that
//! the address is not flooded, and no change is lost.

use chrono::{DateTime, Utc};
use domain::origin::origin;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::locked::Locked;
use crate::Error;

/// A change that is told, no matter which caller made it.
#[derive(Debug, Clone, Copy)]
pub(super) enum SecurityChange<'a> {
    Endpoint { to: &'a str },
    Address { to: &'a str },
    SecretMade,
    SecretViewed,
    SecretRevoked,
    Deleted,
}

impl SecurityChange<'_> {
    fn document(self, before: &Locked, at: DateTime<Utc>) -> Value {
        match self {
            // Paths and queries of endpoints often hold tokens.
            Self::Endpoint { to } => {
                json!({ "what": "ENDPOINT", "from": origin(&before.url), "to": origin(to), "at": at })
            }
            Self::Address { to } => json!({ "what": "ADDRESS", "from": before.email, "to": to, "at": at }),
            Self::SecretMade => json!({ "what": "SECRET_MADE", "at": at }),
            Self::SecretViewed => json!({ "what": "SECRET_VIEWED", "at": at }),
            Self::SecretRevoked => json!({ "what": "SECRET_REVOKED", "at": at }),
            Self::Deleted => json!({ "what": "DELETED", "at": at }),
        }
    }
}

/// Tells of changes of a locked subscription: its address of before, the one before that while that one is not confirmed, and the new
/// one if it has another. An address that was never confirmed has nothing to be told.
pub(super) async fn tell(
    connection: &mut PgConnection,
    id: Uuid,
    before: &Locked,
    changes: &[SecurityChange<'_>],
    at: DateTime<Utc>,
) -> Result<(), Error> {
    let mut recipients = vec![&*before.email];
    recipients.extend(before.previous_email.as_deref());
    for change in changes {
        if let SecurityChange::Address { to } = change
            && recipients
                .iter()
                .all(|told| told.to_lowercase() != to.to_lowercase())
        {
            recipients.push(to);
        }
    }
    for change in changes {
        for recipient in &recipients {
            tell_one(connection, id, recipient, before, change.document(before, at), at).await?;
        }
    }
    Ok(())
}

async fn tell_one(
    connection: &mut PgConnection,
    id: Uuid,
    recipient: &str,
    before: &Locked,
    change: Value,
    at: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query!(
        r#"
        WITH gathered AS (
            UPDATE emails e
            SET data = jsonb_set(e.data, '{changes}',
                                 CASE WHEN jsonb_array_length(e.data -> 'changes') >= 20 THEN (e.data -> 'changes') - 0
                                      ELSE e.data -> 'changes' END || jsonb_build_array($4::jsonb)),
                occurrences = e.occurrences + 1, created_at = greatest(e.created_at, $5)
            WHERE e.id = (SELECT w.id FROM emails w
                          WHERE w.subscription_id = $1 AND w.kind = 'SECURITY_CHANGED' AND w.status = 'PENDING'
                            AND lower(w.recipient) = lower($2)
                          ORDER BY w.created_at LIMIT 1 FOR UPDATE)
            RETURNING e.id)
        INSERT INTO emails (id, kind, subscription_id, recipient, data, next_attempt_at, created_at)
        SELECT gen_random_uuid(), 'SECURITY_CHANGED', s.id, $2,
               jsonb_build_object('url', $3::text, 'description', s.description, 'resellerId', s.reseller_id,
                                  'changes', jsonb_build_array($4::jsonb)),
               greatest($5, (SELECT max(coalesce(l.finished_at, l.created_at)) + interval '10 minutes' FROM emails l
                             WHERE l.subscription_id = $1 AND l.kind = 'SECURITY_CHANGED' AND l.status IN ('SENDING', 'SENT')
                               AND lower(l.recipient) = lower($2))),
               $5
        FROM subscriptions s
        WHERE s.id = $1 AND NOT EXISTS (SELECT FROM gathered)
          AND EXISTS (SELECT FROM email_addresses a WHERE a.reseller_id = s.reseller_id AND a.address = lower($2)
                        AND a.confirmed_at IS NOT NULL)
        "#,
        id,
        recipient,
        before.url,
        change,
        at,
    )
    .execute(connection)
    .await?;
    Ok(())
}
