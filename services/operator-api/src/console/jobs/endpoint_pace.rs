//! What the endpoint that a replay is to has taken of late, beside the pace of the replay.
//!
//! Deliveries are counted by the hour: a pace is known on average alone.

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use explain::words;
use http_api::Problem;
use store::webhook::EndedInHour;
use uuid::Uuid;

use crate::console::dead_letters::Chosen;
use crate::dead_letters::GroupDocument;
use crate::request::Operator;

const HOUR_SECONDS: u64 = 3_600;
/// Of how many subscriptions at one endpoint the deliveries are read.
const SUBSCRIPTIONS_READ: u32 = 200;

/// How many notifications an endpoint took.
#[derive(Debug)]
pub(super) struct Took {
    /// Whose endpoint it is, as a sentence names it.
    who: String,
    /// In the last hour, about.
    lately: u64,
    /// In the busiest hour of the last day.
    busiest: u64,
}

/// What the one endpoint took that is chosen, by a subscription or by where the failures were, if one is; `groups` are the largest groups of what
/// is chosen, and `all` says that there are no others.
pub(super) async fn took(
    operator: &Operator,
    chosen: &Chosen,
    (groups, all): (&[GroupDocument], bool),
    now: DateTime<Utc>,
) -> Result<Option<Took>, Problem> {
    let store = &operator.app.store;
    let (who, subscriptions) = if let Ok(subscription) = chosen.word("subscription").parse::<Uuid>() {
        ("Its endpoint".to_owned(), vec![subscription])
    } else {
        let Some(endpoint) = endpoint(chosen, groups, all) else {
            return Ok(None);
        };
        let finding = store.subscriptions_at(endpoint, SUBSCRIPTIONS_READ + 1);
        let mut found = http_api::by(operator.deadline, ("the subscriptions", "read"), finding).await?;
        let host = endpoint.split_once("://").map_or(endpoint, |(_, host)| host);
        let is_cut = found.len() > SUBSCRIPTIONS_READ as usize;
        found.truncate(SUBSCRIPTIONS_READ as usize);
        let who = match is_cut {
            true => format!("{host}, by {SUBSCRIPTIONS_READ} of its subscriptions,"),
            false => host.to_owned(),
        };
        (who, found)
    };
    if subscriptions.is_empty() {
        return Ok(None);
    }
    let reading = store.ended_by_hour(&subscriptions, now - TimeDelta::days(1));
    let hours = http_api::by(operator.deadline, ("the deliveries", "read"), reading).await?;
    Ok(Some(Took {
        who,
        lately: lately(&hours, now),
        busiest: hours.iter().map(|hour| hour.delivered).max().unwrap_or(0),
    }))
}

/// Where the failures were: as it is chosen, or as all groups have it.
fn endpoint<'a>(chosen: &'a Chosen, groups: &'a [GroupDocument], all: bool) -> Option<&'a str> {
    let target = chosen.word("target");
    if !target.is_empty() {
        return Some(target);
    }
    let first = groups.first().filter(|group| all && !group.target.is_empty())?;
    let is_one = groups.iter().all(|group| group.target == first.target);
    is_one.then_some(&*first.target)
}

/// Of the last 60 minutes: what was delivered in this hour of the clock, and of the one before as much as it has in that time on average.
fn lately(hours: &[EndedInHour], now: DateTime<Utc>) -> u64 {
    let this = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
    let delivered = |at: DateTime<Utc>| {
        let hour = hours.iter().find(|hour| hour.hour == at);
        hour.map_or(0, |hour| hour.delivered)
    };
    let passed = u64::try_from((now - this).num_seconds()).unwrap_or(0);
    let left = HOUR_SECONDS.saturating_sub(passed);
    let before = delivered(this - TimeDelta::hours(1)).saturating_mul(left) / HOUR_SECONDS;
    delivered(this).saturating_add(before)
}

impl Took {
    /// What was taken beside a pace, if the pace is higher than that of the last hour.
    pub(super) fn bears(&self, per_second: u64) -> Option<String> {
        let (who, lately, busiest) = (&self.who, self.lately, self.busiest);
        let asked = per_second.saturating_mul(HOUR_SECONDS);
        if asked <= lately {
            return None;
        }
        if lately.max(busiest) == 0 {
            return Some(format!(
                "{who} took nothing in the last day: what it bears is not known."
            ));
        }
        let in_busiest = format!("{} in the busiest hour of the last day", pace(busiest));
        let (taken, than) = if lately == 0 {
            let than = compared(asked, busiest, "that of the busiest");
            (format!("nothing in the last hour, and {in_busiest}"), than)
        } else if lately < busiest {
            let than = compared(asked, lately, "that of the last hour");
            let taken = format!("about {} in the last hour, and {in_busiest}", pace(lately));
            (taken, than)
        } else {
            let taken = format!(
                "about {} in the last hour, the busiest of the last day",
                pace(lately)
            );
            (taken, compared(asked, lately, "that"))
        };
        let per_second = words::number(per_second);
        Some(format!("{who} took {taken}; {per_second} a second is {than}."))
    }
}

/// So many in an hour, by the second where that is one at least.
fn pace(in_an_hour: u64) -> String {
    match in_an_hour / HOUR_SECONDS {
        0 => words::of(in_an_hour, "notification", "notifications"),
        a_second => format!("{} a second", words::number(a_second)),
    }
}

/// How much is asked for in an hour beside what was taken in one.
fn compared(asked: u64, taken: u64, what: &str) -> String {
    if asked <= taken {
        return format!("not more than {what}");
    }
    match asked.saturating_add(taken / 2) / taken {
        0 | 1 => format!("more than {what}"),
        times => format!("{} times {what}", words::number(times)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(lately: u64, busiest: u64) -> Took {
        let who = "hooks.acme.example".to_owned();
        Took { who, lately, busiest }
    }

    #[test]
    fn a_pace_is_told_of_that_is_higher_than_what_the_endpoint_took_in_the_last_hour() {
        for (lately, busiest, per_second, told) in [
            (
                50_400,
                50_400,
                100,
                "hooks.acme.example took about 14 a second in the last hour, the busiest of the last day; 100 a second is 7 times that.",
            ),
            (
                50_400,
                180_000,
                100,
                "hooks.acme.example took about 14 a second in the last hour, and 50 a second in the busiest hour of the last day; \
                 100 a second is 7 times that of the last hour.",
            ),
            (
                50_400,
                50_400,
                15,
                "hooks.acme.example took about 14 a second in the last hour, the busiest of the last day; 15 a second is more than that.",
            ),
            (
                0,
                36,
                1_000,
                "hooks.acme.example took nothing in the last hour, and 36 notifications in the busiest hour of the last day; \
                 1,000 a second is 100,000 times that of the busiest.",
            ),
            (
                0,
                50_400,
                10,
                "hooks.acme.example took nothing in the last hour, and 14 a second in the busiest hour of the last day; \
                 10 a second is not more than that of the busiest.",
            ),
            (
                0,
                0,
                1,
                "hooks.acme.example took nothing in the last day: what it bears is not known.",
            ),
        ] {
            assert_eq!(took(lately, busiest).bears(per_second).as_deref(), Some(told));
        }
    }

    #[test]
    fn a_pace_that_the_endpoint_took_in_the_last_hour_is_not_told_of() {
        assert_eq!(took(50_400, 90_000).bears(14), None);
        assert_eq!(took(0, 0).bears(0), None);
        assert!(took(1, 1).bears(u64::MAX).is_some());
    }

    #[test]
    fn the_last_hour_takes_its_share_of_the_hour_of_the_clock_before() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let hour = |at, delivered| EndedInHour {
            hour: at,
            delivered,
            failed: 0,
        };
        let hours = [
            hour(at("2026-11-21T10:00:00Z"), 9_000),
            hour(at("2026-11-21T11:00:00Z"), 3_600),
            hour(at("2026-11-21T12:00:00Z"), 100),
        ];
        assert_eq!(lately(&hours, at("2026-11-21T12:15:00Z")), 100 + 2_700);
        assert_eq!(lately(&hours, at("2026-11-21T12:00:00Z")), 100 + 3_600);
        assert_eq!(lately(&[], at("2026-11-21T12:15:00Z")), 0);
    }
}
