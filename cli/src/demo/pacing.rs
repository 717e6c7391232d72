//! The pace of the sends: as the dispatcher measured it at their start, and as they arrived at the simulator.

use std::fmt;
use std::time::Duration;

use anyhow::Context as _;
use simulators::swrve::Report;

use super::case::Ended;
use super::{metrics, mix};
use crate::simulator::Simulator;
use crate::web;

/// What Swrve allows: 300 requests per second, with some room.
const LEAST_GAP: Duration = Duration::from_millis(4);
const LIMIT: Duration = Duration::from_secs(10);

const SMALLEST_GAP: &str = "postrider_push_send_gap_min_seconds";

/// What was seen of the pace.
#[derive(Debug)]
pub(crate) struct Pacing {
    report: Report,
    /// Arrivals per second while the crowd was sent.
    crowd_rate: Option<f64>,
    /// At send start, since the dispatcher leads.
    smallest_gap: Option<Duration>,
}

impl Pacing {
    /// Asks the simulator and the metrics.
    pub(crate) async fn observe(
        simulator: &Simulator,
        metrics_url: &str,
        cases: &[Ended],
    ) -> anyhow::Result<Self> {
        let text = web::send(web::client(LIMIT)?.get(metrics_url), metrics_url).await?;
        let text = text.error_for_status()?.text().await;
        let text = text.with_context(|| format!("the metrics at {metrics_url} cannot be read"))?;
        Ok(Self {
            report: simulator.report().await?,
            crowd_rate: crowd_rate(simulator, cases).await?,
            smallest_gap: metrics::value(&text, SMALLEST_GAP)
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        })
    }

    /// What is not as it should be, if anything.
    pub(crate) fn deviation(&self) -> Option<String> {
        match self.smallest_gap {
            None => Some(format!(
                "the metrics lack {SMALLEST_GAP}; are they the dispatcher's?"
            )),
            Some(gap) if gap < LEAST_GAP => {
                Some(format!("two sends were started only {} apart", millis(gap)))
            }
            Some(_) => None,
        }
    }
}

/// The rate of the crowd alone: later on there is nothing to send but single retries.
async fn crowd_rate(simulator: &Simulator, cases: &[Ended]) -> anyhow::Result<Option<f64>> {
    let users: std::collections::HashSet<_> = cases
        .iter()
        .flat_map(|ended| &ended.posted.case.requests)
        .map(|request| request.push.push_key.as_str())
        .filter(|user| user.starts_with(mix::CROWD))
        .collect();
    let received = simulator.received().await?;
    let arrivals: Vec<_> = received
        .iter()
        .filter(|request| users.contains(request.user.as_str()))
        .map(|request| request.arrival_micros)
        .collect();
    Ok(match (arrivals.first(), arrivals.last()) {
        (Some(first), Some(last)) if last > first => {
            Some((arrivals.len() - 1) as f64 / ((last - first) / 1_000_000.0))
        }
        _ => None,
    })
}

fn millis(duration: Duration) -> String {
    format!("{:.3} ms", duration.as_secs_f64() * 1_000.0)
}

impl fmt::Display for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unknown = || "unknown".to_owned();
        let arrival = self
            .report
            .smallest_gap_micros
            .map(|micros| format!("{:.3} ms", micros / 1_000.0));
        write!(
            f,
            "Swrve got {} sends, {} per second while there was a crowd, at most {} in any second, {} accepted twice.\n\
             Smallest gap between send starts: {}. Smallest gap between arrivals, which the network shifts: {}.",
            self.report.received,
            self.crowd_rate.map_or_else(unknown, |rate| format!("{rate:.1}")),
            self.report.max_in_any_second,
            self.report.duplicates,
            self.smallest_gap.map_or_else(unknown, millis),
            arrival.unwrap_or_else(unknown),
        )
    }
}
