//! The database and the broker.

use broker::ConnectionState;

use super::{Finding, Severity};
use crate::status::facts::{Database, Facts, Tables};

pub(super) fn database(facts: &Facts, findings: &mut Vec<Finding>) {
    match &facts.database {
        Database::Known(_) => {}
        Database::Away(reason) => findings.push(
            Finding::new(
                ("database-away", Severity::Critical, "the-database-is-away"),
                format!("The database cannot be asked: {reason}."),
                "Nothing is accepted and nothing is delivered. What was accepted is in the database and goes on when it is \
                 back. What else is wrong is not known until then.",
            )
            .naming("reason", reason)
            .with("psql \"$DATABASE_URL\" -c 'SELECT 1'"),
        ),
        Database::NotMigrated => findings.push(
            Finding::new(
                ("migrations-missing", Severity::Critical, "a-process-is-not-ready"),
                "The database lacks migrations of this version.",
                "Services of this version fail at what they need them for.",
            )
            .with("postrider migrate"),
        ),
    }
}

/// The server tells only those that publish that it is short of something, so what the other services say of it counts too.
pub(super) fn broker(facts: &Facts, tables: Option<&Tables>, findings: &mut Vec<Finding>) {
    let blocked = match &facts.broker.state {
        ConnectionState::Blocked { reason, .. } => Some(reason.clone()),
        _ => tables.and_then(blocked_elsewhere),
    };
    if let Some(reason) = blocked {
        findings.push(
            Finding::new(
                ("broker-blocked", Severity::Critical, "the-broker-is-blocked-its-disk-is-full"),
                format!("The broker takes no messages: {reason}."),
                "It is short of memory or disk. What is accepted is stored and waits; make room on its host, and everything \
                 goes on by itself.",
            )
            .naming("reason", &reason)
            .with("rabbitmq-diagnostics alarms"),
        );
        return;
    }
    let reason = match &facts.broker.state {
        ConnectionState::Connected { .. } | ConnectionState::Blocked { .. } => return,
        // Nothing has failed yet.
        ConnectionState::Connecting { last_error: None } => return,
        ConnectionState::Connecting {
            last_error: Some(error),
        } => error.as_str(),
        ConnectionState::Closed => "the connection was closed",
    };
    findings.push(
        Finding::new(
            ("broker-away", Severity::Critical, "the-broker-is-away"),
            format!("The broker cannot be reached: {reason}."),
            "Nothing new is sent. What is accepted is stored and waits; when the broker is back, everything goes on by itself.",
        )
        .naming("reason", reason)
        .with("rabbitmq-diagnostics ping"),
    );
}

fn blocked_elsewhere(tables: &Tables) -> Option<String> {
    let mut reports = tables.processes.iter().filter(|process| !process.is_silent());
    reports.find_map(|process| {
        let condition = process.report.failing.get("broker")?;
        condition.strip_prefix("blocked: ").map(str::to_owned)
    })
}
