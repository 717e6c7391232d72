//! What subscriptions may get in a day and in a second.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::NaiveDate;

use super::item::Item;
use super::{Rules, Violation};
use crate::ledger::Arrivals;

/// Over how long requests per second are counted. The promise is about when requests start; they arrive when they can.
const WINDOW: Duration = Duration::from_secs(20);

/// The most notifications in a day.
pub type Quota = usize;
/// The most requests in a second.
pub type Rate = u32;

/// The limits of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// In a day.
    pub quota: Option<Quota>,
    /// In a second.
    pub rate: Option<Rate>,
}

/// Judges every subscription that has limits: the quota by what the database has charged, and by what has arrived.
pub(super) fn judge(items: &[Item], arrivals: &Arrivals, rules: &Rules, violations: &mut Vec<Violation>) {
    for (path, limits) in &rules.limits {
        let is_its = |key: &str| key.rsplit_once('/').is_some_and(|(of, _)| of == path);
        if let Some(quota) = limits.quota {
            let own = items.iter().filter(|item| is_its(&item.key));
            let arrived: BTreeSet<&str> = arrivals
                .by_key
                .keys()
                .map(String::as_str)
                .filter(|key| is_its(key))
                .collect();
            judge_quota(path, quota, own, arrived.len(), violations);
        }
        if let Some(rate) = limits.rate {
            let own = arrivals.by_key.iter().filter(|(key, _)| is_its(key));
            let times = own.flat_map(|(_, arrivals)| arrivals.iter().map(|arrival| arrival.at_micros));
            judge_rate(path, rate, times.collect(), rules.longest_silence, violations);
        }
    }
}

fn judge_quota<'a>(
    path: &str,
    quota: Quota,
    items: impl Iterator<Item = &'a Item>,
    arrived: usize,
    violations: &mut Vec<Violation>,
) {
    let mut days: BTreeMap<NaiveDate, usize> = BTreeMap::new();
    for item in items.filter(|item| item.attempts > 0) {
        match item.charged_on {
            Some(day) => *days.entry(day).or_default() += 1,
            None => violations.push(Violation::new(
                "quotas",
                &item.key,
                "was sent without a place in the quota",
            )),
        }
    }
    for (day, used) in days.iter().filter(|(_, used)| **used > quota) {
        violations.push(Violation::new(
            "quotas",
            path,
            format!("{used} of {quota} were sent on {day}"),
        ));
    }
    let most = quota * days.len();
    if arrived > most {
        let text = format!(
            "{arrived} different notifications have arrived, with {quota} a day on {} days",
            days.len()
        );
        violations.push(Violation::new("quotas", path, text));
    }
}

fn judge_rate(
    path: &str,
    rate: Rate,
    mut times: Vec<u64>,
    silence: Duration,
    violations: &mut Vec<Violation>,
) {
    times.sort_unstable();
    let most = (WINDOW + silence).as_secs_f64() * f64::from(rate) + f64::from(rate);
    let window = u64::try_from(WINDOW.as_micros()).unwrap_or(u64::MAX);
    let mut first = 0;
    for (index, time) in times.iter().enumerate() {
        while time - times[first] > window {
            first += 1;
        }
        let within = index - first + 1;
        if within as f64 > most {
            let text = format!(
                "{within} requests within {} s, with {rate} a second",
                WINDOW.as_secs()
            );
            violations.push(Violation::new("rates", path, text));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::verdict::item::{Attempt, Ending, Status};

    fn item(charged_on: Option<NaiveDate>) -> Item {
        Item {
            id: Uuid::nil(),
            key: "/limited/e-1".to_owned(),
            status: Status::Sent,
            said: "SENT".to_owned(),
            attempts: 1,
            before: 0,
            recorded: vec![Attempt {
                number: 1,
                ending: Ending::Ok,
            }],
            open_dead_letters: 0,
            charged_on,
        }
    }

    fn quota(items: &[Item], arrived: usize) -> usize {
        let mut violations = Vec::new();
        judge_quota("/limited", 2, items.iter(), arrived, &mut violations);
        violations.len()
    }

    fn day(number: u32) -> Option<NaiveDate> {
        NaiveDate::from_ymd_opt(2026, 1, number)
    }

    #[test]
    fn a_quota_is_full_at_its_number_and_overshot_by_one_more() {
        assert_eq!(quota(&[item(day(1)), item(day(1)), item(day(2))], 3), 0);
        assert_eq!(quota(&[item(day(1)), item(day(1)), item(day(1))], 2), 1);
    }

    #[test]
    fn what_arrived_beyond_the_quota_is_found_whatever_the_database_says() {
        assert_eq!(quota(&[item(day(1)), item(day(1))], 3), 1);
    }

    #[test]
    fn what_was_sent_without_a_place_is_found() {
        assert_eq!(quota(&[item(day(1)), item(None)], 1), 1);
    }

    #[test]
    fn a_rate_may_be_made_up_for_after_a_silence_and_not_more() {
        let rate = |count: u64| {
            let mut violations = Vec::new();
            let times = (0..count).map(|number| number * 10_000).collect();
            judge_rate("/paced", 5, times, Duration::from_secs(10), &mut violations);
            violations.len()
        };
        assert_eq!((rate(155), rate(156)), (0, 1));
    }
}
