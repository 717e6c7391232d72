//! Everything that leaves the process over HTTP: the client of the Swrve push API, and the pacing of its sends.
//!
//! An answer, a refusal and an unreachable receiver are all data here ([`domain::push::SendOutcome`]); an error of this
//! crate means that it could not be set up. It keeps no state of a push, decides nothing about retries, and does not
//! know the database or the broker.

mod hand_over;
mod pacer;
mod swrve;

pub use hand_over::HandOver;
pub use pacer::{Pacer, PacerError, SendStart, Turn};
pub use swrve::{PreparedPush, Reply, SwrveClient, SwrveError, SwrveSettings};
