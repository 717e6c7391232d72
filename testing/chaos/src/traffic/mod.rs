//! What flows through a run: pushes and events from callers that insist, and people that meddle.

mod calls;
mod meddler;
mod orders;
mod subscribers;

pub use calls::{Door, Traffic};
pub use meddler::{Meddler, Office};
pub use orders::{EventOrder, PushOrder, RESELLERS};
pub use subscribers::{Character, Subscriber, Subscribers};
