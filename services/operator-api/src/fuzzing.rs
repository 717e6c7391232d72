//! Doors to what is private here, for the properties of `testing/fuzz/properties`. They add nothing of their own.

use chrono::{DateTime, Utc};
use http_api::Problem;
use store::{AuditFilter, DeadLetterFilter, DeadLetterOrder, NewDeadLetterJob};
use uuid::Uuid;

use crate::audit::{self, AuditParams};
use crate::dead_letter_jobs::{NewJobPayload, read};
use crate::dead_letters::{ListParams, part};
use crate::note;

/// What a query string of `GET /dead-letters` asks for.
#[derive(Debug)]
pub struct Part {
    /// Which dead letters.
    pub filter: DeadLetterFilter,
    /// Which come first.
    pub order: DeadLetterOrder,
    /// How many.
    pub limit: u32,
    /// After which one.
    pub after: Option<(DateTime<Utc>, Uuid)>,
}

/// Reads a query string of `GET /dead-letters`; `None` when it cannot be part of a request.
pub fn dead_letters(query: &str) -> Option<Result<Part, Problem>> {
    let params = http_api::fuzzing::query::<ListParams>(query)?;
    Some(params.and_then(|params| {
        let (filter, order, limit, after) = part(&params)?;
        Ok(Part {
            filter,
            order,
            limit,
            after,
        })
    }))
}

/// Reads a query string of `GET /audit`; `None` when it cannot be part of a request.
pub fn audit(query: &str) -> Option<Result<AuditFilter, Problem>> {
    Some(http_api::fuzzing::query::<AuditParams>(query)?.and_then(audit::filter))
}

/// Reads a body of `POST /dead-letters/jobs`.
pub fn job(body: &[u8]) -> Result<NewDeadLetterJob, Problem> {
    read(http_api::fuzzing::payload::<NewJobPayload>(body)?)
}

/// Reads the note that goes with an act.
pub fn noted(text: Option<&str>) -> Result<Option<&str>, Problem> {
    note::optional(text)
}
