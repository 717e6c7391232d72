//! One list of the notifications of several subscriptions of a reseller. Whose they are, is for the caller to know.
//!
//! What the index does not know of a filter is asked of the notifications that it leads to, a bounded number for one part. A part may
//! therefore be short, or empty, although there is another one.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use chrono::{DateTime, Utc};
use domain::notification::NotificationStatus;
use uuid::Uuid;

use super::event_view::bounds;
use super::listing::notification_rows;
use super::search::spellings;
use super::{NotificationRow, first_id_at};
use crate::examined::{Examined, Looked};
use crate::indexes::LateIndex;
use crate::read::{Count, Name, Nullable};
use crate::{Error, Store};

/// Most notifications that are looked at for a part, of each subscription.
const EXAMINED_MAX: u32 = 2_000;
/// As many where what events say is compared, which is asked for to find few of many.
const EXAMINED_BY_VALUE: u32 = 10_000;
/// The same of all of them together, where they are many.
const EXAMINED_OF_ALL: u32 = 20_000;

/// Which notifications. An empty list restricts nothing, save that of subscriptions.
#[derive(Debug, Clone)]
pub struct NotificationsAsked {
    /// Whose.
    pub subscriptions: Vec<Uuid>,
    /// Their statuses.
    pub statuses: Vec<NotificationStatus>,
    /// Their event types.
    pub event_types: Vec<String>,
    /// The status codes one of which is that of the last answer.
    pub code: Option<RangeInclusive<u16>>,
    /// The kinds of failure of the last attempt.
    pub errors: Vec<&'static str>,
    /// Of events whose data has this text as a whole value or as the name of a field, such as the name of a domain, A to Z in either case.
    pub value: Option<String>,
    /// Of events from here on.
    pub since: DateTime<Utc>,
    /// Of events before this.
    pub until: DateTime<Utc>,
    /// Ended at this time or later. No index knows it: it is asked of what the others lead to.
    pub ended_since: Option<DateTime<Utc>>,
    /// Ended before this time.
    pub ended_until: Option<DateTime<Utc>>,
    /// Only those before this one.
    pub before: Option<Uuid>,
    /// Greatest number.
    pub limit: u32,
}

/// A notification with what its endpoint answered last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResellerNotification {
    /// As in the list of one subscription.
    pub row: NotificationRow,
    /// To whom it goes.
    pub subscription: Uuid,
    /// The last attempt that is over.
    pub last: Option<LastAnswer>,
}

/// What came of the last attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastAnswer {
    /// Where it went.
    pub url: String,
    /// How long it took, in milliseconds.
    pub millis: Option<i64>,
    /// The status code of the answer.
    pub response_status: Option<u16>,
    /// What kind of failure it was.
    pub error_type: Option<String>,
    /// The failure in words.
    pub error: Option<String>,
}

/// Looks along an index that knows each subscription, of which `$lead` is the condition.
macro_rules! look {
    ($store:expr, $asked:expr, $statuses:expr, $depth:expr, $lead:literal) => {{
        let spelled = $asked.value.as_deref().map(spellings);
        sqlx::query_as!(
            Looked,
            "SELECT l.id AS \"id!\", l.created_at AS \"at!\",
                    ((cardinality($4::text[]) = 0 OR l.status = ANY ($4))
                     AND (cardinality($5::text[]) = 0 OR l.event_type = ANY ($5))
                     AND ($11::timestamptz IS NULL OR l.finished_at >= $11)
                     AND ($12::timestamptz IS NULL OR l.finished_at < $12)
                     AND CASE WHEN $6::integer IS NULL AND cardinality($7::text[]) = 0 THEN true
                         ELSE EXISTS (
                             SELECT FROM (SELECT response_status, error_type FROM delivery_attempts
                                          WHERE notification_id = l.id AND status <> 'IN_PROCESS'
                                          ORDER BY number DESC LIMIT 1) AS a
                             WHERE ($6 IS NULL OR a.response_status BETWEEN $6 AND $10::integer)
                               AND (cardinality($7) = 0 OR a.error_type = ANY ($7))) END
                     AND CASE WHEN $9::text[] IS NULL THEN true
                         ELSE EXISTS (SELECT FROM events e CROSS JOIN UNNEST($9) AS v(spelling)
                                      WHERE e.id = l.event AND strpos(lower(e.body COLLATE \"C\"), v.spelling) > 0) END
                    ) IS TRUE AS \"matches!\"
             FROM (SELECT n.* FROM UNNEST($1::uuid[]) AS s(subscription) CROSS JOIN LATERAL (
                       SELECT n.id, n.event, n.status, n.event_type, n.created_at, n.finished_at FROM notifications n
                       WHERE n.subscription_id = s.subscription AND "
                + $lead
                + " AND n.id >= $2 AND n.id < $3
                       ORDER BY n.id DESC LIMIT $8) AS n
                   ORDER BY n.id DESC LIMIT $8) AS l
             ORDER BY l.id DESC",
            &$asked.subscriptions,
            first_id_at($asked.since),
            {
                let end = first_id_at($asked.until);
                $asked.before.map_or(end, |before| before.min(end))
            },
            $statuses as &[&str],
            &$asked.event_types,
            $asked.code.as_ref().map(|codes| i32::from(*codes.start())),
            &$asked.errors as &[&str],
            i64::from($depth),
            spelled.as_deref(),
            $asked.code.as_ref().map(|codes| i32::from(*codes.end())),
            $asked.ended_since,
            $asked.ended_until,
        )
        .fetch_all(&$store.pool)
        .await
    }};
}

impl NotificationsAsked {
    fn ended_badly(&self) -> bool {
        let badly = |status: &NotificationStatus| {
            matches!(status, NotificationStatus::Failed | NotificationStatus::GivenUp)
        };
        !self.statuses.is_empty() && self.statuses.iter().all(badly)
    }

    fn is_filtered(&self) -> bool {
        !(self.statuses.is_empty() && self.event_types.is_empty() && self.errors.is_empty())
            || self.code.is_some()
            || self.value.is_some()
            || self.ended_since.is_some()
            || self.ended_until.is_some()
    }

    /// How many notifications are looked at for one part.
    fn depth(&self) -> u32 {
        if !self.is_filtered() {
            return self.limit + 1;
        }
        let most = if self.value.is_some() {
            EXAMINED_BY_VALUE
        } else {
            EXAMINED_MAX
        };
        let many = u32::try_from(self.subscriptions.len()).unwrap_or(u32::MAX).max(1);
        (EXAMINED_OF_ALL / many).min(most).max(self.limit + 1)
    }
}

impl Store {
    /// Notifications of these subscriptions, the newest event first.
    pub async fn reseller_notifications(
        &self,
        asked: &NotificationsAsked,
    ) -> Result<Examined<ResellerNotification>, Error> {
        let found = self.matching_notifications(asked).await?;
        Ok(Examined {
            items: self.shown_notifications(&found.items).await?,
            examined: found.examined,
            next: found.next,
        })
    }

    /// The identifiers of those that match.
    pub(super) async fn matching_notifications(
        &self,
        asked: &NotificationsAsked,
    ) -> Result<Examined<Uuid>, Error> {
        let depth = asked.depth();
        let statuses: Vec<&str> = asked.statuses.iter().map(|status| status.as_str()).collect();
        let leads_to_bad = asked.ended_badly() && self.has_index(LateIndex::NotificationsEndedBadly).await?;
        let looked = if leads_to_bad {
            look!(
                self,
                asked,
                &statuses,
                depth,
                "n.status IN ('FAILED', 'GIVEN_UP')"
            )?
        } else {
            look!(self, asked, &statuses, depth, "n.reseller_id <> ''")?
        };
        Ok(Examined::stretch(&looked, depth, asked.limit))
    }

    /// What the event became for these subscriptions that its reseller knows by `event_id`: its own identifier, or ours.
    pub async fn notifications_of_event_id(
        &self,
        reseller: &str,
        event_id: &str,
        subscriptions: &[Uuid],
    ) -> Result<Vec<ResellerNotification>, Error> {
        let event = match self.event_of_key(reseller, event_id).await? {
            Some(event) => event,
            None => match event_id.parse() {
                Ok(event) => event,
                Err(_) => return Ok(Vec::new()),
            },
        };
        let (first, last) = bounds(event);
        let ids = sqlx::query_scalar!(
            r#"
            SELECT id FROM notifications
            WHERE id BETWEEN $2 AND $3 AND event = $1 AND reseller_id = $4 AND subscription_id = ANY ($5)
            ORDER BY id DESC
            "#,
            event,
            first,
            last,
            reseller,
            subscriptions,
        )
        .fetch_all(&self.pool)
        .await?;
        self.shown_notifications(&ids).await
    }

    /// These notifications, in this order.
    async fn shown_notifications(&self, ids: &[Uuid]) -> Result<Vec<ResellerNotification>, Error> {
        let mut rows = notification_rows!(
            r#"UNNEST($1::uuid[]) WITH ORDINALITY AS i(id, place)
            JOIN notifications n ON n.id = i.id
            LEFT JOIN events e ON e.id = n.event
            ORDER BY i.place
            "#,
            ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let facts = sqlx::query!(
            r#"
            SELECT n.id, n.subscription_id, a.url AS "url?", a.millis AS "millis?",
                   a.response_status AS "response_status!: Nullable<Count>", a.error_type AS "error_type?", a.error AS "error?"
            FROM notifications n
            LEFT JOIN LATERAL (
                SELECT url, millis, response_status, error_type, error FROM delivery_attempts
                WHERE notification_id = n.id AND status <> 'IN_PROCESS' ORDER BY number DESC LIMIT 1) a ON true
            WHERE n.id = ANY ($1)
            "#,
            ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut facts: HashMap<Uuid, _> = facts
            .into_iter()
            .map(|fact| {
                let last = fact.url.map(|url| LastAnswer {
                    url,
                    millis: fact.millis,
                    response_status: fact.response_status.into(),
                    error_type: fact.error_type,
                    error: fact.error,
                });
                (fact.id, (fact.subscription_id, last))
            })
            .collect();
        let list = rows.iter_mut().filter_map(|row| {
            let (subscription, _) = facts.get(&row.id.uuid())?;
            Some(row.listed(*subscription))
        });
        self.tell_turns(list.collect()).await?;
        Ok(rows
            .into_iter()
            .filter_map(|row| {
                let (subscription, last) = facts.remove(&row.id.uuid())?;
                Some(ResellerNotification {
                    row,
                    subscription,
                    last,
                })
            })
            .collect())
    }
}
