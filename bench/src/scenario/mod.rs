//! The measurements, one file each.

mod arrivals;
pub(crate) mod backlog;
pub(crate) mod dead_letters;
pub(crate) mod floors;
pub(crate) mod ingest;
pub(crate) mod latency;
pub(crate) mod pacing;
pub(crate) mod reseller;
mod store_times;
mod stored;
mod takeover;
