//! The engines of the two lanes. Both take messages from a queue, claim what they are about in PostgreSQL, make the attempts, record
//! what came of them, and acknowledge the messages last: whatever dies in between is found again by its lease.
//!
//! They differ in who may send and when. In [`push`] one leader sends at the pace of one receiver; in [`webhook`] every
//! replica sends, and a scheduler shares the slots out among subscriptions.

mod claim;
mod message;
pub mod push;
mod record;
#[cfg(test)]
mod tests;
pub mod webhook;
