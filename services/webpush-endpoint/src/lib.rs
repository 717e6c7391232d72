//! Where senders send to: `POST /wpush/…` hands a message to the connection node that the client is connected to, or stores it;
//! `DELETE /m/…` takes one back; `/v1/webpush/…/registration…` keeps the registrations of clients that do so over HTTP.
//!
//! The order of the checks is that of the contract (docs/webpush.md), and ends where a message is safe: with the client's node, which has
//! the acknowledgement or stores it itself, or in the database. What the rules of delivery need of the client is read once, for many
//! messages in one statement; stores are group commits that come before or after a connection and a move of the same client.
//!
//! What it deliberately does not do: keep a message in memory, decrypt one, or decide in which month it lies; the store does.

mod answer;
mod app;
mod batch;
mod cors;
mod delivery;
mod environment;
mod error;
mod health;
mod limits;
mod messages;
mod metrics;
mod nodes;
mod registrations;
mod router;
mod send;
mod service;

pub use environment::sources;
pub use error::Error;
pub use service::{run, run_with_clock};
