//! `/console`: how the installation is, with what is wrong first.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;

use explain::words;
use http_api::Params;

use super::frame::{Frame, Page};
use super::lanes::OF_LANES;
use super::markup::{self, Markup};
use super::webpush;
use crate::app::App;
use crate::dead_letters::timeline::{self, TimelineDocument, TimelineParams};
use crate::request::Viewer;
use crate::status::{self, Finding, Severity, StatusDocument};

#[derive(Template)]
#[template(path = "now.html")]
struct Now {
    frame: Frame,
    status: StatusDocument,
    /// Unless they could not be counted.
    hours: Option<Hours>,
}

/// Dead letters of the last 24 hours, by the hour.
struct Hours {
    bars: Markup,
    last: u64,
    before: u64,
    sum: u64,
}

impl Hours {
    fn of(timeline: &TimelineDocument) -> Self {
        let counts = &timeline.counts;
        let sum = counts.iter().sum();
        let (last, before) = (counts.last().copied(), counts.iter().rev().nth(1).copied());
        Self {
            bars: markup::bars(
                counts,
                &format!("{} dead letters in 24 hours", words::number(sum)),
            ),
            last: last.unwrap_or_default(),
            before: before.unwrap_or_default(),
            sum,
        }
    }
}

impl Now {
    /// What is worst, unless it is only worth knowing. A paused lane is more than that: nothing of it is sent.
    fn worst(&self) -> Option<&Finding> {
        let findings = &self.status.findings;
        let is_worse = |finding: &&Finding| finding.severity != Severity::Notice;
        let lanes = self.status.lanes.iter().flatten();
        let paused = lanes.filter(|lane| lane.paused).count() > 0;
        let of_pause = |finding: &&Finding| paused && finding.id == "paused";
        findings
            .iter()
            .find(is_worse)
            .or_else(|| findings.iter().find(of_pause))
    }

    /// What was accepted and is neither delivered nor on its way.
    fn dead_letters(&self) -> u64 {
        let lanes = self.status.lanes.iter().flatten();
        lanes.map(|lane| lane.dead_letters.open).sum()
    }

    /// The tone of what is worst.
    fn tone(&self) -> &'static str {
        self.worst().map_or("ok", |finding| tone(finding.severity))
    }

    fn tone_of(&self, severity: &Severity) -> &'static str {
        tone(*severity)
    }

    /// The page about what a finding names, and what the link there is called.
    fn place(&self, finding: &Finding) -> Option<(String, &'static str)> {
        place(finding)
    }
}

pub(super) fn tone(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "bad",
        Severity::Warning => "warn",
        Severity::Notice => "hold",
    }
}

/// Where each finding is looked into; none of one that has no page of its own, which stays on that of the system.
pub(crate) fn place(finding: &Finding) -> Option<(String, &'static str)> {
    if let Some(job) = finding.job {
        return Some((format!("/console/jobs/{job}"), "Open the job"));
    }
    let (path, name) = match finding.id {
        "dead-letters-grow" | "dead-letters-open" => ("/console/dead-letters", "Open the groups"),
        "subscriptions-in-trouble" => ("/console/resellers?state=trouble", "Open the subscriptions"),
        "subscriptions-deactivated" => ("/console/resellers?state=DEACTIVATED", "Open the subscriptions"),
        "quotas-used-up" => (
            "/console/waiting?lane=reseller&status=SCHEDULED&reason=QUOTA",
            "Open what waits",
        ),
        "paused" => ("/console/pauses", "Open the pauses"),
        "break-glass" => ("/console/audit?action=visit.break-glass", "Open the audit log"),
        "key-ends" => ("/console/access", "Open the keys"),
        "quota-requests-open" => ("/console/quota-requests", "Open the quota requests"),
        "mails-stuck" | "mails-failed" => ("/console/mails", "Open the mails"),
        its_own if webpush::is_its_own(its_own) => (webpush::HERE, "Open Web Push"),
        of_lanes if OF_LANES.contains(&of_lanes) => ("/console/lanes", "Open the lanes"),
        "broker-away" | "broker-blocked" | "clocks-differ" | "database-away" | "egress-open"
        | "ingest-errors" | "lanes-not-measured" | "migrations-missing" | "own-faults"
        | "partitions-missing" | "process-not-ready" | "process-silent" | "secrets-unreadable"
        | "service-missing" => ("/console/system", "Open the system"),
        _ => return None,
    };
    Some((path.to_owned(), name))
}

pub(super) async fn page(State(app): State<Arc<App>>, viewer: Viewer, frame: Frame) -> impl IntoResponse {
    let status = status::status(State(Arc::clone(&app)), viewer).await.0;
    // While the database is away, that is said already, and waiting for it once more would only be slow.
    let hours = match status.lanes {
        Some(_) => {
            let reading = async {
                let params = Params(TimelineParams {
                    limit: Some(0),
                    ..TimelineParams::default()
                });
                let read = timeline::timeline(State(Arc::clone(&app)), viewer, params).await;
                read.map(|timeline| timeline.0)
            };
            app.status.timeline(reading).await.ok()
        }
        None => None,
    };
    let hours = hours.map(|timeline| Hours::of(&timeline));
    Page(Now { frame, status, hours })
}
