//! Sending many notifications of a subscription again at once: counted first, then made due one after the other at a rate, in one
//! transaction.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};
use domain::notification::NotificationStatus;
use domain::reason::NotificationReason;
use domain::subscription::SubscriptionState;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::locked::{lock, subject};
use super::reseller_notifications::NotificationsAsked;
use super::sending_again::{SENT_AGAIN, resolve_sent_again};
use crate::read::{Name, Nullable};
use crate::{Act, Error, Store};

/// Most notifications that are sent again at once.
pub const RESENT_MAX: u32 = 10_000;
/// How many are looked for in one statement.
const PART: u32 = 1_000;
/// Most retries among which the end of the resends that go on is looked for. More than [`RESENT_MAX`]: retries of other kinds that are due later stand
/// before them, as many as an outage has left, and a resend that does not find the end of the others is sent at the same time as they are.
const LOOKED_AT_MAX: i64 = 100_000;
/// Most statements that look for them: what has not been found by then lies too far apart.
const PARTS_MAX: u32 = 100;

/// Which notifications of a subscription are to be sent again.
#[derive(Debug, Clone)]
pub enum ToResend {
    /// These; those of them that wait for a retry are tried at once.
    Ids(Vec<Uuid>),
    /// Those that match.
    Matching(Box<NotificationsAsked>),
}

/// What a bulk resend is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResendCount {
    /// Those that can be sent again, by their status; in RETRY those that are tried at once.
    pub by_status: BTreeMap<&'static str, u64>,
    /// The same by event type.
    pub by_event_type: BTreeMap<String, u64>,
    /// Those that are not sent again because they were cancelled.
    pub cancelled: u64,
    /// Those that have not ended and are not tried at once, so that they are sent anyhow.
    pub unfinished: u64,
    /// Those that were named and that the subscription does not have.
    pub unknown: u64,
}

impl ResendCount {
    /// How many can be sent again.
    pub fn resendable(&self) -> u64 {
        self.by_status.values().sum()
    }

    /// How many of them come one after the other; those that are tried at once do not.
    pub fn paced(&self) -> u64 {
        let retry = NotificationStatus::Retry.as_str();
        let paced = self.by_status.iter().filter(|(status, _)| **status != retry);
        paced.map(|(_, count)| count).sum()
    }
}

/// What came of asking for a bulk resend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BulkResent {
    /// So many are due, or would be.
    Done(ResendCount),
    /// More than [`RESENT_MAX`] match, or they lie too far apart to be found.
    TooMany,
    /// The subscription gets nothing.
    NotActive(SubscriptionState),
    /// The reseller has no such subscription.
    Unknown,
}

struct Candidate {
    id: Uuid,
    status: NotificationStatus,
    reason: Option<NotificationReason>,
    event_type: String,
    /// Whether it waits for a retry that is still to come.
    waits_for_retry: bool,
}

/// Which notifications are made due.
#[derive(Default)]
struct ToMakeDue {
    /// Those that have ended, the oldest event first.
    ended: Vec<Uuid>,
    /// Those whose retry is made at once.
    retries: Vec<Uuid>,
}

impl Candidate {
    fn is_cancelled(&self) -> bool {
        self.status == NotificationStatus::GivenUp && self.reason == Some(NotificationReason::Cancelled)
    }
}

impl Store {
    /// Counts what would be sent again at this time.
    pub async fn count_resends(
        &self,
        (reseller, subscription): (&str, Uuid),
        which: &ToResend,
        at: DateTime<Utc>,
    ) -> Result<BulkResent, Error> {
        if self.find_subscription(reseller, subscription).await?.is_none() {
            return Ok(BulkResent::Unknown);
        }
        Ok(match self.resend_candidates(subscription, which, at).await? {
            Some(candidates) => BulkResent::Done(count(&candidates, which, |_| true).0),
            None => BulkResent::TooMany,
        })
    }

    /// Makes notifications of a subscription that have ended due again, `per_second` of them in a second, the oldest event first. They
    /// come after those that were sent again before, so that the endpoint never gets more than one such rate at once. Those that are named and
    /// wait for a retry are due at once, as [`Store::resend_each`] has it.
    pub async fn resend_notifications(
        &self,
        (reseller, subscription): (&str, Uuid),
        which: &ToResend,
        per_second: u32,
        act: Act<'_>,
    ) -> Result<BulkResent, Error> {
        let Some(candidates) = self.resend_candidates(subscription, which, act.at).await? else {
            return Ok(BulkResent::TooMany);
        };
        let (_, due) = count(&candidates, which, |_| true);
        let mut transaction = self.pool.begin().await?;
        let Some(locked) = lock(&mut transaction, reseller, subscription).await? else {
            return Ok(BulkResent::Unknown);
        };
        if !matches!(
            locked.state,
            SubscriptionState::Active | SubscriptionState::Degraded
        ) {
            return Ok(BulkResent::NotActive(locked.state));
        }
        // Before the others, which come after those of the resends that go on: what is tried at once is none of them any more.
        let mut resent = try_at_once(&mut transaction, &due.retries, act.at).await?;
        let ended = sqlx::query_scalar!(
            r#"
            UPDATE notifications n
            SET status = 'RETRY', next_attempt_at = b.begins_at + (i.place - 1) * (interval '1 second' / $3::integer),
                resent_after = n.attempts, resent_at = $2, finished_at = NULL, reason = 'RESENT', slot_at = NULL,
                updated_at = $2
            FROM UNNEST($1::uuid[]) WITH ORDINALITY AS i(id, place),
                 (SELECT greatest($2::timestamptz, max(l.next_attempt_at) + interval '1 second' / $3::integer) AS begins_at
                  FROM (SELECT r.next_attempt_at, r.reason FROM notifications r
                        WHERE r.subscription_id = $4 AND r.status = 'RETRY'
                        ORDER BY r.next_attempt_at DESC, r.id DESC LIMIT $5) AS l
                  WHERE l.reason = 'RESENT') AS b
            WHERE n.id = i.id
              AND (n.status IN ('SENT', 'FAILED') OR n.status = 'GIVEN_UP' AND n.reason IS DISTINCT FROM 'CANCELLED')
            RETURNING n.id
            "#,
            &due.ended,
            act.at,
            i32::try_from(per_second.max(1)).unwrap_or(i32::MAX),
            subscription,
            LOOKED_AT_MAX,
        )
        .fetch_all(&mut *transaction)
        .await?;
        resent.extend(ended);
        // What another request had sent again since it was found is sent anyhow.
        let updated: HashSet<Uuid> = resent.iter().copied().collect();
        let (counted, _) = count(&candidates, which, |id| updated.contains(id));
        resolve_sent_again(&mut transaction, reseller, &resent, (SENT_AGAIN, act.at)).await?;
        let details = json!({ "resent": resent.len(), "perSecond": per_second });
        let entry = act.entry("subscription.resend", subject(subscription), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(BulkResent::Done(counted))
    }

    /// Whose the subscription is, is for the caller to know. `None` when there are too many.
    async fn resend_candidates(
        &self,
        subscription: Uuid,
        which: &ToResend,
        at: DateTime<Utc>,
    ) -> Result<Option<Vec<Candidate>>, Error> {
        let ids = match which {
            ToResend::Ids(ids) => ids.clone(),
            ToResend::Matching(asked) => match self.all_matching(asked).await? {
                Some(ids) => ids,
                None => return Ok(None),
            },
        };
        Ok(Some(
            sqlx::query_as!(
                Candidate,
                r#"
                SELECT n.id, n.status AS "status: Name<_>", n.reason AS "reason!: Nullable<Name<_>>", n.event_type,
                       coalesce(n.status = 'RETRY' AND n.next_attempt_at > $3, false) AS "waits_for_retry!"
                FROM notifications n WHERE n.id = ANY ($1) AND n.subscription_id = $2 ORDER BY n.id
                "#,
                &ids as &[Uuid],
                subscription,
                at,
            )
            .fetch_all(&self.pool)
            .await?,
        ))
    }

    async fn all_matching(&self, asked: &NotificationsAsked) -> Result<Option<Vec<Uuid>>, Error> {
        let mut asked = NotificationsAsked {
            limit: PART,
            ..asked.clone()
        };
        let mut ids = Vec::new();
        for _ in 0..PARTS_MAX {
            let part = self.matching_notifications(&asked).await?;
            ids.extend(part.items);
            if ids.len() > RESENT_MAX as usize {
                return Ok(None);
            }
            match part.next {
                Some((_, id)) => asked.before = Some(id),
                None => return Ok(Some(ids)),
            }
        }
        Ok(None)
    }
}

/// Makes the retries of these due that are still to come, which is no transition: a claim of one goes first or comes after.
async fn try_at_once(
    connection: &mut PgConnection,
    ids: &[Uuid],
    at: DateTime<Utc>,
) -> Result<Vec<Uuid>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let tried = sqlx::query_scalar!(
        r#"
        UPDATE notifications SET next_attempt_at = $2, slot_at = NULL, updated_at = $2
        WHERE id = ANY ($1) AND status = 'RETRY' AND next_attempt_at > $2
        RETURNING id
        "#,
        ids,
        at,
    )
    .fetch_all(connection)
    .await?;
    Ok(tried)
}

/// What is to be told of candidates, and which of them are made due: those that have ended, and of those that are named the ones that wait for a
/// retry, where `is_sent` says so.
fn count(
    candidates: &[Candidate],
    which: &ToResend,
    is_sent: impl Fn(&Uuid) -> bool,
) -> (ResendCount, ToMakeDue) {
    let mut counted = ResendCount::default();
    let mut due = ToMakeDue::default();
    let are_named = matches!(which, ToResend::Ids(_));
    for candidate in candidates {
        let is_retry = are_named && candidate.waits_for_retry;
        if candidate.is_cancelled() {
            counted.cancelled += 1;
        } else if (candidate.status.is_terminal() || is_retry) && is_sent(&candidate.id) {
            *counted.by_status.entry(candidate.status.as_str()).or_default() += 1;
            *counted
                .by_event_type
                .entry(candidate.event_type.clone())
                .or_default() += 1;
            let due = if is_retry {
                &mut due.retries
            } else {
                &mut due.ended
            };
            due.push(candidate.id);
        } else {
            counted.unfinished += 1;
        }
    }
    if let ToResend::Ids(named) = which {
        counted.unknown = named.len().saturating_sub(candidates.len()) as u64;
    }
    (counted, due)
}
