//! The fault harness behind `make chaos`: everything that Postrider consists of on one host, traffic through it, faults from a
//! seed, and a verdict about what became of every id. Never shipped.

pub mod args;
pub mod dice;
pub mod ground;
pub mod ledger;
pub mod plan;
pub mod receivers;
pub mod report;
pub mod run;
pub mod seeds;
pub mod traffic;
pub mod verdict;
