//! What senders of Web Push were told, and what user agents were shown.

use std::collections::BTreeMap;
use std::time::Instant;

/// A request of a sender. Each has a name of its own, which is its body: what was asked again may come as well.
#[derive(Debug, Clone)]
pub struct SentMessage {
    /// Of the user agent and its channel.
    pub channel: String,
    /// Replaces what was sent before with the same one.
    pub topic: Option<u8>,
    /// Whether it has a TTL that outlasts the run, or none at all.
    pub is_kept: bool,
    /// When it was sent. A channel has one sender, which sends one after another.
    pub asked: Instant,
    /// When it was answered 201, and the message id of the answer.
    pub answered: Option<(Instant, String)>,
}

/// A notification that a user agent was shown.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The body.
    pub name: String,
    /// The message id.
    pub version: String,
    /// When.
    pub at: Instant,
    /// When its acknowledgement was written to the socket.
    pub acked: Option<Instant>,
    /// When the node had said something that it says after it has dealt with the acknowledgement and with all that was outstanding.
    pub confirmed: Option<Instant>,
}

/// All of it.
#[derive(Debug, Default)]
pub struct WebpushHistory {
    /// By name.
    pub sent: BTreeMap<String, SentMessage>,
    /// In the order in which they came, for each user agent.
    pub shown: Vec<Shown>,
    /// How often user agents were greeted.
    pub hellos: u64,
    /// Requests of senders.
    pub requests: u64,
}
