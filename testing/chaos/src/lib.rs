//! The fault harness behind `make chaos`: everything that Postrider consists of on one host, traffic through it, faults from a
//! seed, and a verdict about what became of every id. Never shipped.

pub mod args;
pub mod cluster;
pub mod ledger;
pub mod plan;
pub mod receivers;
pub mod report;
pub mod rng;
pub mod run;
pub mod seeds;
pub mod traffic;
pub mod verdict;
