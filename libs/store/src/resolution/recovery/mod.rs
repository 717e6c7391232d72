//! Recoveries: what the outage of an endpoint gave up is sent again by itself, by a job on dead letters that Postrider makes.
//!
//! An outage is noted in `subscriptions.outage_since` when an endpoint begins to fail, and stays noted until a recovery is
//! through. So nothing has to happen at the moment in which the endpoint answers: a later look finds the same.

mod begin;
mod settle;
mod step;

pub use begin::RecoveryTerms;
pub use settle::SettledRecovery;
pub(super) use step::{Bearing, Recovery, bearing, end, note_probe, often_recovered};

/// Who makes recoveries, and resolves the dead letters that they are about.
pub(crate) const BY: &str = "postrider";
/// Why.
pub(super) const NOTE: &str = "its endpoint answers again after an outage";
/// Most dead letters that are counted before or after a recovery.
const COUNTED_MAX: i64 = 100_000;
