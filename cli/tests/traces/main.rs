//! One trace from a request to the receiver's answer, across processes, the broker and the database: services as
//! processes send their spans to a collector, which has to find a whole tree in them.

#[path = "../faults/rig/mod.rs"]
mod rig;

mod collector;
mod events;
mod pushes;
mod scene;
mod tree;
#[path = "../runbook/user_agent.rs"]
#[allow(dead_code, reason = "the binary of the runbook shares it")]
mod user_agent;
mod webpush;
