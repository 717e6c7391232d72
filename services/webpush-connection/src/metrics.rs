//! Handles on the metrics of the path of a message, looked up once.

use metrics::Counter;
use telemetry::Metric;

use crate::router_port;

/// What is counted of every message that is delivered.
pub(crate) struct Metrics {
    /// Messages that endpoint nodes handed over and were answered 200.
    pub(crate) pushed: Counter,
    /// Of those, what the client has acknowledged or has no TTL.
    pub(crate) acked: Counter,
    /// Acknowledgements of what was delivered.
    pub(crate) delivered: Counter,
}

impl Metrics {
    /// Takes the handles. To be called after the recorder was installed.
    pub(crate) fn new() -> Self {
        Self {
            pushed: Metric::HttpRequests.counter(&[("route", router_port::PUSH), ("status", "200")]),
            acked: Metric::WebpushDirect.counter(&[("outcome", "acked")]),
            delivered: Metric::WebpushAcks.counter(&[("code", "100")]),
        }
    }
}
