//! Notifications for those on call: of a reseller, of a subscription, of an event.
//!
//! What the indexes do not know of a filter is asked of the notifications that they lead to, a bounded number for one part. A part may
//! therefore be short, or empty, although there is another one. What an event says is compared and never shown.

use std::ops::RangeInclusive;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::notification::{NotificationId, NotificationStatus};
use domain::reason::NotificationReason;
use uuid::Uuid;

use super::event_view::bounds;
use super::line::Listed;
use super::{DueCursor, first_id_at};
use crate::examined::{Examined, Looked};
use crate::read::{Count, Name, Nullable};
use crate::resolution::RECOVERED_BY;
use crate::{Error, Store, interval};

/// Most notifications that are looked at for one part.
const EXAMINED_MAX: u32 = 10_000;
/// Rows that one statement reads of all subscriptions together, each of which may have those that come first.
const READ_AT_ONCE: u32 = 20_000;
/// The same of all statements of one part.
const READ_MAX: u32 = 200_000;
/// Fewest that are looked at with one statement, however many subscriptions there are.
const STEP_MIN: u32 = 201;

/// Whose notifications are searched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NotificationsOf {
    /// Those of all resellers.
    #[default]
    All,
    /// Those of all subscriptions of a reseller.
    Reseller(String),
    /// Those of a subscription.
    Subscription(Uuid),
    /// Those of these subscriptions.
    Subscriptions(Vec<Uuid>),
}

/// Which notifications; all by default. What is missing restricts nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotificationSearch {
    /// Whose.
    pub of: NotificationsOf,
    /// In one of these statuses; in any when there is none.
    pub statuses: Vec<NotificationStatus>,
    /// With one of these reasons stored, such as that it was cancelled; with any or none when there is none. No index knows it.
    pub reasons: Vec<NotificationReason>,
    /// Of this event type.
    pub event_type: Option<String>,
    /// Of events whose data has this text as a whole value or as the name of a field, such as the name of a domain, A to Z in either case.
    pub value: Option<String>,
    /// The status codes one of which is that of the last answer.
    pub code: Option<RangeInclusive<u16>>,
    /// How the last attempt failed, one of [`domain::notification::ERROR_TYPES`].
    pub error: Option<&'static str>,
    /// Of events from here on.
    pub since: Option<DateTime<Utc>>,
    /// Of events before this.
    pub until: Option<DateTime<Utc>>,
    /// Ended at this time or later. No index knows it: it is asked of what the others lead to.
    pub ended_since: Option<DateTime<Utc>>,
    /// Ended before this time.
    pub ended_until: Option<DateTime<Utc>>,
    /// Ended more than so long after it was accepted, or after a person last had it sent again. No index knows it either.
    pub late_by: Option<Duration>,
}

impl NotificationSearch {
    /// Whether those of the newest event come first: not where what waits comes in the order in which it is due.
    pub fn is_newest_first(&self) -> bool {
        matches!(Lead::of(self), Lead::Newest | Lead::NewestOfAll)
    }
}

/// A notification with whose it is and what its endpoint answered last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationFound {
    /// Its identifier.
    pub id: NotificationId,
    /// The event that it tells of.
    pub event: Uuid,
    /// What receivers know the event by; none of an event that is forgotten.
    pub event_id: Option<String>,
    /// The event's type.
    pub event_type: String,
    /// Whose it is.
    pub reseller: String,
    /// To whom it goes.
    pub subscription: Uuid,
    /// Where to, as the subscription has it now.
    pub url: String,
    /// Where it stands.
    pub status: NotificationStatus,
    /// Why it waits or has ended.
    pub reason: Option<NotificationReason>,
    /// Whether an engine has claimed it.
    pub claimed: bool,
    /// Attempts so far.
    pub attempts: u32,
    /// When it is due, for `RETRY`, or when its turn comes, for `SCHEDULED`.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// When its event was accepted.
    pub accepted_at: DateTime<Utc>,
    /// When a person last had it sent again, or had it made by a replay. What was sent again by itself after an outage does not count, nor a
    /// resend that was cancelled.
    pub resent_at: Option<DateTime<Utc>>,
    /// When its status last changed.
    pub updated_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// The status code of the last answer.
    pub response_status: Option<u16>,
    /// What kind of failure the last attempt was, if it failed.
    pub error_type: Option<String>,
    /// The last failure in words, if the last attempt failed.
    pub error: Option<String>,
}

/// The index that leads through the notifications of each subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lead {
    Pending,
    Scheduled,
    Retry,
    /// All indexes of what waits, each from its head.
    Oldest,
    Newest,
    /// Through those of all subscriptions.
    ScheduledOfAll,
    NewestOfAll,
}

impl Lead {
    /// The indexes of what waits are sorted by times of different meaning, so that no list goes along two of them. One of several statuses
    /// that all wait sorts what is at their heads by age; one with statuses that have ended goes through all notifications, the newest first.
    fn of(search: &NotificationSearch) -> Self {
        match (search.statuses.as_slice(), &search.of) {
            ([NotificationStatus::Pending], _) => Self::Pending,
            ([NotificationStatus::Retry], _) => Self::Retry,
            ([NotificationStatus::Scheduled], NotificationsOf::All) => Self::ScheduledOfAll,
            ([NotificationStatus::Scheduled], _) => Self::Scheduled,
            (several @ [_, _, ..], _) if several.iter().all(|status| !status.is_terminal()) => Self::Oldest,
            (_, NotificationsOf::All) => Self::NewestOfAll,
            _ => Self::Newest,
        }
    }

    /// How many notifications of so many subscriptions are looked at for a part of `limit`, and how many of them with one statement.
    fn depth(self, search: &NotificationSearch, subscriptions: usize, limit: u32) -> (u32, u32) {
        let wanted = limit + 1;
        if self.covers(search) {
            return (wanted, wanted);
        }
        let many = number(subscriptions);
        let step = share(many);
        let steps = match self {
            // Each reads the heads of its indexes again.
            Self::Oldest => 1,
            _ => READ_MAX / (step * many.min(step)),
        };
        let most = EXAMINED_MAX.min(step * steps);
        (most.max(wanted), step.max(wanted))
    }

    /// Whether it knows all of a search, so that no notification is looked at in vain.
    fn covers(self, search: &NotificationSearch) -> bool {
        let has_times = search.since.is_some() || search.until.is_some();
        let is_newest = matches!(self, Self::Newest | Self::NewestOfAll);
        let is_all_that_waits = NotificationStatus::WAITING
            .iter()
            .all(|status| search.statuses.contains(status));
        (search.statuses.is_empty() || !is_newest)
            && (self != Self::Oldest || is_all_that_waits)
            && search.reasons.is_empty()
            && (self == Self::Pending || is_newest || !has_times)
            && search.event_type.is_none()
            && search.value.is_none()
            && search.code.is_none()
            && search.error.is_none()
            && search.ended_since.is_none()
            && search.ended_until.is_none()
            && search.late_by.is_none()
    }
}

/// Among how many subscriptions is shared what is read. There are none where an index leads through those of all.
fn number(subscriptions: usize) -> u32 {
    u32::try_from(subscriptions).unwrap_or(u32::MAX).max(1)
}

/// How many notifications of each of so many subscriptions are looked at with one statement.
fn share(many: u32) -> u32 {
    (READ_AT_ONCE / many).clamp(STEP_MIN, EXAMINED_MAX)
}

/// How many of what is tried again, and how many of what is in line, are read of each of so many subscriptions. Unlike elsewhere all of them are
/// read, since none is known to have the oldest.
fn heads(many: u32) -> u32 {
    share(many).min(READ_MAX / 2 / many).max(1)
}

/// Reads what a search looks at. `$source` is the pieces of a list of notifications in the order of `$order`, at most `$7` of them, whose
/// two parameters of its own are `$8` and `$9`; `$1` is the subscriptions. The rest of a search is asked of each of them, and is no condition
/// of the list: with `= ANY` of several statuses there, the planner could read all of each by its partial index and sort them.
///
/// What a person had sent again is late from then on, so that a resend of days later is not; what was sent again by itself after an outage is
/// late from its beginning. A resend that was cancelled left the end of before.
macro_rules! look {
    ($store:expr, $of:expr, $search:expr, $depth:expr, [$($source:literal),*], $order:literal $(, $value:expr)*) => {{
        let spelled = $search.value.as_deref().map(spellings);
        let statuses: Vec<&str> = $search.statuses.iter().map(|status| status.as_str()).collect();
        let reasons: Vec<&str> = $search.reasons.iter().map(NotificationReason::as_str).collect();
        sqlx::query_as!(
            Looked,
            "SELECT l.id AS \"id!\", l.at AS \"at!\",
                    ((cardinality($2::text[]) = 0 OR l.status = ANY ($2)) AND ($3::text IS NULL OR l.event_type = $3)
                     AND ($4::uuid IS NULL OR l.id >= $4) AND ($5::uuid IS NULL OR l.id < $5)
                     AND ($12::timestamptz IS NULL OR l.finished_at >= $12)
                     AND ($13::timestamptz IS NULL OR l.finished_at < $13)
                     AND ($16::interval IS NULL OR l.finished_at - l.created_at > $16
                          AND (l.resent_at IS NULL OR l.finished_at < l.resent_at OR l.finished_at - l.resent_at > $16
                               OR (SELECT d.resolved_by = $17 FROM dead_letters d
                                   WHERE d.notification_id = l.id AND d.resolved_at = l.resent_at LIMIT 1)))
                     AND (cardinality($14::text[]) = 0 OR l.reason = ANY ($14))
                     AND CASE WHEN $10::integer IS NULL AND $11::text IS NULL THEN true
                         ELSE EXISTS (
                             SELECT FROM (SELECT response_status, error_type FROM delivery_attempts
                                          WHERE notification_id = l.id AND status <> 'IN_PROCESS'
                                          ORDER BY number DESC LIMIT 1) AS a
                             WHERE ($10 IS NULL OR a.response_status BETWEEN $10 AND $15::integer) AND ($11 IS NULL OR a.error_type = $11)) END
                     AND CASE WHEN $6::text[] IS NULL THEN true
                         ELSE EXISTS (SELECT FROM events e CROSS JOIN UNNEST($6) AS v(spelling)
                                      WHERE e.id = l.event AND strpos(lower(e.body COLLATE \"C\"), v.spelling) > 0) END
                    ) IS TRUE AS \"matches!\"
             FROM (" + $($source +)* ") AS l ORDER BY " + $order,
            $of,
            &statuses as &[&str],
            $search.event_type,
            $search.since.map(first_id_at),
            $search.until.map(first_id_at),
            spelled.as_deref(),
            $depth
            $(, $value)*,
            $search.code.as_ref().map(|codes| i32::from(*codes.start())),
            $search.error,
            $search.ended_since,
            $search.ended_until,
            &reasons as &[&str],
            $search.code.as_ref().map(|codes| i32::from(*codes.end())),
            $search.late_by.map(interval),
            RECOVERED_BY
        )
        .fetch_all(&$store.pool)
        .await
    }};
}

/// Along an index that knows each subscription: of as many as are wanted, those whose first one comes first, since no other has any that
/// comes before theirs. `$at` is the time that the list is sorted by, `$lead` what the index knows.
macro_rules! look_at_each {
    ($store:expr, $of:expr, $search:expr, $depth:expr, $at:literal, $lead:literal, $order:literal $(, $value:expr)*) => {
        look!(
            $store, $of, $search, $depth,
            ["SELECT n.* FROM (
                  SELECT h.subscription FROM UNNEST($1::uuid[]) AS s(subscription) CROSS JOIN LATERAL (
                      SELECT n.id, s.subscription, ", $at, " AS at FROM notifications n
                      WHERE n.subscription_id = s.subscription AND ", $lead, " LIMIT 1) AS h
                  ORDER BY ", $order, " LIMIT $7) AS s CROSS JOIN LATERAL (
                  SELECT n.id, n.event, n.status, n.reason, n.event_type, n.created_at, n.finished_at, n.resent_at, ", $at, " AS at FROM notifications n
                  WHERE n.subscription_id = s.subscription AND ", $lead, " LIMIT $7) AS n
              ORDER BY ", $order, " LIMIT $7"],
            $order $(, $value)*
        )
    };
}

/// Along an index over all subscriptions.
macro_rules! look_at_all {
    ($store:expr, $of:expr, $search:expr, $depth:expr, $at:literal, $lead:literal, $order:literal $(, $value:expr)*) => {
        look!(
            $store, $of, $search, $depth,
            ["SELECT n.id, n.event, n.status, n.reason, n.event_type, n.created_at, n.finished_at, n.resent_at, ", $at, " AS at FROM notifications n
              WHERE $1::uuid[] = '{}' AND ", $lead, " LIMIT $7"],
            $order $(, $value)*
        )
    };
}

/// The ways in which JSON writes a text, each with A to Z in lower case, as what it is compared with is: names of domains have no case. As it
/// is, and in ASCII; what PostgreSQL cannot hold as JSON, such as U+0000, is escaped in both.
pub(super) fn spellings(value: &str) -> Vec<String> {
    let plain = serde_json::Value::from(value.to_ascii_lowercase()).to_string();
    let escape = |unit: &u16| format!("\\u{unit:04x}");
    let write = |letter: char| -> String {
        let mut units = [0; 2];
        match letter {
            ascii if ascii.is_ascii() => ascii.to_string(),
            other => other.encode_utf16(&mut units).iter().map(escape).collect(),
        }
    };
    let escaped: String = plain.chars().map(write).collect();
    let mut all = vec![escaped, plain];
    all.dedup();
    all
}

impl Store {
    /// Notifications that match, after `after`: of one status that waits those due longest first, of several that all wait those of the oldest
    /// event first, of others those of the newest.
    ///
    /// Of several that wait all that are PENDING are found, and of each subscription those that are due first of what is tried again or in line,
    /// 10,000 at most and fewer of many subscriptions: no index knows their age. Of what is in the queue it is those whose leases end first.
    pub async fn search_notifications(
        &self,
        search: &NotificationSearch,
        after: Option<DueCursor>,
        limit: u32,
    ) -> Result<Examined<NotificationFound>, Error> {
        let lead = Lead::of(search);
        let subscriptions = match lead {
            Lead::ScheduledOfAll | Lead::NewestOfAll => Vec::new(),
            _ => self.subscriptions_of(&search.of).await?,
        };
        let (most, step) = lead.depth(search, subscriptions.len(), limit);
        let (mut looked, mut depth, mut from): (Vec<Looked>, _, _) = (Vec::new(), 0, after);
        loop {
            let step = step.min(most - depth);
            let more = self
                .look_at_notifications((lead, &subscriptions), search, from, step)
                .await?;
            looked.extend(more);
            depth += step;
            let matching = looked.iter().filter(|one| one.matches).count();
            let is_cut = looked.len() >= depth as usize;
            if !is_cut || depth >= most || matching > limit as usize {
                break;
            }
            from = looked.last().map(Looked::place);
        }
        let stretch = Examined::stretch(&looked, depth, limit);
        Ok(Examined {
            items: self.found_notifications(&stretch.items).await?,
            examined: stretch.examined,
            next: stretch.next,
        })
    }

    async fn look_at_notifications(
        &self,
        (lead, of): (Lead, &[Uuid]),
        search: &NotificationSearch,
        after: Option<DueCursor>,
        depth: u32,
    ) -> Result<Vec<Looked>, Error> {
        let depth = i64::from(depth);
        let first = first_id_at(search.since.unwrap_or(DateTime::UNIX_EPOCH));
        let end = first_id_at(search.until.unwrap_or(DateTime::<Utc>::MAX_UTC));
        let (at, id) = after.unzip();
        let (at, waiting) = (at.unwrap_or(DateTime::UNIX_EPOCH), id.unwrap_or(Uuid::nil()));
        Ok(match lead {
            Lead::Pending => look_at_each!(
                self,
                of,
                search,
                depth,
                "n.created_at",
                "n.status = 'PENDING' AND n.id > $8 AND n.id < $9 ORDER BY n.id",
                "id",
                waiting.max(first),
                end
            ),
            Lead::Scheduled => look_at_each!(
                self,
                of,
                search,
                depth,
                "n.next_attempt_at",
                "n.status = 'SCHEDULED' AND (n.next_attempt_at, n.id) > ($8, $9) ORDER BY n.next_attempt_at, n.id",
                "at, id",
                at,
                waiting
            ),
            Lead::Retry => look_at_each!(
                self,
                of,
                search,
                depth,
                "n.next_attempt_at",
                "n.status = 'RETRY' AND (n.next_attempt_at, n.id) > ($8, $9) ORDER BY n.next_attempt_at, n.id",
                "at, id",
                at,
                waiting
            ),
            Lead::Oldest => {
                let after = waiting.max(first);
                self.look_at_the_oldest(of, search, after, depth).await
            }
            Lead::Newest => look_at_each!(
                self,
                of,
                search,
                depth,
                "n.created_at",
                "n.reseller_id <> '' AND n.id > $8 AND n.id < $9 ORDER BY n.id DESC",
                "id DESC",
                first,
                id.map_or(end, |id| id.min(end))
            ),
            Lead::ScheduledOfAll => look_at_all!(
                self,
                of,
                search,
                depth,
                "n.next_attempt_at",
                "n.status = 'SCHEDULED' AND (n.next_attempt_at, n.id) > ($8, $9)
                 ORDER BY n.next_attempt_at, n.id",
                "at, id",
                at,
                waiting
            ),
            Lead::NewestOfAll => look_at_all!(
                self,
                of,
                search,
                depth,
                "n.created_at",
                "n.id > $8 AND n.id < $9 ORDER BY n.id DESC",
                "id DESC",
                first,
                id.map_or(end, |id| id.min(end))
            ),
        }?)
    }

    /// Looks at the heads of the indexes of what waits, sorted by age. Of what is PENDING the index of a subscription knows that: of as many as
    /// are wanted, those whose first one comes first are read.
    async fn look_at_the_oldest(
        &self,
        of: &[Uuid],
        search: &NotificationSearch,
        after: Uuid,
        depth: i64,
    ) -> Result<Vec<Looked>, sqlx::Error> {
        look!(
            self,
            of,
            search,
            depth,
            ["SELECT w.* FROM (
                  (SELECT n.* FROM (
                       SELECT h.subscription FROM UNNEST($1::uuid[]) AS s(subscription) CROSS JOIN LATERAL (
                           SELECT n.id, s.subscription FROM notifications n
                           WHERE n.subscription_id = s.subscription AND n.status = 'PENDING' AND n.id > $8
                           ORDER BY n.id LIMIT 1) AS h
                       ORDER BY h.id LIMIT $7) AS s CROSS JOIN LATERAL (
                       SELECT n.id, n.event, n.status, n.reason, n.event_type, n.created_at, n.finished_at, n.resent_at, n.created_at AS at
                       FROM notifications n WHERE n.subscription_id = s.subscription AND n.status = 'PENDING' AND n.id > $8
                       ORDER BY n.id LIMIT $7) AS n
                   ORDER BY n.id LIMIT $7)
                  UNION ALL
                  (SELECT n.* FROM UNNEST($1::uuid[]) AS s(subscription) CROSS JOIN LATERAL (
                       SELECT n.id, n.event, n.status, n.reason, n.event_type, n.created_at, n.finished_at, n.resent_at, n.created_at AS at
                       FROM notifications n WHERE n.subscription_id = s.subscription AND n.status = 'RETRY'
                       ORDER BY n.next_attempt_at, n.id LIMIT $9) AS n)
                  UNION ALL
                  (SELECT n.* FROM UNNEST($1::uuid[]) AS s(subscription) CROSS JOIN LATERAL (
                       SELECT n.id, n.event, n.status, n.reason, n.event_type, n.created_at, n.finished_at, n.resent_at, n.created_at AS at
                       FROM notifications n WHERE n.subscription_id = s.subscription AND n.status = 'SCHEDULED'
                       ORDER BY n.next_attempt_at, n.id LIMIT $9) AS n)
                  UNION ALL
                  (SELECT n.id, n.event, n.status, n.reason, n.event_type, n.created_at, n.finished_at, n.resent_at, n.created_at AS at
                   FROM notifications n WHERE n.status = 'IN_MEMORY' AND n.subscription_id = ANY ($1)
                   ORDER BY n.leased_until LIMIT 10000)) AS w
              WHERE w.id > $8 AND ($5::uuid IS NULL OR w.id < $5) ORDER BY w.id LIMIT $7"],
            "id",
            after,
            i64::from(heads(number(of.len())))
        )
    }

    /// The notifications that an event became, in the order of their identifiers.
    pub async fn notifications_of_event(&self, event: Uuid) -> Result<Vec<NotificationFound>, Error> {
        let (first, last) = bounds(event);
        let ids = sqlx::query_scalar!(
            "SELECT id FROM notifications WHERE id BETWEEN $2 AND $3 AND event = $1 ORDER BY id",
            event,
            first,
            last,
        )
        .fetch_all(&self.pool)
        .await?;
        self.found_notifications(&ids).await
    }

    /// These notifications, in this order.
    async fn found_notifications(&self, ids: &[Uuid]) -> Result<Vec<NotificationFound>, Error> {
        let mut found = sqlx::query_as!(
            NotificationFound,
            r#"
            SELECT n.id, n.event, e.event_id AS "event_id?", n.event_type, n.reseller_id AS reseller,
                   n.subscription_id AS subscription, s.url, n.status AS "status: Name<_>",
                   n.reason AS "reason!: Nullable<Name<_>>", n.lease_token IS NOT NULL AS "claimed!", n.attempts AS "attempts: Count",
                   n.next_attempt_at, coalesce(e.created_at, n.created_at) AS "accepted_at!", n.updated_at, n.finished_at,
                   coalesce(CASE WHEN (n.finished_at < n.resent_at
                                       OR (SELECT d.resolved_by = $2 FROM dead_letters d
                                           WHERE d.notification_id = n.id AND d.resolved_at = n.resent_at LIMIT 1)) IS NOT TRUE
                                 THEN n.resent_at END,
                            CASE WHEN n.created_at > e.created_at THEN n.created_at END) AS resent_at,
                   a.response_status AS "response_status!: Nullable<Count>", a.error_type AS "error_type?", a.error AS "error?"
            FROM UNNEST($1::uuid[]) WITH ORDINALITY AS i(id, place)
            JOIN notifications n ON n.id = i.id
            JOIN subscriptions s ON s.id = n.subscription_id
            LEFT JOIN events e ON e.id = n.event
            LEFT JOIN LATERAL (
                SELECT response_status, error_type, error FROM delivery_attempts
                WHERE notification_id = n.id AND status <> 'IN_PROCESS' ORDER BY number DESC LIMIT 1) a ON true
            ORDER BY i.place
            "#,
            ids,
            RECOVERED_BY,
        )
        .fetch_all(&self.pool)
        .await?;
        let list = found.iter_mut().map(|row| Listed {
            subscription: row.subscription,
            id: row.id.uuid(),
            status: row.status,
            due: &mut row.next_attempt_at,
        });
        self.tell_turns(list.collect()).await?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_of_all_that_waits_is_bounded_however_many_subscriptions_there_are() {
        for many in [1, 2, 99, 100, 1_000, 10_000, 100_000] {
            assert!(2 * heads(many) * many <= READ_MAX, "{many}");
        }
        let few_and_many = [1, 100, 10_000, u32::MAX].map(heads);
        assert_eq!(few_and_many, [10_000, 201, 10, 1]);
    }
}
