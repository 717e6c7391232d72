//! From facts to findings, the worst first. Pure.
//!
//! A system that was started a moment ago, an idle one and one under load have no finding that is more than a notice: what
//! passes by itself is no finding, and what follows from something worse is not told twice.

#[cfg(test)]
mod alerts;
#[cfg(test)]
mod cases;
mod lanes;
#[cfg(test)]
mod params;
mod processes;
mod rest;
#[cfg(test)]
mod scene;
mod servers;
mod swrve;
#[cfg(test)]
mod tests;
mod webpush;

use std::time::Duration;

use explain::words::length;
use store::Lane;
use store::status::COUNTED_MAX;

use super::facts::{Database, Facts, Tables, time_to_send};
use super::finding::{Finding, Harm, Severity};

/// How long a service may take to find its feet.
const SETTLING: Duration = Duration::from_secs(30);

/// Everything that is worth knowing, the worst first.
pub(crate) fn evaluate(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    servers::database(facts, &mut findings);
    let tables = match &facts.database {
        Database::Known(tables) => Some(&**tables),
        Database::Away(_) | Database::NotMigrated => None,
    };
    servers::broker(facts, tables, &mut findings);
    if let Some(tables) = tables {
        let broker_fails = findings.iter().any(|finding| finding.id.starts_with("broker-"));
        let known = Known {
            facts,
            tables,
            broker_fails,
        };
        processes::evaluate(&known, &mut findings);
        lanes::evaluate(&known, &mut findings);
        webpush::evaluate(&known, &mut findings);
        rest::evaluate(&known, &mut findings);
    }
    // Within one severity by what they do, what has lasted longest first. What stops something is in the order of the list above, which goes
    // from causes to effects.
    findings.sort_by_key(|it| (it.severity, it.harm, it.since.is_none(), it.since));
    findings
}

/// Whether the engineer on call has nothing to do.
pub(crate) fn is_healthy(findings: &[Finding]) -> bool {
    findings
        .iter()
        .all(|finding| finding.severity == Severity::Notice)
}

/// What the parts of the judgement look at.
struct Known<'a> {
    facts: &'a Facts,
    tables: &'a Tables,
    /// Whether a finding about the broker explains what else there is.
    broker_fails: bool,
}

impl Known<'_> {
    /// How long the pushes that wait take, as it follows how many they are; nothing while none is sent.
    fn backlog_of_pushes(&self) -> String {
        let (waiting, rate) = (self.tables.push.depths.backlog(), self.tables.rates().pushes_sent);
        match time_to_send(waiting, rate) {
            None => String::new(),
            Some(takes) => {
                let digits = usize::from(rate < 10.0);
                let more = if waiting > COUNTED_MAX { "more than " } else { "" };
                format!("; at {rate:.digits$} a second that takes {more}{}", length(takes))
            }
        }
    }

    /// The same finding, which names what [`Self::backlog_of_pushes`] says.
    fn naming_backlog_of_pushes(&self, finding: Finding) -> Finding {
        let (waiting, rate) = (self.tables.push.depths.backlog(), self.tables.rates().pushes_sent);
        match time_to_send(waiting, rate) {
            None => finding,
            Some(takes) => finding
                .naming("ratePerSecond", rate)
                .naming("backlogSeconds", takes.as_secs())
                .naming("countedUpTo", (waiting > COUNTED_MAX).then_some(COUNTED_MAX)),
        }
    }

    /// Whether a lane is paused, or was until a moment ago, so that its queues may have no consumers.
    fn is_paused_or_resuming(&self, lane: Lane) -> bool {
        self.tables.lane_is_paused_or_resuming(lane, self.facts.now)
    }

    /// Whether a service of this name reports itself.
    fn runs(&self, service: &str) -> bool {
        let mut processes = self.tables.processes.iter();
        processes.any(|process| process.service == service && !process.is_silent())
    }

    /// Whether one of this name has done so for long enough to have found its feet.
    fn has_settled(&self, service: &str) -> bool {
        let mut processes = self.tables.processes.iter();
        processes
            .any(|process| process.service == service && !process.is_silent() && process.uptime() >= SETTLING)
    }
}
