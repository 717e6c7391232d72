//! A node that user agents stay connected to over a web socket: it gives them their endpoints, hands on what senders send while
//! they are there, and brings what was stored while they were away.
//!
//! `connection` is the protocol as a pure state machine, `session` the task of one connection around it; `registry` knows which
//! client is here; `router_port` is where endpoint nodes hand messages over. Truth is PostgreSQL: a message belongs to the endpoint
//! node that took it until the client has acknowledged it, and to the database when that takes too long.
//!
//! What it deliberately does not do: store messages, or keep the only copy of one.

mod autoconnect;
mod broadcasts;
mod connection;
mod endpoints;
mod health;
mod mailbox;
mod megaphone;
mod metrics;
mod months;
mod node;
mod notification;
mod protocol;
mod public_port;
mod registry;
mod router_port;
mod service;
mod session;
mod socket;

pub use autoconnect::{Unusable, sources};
pub use service::{Error, run, run_with_clock};
