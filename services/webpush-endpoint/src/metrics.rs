//! Handles on the metrics of the path of a message, looked up once.

use http::StatusCode;
use metrics::{Counter, Histogram};
use telemetry::Metric;

use crate::router;

/// What is counted of every message.
pub(crate) struct Metrics {
    pub(crate) receiving: Histogram,
    pub(crate) direct: Counter,
    pub(crate) stored: Counter,
    pub(crate) dropped: Counter,
    to_first_version: Counter,
    to_version: Counter,
}

impl Metrics {
    /// Takes the handles. To be called after the recorder was installed.
    pub(crate) fn new() -> Self {
        let outcome = |outcome| Metric::WebpushMessages.counter(&[("outcome", outcome)]);
        let created = |route| Metric::HttpRequests.counter(&[("route", route), ("status", "201")]);
        Self {
            receiving: Metric::WebpushReceiving.histogram(&[]),
            direct: outcome("direct"),
            stored: outcome("stored"),
            dropped: outcome("dropped"),
            to_first_version: created(router::TO_FIRST_VERSION),
            to_version: created(router::TO_VERSION),
        }
    }

    /// A request was answered; tells whether that is counted.
    pub(crate) fn answered(&self, route: &str, status: StatusCode) -> bool {
        let counter = match route {
            router::TO_VERSION => &self.to_version,
            router::TO_FIRST_VERSION => &self.to_first_version,
            _ => return false,
        };
        let is_created = status == StatusCode::CREATED;
        counter.increment(u64::from(is_created));
        is_created
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_are_accepted_are_counted_here_and_nothing_else() {
        let metrics = Metrics::new();
        for (route, status, counted) in [
            ("/wpush/{token}", StatusCode::CREATED, true),
            ("/wpush/{version}/{token}", StatusCode::CREATED, true),
            ("/wpush/{version}/{token}", StatusCode::GONE, false),
            ("/m/{message_id}", StatusCode::CREATED, false),
        ] {
            assert_eq!(metrics.answered(route, status), counted, "{route} {status}");
        }
    }
}
