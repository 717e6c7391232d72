//! Lists of pushes for those on call: of one device, of one prototype, of what waits.
//!
//! A filter decides which index leads; what that does not know is asked of the pushes that it leads to, a bounded number for one part. A part
//! may therefore be short, or empty, although there is another one. The device goes in and never comes out.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::push::{ErrorType, Platform, PushId, PushStatus};
use domain::reason::PushReason;
use uuid::Uuid;

use crate::examined::{Examined, Looked};
use crate::indexes::LateIndex;
use crate::read::{Count, Name, Nullable};
use crate::webhook::{DueCursor, first_id_at};
use crate::{Error, Store, interval};

/// Most pushes that are looked at for one part.
const EXAMINED_MAX: u32 = 10_000;
/// After every push.
const LAST: DateTime<Utc> =
    DateTime::from_timestamp(253_402_300_799, 0).expect("invariant: the end of the year 9999 is a time");

/// Which pushes. What is missing restricts nothing.
#[derive(Clone, Default)]
pub struct PushFilter {
    /// For this device: its push key.
    pub device: Option<String>,
    /// Of this message prototype.
    pub prototype: Option<String>,
    /// For devices of this platform.
    pub platform: Option<Platform>,
    /// In one of these statuses; in any when there is none.
    pub statuses: Vec<PushStatus>,
    /// Moved by hand for this reason.
    pub reason: Option<PushReason>,
    /// Accepted from here on.
    pub since: Option<DateTime<Utc>>,
    /// Accepted before this.
    pub until: Option<DateTime<Utc>>,
    /// Ended more than so long after it was accepted, or after its dead letter was last replayed. No index knows it.
    pub late_by: Option<Duration>,
    /// Ended from here on. No index knows it either.
    pub ended_since: Option<DateTime<Utc>>,
    /// Ended before this.
    pub ended_until: Option<DateTime<Utc>>,
}

impl PushFilter {
    /// Whether the newest come first: not where what waits comes in the order in which it is due.
    pub fn is_newest_first(&self) -> bool {
        matches!(Lead::of(self), Lead::Device | Lead::Newest)
    }
}

/// A push in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushRow {
    /// Its identifier.
    pub id: PushId,
    /// Where it stands.
    pub status: PushStatus,
    /// Whether a dispatcher has claimed it.
    pub claimed: bool,
    /// The device's platform.
    pub platform: Platform,
    /// Names the Swrve campaign.
    pub message_prototype_key: Option<String>,
    /// When it may be sent.
    pub cron_expression: Option<String>,
    /// Why an operator has moved it by hand.
    pub reason: Option<PushReason>,
    /// Attempts so far.
    pub attempts: u32,
    /// When it is due, for `SCHEDULED` and `RETRY`.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// When its dead letter was last replayed.
    pub replayed_at: Option<DateTime<Utc>>,
    /// When its status last changed.
    pub updated_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// Whose fault the last attempt's failure was.
    pub error_type: Option<ErrorType>,
    /// The HTTP status that it was answered with, where that is recorded.
    pub response_status: Option<u16>,
    /// Of that failure Swrve's own code, else the HTTP status.
    pub error_code: Option<i64>,
    /// That failure in words.
    pub error: Option<String>,
}

/// The index that leads through a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lead {
    Device,
    Pending,
    Due,
    InMemory,
    /// All indexes of what waits, each from its head.
    Oldest,
    Newest,
}

impl Lead {
    /// The indexes of what waits are sorted by times of different meaning, so that no list goes along two of them. One of several statuses
    /// that all wait sorts what is at their heads by age; one with statuses that have ended goes through all pushes, the newest first.
    fn of(filter: &PushFilter) -> Self {
        match (&filter.device, filter.statuses.as_slice()) {
            (Some(_), _) => Self::Device,
            (None, [PushStatus::Pending]) => Self::Pending,
            (None, [PushStatus::Scheduled | PushStatus::Retry]) => Self::Due,
            (None, [PushStatus::InMemory]) => Self::InMemory,
            (None, several @ [_, _, ..]) if several.iter().all(|status| !status.is_terminal()) => {
                Self::Oldest
            }
            (None, _) => Self::Newest,
        }
    }

    /// Whether it knows all of a filter, so that no push is looked at in vain.
    fn covers(self, filter: &PushFilter) -> bool {
        let knows_times = matches!(self, Self::Pending | Self::Oldest | Self::Newest);
        let knows_status = match self {
            Self::Pending | Self::InMemory => true,
            Self::Oldest => PushStatus::WAITING
                .iter()
                .all(|status| filter.statuses.contains(status)),
            _ => filter.statuses.is_empty(),
        };
        let has_times = filter.since.is_some() || filter.until.is_some();
        knows_status
            && (knows_times || !has_times)
            && self != Self::Device
            && filter.prototype.is_none()
            && filter.platform.is_none()
            && filter.reason.is_none()
            && filter.late_by.is_none()
            && filter.ended_since.is_none()
            && filter.ended_until.is_none()
    }
}

/// Looks at pushes along one index, or along several whose heads `$from` puts together. `$at` is the time that they are sorted by; `$lead`
/// begins with what the index knows, and its parameters are `$9` and `$10`. What it does not know is `matches`, so that the planner has no
/// choice of an index: were `= ANY` of several statuses in the `WHERE`, it could read all of each by its partial index and sort them.
macro_rules! look {
    ($store:expr, $filter:expr, $depth:expr, $at:literal, $lead:literal $(, $value:expr)*) => {
        look!($store, $filter, $depth, $at, from "push_notifications p", $lead $(, $value)*)
    };
    ($store:expr, $filter:expr, $depth:expr, $at:literal, from $from:literal, $lead:literal $(, $value:expr)*) => {{
        let statuses: Vec<&str> = $filter.statuses.iter().map(|status| status.as_str()).collect();
        sqlx::query_as!(
            Looked,
            "SELECT p.id AS \"id!\", " + $at + " AS \"at!\",
                    (($1::text IS NULL OR p.push_key = $1) AND ($2::text IS NULL OR p.message_prototype_key = $2)
                     AND ($3::text IS NULL OR p.platform = $3) AND (cardinality($4::text[]) = 0 OR p.status = ANY ($4))
                     AND ($5::text IS NULL OR p.reason = $5) AND ($6::timestamptz IS NULL OR p.created_at >= $6)
                     AND ($7::timestamptz IS NULL OR p.created_at < $7)
                     AND ($11::interval IS NULL OR p.finished_at - p.created_at > $11
                          AND p.finished_at - coalesce((SELECT max(d.resolved_at) FROM dead_letters d
                                                        WHERE d.push_id = p.id AND d.state = 'REPLAYED'), p.created_at) > $11)
                     AND ($12::timestamptz IS NULL OR p.finished_at >= $12)
                     AND ($13::timestamptz IS NULL OR p.finished_at < $13)) IS TRUE AS \"matches!\"
             FROM " + $from + " WHERE " + $lead + " LIMIT $8",
            $filter.device,
            $filter.prototype,
            $filter.platform.map(Platform::as_str),
            &statuses as &[&str],
            $filter.reason.map(PushReason::as_str),
            $filter.since,
            $filter.until,
            $depth
            $(, $value)*,
            $filter.late_by.map(interval),
            $filter.ended_since,
            $filter.ended_until
        )
        .fetch_all(&$store.pool)
        .await
    }};
}

impl Store {
    /// Pushes that match a filter, after `after`: of one status that waits those due longest first, of several that all wait the oldest first, of
    /// others the newest first. `None` while the index that finds devices is still being made.
    ///
    /// Of several that wait all that are PENDING are found, and of the others those among the 10,000 that are due first and the 10,000 whose
    /// leases end first: no index knows their age.
    pub async fn list_pushes(
        &self,
        filter: &PushFilter,
        after: Option<DueCursor>,
        limit: u32,
    ) -> Result<Option<Examined<PushRow>>, Error> {
        let lead = Lead::of(filter);
        if lead == Lead::Device && !self.has_index(LateIndex::PushesByDevice).await? {
            return Ok(None);
        }
        let depth = if lead.covers(filter) {
            limit + 1
        } else {
            EXAMINED_MAX.max(limit + 1)
        };
        let looked = self.look_at_pushes(lead, filter, after, depth).await?;
        let stretch = Examined::stretch(&looked, depth, limit);
        Ok(Some(Examined {
            items: self.push_rows(&stretch.items).await?,
            examined: stretch.examined,
            next: stretch.next,
        }))
    }

    async fn look_at_pushes(
        &self,
        lead: Lead,
        filter: &PushFilter,
        after: Option<DueCursor>,
        depth: u32,
    ) -> Result<Vec<Looked>, Error> {
        let depth = i64::from(depth);
        let (first, end) = (
            first_id_at(filter.since.unwrap_or(DateTime::UNIX_EPOCH)),
            first_id_at(filter.until.unwrap_or(DateTime::<Utc>::MAX_UTC)),
        );
        let (at, id) = after.unzip();
        let earliest = (at.unwrap_or(DateTime::UNIX_EPOCH), id.unwrap_or(Uuid::nil()));
        Ok(match lead {
            Lead::Device => look!(
                self,
                filter,
                depth,
                "p.created_at",
                "hashtextextended(p.push_key, 0) = hashtextextended($1, 0)
                 AND (p.created_at, p.id) < ($9, $10) ORDER BY p.created_at DESC, p.id DESC",
                at.unwrap_or(LAST),
                id.unwrap_or(Uuid::max())
            ),
            Lead::Pending => look!(
                self,
                filter,
                depth,
                "p.created_at",
                "p.status = 'PENDING' AND p.id > $9 AND p.id < $10 ORDER BY p.id",
                id.map_or(first, |id| id.max(first)),
                end
            ),
            Lead::Due => look!(
                self,
                filter,
                depth,
                "p.next_attempt_at",
                "p.status IN ('SCHEDULED', 'RETRY') AND (p.next_attempt_at, p.id) > ($9, $10) ORDER BY p.next_attempt_at, p.id",
                earliest.0,
                earliest.1
            ),
            Lead::InMemory => look!(
                self,
                filter,
                depth,
                "p.leased_until",
                "p.status = 'IN_MEMORY' AND (p.leased_until, p.id) > ($9, $10) ORDER BY p.leased_until, p.id",
                earliest.0,
                earliest.1
            ),
            Lead::Oldest => look!(
                self,
                filter,
                depth,
                "p.created_at",
                from "((SELECT id, push_key, message_prototype_key, platform, status, reason, created_at, finished_at
                        FROM push_notifications WHERE status = 'PENDING' AND id > $9 ORDER BY id LIMIT $8)
                       UNION ALL
                       (SELECT id, push_key, message_prototype_key, platform, status, reason, created_at, finished_at
                        FROM push_notifications WHERE status IN ('SCHEDULED', 'RETRY') ORDER BY next_attempt_at, id LIMIT 10000)
                       UNION ALL
                       (SELECT id, push_key, message_prototype_key, platform, status, reason, created_at, finished_at
                        FROM push_notifications WHERE status = 'IN_MEMORY' ORDER BY leased_until LIMIT 10000)) AS p",
                "p.id > $9 AND p.id < $10 ORDER BY p.id",
                id.map_or(first, |id| id.max(first)),
                end
            ),
            Lead::Newest => look!(
                self,
                filter,
                depth,
                "p.created_at",
                "p.id > $9 AND p.id < $10 ORDER BY p.id DESC",
                first,
                id.map_or(end, |id| id.min(end))
            ),
        }?)
    }

    /// These pushes, in this order.
    async fn push_rows(&self, ids: &[Uuid]) -> Result<Vec<PushRow>, Error> {
        Ok(sqlx::query_as!(
            PushRow,
            r#"
            SELECT p.id, p.status AS "status: Name<_>", p.lease_token IS NOT NULL AS "claimed!", p.platform AS "platform: Name<_>",
                   p.message_prototype_key, p.cron_expression, p.reason AS "reason!: Nullable<Name<_>>",
                   p.attempts AS "attempts: Count", p.next_attempt_at, p.created_at, p.updated_at, p.finished_at,
                   (SELECT max(d.resolved_at) FROM dead_letters d
                    WHERE d.push_id = p.id AND d.state = 'REPLAYED') AS replayed_at,
                   a.error_type AS "error_type!: Nullable<Name<_>>", a.response_status AS "response_status!: Nullable<Count>",
                   a.swrve_error_code AS "error_code?",
                   coalesce(a.swrve_error_message, a.other_error_stack_trace) AS error
            FROM UNNEST($1::uuid[]) WITH ORDINALITY AS i(id, place)
            JOIN push_notifications p ON p.id = i.id
            LEFT JOIN LATERAL (
                SELECT error_type, response_status, swrve_error_code, swrve_error_message, other_error_stack_trace FROM send_attempts
                WHERE push_notification_id = p.id AND status <> 'IN_PROCESS' ORDER BY number DESC LIMIT 1) a ON true
            ORDER BY i.place
            "#,
            ids,
        )
        .fetch_all(&self.pool)
        .await?)
    }
}
