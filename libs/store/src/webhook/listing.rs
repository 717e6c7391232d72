//! Lists of a subscription's notifications, as its reseller sees them.
//!
//! An identifier begins with the time of its event, so that a list by time is a range of identifiers.

use chrono::{DateTime, NaiveDate, Utc};
use domain::notification::{NotificationId, NotificationStatus};
use domain::reason::NotificationReason;
use uuid::Uuid;

use super::line::Listed;
use crate::read::{Count, Name, Nullable};
use crate::{Error, Store};

/// Most notifications that are looked at for one page. A filter that matches hardly any would otherwise read the whole
/// week of a large subscription.
const EXAMINED_MAX: i64 = 10_000;

/// The first identifier of the instant `at`; those of earlier ones are smaller.
pub(crate) fn first_id_at(at: DateTime<Utc>) -> Uuid {
    // An identifier has 48 bits for its time. What lies beyond them, in the year 10889, is after every identifier.
    const LAST: u64 = (1 << 48) - 1;
    let millis = u64::try_from(at.timestamp_millis()).unwrap_or(0);
    Uuid::from_u128(u128::from(millis.min(LAST)) << 80)
}

/// Which notifications of a subscription are listed. An empty list of statuses or event types stands for all.
#[derive(Debug, Clone)]
pub struct NotificationFilter {
    /// Whose.
    pub subscription: Uuid,
    /// Their statuses.
    pub statuses: Vec<NotificationStatus>,
    /// Their event types.
    pub event_types: Vec<String>,
    /// Of events from here on.
    pub since: DateTime<Utc>,
    /// Of events before this.
    pub until: DateTime<Utc>,
    /// Only those before this one.
    pub before: Option<Uuid>,
    /// Greatest number.
    pub limit: u32,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, C> {
    /// What is in it.
    pub items: Vec<T>,
    /// Where the next part begins. There may be one although this part is not full, or is empty.
    pub next: Option<C>,
}

/// A notification in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationRow {
    /// Its identifier.
    pub id: NotificationId,
    /// What receivers know its event by.
    pub event_id: String,
    /// The type of its event.
    pub event_type: String,
    /// Where it stands.
    pub status: NotificationStatus,
    /// Whether an engine has claimed it.
    pub claimed: bool,
    /// Why it waits or has ended.
    pub reason: Option<NotificationReason>,
    /// Attempts so far.
    pub attempts: u32,
    /// When it is due, if it is SCHEDULED or RETRY.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// The size of its body.
    pub payload_bytes: u32,
    /// When its event was accepted.
    pub accepted_at: DateTime<Utc>,
    /// When its status last changed.
    pub updated_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
}

impl NotificationRow {
    /// As one of `subscription`, which the row does not name.
    pub(super) fn listed(&mut self, subscription: Uuid) -> Listed<'_> {
        Listed {
            subscription,
            id: self.id.uuid(),
            status: self.status,
            due: &mut self.next_attempt_at,
        }
    }
}

/// What of a line is listed. An empty list of reasons or event types stands for all.
#[derive(Debug, Clone, Default)]
pub struct LineFilter {
    /// Why it waits.
    pub reasons: Vec<NotificationReason>,
    /// Their event types.
    pub event_types: Vec<String>,
    /// The day on which their turns come, as [`Store::waiting_sums`] tells days apart.
    pub day: Option<NaiveDate>,
}

/// Where the next part of a list by due time begins.
pub type DueCursor = (DateTime<Utc>, Uuid);

/// Before all that is in line.
const IN_FRONT: DueCursor = (DateTime::UNIX_EPOCH, Uuid::nil());

/// Reads [`NotificationRow`]s: `$of` says from what, with the notification as `n` and its event, if it is there, as `e`, which ones, and in what
/// order; the arguments follow.
macro_rules! notification_rows {
    ($of:literal, $($arguments:tt)*) => {
        sqlx::query_as!(
            NotificationRow,
            r#"
            SELECT n.id, coalesce(e.event_id, '') AS "event_id!", n.event_type, n.status AS "status: Name<_>",
                   n.lease_token IS NOT NULL AS "claimed!",
                   n.reason AS "reason!: Nullable<Name<_>>", n.attempts AS "attempts: Count", n.next_attempt_at,
                   n.payload_bytes AS "payload_bytes: Count", coalesce(e.created_at, n.created_at) AS "accepted_at!",
                   n.updated_at, n.finished_at
            FROM "# + $of,
            $($arguments)*
        )
    };
}
pub(super) use notification_rows;

impl Store {
    /// Notifications of a subscription, the newest event first. Whose the subscription is, is for the caller to know.
    pub async fn list_notifications(
        &self,
        filter: &NotificationFilter,
    ) -> Result<Page<NotificationRow, Uuid>, Error> {
        let limit = i64::from(filter.limit);
        let filtered = !(filter.statuses.is_empty() && filter.event_types.is_empty());
        let examined_max = if filtered { EXAMINED_MAX.max(limit) } else { limit };
        let (first, end) = (first_id_at(filter.since), first_id_at(filter.until));
        let end = filter.before.map_or(end, |before| before.min(end));
        let last = self
            .last_examined(filter.subscription, (first, end), examined_max)
            .await?;
        let statuses: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
        let mut items = notification_rows!(
            r#"events e RIGHT JOIN notifications n ON e.id = n.event
            WHERE n.subscription_id = $1 AND n.reseller_id <> '' AND n.id >= $2 AND n.id < $3
              AND (cardinality($4::text[]) = 0 OR n.status = ANY ($4))
              AND (cardinality($5::text[]) = 0 OR n.event_type = ANY ($5))
            ORDER BY n.id DESC LIMIT $6
            "#,
            filter.subscription,
            last.unwrap_or(first),
            end,
            &statuses as &[&str],
            &filter.event_types,
            limit,
        )
        .fetch_all(&self.pool)
        .await?;
        let full = items.len() >= filter.limit as usize;
        let next = if full {
            items.last().map(|row| row.id.uuid())
        } else {
            last
        };
        let list = items.iter_mut().map(|row| row.listed(filter.subscription));
        self.tell_turns(list.collect()).await?;
        Ok(Page { items, next })
    }

    /// The notification up to which a page looks, when there may be more beyond it.
    async fn last_examined(
        &self,
        subscription: Uuid,
        (first, end): (Uuid, Uuid),
        examined_max: i64,
    ) -> Result<Option<Uuid>, Error> {
        Ok(sqlx::query_scalar!(
            r#"
            SELECT id FROM notifications WHERE subscription_id = $1 AND reseller_id <> '' AND id >= $2 AND id < $3
            ORDER BY id DESC OFFSET $4 LIMIT 1
            "#,
            subscription,
            first,
            end,
            examined_max - 1,
        )
        .fetch_optional(&self.pool)
        .await?)
    }

    /// What of a subscription is in line, soonest first, after a place in the list. A part that a filter has thinned out may be followed by
    /// others.
    pub async fn list_scheduled(
        &self,
        subscription: Uuid,
        filter: &LineFilter,
        after: Option<DueCursor>,
        limit: u32,
    ) -> Result<Page<NotificationRow, DueCursor>, Error> {
        let Some((front, end)) = self.part_of_line(subscription, filter.day).await? else {
            let (items, next) = (Vec::new(), None);
            return Ok(Page { items, next });
        };
        let (due, id) = after.map_or(front, |after| after.max(front));
        let filtered = !(filter.reasons.is_empty() && filter.event_types.is_empty());
        let rows = i64::from(limit);
        let examined_max = if filtered { EXAMINED_MAX.max(rows) } else { rows };
        let last = self.last_in_line(subscription, (due, id), examined_max).await?;
        // The list ends with the day, and may end sooner.
        let end = end.filter(|end| last.is_none_or(|last| *end <= last));
        let bound = end.or(last);
        let reasons: Vec<&str> = filter.reasons.iter().map(NotificationReason::as_str).collect();
        let mut items = notification_rows!(
            r#"events e RIGHT JOIN notifications n ON e.id = n.event
            WHERE n.subscription_id = $1 AND n.status = 'SCHEDULED'
              AND (n.next_attempt_at, n.id) > ($2, $3) AND ($7 OR (n.next_attempt_at, n.id) <= ($8, $9))
              AND (cardinality($5::text[]) = 0 OR n.reason = ANY ($5))
              AND (cardinality($6::text[]) = 0 OR n.event_type = ANY ($6))
            ORDER BY n.next_attempt_at, n.id LIMIT $4
            "#,
            subscription,
            due,
            id,
            rows,
            &reasons as &[&str],
            &filter.event_types,
            bound.is_none(),
            bound.map(|(at, _)| at),
            bound.map(|(_, id)| id),
        )
        .fetch_all(&self.pool)
        .await?;
        let full = items.len() >= limit as usize;
        let next = if full {
            items
                .last()
                .and_then(|row| Some((row.next_attempt_at?, row.id.uuid())))
        } else {
            bound
        };
        let next = next.filter(|next| end != Some(*next));
        let list = items.iter_mut().map(|row| row.listed(subscription));
        self.tell_turns(list.collect()).await?;
        Ok(Page { items, next })
    }

    /// The first of a subscription that are tried again, soonest first. Whose the subscription is, is for the caller to know.
    pub async fn list_retries(&self, subscription: Uuid, limit: u32) -> Result<Vec<NotificationRow>, Error> {
        Ok(notification_rows!(
            r#"events e RIGHT JOIN notifications n ON e.id = n.event
            WHERE n.subscription_id = $1 AND n.status = 'RETRY'
            ORDER BY n.next_attempt_at, n.id LIMIT $2
            "#,
            subscription,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// The part of a line whose turns come on a day, all of it without one: what it comes after, and its last one where others follow. None where
    /// it is empty.
    async fn part_of_line(
        &self,
        subscription: Uuid,
        day: Option<NaiveDate>,
    ) -> Result<Option<(DueCursor, Option<DueCursor>)>, Error> {
        let Some(day) = day else {
            return Ok(Some((IN_FRONT, None)));
        };
        let Some((first, following)) = self.places_of(subscription, day).await? else {
            return Ok(None);
        };
        let front = match first {
            0 => Some(IN_FRONT),
            ahead => self.last_in_line(subscription, IN_FRONT, ahead).await?,
        };
        let Some(front) = front else {
            return Ok(None);
        };
        let end = match following {
            Some(following) => self.last_in_line(subscription, front, following - first).await?,
            None => None,
        };
        Ok(Some((front, end)))
    }

    /// The place in line up to which a page looks, when there may be more beyond it.
    async fn last_in_line(
        &self,
        subscription: Uuid,
        (due, id): DueCursor,
        examined_max: i64,
    ) -> Result<Option<DueCursor>, Error> {
        let found = sqlx::query!(
            r#"
            SELECT next_attempt_at AS "at!", id FROM notifications
            WHERE subscription_id = $1 AND status = 'SCHEDULED' AND (next_attempt_at, id) > ($2, $3)
            ORDER BY next_attempt_at, id OFFSET $4 LIMIT 1
            "#,
            subscription,
            due,
            id,
            examined_max - 1,
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(found.map(|row| (row.at, row.id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_time_never_has_an_earlier_identifier() {
        let times = [
            "-262143-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00Z",
            "2026-11-21T12:00:00Z",
            "9999-12-31T23:59:59Z",
            "+10889-08-02T05:31:50.656Z",
            "+262142-12-31T23:59:59Z",
        ];
        let ids = times.map(|time| first_id_at(time.parse().unwrap()));
        assert!(ids.is_sorted(), "{ids:?}");
        assert!(ids[4] < ids[5]);
    }
}
