//! The engine of the push lane: takes pushes from the queue, claims them in PostgreSQL, sends them to Swrve at the one pace that
//! Swrve allows, and records what came of it.
//!
//! Any number of replicas may run; one of them leads and sends, the others stand by (see [`leadership`]). Within a term a
//! push passes through three stages, each of which works in batches where it commits:
//!
//! ```text
//! queue ─▶ claimer ─▶ sender ─▶ completer ─▶ ack
//!          (SQL)      (HTTP)    (SQL)
//! ```
//!
//! The sender has a thread of its own, because pacing suffers from any other work on the same runtime. No stage holds a
//! transaction while another talks to Swrve, and the message is acknowledged last: whatever dies in between, the push
//! is found again by its lease. While Swrve is out of order, and until what waited meanwhile has been sent, the first stage is
//! another one (`backlog`), which reads the database instead of the queue.

mod backlog;
mod claimer;
mod completer;
mod health_watch;
mod lane;
mod plan;
mod result;
mod sender;
mod spans;
mod starts;
mod work;

pub use lane::Lane;

/// Why the lane could not be set up, or a term of it ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Swrve settings are unusable.
    #[error("failed to prepare the Swrve client")]
    Swrve(#[source] http_client::SwrveError),
    /// It cannot be found out whether the push lane is held.
    #[error("failed to look for an outage of Swrve")]
    Hold(#[source] store::Error),
    /// The sender's thread could not be started.
    #[error("failed to start the sender")]
    Sender(#[source] std::io::Error),
    /// The sender's thread ended without having been asked to; the log says why.
    #[error("the sender ended by itself")]
    SenderEnded,
    /// The completer ended while outcomes could still come; the log says why.
    #[error("the completer ended by itself")]
    CompleterEnded,
}
