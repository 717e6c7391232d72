//! What of a subscription waits, added up: by what it waits for, and by the day on which its turn comes. Counted up to a bound.

use chrono::{DateTime, NaiveDate, Utc};
use domain::notification::NotificationStatus;
use domain::quota::day_of;
use domain::reason::NotificationReason;
use uuid::Uuid;

use crate::read::{Count, Name, Nullable};
use crate::{Error, Store};

/// Most notifications that are counted in one status, as the API says it.
pub const LINE_COUNTED_MAX: u32 = 100_000;
/// Most days that are told apart; what comes after them is added to the last one.
const DAYS_MAX: usize = 31;

/// What waits for the same, until the same day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingSum {
    /// `SCHEDULED`, `RETRY` or `PENDING`.
    pub status: NotificationStatus,
    /// Why it is in line, or is not in the queue yet; none of what is tried again.
    pub reason: Option<NotificationReason>,
    /// The day on which its turn comes; `None` when that depends on something else than time.
    pub day: Option<NaiveDate>,
    /// When the first turn of that day comes.
    pub first_at: Option<DateTime<Utc>>,
    /// When the last one does.
    pub last_at: Option<DateTime<Utc>>,
    /// How many.
    pub count: u64,
}

/// The part of a line whose turns come on one day.
struct Stretch {
    day: NaiveDate,
    first: u64,
    first_at: DateTime<Utc>,
    last_at: DateTime<Utc>,
}

/// Turns never come earlier for what is farther back, so the end of a day is found by halving.
fn stretches(length: u64, zone: chrono_tz::Tz, turn: impl Fn(u64) -> DateTime<Utc>) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut first = 0;
    while first < length {
        let first_at = turn(first);
        let day = day_of(first_at, zone);
        let (mut end, mut beyond) = (first + 1, length);
        if stretches.len() + 1 == DAYS_MAX {
            end = length;
        }
        while end < beyond {
            let middle = end + (beyond - end) / 2;
            if day_of(turn(middle), zone) == day {
                end = middle + 1;
            } else {
                beyond = middle;
            }
        }
        stretches.push(Stretch {
            day,
            first,
            first_at,
            last_at: turn(end - 1),
        });
        first = end;
    }
    stretches
}

/// The first place of a day, and that of the next one.
fn places(stretches: &[Stretch], day: NaiveDate) -> Option<(i64, Option<i64>)> {
    let at = stretches.iter().position(|stretch| stretch.day == day)?;
    let first = |stretch: &Stretch| stretch.first.cast_signed();
    Some((first(&stretches[at]), stretches.get(at + 1).map(first)))
}

impl Store {
    /// Which places in a line have their turns on a day: the first one, counted from 0, and the one after the last where other days follow; none
    /// where no turn comes on that day. Whether so many are in line is not looked at.
    pub(super) async fn places_of(
        &self,
        subscription: Uuid,
        day: NaiveDate,
    ) -> Result<Option<(i64, Option<i64>)>, Error> {
        let limits = self.line_limits(subscription).await?;
        // What is farther back is told the turn of the last of these places.
        let length = u64::from(LINE_COUNTED_MAX) + 1;
        let stretches = stretches(length, self.line_terms.zone, |ahead| limits.turn(ahead));
        Ok(places(&stretches, day))
    }

    /// What of a subscription waits, counted up to `most` in each status. Whose it is, is for the caller to know.
    pub async fn waiting_sums(&self, subscription: Uuid, most: u32) -> Result<Vec<WaitingSum>, Error> {
        let mut sums = self.sums_in_line(subscription, most).await?;
        let zone = self.line_terms.zone;
        let others = sqlx::query_as!(
            WaitingSum,
            r#"
            SELECT w.status AS "status!: Name<_>", w.reason AS "reason!: Nullable<Name<_>>", w.day,
                   min(w.at) AS first_at, max(w.at) AS last_at, count(*) AS "count!: Count"
            FROM ((SELECT n.status, NULL AS reason, n.next_attempt_at AS at,
                          (greatest(n.next_attempt_at, now()) AT TIME ZONE $2)::date AS day FROM notifications n
                   WHERE n.subscription_id = $1 AND n.status = 'RETRY' ORDER BY n.next_attempt_at, n.id LIMIT $3)
                  UNION ALL
                  (SELECT n.status, n.reason, NULL, NULL FROM notifications n
                   WHERE n.subscription_id = $1 AND n.status = 'PENDING' ORDER BY n.id LIMIT $3)) AS w
            GROUP BY w.status, w.reason, w.day ORDER BY w.status DESC, w.day, w.reason
            "#,
            subscription,
            zone.name(),
            i64::from(most),
        )
        .fetch_all(&self.pool)
        .await?;
        sums.extend(others);
        Ok(sums)
    }

    async fn sums_in_line(&self, subscription: Uuid, most: u32) -> Result<Vec<WaitingSum>, Error> {
        let length = sqlx::query_scalar!(
            r#"
            SELECT count(*) AS "count!" FROM (SELECT FROM notifications
                                              WHERE subscription_id = $1 AND status = 'SCHEDULED' LIMIT $2) AS line
            "#,
            subscription,
            i64::from(most),
        )
        .fetch_one(&self.pool)
        .await?;
        if length == 0 {
            return Ok(Vec::new());
        }
        let limits = self.line_limits(subscription).await?;
        let turn = |ahead| limits.turn(ahead);
        let stretches = stretches(length.unsigned_abs(), self.line_terms.zone, turn);
        let begins: Vec<i64> = stretches
            .iter()
            .map(|stretch| stretch.first.cast_signed())
            .collect();
        let counts = sqlx::query!(
            r#"
            SELECT width_bucket(l.place, $2::bigint[]) AS "stretch!", l.reason AS "reason!: Nullable<Name<NotificationReason>>",
                   count(*) AS "count!: Count"
            FROM (SELECT w.reason, row_number() OVER (ORDER BY w.next_attempt_at, w.id) - 1 AS place
                  FROM (SELECT reason, next_attempt_at, id FROM notifications
                        WHERE subscription_id = $1 AND status = 'SCHEDULED'
                        ORDER BY next_attempt_at, id LIMIT $3) AS w) AS l
            GROUP BY 1, 2 ORDER BY 1, 2
            "#,
            subscription,
            &begins,
            length,
        )
        .fetch_all(&self.pool)
        .await?;
        let sum = |row: (i32, Option<NotificationReason>, u64)| {
            let place = usize::try_from(row.0).ok()?.checked_sub(1)?;
            let stretch = stretches.get(place)?;
            Some(WaitingSum {
                status: NotificationStatus::Scheduled,
                reason: row.1,
                day: Some(stretch.day),
                first_at: Some(stretch.first_at),
                last_at: Some(stretch.last_at),
                count: row.2,
            })
        };
        Ok(counts
            .into_iter()
            .filter_map(|row| sum((row.stretch, row.reason.into(), row.count.into())))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike as _, TimeDelta, TimeZone as _};

    use super::*;

    #[test]
    fn a_line_is_cut_at_the_ends_of_days() {
        let noon = Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap();
        let turn = |ahead: u64| noon + TimeDelta::hours(ahead.cast_signed());
        let cut = stretches(40, chrono_tz::UTC, turn);
        let firsts: Vec<u64> = cut.iter().map(|stretch| stretch.first).collect();
        assert_eq!(firsts, [0, 12, 36]);
        assert_eq!(cut[0].last_at, turn(11));
        assert_eq!(cut[2].last_at, turn(39));
        assert!(stretches(0, chrono_tz::UTC, turn).is_empty());
        let of = |day: u32| places(&cut, noon.date_naive().with_day(day).unwrap());
        assert_eq!(of(21), Some((0, Some(12))));
        assert_eq!(of(22), Some((12, Some(36))));
        assert_eq!(of(23), Some((36, None)));
        assert_eq!((of(20), of(24)), (None, None));
        let long = stretches(100_000, chrono_tz::UTC, |ahead| {
            noon + TimeDelta::days(ahead.cast_signed())
        });
        assert_eq!(long.len(), DAYS_MAX);
    }
}
