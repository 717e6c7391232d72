//! What people do about dead letters: replay what they are about, or discard them, one by one or in bulk.
//!
//! A dead letter is resolved in the transaction that makes its push or notification due again, under its row lock and only
//! while it is open: a second caller, or the same one after a crash, finds nothing to do. Sending is left to the lanes.

mod apply;
mod careful;
mod create;
mod job;
mod outcome;
mod recovery;
mod resolve;
mod selection;
mod single;
mod step;

use uuid::Uuid;

pub use apply::Skipped;
pub use careful::{CANARY_WAIT, JobCare};
pub use create::{JobCreated, NewDeadLetterJob};
pub use job::{DeadLetterJob, JobCommanded};
pub use outcome::{Fate, Fates, JobOutcome, KindOutcome};
pub(crate) use recovery::BY as RECOVERED_BY;
pub use recovery::{RecoveryTerms, SettledRecovery};
pub(crate) use resolve::resolve;
pub use selection::{DeadLetterKind, DeadLetterSelection, Preview};
pub use single::Resolved;
pub use step::DeadLetterStep;

/// How the audit log calls a dead letter.
fn dead_letter(id: Uuid) -> String {
    format!("dead-letter/{id}")
}

/// How the audit log calls a job.
pub(crate) fn job(id: Uuid) -> String {
    format!("dead-letter-job/{id}")
}
