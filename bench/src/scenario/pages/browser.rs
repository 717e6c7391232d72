//! What a person sees, and when: first contents and changed rows in Chromium, beside a page of one line in the same browser.

use std::env;
use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;

use crate::report::stats::quantile;
use crate::report::{Grid, Number, Row, Section, Target, Unit};
use crate::tell;

/// What drives the browser, beside the harness.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/browser.mjs");
/// How much later than the page of one line a page may show its first contents.
const OVER_FLOOR: f64 = 60.0;
/// From the choice of a filter, or of the next page, to painted rows.
const ROWS_LIMIT: f64 = 150.0;

/// What the script answers.
#[derive(Debug, Deserialize)]
struct Seen {
    floor: Vec<f64>,
    first: Vec<Times>,
    rows: Vec<Times>,
}

#[derive(Debug, Deserialize)]
struct Times {
    name: String,
    millis: Vec<f64>,
}

/// Where each is, and what opens it.
pub(super) struct Doors {
    pub(super) console: (SocketAddr, String),
    pub(super) dashboard: (SocketAddr, String),
}

/// Measures with the browser that CHROMIUM names; without one it says so.
pub(super) async fn measure(doors: Doors, section: &mut Section) -> Result<()> {
    if ["CHROMIUM", "WEB_PACKAGES"]
        .iter()
        .any(|name| env::var_os(name).is_none())
    {
        section.note("Nothing was measured in a browser: scripts/bench names one in CHROMIUM and playwright-core in WEB_PACKAGES.");
        return Ok(());
    }
    tell("pages: in a browser");
    // By its name: a browser takes secure cookies of "localhost" without TLS.
    let at = |address: SocketAddr| format!("http://localhost:{}", address.port());
    let ((console, key), (dashboard, token)) = (doors.console, doors.dashboard);
    let asked = json!({"console": at(console), "key": key, "dashboard": at(dashboard), "token": token});
    let output = Command::new("node")
        .arg(SCRIPT)
        .env("ASKED", asked.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .context("failed to start node")?;
    ensure!(output.status.success(), "{SCRIPT} failed; what it says is above");
    let seen: Seen = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{SCRIPT} wrote something else than its times"))?;
    let floor = quantile(&seen.floor, 0.5);
    let grid = |name: String, all: Vec<Times>, floor: Option<f64>, limit: f64| {
        let mut grid = Grid::new(name, "page");
        for Times { name, millis } in all {
            let row = |measure: &str, share| Row::new(measure, quantile(&millis, share), Unit::Milliseconds);
            let median = row("median", 0.5).target(Target::AtMost(limit));
            let beside =
                floor.map(|floor| Number::new("a page of one line, median", floor, Unit::Milliseconds));
            grid.line(name, vec![median.beside(beside), row("95th of 100", 0.95)]);
        }
        grid
    };
    let requests = seen.floor.len();
    section.grids.push(grid(
        format!("first contents in Chromium, {requests} loads each"),
        seen.first,
        Some(floor),
        floor + OVER_FLOOR,
    ));
    section.grids.push(grid(
        "from a choice to painted rows in Chromium".to_owned(),
        seen.rows,
        None,
        ROWS_LIMIT,
    ));
    Ok(())
}
