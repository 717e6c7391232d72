//! Reads what the database says, directly and with statements of its own: nothing of `store` is believed.

use std::collections::HashMap;

use anyhow::Context as _;
use chrono::NaiveDate;
use sqlx::PgPool;
use uuid::Uuid;

use super::item::{Attempt, Ending, Item, Status};
use super::leftovers::Leftovers;

/// An event as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// Its identifier.
    pub id: Uuid,
    /// The caller's own.
    pub event_id: String,
    /// Its body is not what was handed in.
    pub altered: bool,
}

/// Everything.
#[derive(Debug, Default)]
pub struct Rows {
    /// All pushes.
    pub pushes: Vec<Item>,
    /// All notifications.
    pub notifications: Vec<Item>,
    /// All events.
    pub events: Vec<EventRow>,
}

impl Rows {
    pub(super) fn push_keys(&self) -> impl Iterator<Item = (&str, Uuid)> {
        self.pushes.iter().map(|item| (item.key.as_str(), item.id))
    }

    pub(super) fn event_keys(&self) -> impl Iterator<Item = (&str, Uuid)> {
        self.events
            .iter()
            .map(|event| (event.event_id.as_str(), event.id))
    }
}

#[derive(sqlx::FromRow)]
struct ItemRow {
    id: Uuid,
    key: String,
    status: String,
    reason: Option<String>,
    attempts: i32,
    before: i32,
    charged_on: Option<NaiveDate>,
    open_dead_letters: i64,
}

#[derive(sqlx::FromRow)]
struct AttemptRow {
    item: Uuid,
    number: i32,
    status: String,
    kind: Option<String>,
    code: Option<i64>,
    lost: bool,
}

const PUSHES: &str = "
    SELECT p.id, p.push_key AS key, p.status, p.reason, p.attempts, p.replayed_after AS before,
           NULL::date AS charged_on,
           (SELECT count(*) FROM dead_letters d WHERE d.push_id = p.id AND d.state = 'OPEN'
              AND d.reason IN ('FAILED', 'GIVEN_UP')) AS open_dead_letters
    FROM push_notifications p ORDER BY p.id";

const PUSH_ATTEMPTS: &str = "
    SELECT push_notification_id AS item, number, status, error_type AS kind, swrve_error_code AS code,
           coalesce(other_error_stack_trace LIKE 'the lease ran out%', false) AS lost
    FROM send_attempts ORDER BY push_notification_id, number";

const NOTIFICATIONS: &str = "
    SELECT n.id, n.subscription_id::text || '/' || e.event_id AS key, n.status, n.reason, n.attempts,
           n.resent_after AS before, n.charged_on,
           (SELECT count(*) FROM dead_letters d WHERE d.notification_id = n.id AND d.state = 'OPEN'
              AND d.reason IN ('FAILED', 'GIVEN_UP')) AS open_dead_letters
    FROM notifications n JOIN events e ON e.id = n.event ORDER BY n.id";

const NOTIFICATION_ATTEMPTS: &str = "
    SELECT notification_id AS item, number, status, error_type AS kind, response_status::bigint AS code,
           coalesce(fingerprint = 'delivery/lease-lost', false) AS lost
    FROM delivery_attempts ORDER BY notification_id, number";

/// All pushes.
pub async fn pushes(pool: &PgPool) -> anyhow::Result<Vec<Item>> {
    items(pool, "the pushes", PUSHES, PUSH_ATTEMPTS, str::to_owned).await
}

/// All notifications; `paths` names the endpoint of each subscription.
pub async fn notifications(pool: &PgPool, paths: &HashMap<Uuid, String>) -> anyhow::Result<Vec<Item>> {
    let key = |key: &str| {
        let (subscription, event) = key.split_once('/').unwrap_or((key, ""));
        let path = subscription.parse().ok().and_then(|id| paths.get(&id));
        format!("{}/{event}", path.map_or(subscription, String::as_str))
    };
    items(
        pool,
        "the notifications",
        NOTIFICATIONS,
        NOTIFICATION_ATTEMPTS,
        key,
    )
    .await
}

/// All events; `expected` makes the body that the event of an identifier must have.
pub async fn event_rows(
    pool: &PgPool,
    expected: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Vec<EventRow>> {
    let rows: Vec<(Uuid, String, String)> =
        all(pool, "the events", "SELECT id, event_id, body FROM events").await?;
    let row = |(id, event_id, body): (Uuid, String, String)| EventRow {
        id,
        altered: expected(&event_id).is_none_or(|expected| expected != body),
        event_id,
    };
    Ok(rows.into_iter().map(row).collect())
}

/// What is left, save for queues and processes, of which the database knows nothing.
pub async fn leftovers(pool: &PgPool) -> anyhow::Result<Leftovers> {
    let mut leftovers = Leftovers::default();
    for (what, query) in NOTHING_LEFT {
        let count = sqlx::query_scalar(query).fetch_one(pool).await;
        let count = count.with_context(|| format!("failed to read {what}"))?;
        leftovers.counts.push((what, count));
    }
    leftovers.tallies = all(pool, "the tallies", TALLIES).await?;
    Ok(leftovers)
}

/// What there must be none of.
const NOTHING_LEFT: [(&str, &str); 8] = [
    ("pauses in force", "SELECT count(*) FROM pauses"),
    (
        "unfinished jobs",
        "SELECT count(*) FROM dead_letter_jobs WHERE finished_at IS NULL",
    ),
    (
        "running replays",
        "SELECT count(*) FROM replays WHERE finished_at IS NULL",
    ),
    (
        "leases of pushes that ran out",
        "SELECT count(*) FROM push_notifications WHERE leased_until < now()",
    ),
    (
        "leases of notifications that ran out",
        "SELECT count(*) FROM notifications WHERE leased_until < now()",
    ),
    (
        "idempotency keys without their push, and pushes without their key",
        "SELECT count(*) FROM idempotency_keys k FULL JOIN push_notifications p ON p.id = k.push_id
         WHERE k.push_id IS NULL OR p.id IS NULL",
    ),
    (
        "event keys without their event, and events without their key",
        "SELECT count(*) FROM event_keys k FULL JOIN events e ON e.id = k.event
         WHERE k.event IS NULL OR e.id IS NULL",
    ),
    (
        "notifications without their event",
        "SELECT count(*) FROM notifications n WHERE NOT EXISTS (SELECT FROM events e WHERE e.id = n.event)",
    ),
];

const TALLIES: &str = "
    SELECT coalesce(d.kind, t.kind), coalesce(d.letters, 0), coalesce(t.letters, 0)
    FROM (SELECT state || ' ' || lane || ' ' || reason || ' ' || fingerprint AS kind, count(*) AS letters
          FROM dead_letters GROUP BY 1) d
    FULL JOIN (SELECT state || ' ' || lane || ' ' || reason || ' ' || fingerprint AS kind, sum(letters)::bigint AS letters
               FROM dead_letter_tallies GROUP BY 1) t ON t.kind = d.kind";

async fn items(
    pool: &PgPool,
    what: &'static str,
    items: &'static str,
    attempts: &'static str,
    key: impl Fn(&str) -> String,
) -> anyhow::Result<Vec<Item>> {
    let rows: Vec<ItemRow> = all(pool, what, items).await?;
    let mut recorded: HashMap<Uuid, Vec<Attempt>> = HashMap::new();
    for row in all::<AttemptRow>(pool, what, attempts).await? {
        recorded.entry(row.item).or_default().push(Attempt {
            number: row.number,
            ending: ending(&row),
        });
    }
    let item = |row: ItemRow| Item {
        key: key(&row.key),
        status: status(&row),
        recorded: recorded.remove(&row.id).unwrap_or_default(),
        id: row.id,
        said: row
            .reason
            .map_or(row.status.clone(), |reason| format!("{} ({reason})", row.status)),
        attempts: row.attempts,
        before: row.before,
        open_dead_letters: row.open_dead_letters,
        charged_on: row.charged_on,
    };
    Ok(rows.into_iter().map(item).collect())
}

async fn all<T>(pool: &PgPool, what: &'static str, query: &'static str) -> anyhow::Result<Vec<T>>
where
    T: Send + Unpin + for<'row> sqlx::FromRow<'row, sqlx::postgres::PgRow>,
{
    let rows = sqlx::query_as(query).fetch_all(pool).await;
    rows.with_context(|| format!("failed to read {what}"))
}

fn status(row: &ItemRow) -> Status {
    match (row.status.as_str(), row.reason.as_deref()) {
        ("SENT", _) => Status::Sent,
        ("FAILED", _) => Status::Failed,
        ("GIVEN_UP", _) => Status::GivenUp,
        ("SCHEDULED", Some("QUOTA")) => Status::OverQuota,
        _ => Status::Underway,
    }
}

fn ending(row: &AttemptRow) -> Ending {
    match (row.status.as_str(), row.kind.as_deref(), row.code) {
        ("IN_PROCESS", ..) => Ending::Running,
        ("OK", ..) => Ending::Ok,
        _ if row.lost => Ending::Unknown { lost: true },
        (_, Some("MESSAGE_PROTOTYPE_KEY" | "EGRESS"), _) => Ending::NotSent,
        (_, _, Some(code)) => Ending::Answered(u16::try_from(code).unwrap_or(0)),
        (_, Some("OTHER"), None) => Ending::NotSent,
        _ => Ending::Unknown { lost: false },
    }
}
