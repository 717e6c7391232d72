//! `/console/webpush`: who is connected where, what is done with messages, what is stored by month, and what is out of order.
//!
//! One user agent or message is looked into by the search, which leads to its explanation.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use domain::counted;
use http_api::Params;

use super::frame::{Frame, Page};
use super::now::tone;
use crate::app::App;
use crate::history::{self, HistoryParams, WebpushMinuteDocument};
use crate::request::Viewer;
use crate::status::{self, Finding, Severity, WebpushDocument};

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route(HERE, get(page))
}

pub(super) const HERE: &str = "/console/webpush";

#[derive(Template)]
#[template(path = "webpush.html")]
struct Webpush {
    frame: Frame,
    /// Whether the database is away, so that nothing else is known.
    is_away: bool,
    /// None where there is no Web Push.
    webpush: Option<WebpushDocument>,
    findings: Vec<Finding>,
    /// The minutes of the last hour; none when they could not be read.
    minutes: Vec<WebpushMinuteDocument>,
}

/// A minute of the last hour, in a picture of 240 by 48: where a part of its bar begins, and how high it is.
struct Bar {
    x: usize,
    direct: (u64, u64),
    stored: (u64, u64),
    failed: (u64, u64),
}

impl Webpush {
    fn tone_of(&self, severity: &Severity) -> &'static str {
        tone(*severity)
    }

    /// How it is, in a sentence.
    fn sentence(&self) -> String {
        let Some(webpush) = &self.webpush else {
            return if self.is_away {
                "What Web Push does could not be found out: the database is away.".to_owned()
            } else {
                "There is no Web Push here: no node runs, and no user agent is stored.".to_owned()
            };
        };
        let nodes = webpush.nodes.len() as u64;
        if nodes == 0 {
            return "No connection node runs: messages are stored, and none is delivered.".to_owned();
        }
        format!(
            "{} connected to {}.",
            counted::of(webpush.connections, "user agent is", "user agents are"),
            counted::of(nodes, "node", "nodes")
        )
    }

    fn bars(&self) -> Vec<Bar> {
        let all = |it: &WebpushMinuteDocument| it.direct + it.stored + it.failed;
        let most = self.minutes.iter().map(all).max().unwrap_or(0).max(1);
        let height = |count: u64| (count * 48).div_ceil(most).min(48);
        let bar = |(at, it): (usize, &WebpushMinuteDocument)| {
            let tops = [it.direct, it.direct + it.stored, all(it)].map(height);
            Bar {
                x: at * 4,
                direct: (48 - tops[0], tops[0]),
                stored: (48 - tops[1], tops[1] - tops[0]),
                failed: (48 - tops[2], tops[2] - tops[1]),
            }
        };
        self.minutes.iter().enumerate().map(bar).collect()
    }

    /// What the last hour was, in a sentence.
    fn hour(&self) -> String {
        let sum = |count: fn(&WebpushMinuteDocument) -> u64| self.minutes.iter().map(count).sum::<u64>();
        let sums = [
            (sum(|it| it.direct), "delivered directly"),
            (sum(|it| it.stored), "stored"),
            (sum(|it| it.failed), "could not be stored"),
        ];
        let sums = sums.map(|(count, what)| format!("{} {what}", counted::number(count)));
        let opened = counted::of(sum(|it| it.opened), "connection", "connections");
        format!(
            "The last hour: of the messages {}; {opened} began.",
            sums.join(", ")
        )
    }
}

/// Whether a finding is about Web Push.
fn is_of_it(finding: &Finding) -> bool {
    let serves = |command: &String| command.starts_with("postrider serve webpush-");
    is_its_own(finding.id) || finding.command.as_ref().is_some_and(serves)
}

/// Whether findings of this name are about Web Push alone.
pub(super) fn is_its_own(finding: &str) -> bool {
    finding.starts_with("webpush-")
}

async fn page(State(app): State<Arc<App>>, viewer: Viewer, frame: Frame) -> impl IntoResponse {
    let params = Params(HistoryParams { minutes: None });
    let (status, minutes) = tokio::join!(
        status::status(State(Arc::clone(&app)), viewer),
        history::webpush_history(State(Arc::clone(&app)), viewer, params),
    );
    let mut status = status.0;
    status.findings.retain(is_of_it);
    Page(Webpush {
        is_away: status.lanes.is_none(),
        webpush: status.webpush,
        findings: status.findings,
        minutes: minutes.map_or_else(|_| Vec::new(), |minutes| minutes.0.items),
        frame,
    })
}
