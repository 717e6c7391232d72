//! How many dead letters of a row were written in each of the last hours, and whether there are still more of them.

use chrono::{DateTime, TimeDelta, Utc};
use explain::words;

use crate::console::markup::{self, Markup};

/// How many were written in each hour, the present one last.
pub(super) struct Written(Vec<u64>);

impl Written {
    pub(super) fn of(hours: Vec<u64>) -> Self {
        Self(hours)
    }

    /// Adds those of another row.
    pub(super) fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(&other.0) {
            *sum += more;
        }
    }

    /// How many were written in this hour and the one before.
    pub(super) fn lately(&self) -> u64 {
        self.0.iter().rev().take(2).sum()
    }

    /// Whether it goes on: the last one was written within the hour, and there are no fewer of late than before.
    pub(super) fn is_growing(&self, last: &DateTime<Utc>, now: &DateTime<Utc>) -> bool {
        let before: u64 = self.0.iter().rev().skip(2).take(2).sum();
        self.lately() > 0 && self.lately() >= before && *now - *last < TimeDelta::hours(1)
    }

    /// The hours as bars, with what they say in words.
    pub(super) fn bars(&self) -> Markup {
        let sum: u64 = self.0.iter().sum();
        let (sum, lately) = (words::number(sum), words::number(self.lately()));
        let said = format!(
            "{sum} in {} hours, {lately} of them in this hour and the one before",
            self.0.len()
        );
        markup::small_bars(&self.0, "bad", &said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_while_no_fewer_are_written_than_in_the_hours_before() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(1);
        let grows = |hours: &[u64], minutes_ago: i64| {
            let written = Written::of(hours.to_vec());
            written.is_growing(&(now - TimeDelta::minutes(minutes_ago)), &now)
        };
        assert!(grows(&[0, 0, 2, 1, 3, 0], 5));
        assert!(!grows(&[0, 0, 2, 2, 3, 0], 5), "fewer than before");
        assert!(!grows(&[0, 0, 0, 0, 3, 0], 61), "none within the hour");
        assert!(!grows(&[9, 9, 0, 0, 0, 0], 5));
    }

    #[test]
    fn rows_add_up_hour_by_hour() {
        let mut sum = Written::of(vec![1, 2]);
        sum.add(&Written::of(vec![10, 20]));
        assert_eq!(sum.lately(), 33);
    }
}
