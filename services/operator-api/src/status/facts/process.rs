//! A service that reports itself.
//!
//! It deliberately sums nothing up: that is for what is known of all of them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use runtime::connections::Report;
use store::ProcessView;
use uuid::Uuid;

use super::Rates;

/// A service that reports itself.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) id: Uuid,
    pub(crate) service: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) beat_at: DateTime<Utc>,
    /// How long ago it reported itself.
    pub(crate) age: Duration,
    pub(crate) report: Report,
}

impl Process {
    /// After how long without a report a service counts as silent: four reports.
    const SILENT_AFTER: Duration = Duration::from_secs(runtime::connections::BEAT_INTERVAL.as_secs() * 4);

    pub(crate) fn is_silent(&self) -> bool {
        self.age > Self::SILENT_AFTER
    }

    /// How long it had been running when it reported itself last.
    pub(crate) fn uptime(&self) -> Duration {
        (self.beat_at - self.started_at).to_std().unwrap_or_default()
    }

    /// What it did in a second, between its last two reports.
    pub(super) fn rates(&self) -> Option<Rates> {
        let previous = self.report.previous.as_ref()?;
        let seconds = (self.beat_at - previous.at).to_std().ok()?.as_secs_f64();
        (seconds > 0.0).then(|| {
            Rates::between(
                &previous.counters.unwrap_or_default(),
                &self.report.counters,
                seconds,
            )
        })
    }
}

impl From<ProcessView> for Process {
    fn from(view: ProcessView) -> Self {
        Self {
            id: view.process,
            service: view.service,
            host: view.host,
            pid: view.pid,
            version: view.version,
            started_at: view.started_at,
            beat_at: view.beat_at,
            age: view.age,
            // What another version says and we cannot read is as good as nothing.
            report: serde_json::from_value(view.state).unwrap_or_default(),
        }
    }
}
