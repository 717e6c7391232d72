//! A collector that is away.

use std::time::Duration;

use telemetry::{Metric, Readings};

use crate::{SOON, shared};

#[test]
fn what_a_collector_that_is_away_does_not_get_is_counted() {
    let is_lost = async || {
        let metrics = |labels: &str| labels.contains(r#"signal="metrics""#);
        while Readings::take().count_of(Metric::TelemetryLost, metrics) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    shared()
        .runtime
        .block_on(async { tokio::time::timeout(SOON, is_lost()).await })
        .expect("data points are lost");
}
