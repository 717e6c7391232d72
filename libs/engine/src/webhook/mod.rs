//! The engine of the reseller lane: takes notifications from a queue, claims them in PostgreSQL, delivers them signed to
//! the resellers' endpoints, and records what came of it.
//!
//! It runs twice: in the dispatcher on the queue of first attempts, in the retry worker on the queue of retries, each
//! with its own slots, so that endpoints that fail never slow first attempts down. Any number of replicas may run.
//!
//! ```text
//! queue ─▶ scheduler ─▶ claimer ─▶ attempts ─▶ completer ─▶ ack
//!          (fair)       (SQL)      (HTTP)      (SQL)
//! ```
//!
//! The scheduler is what keeps one subscription from crowding out the others: each gets at most its share of what is
//! free, they are served in turns, and what exceeds a share goes back to the database. Only what can start at once is
//! claimed, so a claim is never old when its request begins. No stage holds a transaction while another talks to an
//! endpoint, and the message is acknowledged last: whatever dies in between, the notification is found by its lease.
//!
//! While most endpoints fail in one way at once, the fault is likely ours: what fails so is handed back and counts for nothing, and its
//! subscriptions are sent nothing but one probe a second in turn, until endpoints answer again (`outages`, `probes`).
//!
//! It deliberately does not promote what waits (see the retry worker), and decides neither quotas (the claiming
//! statement does) nor states (`domain` does).

mod attempt;
mod challenge;
mod claimer;
mod completer;
mod endpoint_check;
mod endpoints;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod lane;
mod outages;
mod probes;
mod request;
mod run_loop;
mod scheduler;
mod spans;
mod statistics;
mod under_way;

pub use challenge::{Answer, Challenger, Stranger, told};
pub use endpoint_check::{Checked, EndpointChecker, Step};
pub use lane::{Lane, OpenError, Tools};
pub use run_loop::{Engine, deliver};
