//! Events for those on call: of a reseller, of a type, with a value in their data; those above all that became no notification, which no list
//! of notifications has.
//!
//! What an event says is compared and never shown. No index knows it, so a bounded number of events is looked at for one part.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::event_view::bounds;
use super::search::spellings;
use super::{DueCursor, first_id_at};
use crate::examined::{Examined, Looked};
use crate::read::Count;
use crate::{Error, Store};

/// Most events that are looked at for one part.
const EXAMINED_MAX: u32 = 50_000;
/// Most events of different resellers that are found by one name.
const NAMED_MAX: i64 = 20;

/// Which events. What is missing restricts nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventSearch {
    /// Of this reseller.
    pub reseller: Option<String>,
    /// Of this type.
    pub event_type: Option<String>,
    /// Whose data has this text as a whole value or as the name of a field, or whose caller called it so, A to Z in either case.
    pub value: Option<String>,
    /// Only those that matched no subscription when they were accepted.
    pub unmatched: bool,
    /// Accepted from here on.
    pub since: Option<DateTime<Utc>>,
    /// Accepted before this.
    pub until: Option<DateTime<Utc>>,
}

impl EventSearch {
    /// How many events are looked at for a part of `limit`.
    fn depth(&self, limit: u32) -> u32 {
        if self.event_type.is_none() && self.value.is_none() && !self.unmatched {
            limit + 1
        } else {
            EXAMINED_MAX.max(limit + 1)
        }
    }
}

/// An event in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFound {
    /// Its identifier.
    pub id: Uuid,
    /// What receivers know it by.
    pub event_id: String,
    /// Whose event it is.
    pub reseller: String,
    /// Its type.
    pub event_type: String,
    /// When it happened.
    pub occurred_at: DateTime<Utc>,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// How many notifications it became.
    pub notifications: u64,
    /// How many of those were delivered.
    pub delivered: u64,
    /// How many of those failed or were given up.
    pub failed: u64,
}

/// Looks at events along one index, which `$lead` alone decides on; its parameters of its own are those from `$5` on.
macro_rules! look {
    ($store:expr, $search:expr, $depth:expr, $lead:literal $(, $value:expr)*) => {{
        let spelled = $search.value.as_deref().map(spellings);
        sqlx::query_as!(
            Looked,
            "SELECT l.id AS \"id!\", l.created_at AS \"at!\",
                    (($1::text IS NULL OR l.type = $1) AND (NOT $2::boolean OR l.missed)
                     AND CASE WHEN $3::text[] IS NULL THEN true
                         ELSE EXISTS (SELECT FROM UNNEST($3) AS v(spelling) WHERE strpos(lower(l.body COLLATE \"C\"), v.spelling) > 0) END
                    ) IS TRUE AS \"matches!\"
             FROM (SELECT e.id, e.created_at, e.type, e.missed IS NOT NULL AS missed, e.body FROM events e
                   WHERE " + $lead + " ORDER BY e.id DESC LIMIT $4) AS l
             ORDER BY l.id DESC",
            $search.event_type,
            $search.unmatched,
            spelled.as_deref(),
            $depth
            $(, $value)*
        )
        .fetch_all(&$store.pool)
        .await
    }};
}

impl Store {
    /// Events that match, after `after`, the newest first.
    pub async fn search_events(
        &self,
        search: &EventSearch,
        after: Option<DueCursor>,
        limit: u32,
    ) -> Result<Examined<EventFound>, Error> {
        let depth = search.depth(limit);
        let first = first_id_at(search.since.unwrap_or(DateTime::UNIX_EPOCH));
        let end = first_id_at(search.until.unwrap_or(DateTime::<Utc>::MAX_UTC));
        let end = after.map_or(end, |(_, id)| id.min(end));
        let bound = i64::from(depth);
        let looked = match &search.reseller {
            Some(reseller) => look!(
                self,
                search,
                bound,
                "e.reseller_id = $7 AND e.reseller_id <> '' AND e.id > $5 AND e.id < $6",
                first,
                end,
                reseller
            ),
            None => look!(self, search, bound, "e.id > $5 AND e.id < $6", first, end),
        }?;
        let stretch = Examined::stretch(&looked, depth, limit);
        Ok(Examined {
            items: self.found_events(&stretch.items).await?,
            examined: stretch.examined,
            next: stretch.next,
        })
    }

    /// The events that callers called `key`, each of another reseller; a few of them, when there are many.
    pub async fn events_named(&self, key: &str) -> Result<Vec<EventFound>, Error> {
        // No text of the database holds U+0000, so nothing is called like that.
        if key.contains('\0') {
            return Ok(Vec::new());
        }
        // From the keys of one reseller to those of the next, by their index: nothing leads to a key whose reseller is not known.
        let ids = sqlx::query_scalar!(
            r#"
            WITH RECURSIVE scopes AS (
                (SELECT scope FROM event_keys WHERE scope > 'reseller/' ORDER BY scope LIMIT 1)
                UNION ALL
                SELECT (SELECT k.scope FROM event_keys k WHERE k.scope > s.scope ORDER BY k.scope LIMIT 1)
                FROM scopes s WHERE s.scope IS NOT NULL)
            SELECT k.event AS "event!" FROM scopes s
            CROSS JOIN LATERAL (SELECT event FROM event_keys WHERE scope = s.scope AND key = $1) AS k
            WHERE starts_with(s.scope, 'reseller/')
            LIMIT $2
            "#,
            key,
            NAMED_MAX,
        )
        .fetch_all(&self.pool)
        .await?;
        self.found_events(&ids).await
    }

    /// These events, in this order.
    async fn found_events(&self, ids: &[Uuid]) -> Result<Vec<EventFound>, Error> {
        let (firsts, lasts): (Vec<Uuid>, Vec<Uuid>) = ids.iter().copied().map(bounds).unzip();
        Ok(sqlx::query_as!(
            EventFound,
            r#"
            SELECT e.id, e.event_id, e.reseller_id AS reseller, e.type AS event_type, e.occurred_at, e.created_at,
                   n.notifications AS "notifications!: Count", n.delivered AS "delivered!: Count", n.failed AS "failed!: Count"
            FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[]) WITH ORDINALITY AS i(id, first, last, place)
            JOIN events e ON e.id = i.id
            CROSS JOIN LATERAL (
                SELECT count(*) AS notifications, count(*) FILTER (WHERE status = 'SENT') AS delivered,
                       count(*) FILTER (WHERE status IN ('FAILED', 'GIVEN_UP')) AS failed
                FROM notifications
                WHERE id BETWEEN i.first AND i.last AND event = i.id) AS n
            ORDER BY i.place
            "#,
            ids,
            &firsts,
            &lasts,
        )
        .fetch_all(&self.pool)
        .await?)
    }
}
