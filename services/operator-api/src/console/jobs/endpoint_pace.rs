//! What the endpoint of one subscription has taken of late, beside the pace of a replay to it.
//!
//! Deliveries are counted by the hour: the pace within the busiest hour is known on average alone.

use chrono::{DateTime, TimeDelta, Utc};
use explain::words;
use http_api::Problem;
use uuid::Uuid;

use crate::console::dead_letters::Chosen;
use crate::request::Operator;

const HOUR_SECONDS: u64 = 3_600;

/// How many notifications were delivered in the busiest hour of the last day to the one subscription that is chosen, if one is.
pub(super) async fn busiest(
    operator: &Operator,
    chosen: &Chosen,
    now: DateTime<Utc>,
) -> Result<Option<u64>, Problem> {
    let Ok(subscription) = chosen.word("subscription").parse::<Uuid>() else {
        return Ok(None);
    };
    let store = &operator.app.store;
    let reading = store.delivery_statistics(subscription, now - TimeDelta::days(1));
    let hours = http_api::by(operator.deadline, ("the deliveries", "read"), reading).await?;
    Ok(Some(hours.iter().map(|hour| hour.delivered).max().unwrap_or(0)))
}

/// What was delivered in the busiest hour beside a pace, if the pace is higher.
pub(super) fn bears(delivered: u64, per_second: u64) -> Option<String> {
    let asked = per_second.saturating_mul(HOUR_SECONDS);
    if asked <= delivered {
        return None;
    }
    if delivered == 0 {
        return Some(
            "Nothing was delivered to its endpoint in the last day: what it bears is not known.".to_owned(),
        );
    }
    let took = match delivered / HOUR_SECONDS {
        0 => words::of(delivered, "notification", "notifications"),
        a_second => format!("{} a second", words::number(a_second)),
    };
    let more = match asked.saturating_add(delivered / 2) / delivered {
        0 | 1 => "more than that".to_owned(),
        times => format!("{} times that", words::number(times)),
    };
    let per_second = words::number(per_second);
    Some(format!(
        "Its endpoint took {took} in the busiest hour of the last day; {per_second} a second is {more}."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_told_of_that_is_higher_than_what_the_endpoint_took() {
        for (delivered, per_second, told) in [
            (
                50_400,
                100,
                "Its endpoint took 14 a second in the busiest hour of the last day; 100 a second is 7 times that.",
            ),
            (
                36,
                1_000,
                "Its endpoint took 36 notifications in the busiest hour of the last day; 1,000 a second is 100,000 times that.",
            ),
            (
                50_400,
                15,
                "Its endpoint took 14 a second in the busiest hour of the last day; 15 a second is more than that.",
            ),
            (
                0,
                1,
                "Nothing was delivered to its endpoint in the last day: what it bears is not known.",
            ),
        ] {
            assert_eq!(bears(delivered, per_second).as_deref(), Some(told));
        }
    }

    #[test]
    fn a_pace_that_the_endpoint_has_borne_is_not_told_of() {
        assert_eq!(bears(50_400, 14), None);
        assert_eq!(bears(0, 0), None);
        assert!(bears(1, u64::MAX).is_some());
    }
}
