//! Counts what is stored of Web Push by month, up to a bound; above it PostgreSQL's estimate is taken.

use std::time::Duration;

use domain::month::Month;
use telemetry::Metric;

use crate::context::Context;
use crate::periodic::{Job, JobError, UNKNOWN};

/// The months by their distance from the present one, so that the labels do not change with the calendar.
const MONTHS: [&str; 4] = ["coming", "present", "previous", "oldest"];

pub(crate) struct CountWebpush;

impl Job for CountWebpush {
    const NAME: &'static str = "count-webpush";
    const INTERVAL: Duration = Duration::from_secs(30);

    fn end_of_term(&self) {
        for month in MONTHS {
            Metric::WebpushClients.set_with(&[("month", month)], UNKNOWN);
            Metric::WebpushStoredMessages.set_with(&[("month", month)], UNKNOWN);
        }
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let present = Month::containing(context.clock.now());
        let months = context.store.webpush_months().await?;
        for name in MONTHS {
            let (mut clients, mut messages) = (0, 0);
            for month in months.iter().filter(|it| name_of(it.month, present) == name) {
                clients += month.clients;
                messages += month.messages;
            }
            Metric::WebpushClients.set_with(&[("month", name)], clients as f64);
            Metric::WebpushStoredMessages.set_with(&[("month", name)], messages as f64);
        }
        Ok(())
    }
}

fn name_of(month: Month, present: Month) -> &'static str {
    if month > present {
        "coming"
    } else if month == present {
        "present"
    } else if month == present.minus(1) {
        "previous"
    } else {
        "oldest"
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn each_month_has_one_of_the_names() {
        let present = Month::containing(DateTime::UNIX_EPOCH);
        let names = [
            present.plus(2),
            present,
            present.minus(1),
            present.minus(2),
            present.minus(3),
        ];
        let names = names.map(|month| name_of(month, present));
        assert_eq!(names, ["coming", "present", "previous", "oldest", "oldest"]);
        assert!(names.iter().all(|name| MONTHS.contains(name)));
    }
}
