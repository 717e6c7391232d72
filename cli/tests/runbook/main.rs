//! The scenarios of `docs/runbook.md`: each breaks something, follows the page to the letter, and finds the system healthy
//! and nothing lost.
//!
//! What disturbs everybody who uses the servers is in a binary of its own, `runbook_servers`.

#[path = "../faults/rig/mod.rs"]
mod rig;

mod broker_wiped;
mod console;
mod endpoint_fails;
mod leader_cut;
#[allow(dead_code, reason = "the binary of the other scenarios shares it")]
mod page;
mod poison;
mod prototype;
mod reseller_floods;
#[allow(dead_code, reason = "the binary of the other scenarios shares it")]
mod scene;
mod swrve_down;
mod user_agent;
mod webpush;
