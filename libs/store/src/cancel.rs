//! Cancelling what has not been sent yet. That is final: no resend and no replay sends it. Its dead letter is discarded
//! from the beginning, with the operator's note, since there is nothing to mend: it is in the lists, and waits for no
//! operator. A notification that had been delivered and was to be sent again is no such case: it stays delivered.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use crate::{Act, Error, stored};

/// What came of cancelling a push or a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancellation<S> {
    /// It was in this status, and will not be sent.
    Done(S),
    /// It had been delivered and was to be sent again, in this status. It will not be, and stays delivered.
    StaysDelivered(S),
    /// It is being sent: the database cannot tell whether it still could be stopped.
    BeingSent,
    /// It was cancelled before.
    Before {
        /// When.
        at: DateTime<Utc>,
        /// By whom, as long as its dead letter is kept.
        by: Option<String>,
    },
    /// It has ended before, in another way.
    Ended(S),
    /// There is no such thing.
    Unknown,
}

/// How many were cancelled at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CancelledMany {
    /// All of them.
    pub cancelled: u64,
    /// Those of them that had been delivered, were to be sent again, and stay delivered.
    pub delivered: u64,
}

/// Most that are cancelled at once.
const CANCELLED_MAX: usize = 5_000;
/// Most parts of lists that are looked through for them, of 10,000 each.
const PARTS_MAX: usize = 20;
/// How long those are counted that are left after those that are cancelled at once. Of many subscriptions with a backlog a part can take a second,
/// and the one who cancels waits for it.
const COUNTING: Duration = Duration::from_secs(2);
/// How many of a list are asked for at once.
pub(crate) const PART: u32 = 1_000;

/// What waits and matches, as far as it is cancelled at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToCancel {
    /// Which they are.
    pub ids: Vec<Uuid>,
    /// How many, by status.
    pub by_status: BTreeMap<&'static str, u64>,
    /// When the first of them was accepted.
    pub oldest: Option<DateTime<Utc>>,
    /// When the last of them was accepted.
    pub newest: Option<DateTime<Utc>>,
    /// How many more were found that match after these; all of them unless not all were looked at.
    pub left: u64,
    /// Whether more may match than these.
    pub more: bool,
    /// Whether not all were looked at: then there may be more than `left`.
    pub at_least: bool,
    parts: usize,
    /// Since when there are as many as are cancelled at once.
    full_since: Option<Instant>,
}

impl ToCancel {
    pub(crate) fn add(&mut self, id: Uuid, status: &'static str, accepted_at: DateTime<Utc>) {
        if self.ids.len() >= CANCELLED_MAX {
            self.left += 1;
            self.more = true;
            return;
        }
        self.ids.push(id);
        *self.by_status.entry(status).or_default() += 1;
        self.oldest = Some(self.oldest.map_or(accepted_at, |oldest| oldest.min(accepted_at)));
        self.newest = self.newest.max(Some(accepted_at));
        if self.ids.len() >= CANCELLED_MAX {
            self.full_since = Some(Instant::now());
        }
    }

    /// Counts a part of a list that was looked through. Whether another one is looked at that goes on with it.
    pub(crate) fn goes_on(&mut self, has_next: bool) -> bool {
        self.parts += 1;
        let is_late = self.full_since.is_some_and(|since| since.elapsed() >= COUNTING);
        if has_next && (is_late || self.parts >= PARTS_MAX) {
            self.at_least = true;
            self.more = true;
        }
        has_next && !self.at_least
    }
}

/// What a statement that cancels one has found.
pub(crate) struct Found {
    /// Its status before.
    pub(crate) status: String,
    /// Whether it was being sent.
    pub(crate) claimed: bool,
    /// Whether it is cancelled now.
    pub(crate) cancelled: bool,
    /// Whether only sending it again is: it stays delivered.
    pub(crate) delivered: bool,
    /// When it was cancelled before, if it was.
    pub(crate) cancelled_at: Option<DateTime<Utc>>,
    /// By whom, as its dead letter says.
    pub(crate) cancelled_by: Option<String>,
}

/// Commits what a statement that cancels a `kind` has done, with its entry in the audit log.
pub(crate) async fn commit<S: FromStr>(
    mut transaction: Transaction<'_, Postgres>,
    found: Option<Found>,
    kind: &'static str,
    id: impl Display,
    act: Act<'_>,
) -> Result<Cancellation<S>, Error> {
    let Some(found) = found else {
        return Ok(Cancellation::Unknown);
    };
    let status = stored("status", &found.status)?;
    if !found.cancelled {
        return Ok(match found.cancelled_at {
            Some(at) => Cancellation::Before {
                at,
                by: found.cancelled_by,
            },
            None if found.claimed => Cancellation::BeingSent,
            None => Cancellation::Ended(status),
        });
    }
    let (action, mut details) = (format!("{kind}.cancel"), json!({ "status": found.status }));
    if found.delivered {
        details["delivered"] = json!(true);
    }
    let entry = act.entry(&action, format!("{kind}/{id}"), details);
    entry.record(&mut transaction).await?;
    transaction.commit().await?;
    Ok(if found.delivered {
        Cancellation::StaysDelivered(status)
    } else {
        Cancellation::Done(status)
    })
}

/// Commits what a statement that cancels several of a `kind` has done, with one entry about `subject` in the audit log, which has these `details`
/// and how many they were. Returns how many were cancelled.
pub(crate) async fn commit_all(
    mut transaction: Transaction<'_, Postgres>,
    found: &[Found],
    (kind, subject): (&'static str, String),
    mut details: Value,
    act: Act<'_>,
) -> Result<CancelledMany, Error> {
    let many = CancelledMany {
        cancelled: found.iter().filter(|found| found.cancelled).count() as u64,
        delivered: found.iter().filter(|found| found.delivered).count() as u64,
    };
    if many.cancelled == 0 {
        return Ok(many);
    }
    let action = format!("{kind}.cancel-many");
    details["cancelled"] = json!(many.cancelled);
    if many.delivered > 0 {
        details["delivered"] = json!(many.delivered);
    }
    let entry = act.entry(&action, subject, details);
    entry.record(&mut transaction).await?;
    transaction.commit().await?;
    Ok(many)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(count: usize) -> ToCancel {
        let mut found = ToCancel::default();
        for _ in 0..count {
            found.add(Uuid::nil(), "RETRY", DateTime::UNIX_EPOCH);
        }
        found
    }

    #[test]
    fn what_is_left_after_those_that_are_cancelled_at_once_is_counted() {
        let most = found(CANCELLED_MAX);
        assert_eq!((most.ids.len(), most.left, most.more), (CANCELLED_MAX, 0, false));
        let over = found(CANCELLED_MAX + 2);
        assert_eq!((over.ids.len(), over.left, over.more), (CANCELLED_MAX, 2, true));
        assert_eq!(
            over.by_status.values().sum::<u64>(),
            CANCELLED_MAX as u64,
            "of those alone that are cancelled"
        );
    }

    #[test]
    fn counting_ends_with_the_list_or_after_so_many_parts_of_it_or_when_it_takes_long() {
        let mut whole = found(1);
        assert!(whole.goes_on(true) && !whole.goes_on(false));
        assert_eq!((whole.more, whole.at_least), (false, false));
        let mut endless = ToCancel::default();
        let parts = (1..).take_while(|_| endless.goes_on(true)).count();
        assert_eq!(parts, PARTS_MAX - 1);
        assert_eq!((endless.more, endless.at_least, endless.left), (true, true, 0));
        let mut slow = found(CANCELLED_MAX + 1);
        assert!(slow.goes_on(true));
        slow.full_since = Instant::now().checked_sub(COUNTING);
        assert!(!slow.goes_on(true));
        assert_eq!((slow.more, slow.at_least, slow.left), (true, true, 1));
    }
}
