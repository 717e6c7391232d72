//! The spans of statements, which work for many traces at once.

use std::time::SystemTime;

use opentelemetry::trace::Link;

use super::span::{Context, Kind, Span};

/// A statement of the database that is done for many rows at once.
///
/// A span has one parent, and a batch belongs to as many traces as it has rows. It is shown in full in the trace of the
/// first of them, and refers to all of them by links.
#[derive(Debug, Clone, Copy)]
pub struct Statement {
    /// What it is for: "claim pushes".
    pub summary: &'static str,
    /// The SQL command that changes the table.
    pub operation: &'static str,
    /// The table that it is about.
    pub table: &'static str,
}

impl Statement {
    /// The span of an execution for the traces of `members`, which began at `started`; it ends when it is dropped. None
    /// without members.
    pub fn executed(self, members: Vec<Context>, started: SystemTime, rows: usize) -> Span {
        let Some(first) = members.first().cloned() else {
            return Span::none();
        };
        let links = members
            .into_iter()
            .map(|member| Link::with_context(member.0))
            .collect();
        let mut span = Span::build(Kind::Client, self.summary.into(), first, links, Some(started));
        span.set("db.system.name", "postgresql");
        span.set("db.query.summary", self.summary);
        span.set("db.operation.name", self.operation);
        span.set("db.collection.name", self.table);
        // The conventions want it for batches only.
        if rows > 1 {
            span.set("db.operation.batch.size", i64::try_from(rows).unwrap_or(i64::MAX));
        }
        span
    }
}
