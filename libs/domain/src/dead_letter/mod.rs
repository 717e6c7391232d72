//! Dead letters: what a fingerprint means, and how the request of one can be repeated by hand.
//!
//! What becomes of the push or the notification is not decided here but by their own life cycles.

pub mod curl;
mod fingerprint;
mod kind;

pub use fingerprint::fingerprint_part;
pub use kind::FailureClass;
